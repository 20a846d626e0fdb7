//! Settings that stand inside others and have their class: examples of each.

use super::Setting;
use super::{live, restart};

/// The table.
pub(super) const INNER: &[Setting] = &[
    live("routes.*.handlers.*.use", &["hygiene"]),
    live("routes.*.handlers.*.name", &["eu only"]),
    live(
        "routes.*.handlers.*.when",
        &[
            "tombstone",
            "{ value.country: [PT, ES] }",
            r#"'value.amount > 100 && header["x-dc"] == "lis"'"#,
        ],
    ),
    live(
        "routes.*.handlers.*.when.all",
        &["[{ value.country: PT }, { value.amount: { gt: 100 } }]"],
    ),
    live(
        "routes.*.handlers.*.when.any",
        &["[tombstone, { value.country: [PT, ES] }]"],
    ),
    live("routes.*.handlers.*.when.not", &["{ value.country: PT }"]),
    live("routes.*.handlers.*.when.*.in", &["[PT, ES]"]),
    live("routes.*.handlers.*.when.*.not", &["PT"]),
    live("routes.*.handlers.*.when.*.gt", &["100"]),
    live("routes.*.handlers.*.when.*.gte", &["100"]),
    live("routes.*.handlers.*.when.*.lt", &["100"]),
    live("routes.*.handlers.*.when.*.lte", &["99.5"]),
    live("routes.*.handlers.*.when.*.matches", &["'[A-Z]{2}'"]),
    live("routes.*.handlers.*.when.*.contains", &["debug"]),
    live("routes.*.handlers.*.when.*.exists", &["false"]),
    live("routes.*.handlers.*.on_error", &["pass", "dead_letter"]),
    live(
        "routes.*.handlers.*.filter",
        &[
            "{ drop: tombstone }",
            "{ sample: 1%, by: key }",
            "{ dedupe: value.id, window: 10m }",
        ],
    ),
    live(
        "routes.*.handlers.*.filter.keep",
        &[
            "{ header.region: [pt, es] }",
            r#"'value.status == "paid" && value.amount > 100'"#,
        ],
    ),
    live(
        "routes.*.handlers.*.filter.drop",
        &["tombstone", "null_key"],
    ),
    live("routes.*.handlers.*.filter.sample", &["1%"]),
    live("routes.*.handlers.*.filter.by", &["key", "value.user.id"]),
    live("routes.*.handlers.*.filter.seed", &["clicks"]),
    live("routes.*.handlers.*.filter.dedupe", &["value.id"]),
    live("routes.*.handlers.*.filter.window", &["10m"]),
    live("routes.*.handlers.*.filter.max", &["100000"]),
    live(
        "routes.*.handlers.*.rename",
        &[
            "{ topic: '{source}.{topic}' }",
            "{ header: { traceparent: upstream-traceparent } }",
        ],
    ),
    live(
        "routes.*.handlers.*.rename.topic",
        &[
            "'{source}.{topic}'",
            "'clicks-{team}-{major}'",
            "'orders-{value.region}'",
        ],
    ),
    live(
        "routes.*.handlers.*.rename.allow",
        &["[orders-na, 'orders-a.+']"],
    ),
    live(
        "routes.*.handlers.*.rename.to",
        &["[{ topic: orders-eu, when: { value.country: [PT, ES] } }, { topic: orders-other }]"],
    ),
    live("routes.*.handlers.*.rename.to.*.topic", &["orders-eu"]),
    live(
        "routes.*.handlers.*.rename.to.*.when",
        &["{ value.country: [PT, ES] }"],
    ),
    live(
        "routes.*.handlers.*.rename.to.*.allow",
        &["[orders-na, 'orders-a.+']"],
    ),
    live(
        "routes.*.handlers.*.rename.header",
        &["{ traceparent: upstream-traceparent }"],
    ),
    live(
        "routes.*.handlers.*.rename.field",
        &["{ value.usr: value.user }"],
    ),
    live(
        "routes.*.handlers.*.reformat",
        &["{ unset: [header.x-debug], set: { header.x-dc: '{source}' } }"],
    ),
    live(
        "routes.*.handlers.*.reformat.set",
        &["{ header.x-dc: '{source}', value.seen: true, key: { from: value.id } }"],
    ),
    live("routes.*.handlers.*.reformat.set.*.from", &["value.id"]),
    live(
        "routes.*.handlers.*.reformat.set.*.expr",
        &["'value.price * value.qty'"],
    ),
    live(
        "routes.*.handlers.*.reformat.unset",
        &["[header.x-debug, 'header.internal-*', value.user.phone]"],
    ),
    live(
        "routes.*.handlers.*.reformat.mask",
        &["{ fields: [value.user.email], with: hash, key: '${file:mask.key}' }"],
    ),
    live(
        "routes.*.handlers.*.reformat.mask.fields",
        &["[value.user.email, 'value.items[*].serial']"],
    ),
    live("routes.*.handlers.*.reformat.mask.with", &["last4"]),
    live(
        "routes.*.handlers.*.reformat.mask.key",
        &["'${file:mask.key}'"],
    ),
    live(
        "routes.*.handlers.*.reformat.split",
        &[
            "{ array: value.items, into: value.item, carry: [value.order_id], index_header: item-index }",
        ],
    ),
    live("routes.*.handlers.*.reformat.split.array", &["value.items"]),
    live("routes.*.handlers.*.reformat.split.into", &["value.item"]),
    live(
        "routes.*.handlers.*.reformat.split.carry",
        &["[value.order_id]"],
    ),
    live(
        "routes.*.handlers.*.reformat.split.index_header",
        &["item-index"],
    ),
    live("routes.*.handlers.*.reformat.split.when_empty", &["keep"]),
    live(
        "routes.*.handlers.*.reformat.rekey",
        &["{ from: value.customer_id }"],
    ),
    live(
        "routes.*.handlers.*.reformat.rekey.from",
        &["value.customer_id", "[value.region, value.customer_id]"],
    ),
    live("routes.*.handlers.*.reformat.rekey.as", &["json"]),
    live(
        "routes.*.handlers.*.reformat.timestamp",
        &[
            "{ shift: -1h }",
            "{ from: value.event_ms, unit: ms }",
            "now",
        ],
    ),
    live("routes.*.handlers.*.reformat.timestamp.shift", &["-1h"]),
    live(
        "routes.*.handlers.*.reformat.timestamp.from",
        &["value.event_ms"],
    ),
    live("routes.*.handlers.*.reformat.timestamp.unit", &["rfc3339"]),
    live(
        "routes.*.handlers.*.reformat.timestamp.if_absent",
        &["keep"],
    ),
    live(
        "routes.*.handlers.*.reformat.decode",
        &["{ value: gzip }", "{ value.payload: json }"],
    ),
    live(
        "routes.*.handlers.*.reformat.encode",
        &["{ value.raw: base64 }"],
    ),
    live(
        "routes.*.handlers.*.reformat.cast",
        &["{ value.amount: float, value.id: string }"],
    ),
    live(
        "routes.*.handlers.*.reformat.flatten",
        &["{ separator: '.' }"],
    ),
    live("routes.*.handlers.*.reformat.flatten.separator", &["'_'"]),
    live("routes.*.handlers.*.reformat.hoist", &["payload"]),
    live("routes.*.handlers.*.reformat.extract", &["value.after"]),
    live("routes.*.handlers.*.reformat.envelope", &["true"]),
    restart("routes.*.partitions.policy", &["match"]),
    restart("routes.*.partitions.on_fewer", &["modulo"]),
    restart("routes.*.partitions.fixed", &["0"]),
    restart(
        "routes.*.partitions.by",
        &["value.customer_id", "header.tenant"],
    ),
    restart(
        "routes.*.rebalance_listener.exec",
        &["[/usr/local/bin/notify, rebalance]"],
    ),
    live("tests.*.name", &["tombstones do not reach the hub"]),
    live("tests.*.route", &["orders"]),
    live("tests.*.target", &["hub"]),
    live("tests.*.target_partitions", &["12"]),
    live(
        "tests.*.in",
        &["[{ topic: orders, key: k1, value: { id: 7 }, headers: { x-debug: '1' } }]"],
    ),
    live(
        "tests.*.out",
        &["[{ topic: lisbon.orders, value: { id: 7 } }]", "1"],
    ),
    live("tests.*.dropped", &["filter"]),
    live("tests.*.failed", &["not_json"]),
    live("tests.*.in.*.source", &[r#"lisbon"#]),
    live("tests.*.in.*.topic", &[r#"orders"#]),
    live("tests.*.in.*.key", &[r#"k1"#]),
    live("tests.*.in.*.key_hex", &[r#"'00ff'"#]),
    live("tests.*.in.*.value", &[r#"{ id: 7 }"#]),
    live("tests.*.in.*.value_hex", &[r#"'00000001'"#]),
    live("tests.*.in.*.value_base64", &[r#"SGVsbG8="#]),
    live("tests.*.in.*.value_file", &[r#"records/order.json"#]),
    live("tests.*.in.*.headers", &[r#"{ x-debug: '1' }"#]),
    live("tests.*.in.*.timestamp", &[r#"1700000000000"#]),
    live("tests.*.in.*.at", &[r#"{ partition: 0, offset: 42 }"#]),
    live("tests.*.in.*.at.partition", &[r#"0"#]),
    live("tests.*.in.*.at.offset", &[r#"42"#]),
    live(
        "tests.*.in.*.kcat",
        &[r#"'{"topic":"orders","key":"k1","payload":"{}"}'"#],
    ),
    live("tests.*.in.*.kcat_file", &[r#"records/orders.kcat.json"#]),
    live("tests.*.out.*.topic", &[r#"lisbon.orders"#]),
    live("tests.*.out.*.target_partition", &[r#"3"#]),
    live("tests.*.out.*.key", &[r#"k1"#]),
    live("tests.*.out.*.key_hex", &[r#"'00ff'"#]),
    live("tests.*.out.*.value", &[r#"{ id: 7 }"#]),
    live("tests.*.out.*.value_hex", &[r#"'00000001'"#]),
    live("tests.*.out.*.value_base64", &[r#"SGVsbG8="#]),
    live("tests.*.out.*.value_file", &[r#"records/wanted.json"#]),
    live("tests.*.out.*.headers", &[r#"{ x-dc: lisbon }"#]),
    live(
        "tests.*.out.*.headers_exactly",
        &[r#"[[x-dc, lisbon], [x-dc, porto]]"#],
    ),
    live("tests.*.out.*.timestamp", &[r#"1700000000000"#]),
];
