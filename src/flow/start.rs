//! Builds a flow: scout, verifier, keeper, producers, workers.

use super::lane::{Lane, LaneSpec, Lease};
use super::listener::{Announced, Announcer, ExecListener, LogListener, RebalanceListener};
use super::planes::{Plane, Planes};
use super::scout::{Finding, Inquiry, Scout, ScoutSpec};
use super::sinks::{MakeSink, Purpose, Sinks};
use super::stage::Stage;
use super::target::{Ask, KeeperSpec, TargetView, TopicKeeper};
use super::verifier::{self, Verify};
use super::watch::{Ended, Flow, Inbox, Troubles};
use super::worker::{Note, Worker, WorkerExit, WorkerParts};
use super::{Environment, FlowExit, FlowHandle, FlowSpec};
use crate::broker::address::Address;
use crate::broker::connection::Manner;
use crate::broker::security::Security;
use crate::client::admin::Observer;
use crate::client::consumer::Member;
use crate::client::producer::Producer;
use crate::client::settings::{self, Batching, MemberSettings};
use crate::config::spec::{ClusterSpec, ListenerSpec, Until, group_name};
use crate::native::links::Links;
use crate::native::sink::{self, NativeSink};
use crate::native::source::Fetching;
use crate::observe::{FlowView, Reason, State};
use crate::partition::Policy;
use crate::plan::Fingerprint;
use crate::plane::outcomes::Deliver;
use crate::plane::{Numbers, Sink, Source};
use crossbeam_channel::{Receiver, Sender, unbounded};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// librdkafka's default session timeout.
const SESSION_TIMEOUT_MS: u64 = 45_000;

fn session_timeout(source: &ClusterSpec) -> Duration {
    let configured = source.properties.get("session.timeout.ms");
    let session_ms = configured.and_then(|v| v.reveal().parse().ok());
    Duration::from_millis(session_ms.unwrap_or(SESSION_TIMEOUT_MS))
}

/// Half the group's session timeout: nobody enqueues on an older lease.
fn lease_length(source: &ClusterSpec) -> Duration {
    session_timeout(source) / 2
}

/// Twice the session timeout: the group may wait one for a member that died.
fn group_patience(source: &ClusterSpec) -> Duration {
    (session_timeout(source) * 2).max(Duration::from_secs(10))
}

/// How long a producer may say nothing of a record, with a target that answers: longer than electing a leader takes.
const SINK_PATIENCE: Duration = Duration::from_secs(30);

/// How long a connection of the native plane may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// Called once, with how the flow ended.
pub type OnExit = Box<dyn FnOnce(FlowExit) + Send>;

/// Starts a flow. Nothing here waits for a cluster: a flow whose clusters are away is a flow that says
/// so and goes on trying.
pub fn spawn(spec: FlowSpec, environment: &Environment, on_exit: OnExit) -> FlowHandle {
    let group = group_name(
        &spec.group,
        &spec.route.name,
        &spec.source.name,
        &spec.target.name,
    );
    let view = Arc::new(FlowView::new(
        spec.route.name.as_str(),
        spec.source.name.as_str(),
        spec.target.name.as_str(),
        &group,
    ));
    let planes = Planes::of(&spec.route, &spec.source, &spec.target);
    view.set_planes(planes.clone());
    let (control, controls) = unbounded();
    let handle = FlowHandle {
        view: view.clone(),
        control,
    };
    let listener = listener(&spec, environment);
    let thread_view = view.clone();
    let spawned = std::thread::Builder::new()
        .name("mirror-flow".into())
        .spawn(move || {
            let exit = match build(spec, planes, view.clone(), group, listener) {
                Ok(flow) => flow.watch(&controls),
                Err(detail) => FlowExit::Failed(Reason::Client { detail }),
            };
            let (state, reason) = match &exit {
                FlowExit::Failed(reason) | FlowExit::AbortRoute(reason) => {
                    (State::Failed, Some(reason.clone()))
                }
                _ => (State::Stopped, None),
            };
            view.become_(state, reason);
            on_exit(exit);
        });
    if let Err(error) = spawned {
        let detail = format!("no thread for the flow: {error}");
        thread_view.become_(State::Failed, Some(Reason::Client { detail }));
    }
    handle
}

fn listener(spec: &FlowSpec, environment: &Environment) -> Option<Arc<dyn RebalanceListener>> {
    match spec.route.rebalance_listener.as_ref()? {
        ListenerSpec::Log => Some(Arc::new(LogListener)),
        ListenerSpec::Exec { command, args } => Some(Arc::new(ExecListener {
            command: command.clone(),
            args: args.clone(),
        })),
        ListenerSpec::Registered(name) => environment.listeners.get(name).cloned(),
    }
}

