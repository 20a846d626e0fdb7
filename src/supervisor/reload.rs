//! Reloading: load aside, plan against what runs, apply route by route, give a verdict.
//!
//! One reload at a time; whoever asks meanwhile gets the verdict of the next one, which reads the
//! files again, since the one under way may have read them before they were changed.

use super::core::Supervisor;
use super::route::{Retried, Route, Then};
use super::verdict::{ReloadVerdict, RouteResult};
use super::{Effect, LoadedConfig, RejectedConfig};
use crate::config::spec::{Name, Spec, Watch};
use crate::plan::{Alteration, Change, Plan, Report, RouteReport, Verb};
use crate::supervisor::board::Rejection;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::oneshot;

type Reply = oneshot::Sender<ReloadVerdict>;

/// Where reloading stands.
#[derive(Default)]
pub(super) struct Reloads {
    stage: Stage,
    next: Option<Asked>,
    /// Verdicts that are told once others can see what they speak of.
    answers: Vec<(Reply, ReloadVerdict)>,
}

#[derive(Default)]
enum Stage {
    #[default]
    Idle,
    Loading(Asked),
    Applying(Applying),
}

/// Who wants a reload.
#[derive(Default)]
struct Asked {
    cause: Cause,
    replies: Vec<Reply>,
}

/// Why there is a reload; a person's word outweighs a file event.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    /// A file may have changed: the same content changes nothing.
    #[default]
    File,
    /// Somebody asked: what waits or was stopped by a fault is tried again, too.
    Request,
}

/// A plan that is being applied.
struct Applying {
    plan: Report,
    results: BTreeMap<Name, RouteResult>,
    give_up_at: Instant,
    replies: Vec<Reply>,
}

impl Reloads {
    fn answer(&mut self, replies: Vec<Reply>, verdict: &ReloadVerdict) {
        let answers = replies.into_iter().map(|reply| (reply, verdict.clone()));
        self.answers.extend(answers);
    }

    /// Tells the verdicts. Whoever asked may have gone away meanwhile.
    pub fn tell(&mut self) {
        for (reply, verdict) in self.answers.drain(..) {
            let _ = reply.send(verdict);
        }
    }

    /// When the clock matters to it.
    pub fn deadline(&self) -> Option<Instant> {
        match &self.stage {
            Stage::Applying(applying) => Some(applying.give_up_at),
            Stage::Idle | Stage::Loading(_) => None,
        }
    }
}

impl Supervisor {
    /// A watched file may have changed.
    pub(super) fn file_changed(&mut self, now: Instant) {
        let watched = self.running.as_ref().map(|spec| spec.reload.watch);
        if watched != Some(Watch::Off) {
            self.ask(Cause::File, None, now);
        }
    }

    /// Somebody asks for a reload.
    pub(super) fn ask_reload(&mut self, reply: Option<Reply>, now: Instant) {
        self.ask(Cause::Request, reply, now);
    }

    fn ask(&mut self, cause: Cause, reply: Option<Reply>, now: Instant) {
        let next = self.reloads.next.get_or_insert_default();
        next.cause = next.cause.max(cause);
        next.replies.extend(reply);
        self.advance_reload(now);
    }

    /// Begins the next reload if none is under way; ends the one whose routes have all settled.
    pub(super) fn advance_reload(&mut self, now: Instant) {
        self.finish_applying(now);
        if !matches!(self.reloads.stage, Stage::Idle) {
            return;
        }
        let Some(asked) = self.reloads.next.take() else {
            return;
        };
        if self.ending.is_some() {
            let verdict = self.rejection("the process is stopping".into(), None);
            return self.reloads.answer(asked.replies, &verdict);
        }
        self.effects.push(Effect::Load);
        self.reloads.stage = Stage::Loading(asked);
    }

    /// A load has ended.
    pub(super) fn loaded(&mut self, result: Result<LoadedConfig, RejectedConfig>, now: Instant) {
        let asked = match std::mem::take(&mut self.reloads.stage) {
            Stage::Loading(asked) => asked,
            other => {
                self.reloads.stage = other;
                return;
            }
        };
        if self.ending.is_some() {
            let verdict = self.rejection("the process is stopping".into(), None);
            return self.reloads.answer(asked.replies, &verdict);
        }
        match result {
            Err(rejected) => {
                self.follow(rejected.files, None);
                self.reject(rejected.first_error, rejected.hash, asked);
            }
            Ok(config) => self.accept(config, asked, now),
        }
    }

