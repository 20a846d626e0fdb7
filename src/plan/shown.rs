//! Values of settings as a plan shows them: as they would be written in the file, secrets masked.

use crate::config::mask;
use crate::config::pointer;
use crate::config::secret::Secret;
use crate::config::spec::{
    Accept, Access, ClusterSpec, CreationMode, DataPlane, GroupProtocol, ListenerSpec, OnError,
    OnGap, Start, Until, VerifyHostname, Watch,
};
use crate::handler::{Chain, StepSpec};
use crate::partition::{OnFewer, PolicySpec};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What stands for a secret.
const MASK: &str = "***";

/// A value that a plan can show.
pub(super) trait Shown {
    /// The value as it would be written.
    fn shown(&self) -> String;
}

impl<T: Shown> Shown for Option<T> {
    fn shown(&self) -> String {
        self.as_ref().map_or("unset".to_owned(), Shown::shown)
    }
}

impl<T: Shown> Shown for Vec<T> {
    fn shown(&self) -> String {
        let all: Vec<String> = self.iter().map(Shown::shown).collect();
        format!("[{}]", all.join(", "))
    }
}

impl<T: Shown> Shown for Arc<T> {
    fn shown(&self) -> String {
        (**self).shown()
    }
}

impl Shown for String {
    fn shown(&self) -> String {
        self.clone()
    }
}

impl Shown for Secret {
    fn shown(&self) -> String {
        MASK.to_owned()
    }
}

impl Shown for PathBuf {
    fn shown(&self) -> String {
        self.display().to_string()
    }
}

/// A setting that is a cluster is shown by its name.
impl Shown for ClusterSpec {
    fn shown(&self) -> String {
        self.name.to_string()
    }
}

macro_rules! shown_as_number {
    ($($number:ty),*) => {
        $(impl Shown for $number {
            fn shown(&self) -> String {
                self.to_string()
            }
        })*
    };
}

shown_as_number!(usize, i32, std::num::NonZeroUsize, std::net::SocketAddr);

impl Shown for crate::config::spec::Name {
    fn shown(&self) -> String {
        self.to_string()
    }
}

/// A size in bytes.
pub(super) struct Bytes(pub u64);

impl Shown for Bytes {
    fn shown(&self) -> String {
        let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
        let whole = |(_, shift): &&(&str, u32)| self.0 > 0 && self.0.is_multiple_of(1 << shift);
        match units.iter().find(whole) {
            Some((unit, shift)) => format!("{}{unit}", self.0 >> shift),
            None => format!("{}B", self.0),
        }
    }
}

impl Shown for Duration {
    fn shown(&self) -> String {
        let (mut left, mut text) = (self.as_millis(), String::new());
        for (unit, millis) in [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)] {
            if left >= millis {
                text += &format!("{}{unit}", left / millis);
                left %= millis;
            }
        }
        if text.is_empty() {
            "0s".to_owned()
        } else {
            text
        }
    }
}

macro_rules! shown_as_word {
    ($($kind:ty { $($value:pat => $word:literal),* $(,)? })*) => {
        $(impl Shown for $kind {
            fn shown(&self) -> String {
                match self { $($value => $word),* }.to_owned()
            }
        })*
    };
}

shown_as_word! {
    Start { Start::Earliest => "earliest", Start::Latest => "latest" }
    OnGap { OnGap::Stop => "stop", OnGap::Earliest => "earliest", OnGap::Latest => "latest" }
    OnError {
        OnError::Stop => "stop",
        OnError::Skip => "skip",
        OnError::DeadLetter => "dead_letter",
        OnError::AbortRoute => "abort_route",
    }
    GroupProtocol { GroupProtocol::Classic => "classic", GroupProtocol::Consumer => "consumer" }
    DataPlane {
        DataPlane::Auto => "auto",
        DataPlane::Native => "native",
        DataPlane::Librdkafka => "librdkafka",
    }
    Until { Until::Stopped => "stopped", Until::End => "end" }
    Watch { Watch::On => "true", Watch::Off => "false" }
    CreationMode { CreationMode::Enabled => "true", CreationMode::Disabled => "false" }
    Access { Access::Read => "read", Access::ReadWrite => "read_write" }
    VerifyHostname { VerifyHostname::Yes => "true", VerifyHostname::No => "false" }
    crate::config::spec::SaslMechanism {
        crate::config::spec::SaslMechanism::Plain => "PLAIN",
        crate::config::spec::SaslMechanism::ScramSha256 => "SCRAM-SHA-256",
        crate::config::spec::SaslMechanism::ScramSha512 => "SCRAM-SHA-512",
        crate::config::spec::SaslMechanism::OauthBearer => "OAUTHBEARER",
        crate::config::spec::SaslMechanism::Gssapi => "GSSAPI",
    }
    Accept {
        Accept::Reorder => "reorder",
        Accept::RestartFromStart => "restart_from_start",
        Accept::Gap => "gap",
    }
}

