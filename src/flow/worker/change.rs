//! New settings are taken over between two batches: what was handed to a lane goes on as it began, the
//! next batch begins with what is new. Nothing is drained and the group hears nothing, but for topics
//! that come or go.

use super::Worker;
use super::owned::{Phase, RetryHow};
use crate::config::spec::RouteSpec;
use crate::flow::FlowSpec;
use crate::flow::lane::Rules;
use crate::flow::scout::distinct_topics;
use crate::observe::Reason;
use crate::plane::{Sink, Source};
use crate::record::TopicPartition;
use std::sync::Arc;
use std::time::Instant;

impl<S: Source, K: Sink> Worker<S, K> {
    pub(super) fn change(&mut self, route: Arc<RouteSpec>) {
        let now = Instant::now();
        let wanted = FlowSpec {
            route,
            ..(*self.spec).clone()
        };
        let running = std::mem::replace(&mut self.spec, Arc::new(wanted));
        let (before, route) = (&running.route, &self.spec.route);
        let rebinds = before.chain != route.chain || before.topics != route.topics;
        // With other topics the same step may see other captures.
        let unchanged = match before.topics == route.topics {
            true => before.chain.in_common(&route.chain),
            false => 0,
        };
        self.rules = Arc::new(Rules::of(route));
        self.committer.keep_to(route, now);
        self.budget.keep_to(self.spec.worker_bytes());
        let threads = &self.spec.route.threads;
        self.stage
            .keep_to(threads.queue_records as u64, threads.queue_bytes);
        self.passing = self.spec.passing();
        if rebinds {
            self.rebind(unchanged);
        }
        self.say_forms();
        self.say_needs();
        self.place_ready();
        self.retry_all(now);
        tracing::info!(event = "settings_taken", subject = %self.subject, worker = self.index,
            "new settings hold from the next batch on");
    }

    /// Binds the chain anew. A partition whose target topics are not there yet, or to whose topic the
    /// chain cannot be bound, goes back to its watermark and waits. A topic that is not selected any
    /// more keeps its chain until the group takes it back. What the first `unchanged` steps remember
    /// they keep.
    fn rebind(&mut self, unchanged: usize) {
        let owned: Vec<TopicPartition> = self.owned.keys().cloned().collect();
        for topic in distinct_topics(&owned) {
            if self.spec.route.topics.selects(&topic).is_none() {
                continue;
            }
            let bound = self.bind(&topic);
            for owned in self.owned.values_mut().filter(|o| o.id.topic == topic) {
                let bound = bound.as_ref().map(|bound| match &owned.chain {
                    Some(before) => bound.taking_over(before, unchanged),
                    None => bound.for_partition(),
                });
                owned.chain = bound;
            }
        }
        let takes = |phase: &Phase| matches!(phase, Phase::Flowing | Phase::Isolating(_));
        let unready: Vec<(TopicPartition, Reason)> = self
            .owned
            .values()
            .filter(|o| takes(&o.phase))
            .filter_map(|o| Some((o.id.clone(), self.unready(o)?)))
            .collect();
        for (tp, reason) in unready {
            self.halt_now(&tp, reason);
        }
    }

    /// What was held for a reason is tried at once: the change may be the cure.
    fn retry_all(&mut self, now: Instant) {
        for owned in self.owned.values_mut() {
            match &mut owned.phase {
                Phase::Halted { retry, .. } if retry.how != RetryHow::Never => retry.at = now,
                Phase::ResolveLater { at, .. } => *at = now,
                _ => {}
            }
        }
    }
}
