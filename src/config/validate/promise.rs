//! What `delivery: at_least_once` promises, and settings that take it back.

use super::Check;
use crate::config::chains::Steps;
use crate::config::diagnostic::Code;
use crate::config::pointer;
use crate::config::spec::{Accept, OnError, OnGap, Start, Until};

/// The settings of a route that the promise rests on.
#[derive(Clone, Copy, Debug)]
pub struct Promise<'r> {
    /// What becomes of a record that cannot be delivered.
    pub on_error: OnError,
    /// What is done about records that are gone.
    pub on_gap: OnGap,
    /// Where a flow starts.
    pub start: Start,
    /// When the route is done.
    pub until: Until,
    /// What its user accepts.
    pub accept: &'r [Accept],
}

impl Promise<'_> {
    /// Warns of what leaves records out at the route that stands at `at`, unless that is accepted.
    pub fn report(&self, steps: &Steps<'_>, at: &str, check: &mut Check<'_>) {
        if self.start == Start::Latest && self.until == Until::End {
            let message = "with `until: end` a first start at the end copies nothing";
            let at = pointer::child(at, "start");
            check.say(Code::NoEffect, &at, message).help =
                Some("write `start: earliest`".to_owned());
        }
        if self.accept.contains(&Accept::Gap) {
            return;
        }
        if self.on_error == OnError::Skip {
            say(&pointer::child(at, "on_error"), "on_error: skip", check);
        }
        let own: Vec<String> = steps.with_on_error("skip").collect();
        for at in own {
            say(&at, "on_error: skip", check);
        }
        match self.on_gap {
            OnGap::Stop => {}
            OnGap::Earliest => say(&pointer::child(at, "on_gap"), "on_gap: earliest", check),
            OnGap::Latest => say(&pointer::child(at, "on_gap"), "on_gap: latest", check),
        }
    }
}

fn say(at: &str, setting: &str, check: &mut Check<'_>) {
    let message =
        format!("`{setting}` leaves records out, which `delivery: at_least_once` promises not to");
    check.say(Code::WeakensDelivery, at, message).help = Some(
        "write `accept: [gap]` at the route if that is meant; `stop` and `dead_letter` keep every record"
            .to_owned(),
    );
}
