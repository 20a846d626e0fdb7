//! Specs and flows for tests: flows that do what the test says, when it says so.

use super::{Flows, OnExit, RunningFlow};
use crate::config::spec::*;
use crate::flow::{FlowExit, FlowSpec, OnTaken};
use crate::handler::Chain;
use crate::observe::FlowView;
use crate::partition::PolicySpec;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn cluster(of: &str, address: &str) -> Arc<ClusterSpec> {
    Arc::new(ClusterSpec {
        name: name(of),
        bootstrap_servers: vec![address.to_owned()],
        properties: BTreeMap::new(),
        tls: None,
        sasl: None,
        access: Access::ReadWrite,
        expect_cluster_id: None,
        data_plane: DataPlane::Auto,
    })
}

/// A route from `lisbon` to `hub`, of the topic that is called as it is.
pub(crate) fn route(of: &str) -> Arc<RouteSpec> {
    Arc::new(RouteSpec {
        name: name(of),
        about: None,
        sources: vec![cluster("lisbon", "lisbon:9092")],
        targets: vec![cluster("hub", "hub:9092")],
        topics: TopicSelection::new(&[of.to_owned()], &[]).unwrap(),
        chain: Chain::default(),
        policy: PolicySpec::KeyHash,
        start: Start::Earliest,
        on_gap: OnGap::Stop,
        on_error: OnError::Stop,
        dead_letter: None,
        threads: ThreadSpec {
            workers: NonZeroUsize::MIN,
            handlers: None,
            queue_records: 100,
            queue_bytes: 1 << 20,
            producers: NonZeroUsize::MIN,
        },
        topic_creation: TopicCreation {
            mode: CreationMode::Enabled,
            replication_factor: None,
            configs: Vec::new(),
        },
        in_flight_bytes: 1 << 20,
        record_bytes: None,
        commit_interval: Duration::from_secs(1),
        discovery_interval: Duration::from_secs(5),
        rebalance_listener: None,
        group_protocol: GroupProtocol::Classic,
        until: Until::Stopped,
        data_plane: DataPlane::Auto,
        was: None,
        accept: Vec::new(),
    })
}

/// A route that ends by itself.
pub(crate) fn route_until_end(of: &str) -> Arc<RouteSpec> {
    let mut made = (*route(of)).clone();
    made.until = Until::End;
    Arc::new(made)
}

/// `route` with one more worker: it restarts.
pub(crate) fn changed(route: &RouteSpec) -> Arc<RouteSpec> {
    let mut made = route.clone();
    made.threads.workers = made.threads.workers.saturating_add(1);
    Arc::new(made)
}

/// `route` with another commit interval: it changes live.
pub(crate) fn tuned(route: &RouteSpec) -> Arc<RouteSpec> {
    let mut made = route.clone();
    made.commit_interval += Duration::from_secs(1);
    Arc::new(made)
}

pub(crate) fn spec(routes: Vec<Arc<RouteSpec>>) -> Spec {
    Spec {
        group: name("default"),
        clusters: BTreeMap::new(),
        routes: routes.into_iter().map(|r| (r.name.clone(), r)).collect(),
        memory_bytes: 1 << 30,
        reload: ReloadSpec {
            watch: Watch::On,
            settle: Duration::from_millis(500),
        },
        grace: Duration::from_secs(25),
        admin: AdminSpec {
            listen: Some(([127, 0, 0, 1], 8787).into()),
            socket: None,
            token: None,
        },
        accept: Vec::new(),
    }
}

/// What a fake flow was told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    Drain(Instant),
    Abort,
    Change(Arc<RouteSpec>),
}

/// One fake flow.
pub(crate) struct Fake {
    pub route: String,
    pub source: String,
    pub target: String,
    /// What it was started with.
    pub spec: Arc<RouteSpec>,
    pub view: Arc<FlowView>,
    told: Mutex<Vec<Told>>,
    on_exit: Mutex<Option<OnExit>>,
    on_taken: Mutex<Vec<OnTaken>>,
}

impl Fake {
    pub fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }

    /// The settings that it works by.
    pub fn works_by(&self) -> Arc<RouteSpec> {
        let told = self.told();
        let changes = told.into_iter().rev().filter_map(|told| match told {
            Told::Change(route) => Some(route),
            Told::Drain(_) | Told::Abort => None,
        });
        changes
            .into_iter()
            .next()
            .unwrap_or_else(|| Arc::clone(&self.spec))
    }

    /// Whether it has not ended.
    pub fn runs(&self) -> bool {
        self.on_exit.lock().unwrap().is_some()
    }

    /// Whether it was given settings and has not said that they hold.
    pub fn is_changing(&self) -> bool {
        !self.on_taken.lock().unwrap().is_empty()
    }

    pub fn exit(&self, exit: FlowExit) {
        let on_exit = self.on_exit.lock().unwrap().take().expect("ends once");
        on_exit(exit);
    }

    /// Says that the settings it was given hold.
    pub fn take(&self) {
        let taken = std::mem::take(&mut *self.on_taken.lock().unwrap());
        taken.into_iter().for_each(|on_taken| on_taken());
    }

    /// Ends like a thread that panics: nobody calls `on_exit`.
    pub fn vanish(&self) {
        drop(self.on_exit.lock().unwrap().take());
    }
}

struct Handle(Arc<Fake>);

impl RunningFlow for Handle {
    fn view(&self) -> Arc<FlowView> {
        Arc::clone(&self.0.view)
    }

    fn drain(&self, deadline: Instant) {
        self.0.told.lock().unwrap().push(Told::Drain(deadline));
    }

    fn abort(&self) {
        self.0.told.lock().unwrap().push(Told::Abort);
    }

    fn change(&self, route: Arc<RouteSpec>, on_taken: OnTaken) {
        self.0.told.lock().unwrap().push(Told::Change(route));
        self.0.on_taken.lock().unwrap().push(on_taken);
    }
}

/// Starts fakes and remembers them all.
#[derive(Default)]
pub(crate) struct Fakes(Mutex<Vec<Arc<Fake>>>);

impl Flows for Fakes {
    fn start(&self, spec: FlowSpec, on_exit: OnExit) -> Arc<dyn RunningFlow> {
        let (route, source, target) = (&spec.route.name, &spec.source.name, &spec.target.name);
        let group = group_name(&spec.group, route, source, target);
        // B126: two flows of one place never run at the same time.
        assert!(
            !self.all().iter().any(|f| f.view.group == group && f.runs()),
            "{group} was started while the one before still ran"
        );
        let fake = Arc::new(Fake {
            route: route.to_string(),
            source: source.to_string(),
            target: target.to_string(),
            spec: Arc::clone(&spec.route),
            view: Arc::new(FlowView::new(
                route.as_str(),
                source.as_str(),
                target.as_str(),
                &group,
            )),
            told: Mutex::default(),
            on_exit: Mutex::new(Some(on_exit)),
            on_taken: Mutex::default(),
        });
        self.0.lock().unwrap().push(Arc::clone(&fake));
        Arc::new(Handle(fake))
    }
}

impl Fakes {
    pub fn all(&self) -> Vec<Arc<Fake>> {
        self.0.lock().unwrap().clone()
    }

    /// Every flow of `route`, in the order of their starts.
    pub fn of(&self, route: &str) -> Vec<Arc<Fake>> {
        let mut all = self.all();
        all.retain(|fake| fake.route == route);
        all
    }

    /// The newest flow of `route`.
    pub fn last(&self, route: &str) -> Arc<Fake> {
        self.of(route).pop().expect("was started")
    }
}