/// Builds what a flow is made of, and starts its threads.
fn build(
    spec: FlowSpec,
    planes: Planes,
    view: Arc<FlowView>,
    group: String,
    listener: Option<Arc<dyn RebalanceListener>>,
) -> Result<Flow, String> {
    let spec = Arc::new(spec);
    let subject: Arc<str> = format!(
        "{}/{}→{}",
        spec.route.name, spec.source.name, spec.target.name
    )
    .into();
    let targets = Arc::new(TargetView::default());
    let troubles = Arc::new(Troubles::default());
    let (scout, inquiries) = unbounded();
    let (keeper, asks) = unbounded();
    let (verifier, questions) = unbounded();
    let (ended_tx, ended) = unbounded();
    let (until_tx, until) = unbounded();
    let parts = Parts {
        spec,
        subject: subject.clone(),
        view: view.clone(),
        group,
        targets,
        listener,
        scout: scout.clone(),
        verifier,
        keeper: keeper.clone(),
        observer: Arc::default(),
        troubles: troubles.clone(),
        ended: ended_tx.clone(),
    };
    let seats = parts.seats()?;
    let inboxes: Vec<Inbox> = seats.iter().map(|s| s.seat.inbox.clone()).collect();
    parts.start_scout(inquiries, &inboxes, &troubles, until_tx.clone())?;
    parts.start_verifier(questions, &inboxes)?;
    parts.start_keeper(asks, &inboxes, &troubles)?;
    match planes.produce {
        Plane::Native => {
            let sinks = parts.native_sinks(&inboxes)?;
            parts.start_workers(seats, &planes.fetch, &sinks)?;
        }
        Plane::Librdkafka(_) => {
            let sinks = parts.sinks(&inboxes);
            parts.start_workers(seats, &planes.fetch, &sinks)?;
        }
    }
    Ok(Flow {
        view,
        subject,
        inboxes,
        ended,
        scout,
        keeper,
        troubles,
        until,
        _until: until_tx,
    })
}

/// How the native plane connects to a cluster, and where it begins.
fn connections(cluster: &ClusterSpec) -> Result<(Manner, Vec<Address>), String> {
    let security = Security::of(cluster).map_err(|e| e.to_string())?;
    let manner = Manner {
        security: Arc::new(security),
        client: "mirror".into(),
        patience: CONNECT,
    };
    let servers = cluster.bootstrap_servers.iter();
    let servers = servers.map(|server| server.parse::<Address>());
    let servers: Result<_, _> = servers.collect();
    Ok((manner, servers.map_err(|e| e.to_string())?))
}

/// Outcomes go to the worker that they belong to. It is not woken: outcomes are looked at once a poll, and polls are short
/// when they matter.
fn deliver(inboxes: &[Inbox]) -> Deliver {
    let inboxes = inboxes.to_vec();
    Arc::new(move |worker: u8, outcomes| {
        if let Some(inbox) = inboxes.get(usize::from(worker)) {
            let _ = inbox.notes.send(Note::Outcomes(outcomes));
        }
    })
}

/// A seat with the group member that takes it.
struct Taken {
    seat: Seat,
    member: Member,
}

/// A worker that has its inbox, and no thread yet.
struct Seat {
    index: u8,
    inbox: Inbox,
    notes: Receiver<Note>,
    lease: Arc<Lease>,
}

/// What all threads of a flow are made of.
struct Parts {
    spec: Arc<FlowSpec>,
    subject: Arc<str>,
    view: Arc<FlowView>,
    group: String,
    targets: Arc<TargetView>,
    listener: Option<Arc<dyn RebalanceListener>>,
    scout: Sender<Inquiry>,
    verifier: Sender<Verify>,
    keeper: Sender<Ask>,
    observer: Arc<OnceLock<Arc<Observer>>>,
    troubles: Arc<Troubles>,
    ended: Sender<Ended>,
}

impl Parts {
    fn seats(&self) -> Result<Vec<Taken>, String> {
        (0..self.spec.workers())
            .map(|index| {
                let settings = MemberSettings {
                    cluster: &self.spec.source,
                    group: &self.group,
                    protocol: self.spec.route.group_protocol,
                    discovery_interval: self.spec.route.discovery_interval,
                    prefetch_bytes: self.spec.worker_bytes(),
                };
                let member = Member::new(&settings, self.subject.clone())?;
                let (notes_tx, notes) = unbounded();
                let seat = Seat {
                    index,
                    inbox: Inbox {
                        notes: notes_tx,
                        waker: member.waker(),
                    },
                    notes,
                    lease: Arc::new(Lease::new(lease_length(&self.spec.source))),
                };
                Ok(Taken { seat, member })
            })
            .collect()
    }

