//! The plan: what a wanted configuration changes about the running one. A pure difference.
//!
//! First start is the difference with nothing, so start and reload are one code path.

use crate::config::spec::{Name, RouteSpec, Spec};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

mod changed;

pub use changed::changed_settings;

/// What becomes of every route, and what cannot change while the process runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The change of each route that is running or wanted.
    pub routes: BTreeMap<Name, Change>,
    /// Changes that only a new process can make; with one of them nothing is applied.
    pub refused: Vec<Refused>,
}

/// What becomes of one route.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// It is new.
    Start(Arc<RouteSpec>),
    /// It goes on with other settings; positions are kept.
    Restart {
        /// The settings that differ, as named in the file.
        changed: Vec<String>,
        /// What it becomes.
        wanted: Arc<RouteSpec>,
    },
    /// It is not wanted any more.
    Stop,
    /// It is not touched.
    Keep,
}

/// A setting that is fixed for the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixed {
    /// `group`: the names of all consumer groups, and so all positions, hang on it.
    Group,
    /// `limits.memory`: divided over the routes at start.
    Memory,
    /// `admin`: the listening sockets.
    Admin,
}

impl Fixed {
    /// The setting's path in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Fixed::Group => "group",
            Fixed::Memory => "limits.memory",
            Fixed::Admin => "admin",
        }
    }
}

/// A change that is refused while the process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The setting.
    pub setting: Fixed,
    /// Its value now.
    pub running: String,
    /// The value that the file wants.
    pub wanted: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} cannot change while running ({} -> {}): restart the process",
            self.setting.as_str(),
            self.running,
            self.wanted
        )
    }
}

/// How many routes change in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Tally {
    /// Routes to start.
    pub start: usize,
    /// Routes to restart.
    pub restart: usize,
    /// Routes to stop.
    pub stop: usize,
    /// Routes that stay as they are.
    pub keep: usize,
}

impl Plan {
    /// The difference that makes `wanted` out of `running`; out of nothing at first start.
    pub fn between(running: Option<&Spec>, wanted: &Spec) -> Self {
        let none = BTreeMap::new();
        let before = running.map_or(&none, |spec| &spec.routes);
        let names: BTreeSet<&Name> = before.keys().chain(wanted.routes.keys()).collect();
        let routes = names
            .into_iter()
            .map(|name| {
                let change = change_of(before.get(name), wanted.routes.get(name));
                (name.clone(), change)
            })
            .collect();
        Self {
            routes,
            refused: running.map_or_else(Vec::new, |running| refusals(running, wanted)),
        }
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.refused.is_empty() && self.routes.values().all(|c| matches!(c, Change::Keep))
    }

    /// Counts the routes by change.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for change in self.routes.values() {
            match change {
                Change::Start(_) => tally.start += 1,
                Change::Restart { .. } => tally.restart += 1,
                Change::Stop => tally.stop += 1,
                Change::Keep => tally.keep += 1,
            }
        }
        tally
    }
}

fn change_of(running: Option<&Arc<RouteSpec>>, wanted: Option<&Arc<RouteSpec>>) -> Change {
    match (running, wanted) {
        (_, None) => Change::Stop,
        (None, Some(wanted)) => Change::Start(Arc::clone(wanted)),
        (Some(running), Some(wanted)) => match changed_settings(running, wanted) {
            changed if changed.is_empty() => Change::Keep,
            changed => Change::Restart {
                changed,
                wanted: Arc::clone(wanted),
            },
        },
    }
}

fn refusals(running: &Spec, wanted: &Spec) -> Vec<Refused> {
    let admin = |spec: &Spec| {
        let listen = spec.admin.listen.map_or("off".into(), |at| at.to_string());
        let socket = spec.admin.socket.as_ref();
        socket.map_or(listen.clone(), |path| {
            format!("{listen}, {}", path.display())
        })
    };
    let pairs = [
        (
            Fixed::Group,
            running.group.to_string(),
            wanted.group.to_string(),
        ),
        (
            Fixed::Memory,
            running.memory_bytes.to_string(),
            wanted.memory_bytes.to_string(),
        ),
        (Fixed::Admin, admin(running), admin(wanted)),
    ];
    pairs
        .into_iter()
        .filter(|(_, running, wanted)| running != wanted)
        .map(|(setting, running, wanted)| Refused {
            setting,
            running,
            wanted,
        })
        .collect()
}

fn flows_of(spec: &RouteSpec) -> String {
    let names = |clusters: &[Arc<crate::config::spec::ClusterSpec>]| {
        let names: Vec<&str> = clusters.iter().map(|c| c.name.as_str()).collect();
        names.join(", ")
    };
    format!("{} -> {}", names(&spec.sources), names(&spec.targets))
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, change) in &self.routes {
            match change {
                Change::Start(spec) => writeln!(f, "  + {name}  start    {}", flows_of(spec))?,
                Change::Restart { changed, .. } => {
                    writeln!(
                        f,
                        "  ~ {name}  restart  {} (positions kept)",
                        changed.join(", ")
                    )?;
                }
                Change::Stop => writeln!(f, "  - {name}  stop")?,
                Change::Keep => writeln!(f, "    {name}  keep")?,
            }
        }
        for refused in &self.refused {
            writeln!(f, "  ! {refused}")?;
        }
        let t = self.tally();
        write!(
            f,
            "plan: {} to start, {} to restart, {} to stop, {} untouched",
            t.start, t.restart, t.stop, t.keep
        )
    }
}

/// `{"routes": {NAME: {"change": …}}, "refused": […], "tally": {…}}`.
impl Serialize for Plan {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let routes: BTreeMap<&str, &Change> =
            self.routes.iter().map(|(n, c)| (n.as_str(), c)).collect();
        let refused: Vec<BTreeMap<&str, &str>> = self
            .refused
            .iter()
            .map(|r| {
                BTreeMap::from([
                    ("setting", r.setting.as_str()),
                    ("running", r.running.as_str()),
                    ("wanted", r.wanted.as_str()),
                ])
            })
            .collect();
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("routes", &routes)?;
        map.serialize_entry("refused", &refused)?;
        map.serialize_entry("tally", &self.tally())?;
        map.end()
    }
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Change::Start(spec) => {
                map.serialize_entry("change", "start")?;
                map.serialize_entry("flows", &flows_of(spec))?;
            }
            Change::Restart { changed, .. } => {
                map.serialize_entry("change", "restart")?;
                map.serialize_entry("changed", changed)?;
            }
            Change::Stop => map.serialize_entry("change", "stop")?,
            Change::Keep => map.serialize_entry("change", "keep")?,
        }
        map.end()
    }
}

#[cfg(test)]
mod tests;
