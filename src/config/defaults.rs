//! What holds where the file says nothing. The one table: the schema's `default`s come from it.

use serde_json::{Map, Value, json};

/// Settings that replace as a whole, although they may be maps: they are one value in two forms.
const WHOLE: [&str; 2] = ["partitions", "rebalance_listener"];

/// The built-in settings of a route.
pub fn of_route() -> Value {
    json!({
        "delivery": "at_least_once",
        "start": "earliest",
        "on_gap": "stop",
        "on_error": "stop",
        "handlers": [],
        "partitions": "match",
        "workers": 1,
        "queue": { "records": 100_000, "bytes": "32MiB" },
        "producers": 1,
        "topic_creation": {
            "enabled": true,
            "configs": ["cleanup.policy", "retention.ms", "retention.bytes"],
        },
        "limits": { "in_flight": "64MiB" },
        "commit_interval": "1s",
        "discovery_interval": "5s",
        "group_protocol": "classic",
        "until": "stopped",
        "data_plane": "auto",
    })
}

/// The built-in settings of a cluster.
pub fn of_cluster() -> Value {
    json!({ "access": "read_write", "data_plane": "auto" })
}

/// The built-in settings of TLS, where TLS is used.
pub fn of_tls() -> Value {
    json!({ "verify_hostname": true })
}

/// The built-in settings of the process.
pub fn of_file() -> Value {
    json!({
        "group": "default",
        "limits": { "memory": "1GiB" },
        "reload": { "watch": true, "settle": "500ms" },
        "shutdown": { "grace": "25s" },
        "admin": { "listen": "127.0.0.1:8787" },
    })
}

/// Whether the setting `name` replaces as a whole.
pub fn is_whole(name: &str) -> bool {
    WHOLE.contains(&name)
}

/// Lays `above` over `below`: maps key by key, lists and scalars replace.
pub fn lay_over(below: Value, above: &Value) -> Value {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => Value::Object(lay_maps(below, above)),
        (_, above) => above.clone(),
    }
}

fn lay_maps(mut below: Map<String, Value>, above: &Map<String, Value>) -> Map<String, Value> {
    for (name, value) in above {
        let laid = match below.shift_remove(name) {
            Some(old) if !is_whole(name) => lay_over(old, value),
            _ => value.clone(),
        };
        below.insert(name.clone(), laid);
    }
    below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_merge_and_the_rest_replaces() {
        let below = json!({"a": {"x": 1, "y": [1]}, "partitions": {"policy": "match"}});
        let above = json!({"a": {"y": [2]}, "partitions": {"fixed": 1}, "b": 2});
        assert_eq!(
            lay_over(below, &above),
            json!({"a": {"x": 1, "y": [2]}, "partitions": {"fixed": 1}, "b": 2})
        );
    }
}
