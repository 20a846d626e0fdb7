//! Every way in which a file is replaced, twenty times each under load: one generation each time, and
//! the routes that did not change never notice.

use crate::support::cluster::{Admin, pair};
use crate::support::process::{Mirror, Setup, cluster, route};
use crate::support::reader::compare;
use crate::support::wait::{self, PATIENCE};
use crate::support::workload::{Field, Load, field};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const STEADY: [&str; 3] = ["steady-a", "steady-b", "steady-c"];
const TIMES: usize = 20;

fn clusters() -> Value {
    let pair = pair();
    json!({ "source": cluster(&pair.source.bootstrap()), "target": cluster(&pair.target.bootstrap()) })
}

fn generation(mirror: &Mirror) -> u64 {
    let status = mirror.status();
    status.and_then(|s| s["generation"].as_u64()).unwrap_or(0)
}

/// Puts a text in the place of the file.
type Put = fn(&mut Linked, &str);

/// A file that is reached over two links: `config` is `current`, which is `v0`, `v1`, ….
struct Linked {
    root: PathBuf,
    version: usize,
}

impl Linked {
    fn new(root: &Path, text: &str) -> Self {
        let mut linked = Self {
            root: root.to_owned(),
            version: 0,
        };
        linked.swap_link(text);
        symlink("current", root.join("config")).expect("a link");
        linked
    }

    fn file(&self) -> PathBuf {
        self.root.join("config/mirror.yaml")
    }

    /// The folder that the links lead to.
    fn folder(&self) -> PathBuf {
        self.root.join(format!("v{}", self.version))
    }

    /// As editors save: a new file over the old one.
    fn rename(&mut self, text: &str) {
        let new = self.folder().join(".new");
        fs::write(&new, text).expect("written");
        fs::rename(&new, self.folder().join("mirror.yaml")).expect("renamed");
    }

    /// As `cat >` does: emptied, then written part by part.
    fn in_place(&mut self, text: &str) {
        let mut file = fs::File::create(self.file()).expect("emptied");
        for part in text.as_bytes().chunks(text.len() / 3 + 1) {
            std::io::Write::write_all(&mut file, part).expect("written");
            file.sync_all().expect("on disk");
        }
    }

    /// The folder goes and comes back.
    fn new_folder(&mut self, text: &str) {
        fs::remove_dir_all(self.folder()).expect("removed");
        fs::create_dir(self.folder()).expect("a folder");
        fs::write(self.folder().join("mirror.yaml"), text).expect("written");
    }

    /// As deployments do: the link in the middle leads elsewhere.
    fn swap_link(&mut self, text: &str) {
        self.version += 1;
        fs::create_dir(self.folder()).expect("a folder");
        fs::write(self.folder().join("mirror.yaml"), text).expect("written");
        self.point(Path::new(&format!("v{}", self.version)), "current");
    }

    /// As Kubernetes does: the file is a link through `..data`, which is swapped.
    fn swap_data(&mut self, text: &str) {
        self.version += 1;
        let (dated, data) = (format!("..{}", self.version), self.root.join("map/..data"));
        fs::create_dir_all(self.root.join("map").join(&dated)).expect("a folder");
        fs::write(self.root.join("map").join(&dated).join("mirror.yaml"), text).expect("written");
        let before = fs::read_link(&data).ok();
        self.point(Path::new(&dated), "map/..data");
        if let Some(before) = before {
            return fs::remove_dir_all(self.root.join("map").join(before)).expect("removed");
        }
        symlink("..data/mirror.yaml", self.root.join("map/mirror.yaml")).expect("a link");
        self.point(Path::new("map"), "current");
    }

    /// Makes `name` a link to `target`, in one step.
    fn point(&self, target: &Path, name: &str) {
        let new = self.root.join("new-link");
        symlink(target, &new).expect("a link");
        fs::rename(&new, self.root.join(name)).expect("renamed");
    }
}

/// The steady routes, and one that says the round in a header.
fn turning(round: usize) -> Value {
    let mut routes = json!({});
    for name in STEADY {
        routes[name] = route("source", "target", &format!("events-{name}"));
    }
    let mut turned = route("source", "target", "events-turned");
    turned["handlers"] =
        json!([{ "reformat": { "set": { "header.x-round": round.to_string() } } }]);
    routes["turned"] = turned;
    routes
}

#[test]
fn twenty_of_each_kind_under_load_are_one_generation_each() {
    let pair = pair();
    let source = pair.source.bootstrap();
    let admin = Admin::new(&source);
    let fields: Vec<Field> = STEADY
        .iter()
        .map(|t| field(&format!("events-{t}"), 2))
        .collect();
    fields.iter().for_each(|f| admin.create(&f.topic, 2, &[]));
    admin.create("events-turned", 1, &[]);
    let setup = Setup::new(clusters(), turning(0));
    let text = |round: usize| setup.followed(clusters(), turning(round));
    let mut linked = Linked::new(setup.folder(), &text(0));
    let load = Load::start(&source, &fields, 1000);
    let mut mirror = setup.run_on(&linked.file(), &[]);
    STEADY.iter().for_each(|r| mirror.wait_delivered(r, 100));
    let unrest = |mirror: &Mirror| {
        STEADY.map(|r| (mirror.number(r, "rebalances"), mirror.number(r, "restarts")))
    };
    let before = unrest(&mirror);
    let kinds: [(&str, Put); 5] = [
        ("rename", Linked::rename),
        ("in place", Linked::in_place),
        ("new folder", Linked::new_folder),
        ("link", Linked::swap_link),
        ("..data", Linked::swap_data),
    ];
    let mut round = 0;
    for (kind, put) in kinds {
        for _ in 0..TIMES {
            round += 1;
            put(&mut linked, &text(round));
            wait::until(&format!("{kind} {round} is applied"), PATIENCE, || {
                mirror.assert_running();
                generation(&mirror) > round as u64
            });
            let status = mirror.status().expect("a status");
            assert_eq!(
                status["generation"],
                json!(round + 1),
                "{kind}: {}",
                status["rejected"]
            );
            let routes = &status["last_reload"]["routes"];
            assert_eq!(
                routes["turned"]["result"], "changed",
                "{kind} {round}: {routes}"
            );
            for steady in STEADY {
                assert_eq!(routes[steady]["result"], "kept", "{kind} {round}: {routes}");
            }
        }
    }
    // A thousand saves in a row: however many generations, the last content runs in the end.
    linked.swap_link(&text(round + 1));
    for _ in 0..1000 {
        round += 1;
        linked.rename(&text(round));
    }
    let last = setup.folder().join("last.yaml");
    fs::write(&last, text(round)).expect("written");
    let last = last.to_str().expect("a path");
    wait::until("the last save runs", PATIENCE, || {
        let plan = setup.ask(&["plan", last, "--exit-code"]);
        plan.status.code() == Some(0)
    });
    assert_eq!(unrest(&mirror), before);
    println!(
        "file events: {} generations, steady routes {before:?} throughout",
        generation(&mirror)
    );
    let expected = load.stop();
    for (route, of) in STEADY.iter().zip(&fields) {
        mirror.wait_copied(&admin, route, &[&of.topic]);
    }
    assert_eq!(mirror.terminate().code(), Some(0));
    let topics: Vec<&str> = fields.iter().map(|f| f.topic.as_str()).collect();
    compare(&pair.target.bootstrap(), &expected.of(&topics)).assert_perfect();
}