    /// The native plane's source: `member` stays in the group, and fetches nothing.
    fn fetching(&self, member: Member) -> Result<Fetching<Member>, String> {
        let (manner, servers) = connections(&self.spec.source)?;
        let links = Links::new(manner, servers, self.subject.clone());
        let waker = member.waker();
        let wake = Box::new(move || waker.wake());
        let room = self.spec.worker_bytes();
        let rack = self.spec.source.properties.get("client.rack");
        let rack = rack.map_or("", |rack| rack.reveal()).into();
        Fetching::new(member, links, room, rack, wake, self.subject.clone())
    }

    fn start_scout(
        &self,
        inquiries: Receiver<Inquiry>,
        inboxes: &[Inbox],
        troubles: &Arc<Troubles>,
        until: Sender<Option<Reason>>,
    ) -> Result<(), String> {
        let route = &self.spec.route;
        let (inboxes, troubles, subject) =
            (inboxes.to_vec(), troubles.clone(), self.subject.clone());
        let scout = Scout::new(ScoutSpec {
            observer: self.observer.clone(),
            source: self.spec.source.clone(),
            group: self.group.clone(),
            former: self.spec.former_group(),
            selection: route.topics.clone(),
            start: route.start,
            on_gap: route.on_gap,
            interval: route.discovery_interval,
            settings: Fingerprint::of(route),
            subject: self.subject.clone(),
            view: self.view.clone(),
            target: self.targets.clone(),
            workers: self.spec.workers(),
            tell: Box::new(move |worker, finding: Finding| {
                if let Some(inbox) = inboxes.get(usize::from(worker)) {
                    inbox.tell(Note::Finding(finding));
                }
            }),
            trouble: Box::new(move |reason| Troubles::set(&troubles.source, &subject, reason)),
            until: (route.until == Until::End).then(|| -> super::scout::UntilDone {
                Box::new(move |reason| {
                    let _ = until.send(reason);
                })
            }),
        });
        self.start_thread("mirror-scout", move || scout.run(&inquiries))
    }

    fn start_verifier(&self, questions: Receiver<Verify>, inboxes: &[Inbox]) -> Result<(), String> {
        let (inboxes, observer) = (inboxes.to_vec(), self.observer.clone());
        self.start_thread("mirror-verify", move || {
            verifier::run(&questions, &observer, |worker, finding| {
                if let Some(inbox) = inboxes.get(usize::from(worker)) {
                    inbox.tell(Note::Finding(finding));
                }
            });
        })
    }

    fn start_keeper(
        &self,
        asks: Receiver<Ask>,
        inboxes: &[Inbox],
        troubles: &Arc<Troubles>,
    ) -> Result<(), String> {
        let route = &self.spec.route;
        let (inboxes, troubles, subject) =
            (inboxes.to_vec(), troubles.clone(), self.subject.clone());
        let keeper = TopicKeeper::new(KeeperSpec {
            source: self.spec.source.clone(),
            target: self.spec.target.clone(),
            creation: route.topic_creation.clone(),
            policy: route.policy.clone(),
            interval: route.discovery_interval,
            subject: self.subject.clone(),
            view: self.targets.clone(),
            changed: Box::new(move || {
                for inbox in &inboxes {
                    inbox.tell(Note::TargetChanged);
                }
            }),
            trouble: Box::new(move |reason| Troubles::set(&troubles.target, &subject, reason)),
        });
        self.start_thread("mirror-topics", move || keeper.run(&asks))
    }

    fn sinks(&self, inboxes: &[Inbox]) -> Arc<Sinks<Producer>> {
        let (spec, targets, subject) = (
            self.spec.clone(),
            self.targets.clone(),
            self.subject.clone(),
        );
        let deliver = deliver(inboxes);
        let make = move |purpose| {
            let batching = match purpose {
                Purpose::Flow => Batching::UpTo(targets.batch_bytes()),
                Purpose::Quarantine => Batching::Alone,
            };
            let config = settings::producer(&spec.target, spec.route.discovery_interval, batching);
            Producer::new(&config, subject.clone(), deliver.clone())
        };
        self.slots(Numbers::OfPlane, Box::new(make))
    }