    fn accept(&mut self, mut config: LoadedConfig, asked: Asked, now: Instant) {
        if config.hash == self.process.hash && asked.cause == Cause::File {
            // Back to what runs, perhaps after a mistake: the mistake is no longer news.
            self.process.rejected = None;
            let verdict = ReloadVerdict::Unchanged {
                generation: self.process.generation,
                hash: config.hash,
            };
            tracing::debug!(
                event = "reload_unchanged",
                "the files have the content that runs"
            );
            return self.reloads.answer(asked.replies, &verdict);
        }
        if let Some(running) = &self.running {
            Arc::make_mut(&mut config.spec).take_over(running);
        }
        let plan = Plan::between(self.running.as_deref(), &config.spec);
        if let Some(error) = plan.refusal() {
            self.follow(config.files, None);
            return self.reject(error, Some(config.hash), asked);
        }
        let report = Report::from(&plan);
        let results = self.apply(plan, config, now);
        let limits = &self.launcher.limits;
        self.reloads.stage = Stage::Applying(Applying {
            plan: report,
            results,
            give_up_at: now + limits.drain(self.launcher.grace) + limits.abort_patience,
            replies: asked.replies,
        });
        self.finish_applying(now);
    }

    /// Applies the configuration of the start; there is nobody to answer.
    pub(super) fn apply_first(&mut self, config: LoadedConfig, now: Instant) {
        let plan = Plan::between(None, &config.spec);
        self.apply(plan, config, now);
    }

    /// Makes `config` the running one and sends every route on its way there.
    fn apply(
        &mut self,
        plan: Plan,
        config: LoadedConfig,
        now: Instant,
    ) -> BTreeMap<Name, RouteResult> {
        self.launcher.adopt_spec(&config.spec);
        self.process.generation += 1;
        self.process.hash = config.hash;
        self.process.applied_at = SystemTime::now();
        self.process.rejected = None;
        self.process.watch = config.spec.reload.watch;
        let mut results = BTreeMap::new();
        for (name, change) in plan.routes {
            let result = self.apply_to(&name, change, &config.spec, now);
            results.insert(name, result);
        }
        self.follow(config.files, Some(config.spec.reload.settle));
        self.running = Some(config.spec);
        tracing::info!(
            event = "config_applied",
            generation = self.process.generation,
            hash = self.process.hash,
            routes = self.routes.len(),
            "configuration applied"
        );
        results
    }

    fn apply_to(&mut self, name: &Name, change: Change, spec: &Spec, now: Instant) -> RouteResult {
        let drain_until = now + self.launcher.limits.drain(self.launcher.grace);
        let (wanted, result) = match change {
            Change::Keep(_) => return self.keep(name, spec, now),
            Change::Stop(_) => {
                if let Some(route) = self.routes.get_mut(name) {
                    route.end(Then::Remove, drain_until);
                }
                return RouteResult::Stopped;
            }
            Change::Start(wanted) => (wanted, RouteResult::Started),
            Change::Alter(alteration) => return self.alter(name, alteration, now),
        };
        match self.routes.get_mut(name) {
            Some(route) if route.is_paused() => {
                route.adopt(wanted);
                return RouteResult::Paused;
            }
            // The name may belong to a route that was removed a moment ago and is still ending.
            Some(route) => route.end(Then::Start(wanted), drain_until),
            None => {
                let route = Route::start(wanted, &mut self.launcher, now);
                self.routes.insert(name.clone(), route);
            }
        }
        result
    }

    fn alter(&mut self, name: &Name, alteration: Alteration, now: Instant) -> RouteResult {
        let drain_until = now + self.launcher.limits.drain(self.launcher.grace);
        let changed = alteration.changed.iter().map(|c| c.setting.clone());
        let changed: Vec<String> = changed.collect();
        let verb = RouteReport::from(&Change::Alter(alteration.clone())).change;
        let Some(route) = self.routes.get_mut(name) else {
            let route = Route::start(alteration.wanted, &mut self.launcher, now);
            self.routes.insert(name.clone(), route);
            return RouteResult::Started;
        };
        if route.is_paused() {
            route.adopt(alteration.wanted);
            return RouteResult::Paused;
        }
        if !route.is_up() {
            // Stopped by a fault, or still on its way to what the reload before wanted.
            route.end(Then::Start(alteration.wanted), drain_until);
            return RouteResult::Restarted { changed };
        }
        route.alter(alteration, &mut self.launcher, now, drain_until);
        route.retry(&mut self.launcher, now);
        match verb {
            Verb::Restart => RouteResult::Restarted { changed },
            Verb::Reconnect => RouteResult::Reconnected { changed },
            _ => RouteResult::Changed { changed },
        }
    }

