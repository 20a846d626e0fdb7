//! What concerns the whole process: group, memory, reload, shutdown, admin.

use super::Check;
use crate::config::chains::read_raw;
use crate::config::defaults;
use crate::config::diagnostic::Code;
use crate::config::laid::Laid;
use crate::config::raw::{RawAdmin, RawLimits, RawReload, RawShutdown};
use crate::config::secret::Secret;
use crate::config::spec::{Accept, AdminSpec, ReloadSpec, Spec, Watch};
use crate::config::words::RawAccept;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Characters of a token at least.
const SHORTEST_TOKEN: usize = 16;

/// Reads the settings of the process into a spec without clusters and routes.
pub fn read(check: &mut Check<'_>) -> Option<Spec> {
    let table = defaults::of_file();
    let group = section::<String>("group", &table, check);
    let group = group.and_then(|g| check.name("/group", &g));
    let limits = section::<RawLimits>("limits", &table, check);
    let reload = section::<RawReload>("reload", &table, check).and_then(reload);
    let shutdown = section::<RawShutdown>("shutdown", &table, check);
    let admin = section::<RawAdmin>("admin", &table, check).and_then(|a| admin(a, check));
    Some(Spec {
        group: group?,
        clusters: BTreeMap::new(),
        routes: BTreeMap::new(),
        memory_bytes: limits?.memory?.0,
        reload: reload?,
        grace: shutdown?.grace?.0,
        admin: admin?,
        accept: accept(check),
    })
}

/// The words at the top of the file.
fn accept(check: &mut Check<'_>) -> Vec<Accept> {
    let written = check.document.value.get("accept").map(Laid::alone);
    let words = written.and_then(|w| read_raw::<Vec<RawAccept>>(w, "/accept", check));
    words
        .unwrap_or_default()
        .into_iter()
        .map(Accept::from)
        .collect()
}

/// A top-level key, laid over what holds without it.
fn section<T: for<'de> Deserialize<'de>>(
    name: &str,
    table: &Value,
    check: &mut Check<'_>,
) -> Option<T> {
    let built_in = table.get(name).unwrap_or(&Value::Null);
    let value = match check.document.value.get(name) {
        Some(written) => Laid::over(built_in, written),
        None => Laid::alone(built_in),
    };
    read_raw(value, &format!("/{name}"), check)
}

fn reload(raw: RawReload) -> Option<ReloadSpec> {
    Some(ReloadSpec {
        watch: match raw.watch? {
            true => Watch::On,
            false => Watch::Off,
        },
        settle: raw.settle?.0,
    })
}

fn admin(raw: RawAdmin, check: &mut Check<'_>) -> Option<AdminSpec> {
    let listen = match raw.listen?.as_str() {
        "off" => None,
        text => match text.parse::<SocketAddr>() {
            Ok(address) => Some(address),
            Err(_) => {
                let at = "/admin/listen";
                let message = format!("{} is not an address", check.quoted(at, text));
                check.say(Code::BadAddress, at, message).help =
                    Some("write an IP address and a port, `127.0.0.1:8787`, or `off`".to_owned());
                return None;
            }
        },
    };
    let socket = raw
        .socket
        .map(|s| check.document.folder("/admin/socket").join(s));
    let token = match raw.write {
        Some(write) => Some(token(write.token?, check)?),
        None => None,
    };
    if token.is_some() && listen.is_none() {
        let message = "`write` has no effect with `listen: off`".to_owned();
        check.say_of_key(Code::NoEffect, "/admin/write", message);
    }
    Some(AdminSpec {
        listen,
        socket,
        token,
    })
}

/// Whoever has it may stop every route: it must not be one that can be guessed.
fn token(token: String, check: &mut Check<'_>) -> Option<Secret> {
    if token.chars().count() >= SHORTEST_TOKEN {
        return Some(Secret::new(token));
    }
    let message = format!("the token is shorter than {SHORTEST_TOKEN} characters");
    check
        .say(Code::WrongValue, "/admin/write/token", message)
        .help = Some("`openssl rand -hex 32` makes one".to_owned());
    None
}
