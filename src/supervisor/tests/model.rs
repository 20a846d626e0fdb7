//! The supervisor under random interleavings of exits, timers, reloads good and bad, pauses and stops,
//! against what must hold whatever the order (I5, I6), a naive idea of what may run after each step, and where it must end.
//!
//! That two flows of one place never run at the same time (B126) is asserted by the fakes at each start.

mod step;

use super::*;
use crate::seen::{Seen, prove};
use crate::supervisor::event::Steered;
use crate::supervisor::testing::Fake;
use proptest::prelude::*;
use std::collections::BTreeSet;
use step::*;

fn made(of: &str, shape: Shape) -> Option<Arc<RouteSpec>> {
    let plain = route(of);
    match shape {
        Shape::Absent => None,
        Shape::Plain => Some(plain),
        Shape::Changed => Some(changed(&plain)),
        Shape::Tuned => Some(tuned(&plain)),
        Shape::Wider => {
            let mut wider = (*plain).clone();
            wider.targets.push(cluster("lake", "lake:9092"));
            Some(Arc::new(wider))
        }
    }
}

fn file(shapes: [Shape; 3]) -> Spec {
    let routes = ROUTES.iter().zip(shapes);
    spec(routes.filter_map(|(of, shape)| made(of, shape)).collect())
}

struct Model {
    bench: Bench,
    /// Loads that were asked for and have not answered.
    loading: bool,
    paused: BTreeSet<&'static str>,
    files: usize,
    /// How many flows had been started when the process was told to stop.
    stopped: Option<usize>,
    /// Who waits for the verdict of a reload.
    asked: Vec<oneshot::Receiver<ReloadVerdict>>,
    seen: Seen<Rare>,
}

/// Whether a flow was told to end.
fn is_told_to_end(flow: &Fake) -> bool {
    let told = flow.told();
    let mut told = told.iter();
    told.any(|t| matches!(t, Told::Drain(_) | Told::Abort))
}

impl Model {
    fn new(shapes: [Shape; 3]) -> Self {
        Self {
            bench: Bench::with(file(shapes).routes.into_values().collect()),
            loading: false,
            paused: BTreeSet::new(),
            files: 0,
            stopped: None,
            asked: Vec::new(),
            seen: Seen::default(),
        }
    }

    fn seen_if(&mut self, rare: Rare, is: bool) {
        if is {
            self.seen.note(rare);
        }
    }

    fn running_flows(&self) -> Vec<Arc<Fake>> {
        let mut all = self.bench.flows.all();
        all.retain(|flow| flow.runs());
        all
    }

    /// Whether a flow of `route` was told to end and has not.
    fn is_ending(&self, route: &str) -> bool {
        let flows = self.running_flows();
        flows.iter().any(|f| f.route == route && is_told_to_end(f))
    }

    /// Whether the last file is not in force everywhere.
    fn is_applying(&self) -> bool {
        let flows = self.running_flows();
        flows.iter().any(|f| is_told_to_end(f) || f.is_changing())
    }

    /// What may run, naively: a flow that nobody told to end is of a place that the running file has, works as that says,
    /// and neither its user nor the end of the process is against it.
    fn check(&self) {
        let spec = self.running();
        for flow in self.running_flows() {
            if is_told_to_end(&flow) {
                continue;
            }
            let of = &flow.route;
            assert!(self.stopped.is_none(), "{of} goes on after the stop");
            assert!(!self.paused.contains(of.as_str()), "{of} is paused");
            let route = spec.routes.get(&name(of));
            let route = route.unwrap_or_else(|| panic!("{of} is not in the file"));
            let mut sources = route.sources.iter();
            let mut targets = route.targets.iter();
            assert!(sources.any(|c| c.name == name(&flow.source)));
            assert!(targets.any(|c| c.name == name(&flow.target)));
            let works_by = flow.works_by();
            assert_eq!(works_by.commit_interval, route.commit_interval, "{of}");
            assert_eq!(works_by.threads.workers, route.threads.workers, "{of}");
        }
        if let Some(started) = self.stopped {
            let now = self.bench.flows.all().len();
            assert_eq!(now, started, "nothing starts any more");
        }
    }

    fn handle(&mut self, event: Event) {
        let now = self.bench.now;
        self.bench.supervisor.handle(event, now);
        self.bench.pump();
        self.loading |= self.bench.supervisor.take_effects().contains(&Effect::Load);
    }

