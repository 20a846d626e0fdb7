//! The order of keys: what a partition policy makes of it, together with what the handlers make of the key.

use super::Check;
use crate::config::chains::Steps;
use crate::config::diagnostic::Code;
use crate::config::pointer;
use crate::config::spec::Accept;
use crate::partition::PolicySpec;
use serde_json::Value;

const ACCEPT: &str = "write `accept: [reorder]` at the route if that is meant";

/// Warns of a policy that breaks the order of keys, unless the route at `at` accepts that.
pub fn report(
    policy: &PolicySpec,
    steps: &Steps<'_>,
    accept: &[Accept],
    at: &str,
    check: &mut Check<'_>,
) {
    if accept.contains(&Accept::Reorder) {
        return;
    }
    let new_key = NewKey::of(steps);
    let breaks = match policy {
        PolicySpec::RoundRobin => true,
        PolicySpec::By(path) => !is_of_key(path) && !new_key.as_ref().is_some_and(|k| k.is(path)),
        // One partition for all, or one for each key whatever it was before.
        PolicySpec::Fixed(_) | PolicySpec::KeyHash => false,
        PolicySpec::Match { .. } | PolicySpec::Modulo => {
            if let Some(key) = new_key {
                key.say(check);
            }
            false
        }
    };
    if breaks {
        let message = "with this policy records of one key may change their order";
        let at = pointer::child(at, "partitions");
        check.say(Code::BreaksOrder, &at, message).help = Some(ACCEPT.to_owned());
    }
}

/// Whether records of one key have the same text at `path`.
fn is_of_key(path: &str) -> bool {
    let rest = path.strip_prefix("key");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// A step that gives records another key.
struct NewKey {
    at: String,
    /// The path that is the key, where it is one.
    from: Option<String>,
}

impl NewKey {
    /// The last step that does so.
    fn of(steps: &Steps<'_>) -> Option<Self> {
        let both = steps.list.iter().zip(&steps.pointers).rev();
        both.into_iter().find_map(|(step, at)| {
            let reformat = step.get("reformat")?;
            let at = pointer::child(at, "reformat");
            Self::rekey(reformat, &at).or_else(|| Self::set(reformat, &at))
        })
    }

    fn rekey(reformat: &Value, at: &str) -> Option<Self> {
        let from = reformat.get("rekey")?.get("from");
        Some(Self {
            at: pointer::child(at, "rekey"),
            from: from.and_then(Value::as_str).map(str::to_owned),
        })
    }

    fn set(reformat: &Value, at: &str) -> Option<Self> {
        let set = reformat.get("set").and_then(Value::as_object)?;
        let (path, value) = set.iter().find(|(path, _)| is_of_key(path))?;
        let from = value.get("from").and_then(Value::as_str);
        Some(Self {
            at: pointer::child(&pointer::child(at, "set"), path),
            from: from.filter(|_| path == "key").map(str::to_owned),
        })
    }

    fn is(&self, path: &str) -> bool {
        self.from.as_deref() == Some(path)
    }

    fn say(&self, check: &mut Check<'_>) {
        let message = "this gives records another key, and the partitions stay those of the old one: records of one key may change their order";
        check
            .say_of_key(Code::BreaksOrder, &self.at, message.to_owned())
            .help = Some(format!(
            "write `partitions: key_hash` at the route, which puts each key into one partition; or {ACCEPT}"
        ));
    }
}