    /// The same, of the native plane.
    fn native_sinks(&self, inboxes: &[Inbox]) -> Result<Arc<Sinks<NativeSink>>, String> {
        let (spec, targets, subject) = (
            self.spec.clone(),
            self.targets.clone(),
            self.subject.clone(),
        );
        let (connections, servers) = connections(&spec.target)?;
        let deliver = deliver(inboxes);
        let make = move |purpose| {
            let mut manner = sink::Manner::of(&spec.target, targets.batch_bytes())?;
            if purpose == Purpose::Quarantine {
                manner = manner.alone();
            }
            NativeSink::start(
                servers.clone(),
                connections.clone(),
                &manner,
                subject.clone(),
                deliver.clone(),
            )
        };
        Ok(self.slots(Numbers::OfWriters, Box::new(make)))
    }

    fn slots<K: Sink>(&self, numbers: Numbers, make: MakeSink<K>) -> Arc<Sinks<K>> {
        let count = self.spec.route.threads.producers.get();
        Arc::new(Sinks::new(count, numbers, make))
    }

    fn lane<K: Sink>(&self, seat: &Seat) -> Result<Lane<K>, String> {
        let route = &self.spec.route;
        let spec = LaneSpec {
            worker: seat.index,
            route: route.name.as_str().into(),
            targets: self.targets.clone(),
            lease: seat.lease.clone(),
        };
        Ok(Lane::new(spec, Policy::new(&route.policy)?))
    }

    fn start_workers<K: Sink>(
        &self,
        seats: Vec<Taken>,
        fetch: &Plane,
        sinks: &Arc<Sinks<K>>,
    ) -> Result<(), String> {
        for Taken { seat, member } in seats {
            match fetch {
                Plane::Native => self.start_worker(seat, self.fetching(member)?, sinks)?,
                Plane::Librdkafka(_) => self.start_worker(seat, member, sinks)?,
            }
        }
        Ok(())
    }

    fn start_worker<S: Source + 'static, K: Sink>(
        &self,
        seat: Seat,
        source: S,
        sinks: &Arc<Sinks<K>>,
    ) -> Result<(), String> {
        let threads = &self.spec.route.threads;
        let stage = match threads.handlers {
            None => Stage::Inline(Box::new(self.lane(&seat)?)),
            Some(count) => {
                let lanes = (0..count.get())
                    .map(|_| self.lane(&seat))
                    .collect::<Result<_, _>>()?;
                let bounds = (threads.queue_records as u64, threads.queue_bytes);
                Stage::threads(lanes, bounds, &seat.inbox.notes)?
            }
        };
        let parts = WorkerParts {
            index: seat.index,
            spec: self.spec.clone(),
            subject: self.subject.clone(),
            view: self.view.clone(),
            isolation_lane: self.lane(&seat)?,
            stage,
            lease: seat.lease.clone(),
            announcer: self.announcer(seat.index)?,
            troubles: self.troubles.clone(),
            group_patience: group_patience(&self.spec.source),
            sink_patience: SINK_PATIENCE,
            source,
            inbox: seat.notes,
            scout: self.scout.clone(),
            verifier: self.verifier.clone(),
            keeper: self.keeper.clone(),
            targets: self.targets.clone(),
            sinks: sinks.clone(),
        };
        let ended = self.ended.clone();
        start_thread("mirror-worker", move || {
            let worked = std::panic::AssertUnwindSafe(|| Worker::new(parts).run());
            // A worker that panicked has let go of its member: its partitions are free (B082).
            let exit = std::panic::catch_unwind(worked).unwrap_or_else(|panic| {
                WorkerExit::Failed(Reason::Panic {
                    detail: words(&*panic),
                })
            });
            let _ = ended.send(Ended::Worker(exit));
        })
    }

    /// Starts a thread that the flow cannot do without: if it panics, the flow ends and says so.
    fn start_thread(&self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), String> {
        let ended = self.ended.clone();
        start_thread(name, move || {
            if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
                let detail = words(&*panic);
                let _ = ended.send(Ended::Died(Reason::Panic { detail }));
            }
        })
    }

    fn announcer(&self, worker: u8) -> Result<Announcer, String> {
        let Some(listener) = &self.listener else {
            return Ok(Announcer::silent());
        };
        let of = Announced {
            route: self.spec.route.name.to_string(),
            source: self.spec.source.name.to_string(),
            target: self.spec.target.name.to_string(),
            worker: usize::from(worker),
        };
        Announcer::new(listener.clone(), of, self.subject.clone())
    }
}

fn start_thread(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    std::thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map(drop)
        .map_err(|e| format!("no thread {name}: {e}"))
}

/// A panic's message.
fn words(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "unknown panic".to_owned())
}
