//! The instances of `mirror`: which run, which stand still.

use crate::clusters::Clusters;
use crate::support::process::{Mirror, Setup, cluster};
use crate::support::wait;
use crate::traffic::{Generation, Topics};
use proof::plan::{INSTANCES, Plan, Protocol, Shape};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The third one, which joins and leaves.
pub const THIRD: usize = INSTANCES;
const ROUTES: [&str; 2] = ["plain", "worked"];

/// All of them; each has a file and a log of its own.
pub struct Instances {
    each: Vec<Instance>,
    /// The file without its routes.
    base: Value,
    threads: Value,
    protocol: &'static str,
    topics: Topics,
    generation: Generation,
    seen: Arc<Mutex<Seen>>,
}

/// The process ids of those that run and do not stand still.
pub type Seen = Vec<Option<u32>>;

struct Instance {
    // Dropped in this order: its log is shown if a run breaks off, and lies in the folder of the file.
    life: Life,
    setup: Setup,
}

enum Life {
    Down,
    Running(Mirror),
    Frozen(Mirror),
}

/// Waits until it has read its file and listens to signals.
fn wait_answering(mirror: &mut Mirror) {
    wait::until("a mirror answers", wait::PATIENCE, || {
        mirror.assert_running();
        mirror.status().is_some()
    });
}

impl Instances {
    /// None of them runs yet.
    pub fn new(clusters: &Clusters, plan: &Plan, topics: Topics) -> Self {
        let of = |bootstrap: &str| {
            let mut cluster = cluster(bootstrap);
            if plan.protocol == Protocol::Consumer {
                // There the brokers say how long a session is: as long as in the other protocol.
                cluster["properties"] = json!({});
            }
            cluster
        };
        let mut target = of(&clusters.target.bootstrap_proxied());
        target["sasl"] =
            json!({ "mechanism": "PLAIN", "username": "mirror", "password": "secret" });
        let both = json!({ "source": of(&clusters.source.bootstrap_proxied()), "target": target });
        let setup = || Setup::new(json!({}), json!({}));
        let instance = || Instance {
            life: Life::Down,
            setup: setup(),
        };
        Self {
            each: (0..=THIRD).map(|_| instance()).collect(),
            base: json!({ "group": format!("t{}", plan.seed), "clusters": both }),
            threads: match plan.shape {
                Shape::Workers(count) => json!({ "workers": count }),
                Shape::Handlers(count) => json!({ "handler_threads": count }),
            },
            protocol: match plan.protocol {
                Protocol::Classic => "classic",
                Protocol::Consumer => "consumer",
            },
            topics,
            generation: Generation::Odd,
            seen: Arc::new(Mutex::new(vec![None; THIRD + 1])),
        }
    }

    /// Who runs, for somebody who looks on from another thread.
    pub fn seen(&self) -> Arc<Mutex<Seen>> {
        self.seen.clone()
    }

    fn show(&self, index: usize) {
        let pid = match &self.each[index].life {
            Life::Running(mirror) => Some(mirror.pid()),
            Life::Down | Life::Frozen(_) => None,
        };
        self.seen.lock().unwrap()[index] = pid;
    }

    /// Asks for the status of each from another thread.
    pub fn ports(&self) -> Vec<u16> {
        self.each.iter().map(|i| i.setup.port()).collect()
    }

    /// The file as it should be.
    fn file(&self) -> Value {
        let mut file = self.base.clone();
        file["routes"] = self
            .topics
            .routes(self.generation, &self.threads, self.protocol);
        file
    }

    /// Starts one, with a good file.
    pub fn start(&mut self, index: usize) {
        let file = self.file();
        let instance = &mut self.each[index];
        instance.setup.put(file);
        instance.life = Life::Running(instance.setup.run(&[]));
        self.show(index);
    }

    /// `kill -9`.
    pub fn kill(&mut self, index: usize) {
        if let Some(mirror) = self.each[index].take() {
            self.show(index);
            mirror.kill();
        }
    }

    /// SIGTERM, and its exit code. Before it listens to signals it would end like any program.
    pub fn terminate(&mut self, index: usize) -> Option<i32> {
        self.thaw(index);
        let mut mirror = self.each[index].take()?;
        self.show(index);
        wait_answering(&mut mirror);
        mirror.terminate().code()
    }

