//! Partition policies.

use super::Check;
use crate::config::diagnostic::Code;
use crate::config::forms::{Fewer, Partitions, Policy};
use crate::config::pointer;
use crate::partition::{OnFewer, PolicySpec};

/// The policy.
pub fn read(raw: Partitions, at: &str, check: &mut Check<'_>) -> Option<PolicySpec> {
    let at = pointer::child(at, "partitions");
    match raw {
        Partitions::Fixed(partition) => Some(PolicySpec::Fixed(partition)),
        Partitions::By(path) => self::path(path, &at, check).map(PolicySpec::By),
        Partitions::Policy { policy, on_fewer } => named(policy, on_fewer, &at, check),
    }
}

fn named(
    policy: Policy,
    on_fewer: Option<Fewer>,
    at: &str,
    check: &mut Check<'_>,
) -> Option<PolicySpec> {
    if policy != Policy::Match && on_fewer.is_some() {
        let at = pointer::child(at, "on_fewer");
        check.say_of_key(
            Code::Conflict,
            &at,
            "`on_fewer` belongs to `match` alone".to_owned(),
        );
        return None;
    }
    Some(match policy {
        Policy::Match => PolicySpec::Match {
            on_fewer: match on_fewer {
                None | Some(Fewer::Stop) => OnFewer::Stop,
                Some(Fewer::Modulo) => OnFewer::Modulo,
            },
        },
        Policy::KeyHash => PolicySpec::KeyHash,
        Policy::Modulo => PolicySpec::Modulo,
        Policy::RoundRobin => PolicySpec::RoundRobin,
    })
}

/// A path of a record, by its first word; the rest of the grammar is the handlers' business.
fn path(path: String, at: &str, check: &mut Check<'_>) -> Option<String> {
    let rest = |root: &str| path.strip_prefix(root);
    let fields = |rest: &str| rest.is_empty() || rest.starts_with(['.', '[']);
    let header = rest("header.").is_some_and(|name| !name.is_empty());
    let sound = header || rest("key").is_some_and(fields) || rest("value").is_some_and(fields);
    if sound {
        return Some(path);
    }
    let at = pointer::child(at, "by");
    let message = format!("{} is not a path of a record", check.quoted(&at, &path));
    check.say(Code::WrongValue, &at, message).help =
        Some("write `key`, `value.field` or `header.NAME`".to_owned());
    None
}
