//! Partition policies.

use super::Check;
use crate::config::diagnostic::Code;
use crate::config::forms::{Fewer, Partitions, Policy};
use crate::config::pointer;
use crate::handler::Path;
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

/// A path of a record.
fn path(path: String, at: &str, check: &mut Check<'_>) -> Option<String> {
    let at = pointer::child(at, "by");
    let help = "write `key`, `value.field` or `header.NAME`";
    match Path::parse_one(&path) {
        Ok(Path::Key(_) | Path::Value(_) | Path::Header(_)) => return Some(path),
        Err(fault) if check.document.may_be_shown(&at) => {
            let part = (path.as_str(), fault.bytes);
            let diagnostic = check.say_inside(Code::WrongValue, &at, part, fault.message);
            diagnostic.help = fault.help;
        }
        Ok(_) | Err(_) => {
            let message = format!("{} is not a path of a record", check.quoted(&at, &path));
            check.say(Code::WrongValue, &at, message).help = Some(help.to_owned());
        }
    }
    None
}
