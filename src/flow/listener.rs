//! Rebalance listeners (KIP-3): the user's code, called after our own drain and commit.

use crate::record::TopicPartition;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a rebalance happened.
#[derive(Clone, Debug)]
pub struct RebalanceContext<'a> {
    /// The route's name.
    pub route: &'a str,
    /// The source cluster's name.
    pub source: &'a str,
    /// The target cluster's name.
    pub target: &'a str,
    /// The worker, from 0.
    pub worker: usize,
}

/// Told about rebalances of a flow's consumer group, after mirror's own work (KIP-3).
///
/// Each call has a deadline; one that takes longer is abandoned, a panic is caught, both are
/// logged, neither stops the flow.
pub trait RebalanceListener: Send + Sync {
    /// Before the first fetch of a new assignment.
    fn assigned(&self, at: &RebalanceContext<'_>, old: &[TopicPartition], new: &[TopicPartition]);
    /// Before partitions are released: drained and committed already.
    fn revoked(&self, at: &RebalanceContext<'_>, released: &[TopicPartition]);
    /// After partitions were lost: somebody else may own them already, nothing was committed.
    fn lost(&self, at: &RebalanceContext<'_>, lost: &[TopicPartition]);
}

/// Listeners that an embedding program brings, by the name used in the file.
#[derive(Clone, Default)]
pub struct Listeners {
    by_name: BTreeMap<String, Arc<dyn RebalanceListener>>,
}

impl Listeners {
    /// Registers `listener` under `name`, replacing an earlier one of that name.
    pub fn register(
        &mut self,
        name: impl Into<String>,
        listener: Arc<dyn RebalanceListener>,
    ) -> &mut Self {
        self.by_name.insert(name.into(), listener);
        self
    }

    /// The listener registered under `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn RebalanceListener>> {
        self.by_name.get(name)
    }
}

/// How long one call of a listener may take.
const DEADLINE: std::time::Duration = std::time::Duration::from_secs(5);

/// Calls the user's listener for one worker: in order, on a thread of its own, each call with a
/// deadline and its panics caught.
pub(crate) struct Announcer {
    calls: Option<crossbeam_channel::Sender<Call>>,
    done: crossbeam_channel::Receiver<()>,
    subject: Arc<str>,
}

enum Call {
    Assigned(Vec<TopicPartition>, Vec<TopicPartition>),
    Revoked(Vec<TopicPartition>),
    Lost(Vec<TopicPartition>),
}

/// Whose listener it is.
pub(crate) struct Announced {
    pub(crate) route: String,
    pub(crate) source: String,
    pub(crate) target: String,
    pub(crate) worker: usize,
}

impl Announcer {
    /// One that calls nobody.
    pub(crate) fn silent() -> Self {
        Self {
            calls: None,
            done: crossbeam_channel::never(),
            subject: "".into(),
        }
    }

    /// One that calls `listener`.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn new(
        listener: Arc<dyn RebalanceListener>,
        of: Announced,
        subject: Arc<str>,
    ) -> Result<Self, String> {
        let (calls, queue) = crossbeam_channel::unbounded::<Call>();
        let (finished, done) = crossbeam_channel::unbounded();
        let name = subject.clone();
        std::thread::Builder::new()
            .name("mirror-listener".into())
            .spawn(move || {
                while let Ok(call) = queue.recv() {
                    let called = std::panic::AssertUnwindSafe(|| deliver(&*listener, &of, &call));
                    if std::panic::catch_unwind(called).is_err() {
                        tracing::error!(event = "listener_panicked", subject = %name, "a rebalance listener panicked");
                    }
                    if finished.send(()).is_err() {
                        return;
                    }
                }
            })
            .map_err(|e| format!("no listener thread: {e}"))?;
        Ok(Self {
            calls: Some(calls),
            done,
            subject,
        })
    }

    pub(crate) fn assigned(&self, old: &[TopicPartition], new: &[TopicPartition]) {
        self.call(|| Call::Assigned(old.to_vec(), new.to_vec()));
    }

    pub(crate) fn revoked(&self, released: &[TopicPartition]) {
        self.call(|| Call::Revoked(released.to_vec()));
    }

    pub(crate) fn lost(&self, lost: &[TopicPartition]) {
        self.call(|| Call::Lost(lost.to_vec()));
    }

    fn call(&self, call: impl FnOnce() -> Call) {
        let Some(calls) = &self.calls else { return };
        // Answers of calls that were abandoned earlier.
        while self.done.try_recv().is_ok() {}
        if calls.send(call()).is_err() {
            return;
        }
        if self.done.recv_timeout(DEADLINE).is_err() {
            tracing::error!(event = "listener_late", subject = %self.subject,
                "a rebalance listener took longer than {}s; the rebalance goes on without it", DEADLINE.as_secs());
        }
    }
}

fn deliver(listener: &dyn RebalanceListener, of: &Announced, call: &Call) {
    let at = RebalanceContext {
        route: &of.route,
        source: &of.source,
        target: &of.target,
        worker: of.worker,
    };
    match call {
        Call::Assigned(old, new) => listener.assigned(&at, old, new),
        Call::Revoked(released) => listener.revoked(&at, released),
        Call::Lost(lost) => listener.lost(&at, lost),
    }
}

/// The built-in `log`: one line per event.
pub struct LogListener;

impl RebalanceListener for LogListener {
    fn assigned(&self, at: &RebalanceContext<'_>, old: &[TopicPartition], new: &[TopicPartition]) {
        tracing::info!(
            event = "rebalance_assigned",
            route = at.route,
            source = at.source,
            target = at.target,
            worker = at.worker,
            ?old,
            ?new
        );
    }
    fn revoked(&self, at: &RebalanceContext<'_>, released: &[TopicPartition]) {
        tracing::info!(
            event = "rebalance_revoked",
            route = at.route,
            source = at.source,
            target = at.target,
            worker = at.worker,
            ?released
        );
    }
    fn lost(&self, at: &RebalanceContext<'_>, lost: &[TopicPartition]) {
        tracing::warn!(
            event = "rebalance_lost",
            route = at.route,
            source = at.source,
            target = at.target,
            worker = at.worker,
            ?lost
        );
    }
}

/// The built-in `exec`: runs a command with the event as one JSON line on its standard input, and
/// ends it at the deadline.
pub struct ExecListener {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
}

impl ExecListener {
    fn run(&self, event: &serde_json::Value) {
        if let Err(error) = self.try_run(event) {
            tracing::error!(event = "listener_failed", command = self.command, %error);
        }
    }

