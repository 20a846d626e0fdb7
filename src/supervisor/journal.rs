//! What happened lately, for `/api/v1/events`: reloads, and routes that changed their state.

use super::board::RouteView;
use crate::config::spec::Name;
use crate::observe::State;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::time::SystemTime;

/// Events that are kept; older ones are in the log.
const KEPT: usize = 256;

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Happened {
    /// When, in seconds since 1970.
    pub at: f64,
    /// Its stable name, as in the log.
    pub event: String,
    /// The route that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<String>,
    /// In words.
    pub text: String,
}

/// The last events, oldest first.
#[derive(Debug, Default)]
pub struct Journal {
    events: VecDeque<Happened>,
    states: BTreeMap<Name, State>,
}

impl Journal {
    /// Writes one down.
    pub fn note(&mut self, event: &str, route: Option<&Name>, text: String) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        self.events.push_back(Happened {
            at: since.map_or(0.0, |d| (d.as_secs_f64() * 1e3).round() / 1e3),
            event: event.to_owned(),
            route: route.map(ToString::to_string),
            text,
        });
        if self.events.len() > KEPT {
            self.events.pop_front();
        }
    }

    /// Notes the routes whose state is another one than the last time.
    pub fn compare(&mut self, routes: &BTreeMap<Name, RouteView>) {
        for (name, route) in routes {
            let condition = route.condition();
            if self.states.insert(name.clone(), condition.state) == Some(condition.state) {
                continue;
            }
            let state = format!("{:?}", condition.state).to_lowercase();
            let text = match &condition.reason {
                Some(reason) => format!("{state}: {reason}"),
                None => state,
            };
            self.note("route_state", Some(name), text);
        }
        let gone: Vec<Name> = self
            .states
            .keys()
            .filter(|name| !routes.contains_key(name))
            .cloned()
            .collect();
        for name in gone {
            self.states.remove(&name);
            self.note("route_stopped", Some(&name), "stopped".to_owned());
        }
    }

    /// The events, oldest first.
    pub fn events(&self) -> Vec<Happened> {
        self.events.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::{Condition, Reason};
    use crate::supervisor::testing::name;

    #[test]
    fn a_state_is_news_once_and_the_oldest_make_way() {
        let mut journal = Journal::default();
        let held = |state| RouteView {
            about: None,
            held: Some(Condition::now(state, Some(Reason::ByUser))),
            flows: Vec::new(),
        };
        let routes = BTreeMap::from([(name("a"), held(State::Paused))]);
        journal.compare(&routes);
        journal.compare(&routes);
        journal.compare(&BTreeMap::new());
        let texts: Vec<String> = journal.events().into_iter().map(|e| e.text).collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(
            texts[0].starts_with("paused: ") && texts[1] == "stopped",
            "{texts:?}"
        );
        for n in 0..2 * KEPT {
            journal.note("x", None, n.to_string());
        }
        assert_eq!(journal.events().len(), KEPT);
        assert_eq!(journal.events()[0].text, KEPT.to_string());
    }
}