    fn keep(&mut self, name: &Name, spec: &Spec, now: Instant) -> RouteResult {
        let (Some(route), Some(wanted)) = (self.routes.get_mut(name), spec.routes.get(name)) else {
            return RouteResult::Kept;
        };
        if !route.is_ending() {
            route.adopt(Arc::clone(wanted));
        }
        match route.retry(&mut self.launcher, now) {
            Retried::Route => RouteResult::Retried,
            Retried::Flows => RouteResult::Kept,
            Retried::Nothing if route.is_paused() => RouteResult::Paused,
            Retried::Nothing => RouteResult::Kept,
        }
    }

    /// Gives the verdict once every route has settled, or the wait for them is over.
    fn finish_applying(&mut self, now: Instant) {
        let Stage::Applying(applying) = &self.reloads.stage else {
            return;
        };
        let unsettled = |name: &Name| {
            let route = self.routes.get(name);
            route.is_some_and(|route| route.is_stopping() || route.is_changing())
        };
        let unsettled = applying.results.keys().any(unsettled);
        if unsettled && now < applying.give_up_at && self.ending.is_none() {
            return;
        }
        let Stage::Applying(applying) = std::mem::take(&mut self.reloads.stage) else {
            return;
        };
        let results = applying.results.into_iter().map(|(name, result)| {
            let result = match self.routes.get(&name) {
                Some(route) if route.is_stopping() => RouteResult::StillStopping,
                Some(route) if route.is_changing() => RouteResult::StillChanging,
                _ => result,
            };
            (name.to_string(), result)
        });
        let verdict = ReloadVerdict::Applied {
            generation: self.process.generation,
            hash: self.process.hash.clone(),
            plan: Box::new(applying.plan),
            routes: results.collect(),
        };
        tracing::info!(
            event = "reload_applied",
            generation = self.process.generation, routes = %one_line(&verdict), "reload applied");
        self.board.note("reload_applied", None, verdict.to_string());
        self.process.reloads_applied += 1;
        self.process.last_reload = Some((SystemTime::now(), verdict.clone()));
        self.reloads.answer(applying.replies, &verdict);
    }

    fn follow(&mut self, files: Vec<PathBuf>, settle: Option<Duration>) {
        self.effects.push(Effect::Follow { files, settle });
    }

    fn reject(&mut self, error: String, hash: Option<String>, asked: Asked) {
        let at = SystemTime::now();
        let verdict = self.rejection(error.clone(), hash.clone());
        let known = self.process.rejected.as_ref();
        if asked.cause == Cause::File && known.is_some_and(|k| k.hash == hash && k.error == error) {
            // The same mistake seen twice is not two mistakes.
            return self.reloads.answer(asked.replies, &verdict);
        }
        tracing::error!(event = "reload_rejected", generation = self.process.generation, hash = hash.as_deref(), %error,
            "the new configuration is rejected, what runs goes on");
        self.board.note("reload_rejected", None, error.clone());
        self.process.reloads_rejected += 1;
        self.process.last_reload = Some((at, verdict.clone()));
        let since_1970 = at.duration_since(SystemTime::UNIX_EPOCH);
        self.process.rejected = Some(Rejection {
            error,
            hash,
            at: since_1970.map_or(0.0, |d| d.as_secs_f64()),
        });
        self.reloads.answer(asked.replies, &verdict);
    }

    fn rejection(&self, error: String, hash: Option<String>) -> ReloadVerdict {
        ReloadVerdict::Rejected {
            generation: self.process.generation,
            error,
            hash,
        }
    }
}

/// The verdict as one log line.
fn one_line(verdict: &ReloadVerdict) -> String {
    let text = verdict.to_string();
    let lines = text.lines().skip(1).map(str::trim);
    lines.collect::<Vec<_>>().join("; ")
}