    fn try_run(&self, event: &serde_json::Value) -> std::io::Result<()> {
        use std::io::Write;
        let mut child = std::process::Command::new(&self.command)
            .args(&self.args)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            let line = event.to_string();
            // Aside, since a command that does not read would block us; that is no error.
            std::thread::spawn(move || {
                let _ = writeln!(stdin, "{line}");
            });
        }
        let until = std::time::Instant::now() + DEADLINE;
        loop {
            if let Some(status) = child.try_wait()? {
                if !status.success() {
                    tracing::warn!(event = "listener_failed", command = self.command, %status);
                }
                return Ok(());
            }
            if std::time::Instant::now() >= until {
                child.kill()?;
                child.wait()?;
                return Err(std::io::Error::other(
                    "it did not end in time and was killed",
                ));
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    fn event(kind: &str, at: &RebalanceContext<'_>) -> serde_json::Value {
        serde_json::json!({ "event": kind, "route": at.route, "source": at.source, "target": at.target, "worker": at.worker })
    }
}

fn names(partitions: &[TopicPartition]) -> serde_json::Value {
    partitions
        .iter()
        .map(|tp| serde_json::json!({ "topic": &*tp.topic, "partition": tp.partition }))
        .collect()
}

impl RebalanceListener for ExecListener {
    fn assigned(&self, at: &RebalanceContext<'_>, old: &[TopicPartition], new: &[TopicPartition]) {
        let mut event = Self::event("assigned", at);
        event["old"] = names(old);
        event["new"] = names(new);
        self.run(&event);
    }
    fn revoked(&self, at: &RebalanceContext<'_>, released: &[TopicPartition]) {
        let mut event = Self::event("revoked", at);
        event["released"] = names(released);
        self.run(&event);
    }
    fn lost(&self, at: &RebalanceContext<'_>, lost: &[TopicPartition]) {
        let mut event = Self::event("lost", at);
        event["lost"] = names(lost);
        self.run(&event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tp(partition: i32) -> TopicPartition {
        TopicPartition::new("t", partition)
    }

    fn announced() -> Announced {
        Announced {
            route: "r".into(),
            source: "a".into(),
            target: "b".into(),
            worker: 2,
        }
    }

    #[test]
    fn exec_hands_the_event_to_the_command_as_json() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("event");
        let listener = ExecListener {
            command: "sh".into(),
            args: vec!["-c".into(), format!("cat > {}", file.display())],
        };
        let announcer = Announcer::new(Arc::new(listener), announced(), "test".into()).unwrap();
        announcer.assigned(&[tp(0)], &[tp(0), tp(1)]);
        let event: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(event["event"], "assigned");
        assert_eq!(
            (&event["route"], &event["worker"]),
            (&"r".into(), &2.into())
        );
        assert_eq!(event["old"].as_array().map(Vec::len), Some(1));
        assert_eq!(event["new"][1]["partition"], 1);
    }

    struct Panics;

    impl RebalanceListener for Panics {
        fn assigned(&self, _: &RebalanceContext<'_>, _: &[TopicPartition], _: &[TopicPartition]) {
            panic!("a listener of the user's");
        }
        fn revoked(&self, _: &RebalanceContext<'_>, _: &[TopicPartition]) {}
        fn lost(&self, _: &RebalanceContext<'_>, _: &[TopicPartition]) {}
    }

    #[test]
    fn a_listener_that_panics_is_called_again_and_hurts_nobody() {
        let announcer = Announcer::new(Arc::new(Panics), announced(), "test".into()).unwrap();
        announcer.assigned(&[], &[tp(0)]);
        announcer.assigned(&[tp(0)], &[]);
        announcer.revoked(&[tp(0)]);
    }
}
