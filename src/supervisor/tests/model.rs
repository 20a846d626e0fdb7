//! The supervisor under random interleavings of exits, timers, reloads good and bad, pauses and stops,
//! against what must hold whatever the order (I5, I6), and where it must end.
//!
//! That two flows of one place never run at the same time (B126) is asserted by the fakes at each start.

use super::*;
use crate::supervisor::event::Steered;
use proptest::prelude::*;
use std::collections::BTreeSet;

const ROUTES: [&str; 3] = ["a", "b", "c"];

/// How a route looks in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Absent,
    Plain,
    /// Needs a restart.
    Changed,
    /// Changes live.
    Tuned,
    /// Another target beside the first.
    Wider,
}

#[derive(Clone, Copy, Debug)]
enum How {
    Drained,
    Failed,
    Unconfirmed,
    Aborted,
    Vanished,
}

#[derive(Clone, Debug)]
enum Step {
    Exit(usize, How),
    Take(usize),
    Pass(u64),
    Reload,
    Loaded([Shape; 3]),
    Rejected,
    Pause(usize),
    Resume(usize),
}

fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        1 => Just(Shape::Absent),
        3 => Just(Shape::Plain),
        2 => Just(Shape::Changed),
        2 => Just(Shape::Tuned),
        2 => Just(Shape::Wider),
    ]
}

fn shapes() -> impl Strategy<Value = [Shape; 3]> {
    [shape(), shape(), shape()]
}

fn step() -> impl Strategy<Value = Step> {
    let how = prop_oneof![
        4 => Just(How::Drained),
        2 => Just(How::Failed),
        1 => Just(How::Unconfirmed),
        1 => Just(How::Aborted),
        1 => Just(How::Vanished),
    ];
    prop_oneof![
        6 => (any::<usize>(), how).prop_map(|(pick, how)| Step::Exit(pick, how)),
        3 => any::<usize>().prop_map(Step::Take),
        3 => (0u64..20_000).prop_map(Step::Pass),
        3 => Just(Step::Reload),
        3 => shapes().prop_map(Step::Loaded),
        1 => Just(Step::Rejected),
        1 => (0usize..3).prop_map(Step::Pause),
        1 => (0usize..3).prop_map(Step::Resume),
    ]
}

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
}

impl Model {
    fn new(shapes: [Shape; 3]) -> Self {
        Self {
            bench: Bench::with(file(shapes).routes.into_values().collect()),
            loading: false,
            paused: BTreeSet::new(),
            files: 0,
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
                let (reply, _) = oneshot::channel();
                self.handle(Event::Reload { reply });
            }
            Step::Loaded(shapes) if self.loading => self.load(file(*shapes)),
            Step::Rejected if self.loading => self.reject(),
            Step::Loaded(_) | Step::Rejected => {}
            Step::Pause(at) => {
                let (reply, mut steered) = oneshot::channel();
                let route = name(ROUTES[*at]);
                self.handle(Event::Pause { route, reply });
                if matches!(steered.try_recv(), Ok(Steered::Accepted)) {
                    self.paused.insert(ROUTES[*at]);
                }
            }
            Step::Resume(at) => {
                let (reply, mut steered) = oneshot::channel();
                let route = name(ROUTES[*at]);
                self.handle(Event::Resume { route, reply });
                if matches!(steered.try_recv(), Ok(Steered::Accepted)) {
                    self.paused.remove(ROUTES[*at]);
                }
            }
        }
        self.loading |= self.bench.supervisor.take_effects().contains(&Effect::Load);
    }

    /// I6: the end of one route's flow is nothing to the others.
    fn exit(&mut self, pick: usize, how: How) {
        let flows = self.bench.flows.all();
        let running: Vec<_> = flows.iter().filter(|flow| flow.runs()).collect();
        let Some(flow) = running.get(pick % running.len().max(1)) else {
            return;
        };
        let before = self.told_to_others(&flow.route);
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
    }

    fn load(&mut self, wanted: Spec) {
        self.loading = false;
        self.files += 1;
        let hash = format!("file {}", self.files);
        let before = self.running();
        self.handle(Event::Loaded(Ok(config(wanted, &hash))));
        let running = self.running();
        if !Arc::ptr_eq(&before, &running) {
            self.paused
                .retain(|of| running.routes.contains_key(&name(of)));
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
    }

    /// A stop starts nothing, and ends within its budget whatever the flows do.
    fn stops(&mut self, obedient: bool) {
        let before = self.bench.flows.all().len();
        self.bench.signal(Signal::Stop);
        self.bench.pump();
        if obedient {
            for flow in self.bench.flows.all().iter().filter(|f| f.runs()) {
                assert!(!flow.told().is_empty(), "{} was told nothing", flow.route);
                flow.exit(FlowExit::Drained);
            }
            self.bench.pump();
        } else {
            self.bench.pass(Duration::from_secs(40));
        }
        assert!(self.bench.supervisor.finished().is_some(), "it ends");
        assert_eq!(
            self.bench.flows.all().len(),
            before,
            "nothing starts any more"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 256, ..ProptestConfig::default() })]

    #[test]
    fn routes_end_where_the_last_good_file_says(
        first in shapes(), steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut model = Model::new(first);
        steps.iter().for_each(|step| model.take(step));
        model.converges();
    }

    #[test]
    fn a_stop_ends_at_any_moment(
        first in shapes(), steps in prop::collection::vec(step(), 1..60), obedient: bool,
    ) {
        let mut model = Model::new(first);
        steps.iter().for_each(|step| model.take(step));
        model.stops(obedient);
    }
}