impl Shown for PolicySpec {
    fn shown(&self) -> String {
        match self {
            PolicySpec::Match {
                on_fewer: OnFewer::Stop,
            } => "match".to_owned(),
            PolicySpec::Match {
                on_fewer: OnFewer::Modulo,
            } => "{ policy: match, on_fewer: modulo }".to_owned(),
            PolicySpec::KeyHash => "key_hash".to_owned(),
            PolicySpec::Modulo => "modulo".to_owned(),
            PolicySpec::RoundRobin => "round_robin".to_owned(),
            PolicySpec::Fixed(partition) => format!("{{ fixed: {partition} }}"),
            PolicySpec::By(path) => format!("{{ by: {path} }}"),
        }
    }
}

impl Shown for ListenerSpec {
    fn shown(&self) -> String {
        match self {
            ListenerSpec::Log => "log".to_owned(),
            // An argument may be a credential.
            ListenerSpec::Exec { command, args } if args.is_empty() => {
                format!("{{ exec: [{command}] }}")
            }
            ListenerSpec::Exec { command, args } => {
                format!("{{ exec: [{command}, … {} more] }}", args.len())
            }
            ListenerSpec::Registered(name) => name.clone(),
        }
    }
}

/// Two chains, without the steps that they begin and end with alike.
pub(super) fn chains(running: &Chain, wanted: &Chain) -> (String, String) {
    let (from, to) = (running.specs(), wanted.specs());
    let alike = |(a, b): &(&StepSpec, &StepSpec)| a == b;
    let head = running.in_common(wanted);
    let tail = from
        .clone()
        .skip(head)
        .rev()
        .zip(to.clone().skip(head).rev());
    let tail = tail.take_while(alike).count();
    let shown = |chain: &Chain| {
        let middle = chain.specs().take(chain.specs().len() - tail).skip(head);
        let mut words: Vec<String> = middle.map(step).collect();
        if head > 0 {
            words.insert(0, "…".to_owned());
        }
        if tail > 0 {
            words.push("…".to_owned());
        }
        format!("[{}]", words.join(", "))
    };
    (shown(running), shown(wanted))
}

/// A step as YAML in one line, secrets masked.
fn step(step: &StepSpec) -> String {
    let mut value = serde_json::to_value(step).unwrap_or_default();
    hide(&mut value, "");
    flow_style(&value)
}

/// Masks every scalar whose key has a secret's name.
fn hide(value: &mut Value, at: &str) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                hide(member, &pointer::child(at, name));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| hide(item, at)),
        scalar if mask::is_secret_pointer(at) => *scalar = MASK.into(),
        _ => {}
    }
}

/// A value in YAML's flow style, as the examples are written.
fn flow_style(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let member =
                |(name, value): (&String, &Value)| format!("{name}: {}", flow_style(value));
            let all: Vec<String> = members.iter().map(member).collect();
            format!("{{ {} }}", all.join(", "))
        }
        Value::Array(items) => {
            let all: Vec<String> = items.iter().map(flow_style).collect();
            format!("[{}]", all.join(", "))
        }
        Value::String(text) if is_plain(text) => text.clone(),
        Value::String(text) => format!("'{}'", text.replace('\'', "''")),
        other => other.to_string(),
    }
}

fn is_plain(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '$' | '%');
    text == MASK || !text.is_empty() && text.chars().all(plain) && !text.starts_with(['-', '%'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handler::Registry;
    use serde_json::json;

    fn chain(steps: Value) -> Chain {
        let steps: Vec<StepSpec> = serde_json::from_value(steps).unwrap();
        Chain::compile(steps, &Registry::default()).unwrap()
    }

    #[test]
    fn of_two_chains_only_what_differs_is_shown() {
        let first = json!({ "filter": { "drop": "tombstone" } });
        let last = json!({ "rename": { "topic": "{source}.{topic}" } });
        let new = json!({ "reformat": { "unset": ["header.x"] } });
        let (from, to) = chains(
            &chain(json!([first, last])),
            &chain(json!([first, new, last])),
        );
        assert_eq!(from, "[…, …]");
        assert_eq!(to, "[…, { reformat: { unset: [header.x] } }, …]");
        let (from, to) = chains(&chain(json!([])), &chain(json!([last])));
        assert_eq!(
            (from.as_str(), to.as_str()),
            ("[]", "[{ rename: { topic: '{source}.{topic}' } }]")
        );
    }

    #[test]
    fn a_secret_in_a_step_is_masked() {
        let mut value =
            json!({ "reformat": { "mask": { "fields": ["value.a"], "key": "canary" } } });
        hide(&mut value, "");
        assert!(!value.to_string().contains("canary"), "{value}");
        assert!(value.to_string().contains("value.a"));
    }

    #[test]
    fn sizes_and_times_are_shown_as_they_are_written() {
        assert_eq!(Bytes(64 << 20).shown(), "64MiB");
        assert_eq!(Bytes(1000).shown(), "1000B");
        assert_eq!(Duration::from_millis(5_400_000).shown(), "1h30m");
        assert_eq!(Duration::from_millis(500).shown(), "500ms");
    }
}
