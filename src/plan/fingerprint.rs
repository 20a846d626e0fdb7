//! What members of a group must have alike, in a few bytes: a member says it beside each offset that it commits, so that
//! the others see when it copies by another file.

use super::changed;
use super::setting::Setting;
use crate::config::spec::RouteSpec;
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// The settings of a route that decide what is copied and how a copy looks. Those of speed and of the process (threads,
/// limits, intervals, the listener) may differ from member to member, and so may the list of sources and targets: the
/// group is of one source and one target.
const ALIKE: &[Setting] = &[
    Setting::TopicsInclude,
    Setting::TopicsExclude,
    Setting::Handlers,
    Setting::Partitions,
    Setting::Delivery,
    Setting::Start,
    Setting::OnGap,
    Setting::OnError,
    Setting::DeadLetter,
    Setting::RecordLimit,
    Setting::CreationEnabled,
    Setting::CreationReplication,
    Setting::CreationConfigs,
];

/// A hash of the settings that members of a group must have alike. Secrets are no part of it: it can be read by whoever may
/// look at the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 4]);

impl Fingerprint {
    /// The route's.
    pub fn of(route: &RouteSpec) -> Self {
        let alike: Vec<String> = ALIKE.iter().map(|setting| setting.shown(None)).collect();
        let mut hash = Sha256::new();
        for (setting, value) in changed::settings_of(route) {
            if alike.contains(&setting) {
                // Neither a name nor a value has a zero byte in it.
                hash.update(setting);
                hash.update([0]);
                hash.update(value);
                hash.update([0]);
            }
        }
        let hash = hash.finalize();
        Self([hash[0], hash[1], hash[2], hash[3]])
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl FromStr for Fingerprint {
    type Err = hex::FromHexError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 4];
        hex::decode_to_slice(text, &mut bytes)?;
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::config_tests::load_text;
    use std::sync::Arc;

    /// The settings that each member has for itself.
    const OWN: &[Setting] = &[
        Setting::About,
        Setting::Source,
        Setting::Target,
        Setting::Was,
        Setting::Accept,
        Setting::Workers,
        Setting::HandlerThreads,
        Setting::QueueRecords,
        Setting::QueueBytes,
        Setting::Producers,
        Setting::InFlight,
        Setting::CommitInterval,
        Setting::DiscoveryInterval,
        Setting::RebalanceListener,
        Setting::GroupProtocol,
        Setting::Until,
        Setting::DataPlane,
    ];

    fn route(settings: &str) -> Arc<RouteSpec> {
        let text = format!(
            "version: 1
clusters:
  lisbon: {{ bootstrap_servers: ['lisbon:9092'] }}
  hub: {{ bootstrap_servers: ['hub:9092'] }}
  lake: {{ bootstrap_servers: ['lake:9092'] }}
routes:
  orders:
    source: lisbon
    target: hub
    topics: {{ include: [orders] }}
    {settings}
"
        );
        let loaded = load_text(&text).unwrap();
        loaded.spec.routes.values().next().unwrap().clone()
    }

    #[test]
    fn every_setting_of_a_route_is_decided() {
        let of_routes = |s: &&Setting| s.path().starts_with("routes.");
        for setting in Setting::ALL.iter().filter(of_routes) {
            let decided = ALIKE.contains(setting) != OWN.contains(setting);
            assert!(decided, "must {setting:?} be alike in all members, or not?");
        }
    }

    #[test]
    fn what_changes_the_copy_changes_it_and_what_does_not_does_not() {
        let plain = Fingerprint::of(&route(""));
        assert_eq!(Fingerprint::of(&route("workers: 3")), plain);
        assert_eq!(Fingerprint::of(&route("commit_interval: 2s")), plain);
        assert_eq!(Fingerprint::of(&route("about: The orders.")), plain);
        assert_eq!(
            Fingerprint::of(&route("on_error: stop")),
            plain,
            "the default"
        );
        for other in [
            "on_error: skip",
            "partitions: key_hash",
            "handlers: [{ filter: { drop: tombstone } }]",
            "topic_creation: { enabled: false }",
        ] {
            assert_ne!(Fingerprint::of(&route(other)), plain, "{other}");
        }
    }

    #[test]
    fn survives_a_round_trip() {
        let plain = Fingerprint::of(&route(""));
        assert_eq!(plain.to_string().parse(), Ok(plain));
        for foreign in ["", "12", "0123456z", "0123456789"] {
            assert!(foreign.parse::<Fingerprint>().is_err(), "{foreign}");
        }
    }
}