    /// SIGSTOP.
    pub fn freeze(&mut self, index: usize) {
        if let Some(mirror) = self.each[index].take() {
            mirror.signal(libc::SIGSTOP);
            self.each[index].life = Life::Frozen(mirror);
            self.show(index);
        }
    }

    /// SIGCONT.
    pub fn thaw(&mut self, index: usize) {
        match self.each[index].take() {
            None => {}
            Some(mirror) => {
                mirror.signal(libc::SIGCONT);
                self.each[index].life = Life::Running(mirror);
                self.show(index);
            }
        }
    }

    /// Those that can be asked.
    pub fn running(&self) -> impl Iterator<Item = (usize, &Mirror)> {
        self.each
            .iter()
            .enumerate()
            .filter_map(|(i, instance)| match &instance.life {
                Life::Running(mirror) => Some((i, mirror)),
                Life::Down | Life::Frozen(_) => None,
            })
    }

    /// One, if it can be asked.
    pub fn one(&self, index: usize) -> Option<&Mirror> {
        self.running().find(|(i, _)| *i == index).map(|(_, m)| m)
    }

    /// A number of both routes, of these instances together.
    pub fn number(&self, name: &str, of: impl Fn(usize) -> bool) -> u64 {
        let asked = self.running().filter(|(i, _)| of(*i));
        let both = |m: &Mirror| ROUTES.iter().map(|r| m.number(r, name)).sum::<u64>();
        asked.map(|(_, mirror)| both(mirror)).sum()
    }

    /// Every reason that one of them gives for a flow or a partition that is not as it should be.
    pub fn reasons(&self) -> BTreeSet<String> {
        let mut reasons = BTreeSet::new();
        for status in self.running().filter_map(|(_, m)| m.status()) {
            for route in ROUTES {
                let flows = status["routes"][route]["flows"].as_array();
                for flow in flows.into_iter().flatten() {
                    let partitions = flow["partitions_listed"].as_array();
                    let all = partitions.into_iter().flatten().chain([flow]);
                    let codes = all.filter_map(|of| of["reason"]["code"].as_str());
                    reasons.extend(codes.map(str::to_owned));
                }
            }
        }
        reasons
    }

    /// Gives everybody the file with another handler.
    pub fn reload(&mut self) {
        self.generation = self.generation.next();
        self.mend();
    }

    /// Gives everybody the good file.
    pub fn mend(&mut self) {
        self.give(&self.file());
    }

    /// Gives everybody a file that is wrong.
    pub fn break_file(&mut self) {
        let mut file = self.file();
        file["routes"]["plain"]["workers"] = json!("many");
        self.give(&file);
    }

    /// One that has just been started would begin with the new file, and be ended by the signal.
    fn give(&mut self, file: &Value) {
        for instance in &mut self.each {
            if let Life::Running(mirror) = &mut instance.life {
                wait_answering(mirror);
            }
            instance.setup.put(file.clone());
        }
        self.running().for_each(|(_, m)| m.signal(libc::SIGHUP));
    }

    /// What all of them logged of one kind of event, whether they run or not.
    pub fn logged(&self, event: &str) -> Vec<Value> {
        let of = |i: &Instance| i.setup.logged(event);
        self.each.iter().flat_map(of).collect()
    }

    /// # Panics
    /// If one has ended that nobody asked to.
    pub fn assert_running(&mut self) {
        for instance in &mut self.each {
            if let Life::Running(mirror) = &mut instance.life {
                mirror.assert_running();
            }
        }
    }

    /// Runs another one to the end of everything; its exit code.
    pub fn catch_up(&mut self, within: std::time::Duration) -> Option<i32> {
        let file = self.file();
        let setup = &self.each[0].setup;
        setup.put(file);
        setup.run(&["--until-caught-up"]).wait(within).code()
    }

    /// Keeps their logs in a folder.
    pub fn keep_logs(&self, folder: &Path) {
        let _ = std::fs::create_dir_all(folder);
        for (index, instance) in self.each.iter().enumerate() {
            let log = instance.setup.folder().join("log");
            let _ = std::fs::copy(log, folder.join(format!("mirror-{index}.log")));
        }
    }
}

impl Instance {
    fn take(&mut self) -> Option<Mirror> {
        match std::mem::replace(&mut self.life, Life::Down) {
            Life::Down => None,
            Life::Running(mirror) | Life::Frozen(mirror) => Some(mirror),
        }
    }
}