    /// Everything that flows were told so far, but for those of `route`.
    fn told_to_others(&self, route: &str) -> Vec<(String, Vec<Told>)> {
        let all = self.bench.flows.all().into_iter();
        let others = all.filter(|flow| flow.route != route);
        others
            .map(|flow| (flow.route.clone(), flow.told()))
            .collect()
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Exit(pick, how) => self.exit(*pick, *how),
            Step::Take(pick) => {
                let flows = self.bench.flows.all();
                if let Some(flow) = flows.get(pick % flows.len().max(1)) {
                    flow.take();
                    self.bench.pump();
                }
            }
            Step::Pass(ms) => self.bench.pass(Duration::from_millis(*ms)),
            Step::Reload => {
                self.seen_if(Rare::ReloadWhileLoading, self.loading);
                self.seen_if(Rare::ReloadWhileApplying, self.is_applying());
                let (reply, verdict) = oneshot::channel();
                self.asked.push(verdict);
                self.handle(Event::Reload { reply });
            }
            Step::Loaded(shapes) if self.loading => self.load(file(*shapes)),
            Step::Rejected if self.loading => self.reject(),
            Step::Loaded(_) | Step::Rejected => {}
            Step::Pause(at) => {
                let is_ending = self.is_ending(ROUTES[*at]);
                let (reply, mut steered) = oneshot::channel();
                let route = name(ROUTES[*at]);
                self.handle(Event::Pause { route, reply });
                if matches!(steered.try_recv(), Ok(Steered::Accepted)) {
                    self.paused.insert(ROUTES[*at]);
                    self.seen_if(Rare::PauseWhileEnding, is_ending);
                }
            }
            Step::Resume(at) => {
                let (reply, mut steered) = oneshot::channel();
                let route = name(ROUTES[*at]);
                self.handle(Event::Resume { route, reply });
                if matches!(steered.try_recv(), Ok(Steered::Accepted)) {
                    self.paused.remove(ROUTES[*at]);
                    self.seen_if(Rare::ResumeWhileEnding, self.is_ending(ROUTES[*at]));
                }
            }
            Step::Stop => self.stop(),
        }
        self.loading |= self.bench.supervisor.take_effects().contains(&Effect::Load);
        self.check();
    }

    fn stop(&mut self) {
        self.seen_if(Rare::StopWhileLoading, self.loading);
        self.seen_if(Rare::StopWhileApplying, self.is_applying());
        self.seen_if(Rare::StopWhilePaused, !self.paused.is_empty());
        self.seen_if(Rare::SecondStop, self.stopped.is_some());
        let started = self.bench.flows.all().len();
        self.stopped.get_or_insert(started);
        self.bench.signal(Signal::Stop);
        self.bench.pump();
    }

    /// I6: the end of one route's flow is nothing to the others.
    fn exit(&mut self, pick: usize, how: How) {
        let flows = self.bench.flows.all();
        let running: Vec<_> = flows.iter().filter(|flow| flow.runs()).collect();
        let Some(flow) = running.get(pick % running.len().max(1)) else {
            return;
        };
        let before = self.told_to_others(&flow.route);
        let fails = !matches!(how, How::Drained);
        let stops = self.stopped.is_some();
        self.seen_if(Rare::FailureWhileStopping, fails && stops);
        self.seen_if(
            Rare::FailureWhileEnding,
            fails && !stops && is_told_to_end(flow),
        );
        self.seen_if(Rare::FailureWhileChanging, fails && flow.is_changing());
        let reason = || Reason::NoTopics;
        match how {
            How::Drained => flow.exit(FlowExit::Drained),
            How::Failed => flow.exit(FlowExit::Failed(reason())),
            How::Unconfirmed => flow.exit(FlowExit::Unconfirmed(vec![Unconfirmed {
                partition: TopicPartition::new("t", 0),
                committed: None,
                next: 3,
            }])),
            How::Aborted => flow.exit(FlowExit::AbortRoute(reason())),
            How::Vanished => flow.vanish(),
        }
        self.bench.pump();
        let after = self.told_to_others(&flow.route);
        assert_eq!(
            before, after,
            "I6: others hear of the end of {}",
            flow.route
        );
        if matches!(how, How::Aborted) && !is_told_to_end(flow) {
            let mut others = self.running_flows();
            others.retain(|other| other.route == flow.route);
            self.seen_if(Rare::AbortOfOneOfMany, !others.is_empty());
            let end = others.iter().all(|other| is_told_to_end(other));
            assert!(end, "{} was to stop whole", flow.route);
        }
    }

    fn load(&mut self, wanted: Spec) {
        self.loading = false;
        self.files += 1;
        let hash = format!("file {}", self.files);
        let before = self.running();
        self.note_accepted(&before, &wanted);
        self.handle(Event::Loaded(Ok(config(wanted, &hash))));
        let running = self.running();
        assert!(
            self.stopped.is_none() || Arc::ptr_eq(&before, &running),
            "nothing is applied after the stop"
        );
        if !Arc::ptr_eq(&before, &running) {
            self.paused
                .retain(|of| running.routes.contains_key(&name(of)));
        }
    }

    fn note_accepted(&mut self, before: &Spec, wanted: &Spec) {
        if self.stopped.is_some() {
            return self.seen.note(Rare::LoadedWhileStopping);
        }
        let ends_at = |spec: &Spec, flow: &Fake| {
            let route = spec.routes.get(&name(&flow.route));
            route.is_some_and(|r| r.targets.iter().any(|t| t.name == name(&flow.target)))
        };
        let mut flows = self.running_flows();
        flows.retain(|flow| is_told_to_end(flow) && before.routes.contains_key(&name(&flow.route)));
        let comes_back = flows
            .iter()
            .any(|f| !ends_at(before, f) && ends_at(wanted, f));
        self.seen_if(Rare::WantedWhileLeaving, comes_back);
        let differs = |of: &&&str| before.routes.get(&name(of)) != wanted.routes.get(&name(of));
        for of in ROUTES.iter().filter(differs) {
            self.seen_if(Rare::AcceptedWhileEnding, self.is_ending(of));
            self.seen_if(Rare::ChangeWhilePaused, self.paused.contains(of));
        }
    }

    fn running(&self) -> Arc<Spec> {
        self.bench
            .board
            .snapshot()
            .process
            .spec
            .clone()
            .expect("a first configuration")
    }

    /// I5: a file that is refused changes nothing.
    fn reject(&mut self) {
        self.loading = false;
        self.seen_if(Rare::RejectedWhileApplying, self.is_applying());
        let (spec, told) = (self.running(), self.told_to_others(""));
        self.handle(Event::Loaded(Err(rejected())));
        assert!(Arc::ptr_eq(&spec, &self.running()), "I5: the spec");
        assert_eq!(told, self.told_to_others(""), "I5: the flows");
    }

    /// Flows do what they are told, files can be read, and time goes by.
    fn settle(&mut self) {
        for _ in 0..12 {
            for flow in self.bench.flows.all() {
                let told = flow.told();
                let ends = told
                    .iter()
                    .any(|t| matches!(t, Told::Drain(_) | Told::Abort));
                if flow.runs() && ends {
                    flow.exit(FlowExit::Drained);
                }
                flow.take();
                self.bench.pump();
            }
            self.bench.pass(Duration::from_secs(30));
            self.loading |= self.bench.supervisor.take_effects().contains(&Effect::Load);
            if self.loading {
                let spec = (*self.running()).clone();
                self.load(spec);
            }
        }
    }

    /// Every route of the accepted file runs with its settings, but for what the user holds; nothing else
    /// does.
    fn converges(&mut self) {
        self.settle();
        // What a fault stopped is tried again by a reload.
        self.take(&Step::Reload);
        self.settle();
        let spec = self.running();
        let mut wanted = BTreeSet::new();
        for route in spec.routes.values() {
            if self.paused.contains(route.name.as_str()) {
                continue;
            }
            for (source, target) in route
                .sources
                .iter()
                .flat_map(|s| route.targets.iter().map(move |t| (s, t)))
            {
                let ends = [&route.name, &source.name, &target.name].map(ToString::to_string);
                wanted.insert(ends);
            }
        }
        let all = self.bench.flows.all();
        let running: Vec<_> = all.iter().filter(|flow| flow.runs()).collect();
        let there = running
            .iter()
            .map(|f| [f.route.clone(), f.source.clone(), f.target.clone()]);
        assert_eq!(there.collect::<BTreeSet<_>>(), wanted);
        for flow in running {
            let route = &spec.routes[&name(&flow.route)];
            assert_eq!(flow.works_by().commit_interval, route.commit_interval);
            assert_eq!(flow.works_by().threads.workers, route.threads.workers);
        }
        self.all_are_answered();
    }

    /// Whoever asked for a reload has its verdict.
    fn all_are_answered(&mut self) {
        let is_answered = |verdict: &mut oneshot::Receiver<_>| verdict.try_recv().is_ok();
        assert!(self.asked.iter_mut().all(is_answered));
    }

    /// A stop ends within its budget whatever the flows do.
    fn stops(&mut self, flows: Obedience) {
        match flows {
            Obedience::EndWhenTold => {
                for flow in self.running_flows() {
                    assert!(is_told_to_end(&flow), "{} was told nothing", flow.route);
                    flow.exit(FlowExit::Drained);
                }
                self.bench.pump();
            }
            Obedience::NeverEnd => self.bench.pass(Duration::from_secs(40)),
        }
        self.check();
        assert!(self.bench.supervisor.finished().is_some(), "it ends");
        if self.loading {
            self.reject();
        }
        self.all_are_answered();
    }
}

/// Those that come of a stop are behind it in [`Rare::ALL`].
fn before_a_stop() -> &'static [Rare] {
    let first = Rare::ALL.iter().position(|r| *r == Rare::StopWhileLoading);
    &Rare::ALL[..first.unwrap()]
}

#[test]
fn routes_end_where_the_last_good_file_says() {
    prove(
        file!(),
        &(shapes(), steps()),
        before_a_stop(),
        |(first, steps)| {
            let mut model = Model::new(first);
            steps.iter().for_each(|step| model.take(step));
            model.converges();
            model.seen
        },
    );
}

#[test]
fn a_stop_ends_at_any_moment() {
    let all = (
        shapes(),
        steps(),
        prop::collection::vec(prop_oneof![9 => step(), 1 => Just(Step::Stop)], 0..30),
        obedience(),
    );
    prove(file!(), &all, Rare::ALL, |(first, before, after, flows)| {
        let mut model = Model::new(first);
        before.iter().for_each(|step| model.take(step));
        model.take(&Step::Stop);
        after.iter().for_each(|step| model.take(step));
        model.stops(flows);
        model.seen
    });
}
