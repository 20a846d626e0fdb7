//! Settings one by one: what each refuses, and where.

use super::config_tests::{assert_said, cluster, file, route};

#[test]
fn partitions_have_four_forms() {
    for form in [
        "match",
        "{ policy: match, on_fewer: modulo }",
        "{ fixed: 0 }",
        "key_hash",
        "{ by: key }",
    ] {
        assert_said(&route(&format!("partitions: {form}")), &[]);
    }
    assert_said(
        &route("partitions: keyhash"),
        &["10:17 E0304 `partitions` cannot be `keyhash`"],
    );
    assert_said(
        &route("partitions: { fixed: -1 }"),
        &["10:26 E0304 `fixed` must be at least 0"],
    );
    assert_said(
        &route("partitions: { policy: mach }"),
        &["10:27 E0304 `policy` cannot be `mach`"],
    );
    assert_said(
        &route("partitions: { policy: match, on_fever: stop }"),
        &["10:34 E0301 unknown key `on_fever`"],
    );
    assert_said(
        &route("partitions: 5"),
        &["10:17 E0303 `partitions` must be a text or a map"],
    );
    assert_said(
        &route("partitions: { policy: modulo, on_fewer: stop }"),
        &["10:35 E0413"],
    );
    assert_said(&route("partitions: { by: offset }"), &["10:23 E0304"]);
    assert_said(&route("partitions: round_robin"), &["10:17 W0605"]);
    assert_said(
        &route("partitions: round_robin\n    accept: [reorder]"),
        &[],
    );
    assert_said(&route("partitions: { by: key.id }"), &[]);
    assert_said(&route("partitions: { by: value.id }"), &["10:17 W0605"]);
}

#[test]
fn new_keys_need_a_policy_that_follows_them() {
    let with = |step: &str, policy: &str| {
        route(&format!(
            "handlers: [{{ reformat: {{ {step} }} }}]\n    partitions: {policy}"
        ))
    };
    let rekey = "rekey: { from: value.id }";
    assert_said(
        &with(rekey, "match"),
        &["10:30 W0605 this gives records another key"],
    );
    assert_said(
        &with("set: { key: '{value.id}' }", "modulo"),
        &["10:37 W0605"],
    );
    assert_said(&with("set: { header.x: y }", "match"), &[]);
    for policy in [
        "key_hash",
        "{ fixed: 0 }",
        "{ by: value.id }",
        "{ by: key }",
    ] {
        assert_said(&with(rekey, policy), &[]);
    }
    assert_said(&(with(rekey, "match") + "    accept: [reorder]\n"), &[]);
}

#[test]
fn what_takes_back_the_promise_of_delivery() {
    assert_said(
        &route("on_error: skip"),
        &["10:15 W0708 `on_error: skip` leaves records out"],
    );
    assert_said(&route("on_gap: latest"), &["10:13 W0708"]);
    assert_said(&route("on_gap: latest\n    accept: [gap]"), &[]);
    assert_said(
        &route("handlers: [{ filter: { drop: empty }, on_error: skip }]"),
        &["10:53 W0708"],
    );
    assert_said(&route("start: latest\n    until: end"), &["10:12 W0606"]);
    assert_said(&route("start: latest"), &[]);
}

#[test]
fn clusters_and_names() {
    let doubled = route("x: 1")
        .replace("    x: 1\n", "")
        .replace("source: a", "source: [a, a]");
    assert_said(&doubled, &["7:17 E0413 `a` stands twice in `source`"]);
    assert_said(
        &file("", "", "").replace("target: b", "target: [b, c]"),
        &["8:17 E0402 unknown cluster `c`"],
    );
    assert_said(
        &file("", "", "").replace("  r:", "  R.x:"),
        &["6:3 E0401 `R.x` is not a name"],
    );
    assert_said(
        &cluster("access: read")
            .replace("target: b", "target: a")
            .replace("source: a", "source: b"),
        &["8:13 E0412"],
    );
    assert_said(
        &file("", "", "").replace("target: b", "target: a"),
        &["8:13 E0410"],
    );
    assert_said(&cluster("data_plane: native"), &[]);
    assert_said(&route("data_plane: native"), &[]);
    let kerberos = "sasl: { mechanism: GSSAPI }";
    let natively = format!("data_plane: native, {kerberos}");
    assert_said(&cluster(&natively), &["3:48 E0414"]);
    let native = route("data_plane: native");
    let with_kerberos = native.replace("['a:1']", &format!("['a:1'], {kerberos}"));
    assert_said(&with_kerberos, &["10:17 E0414"]);
    assert_said(
        &file("", "", "").replace("'a:1'", "localhost"),
        &["3:28 E0416"],
    );
    assert_said(
        &file("", "", "admin: { listen: localhost }\n"),
        &["10:18 E0416"],
    );
    assert_said(&file("", "", "admin: { listen: 'off' }\n"), &[]);
    let written = |admin: &str| file("", "", &format!("admin: {{ {admin} }}\n"));
    assert_said(&written("write: { token: 0123456789abcdef }"), &[]);
    assert_said(
        &written("write: { token: short }"),
        &["10:26 E0304 the token is shorter than 16 characters"],
    );
    assert_said(&written("write: {}"), &["10:10 E0302"]);
    assert_said(
        &written("listen: 'off', write: { token: 0123456789abcdef }"),
        &["10:25 W0606"],
    );
    assert_said(&cluster("tls: { key: k.pem }"), &["3:41 E0413"]);
    assert_said(
        &cluster("sasl: { mechanism: PLAIN }"),
        &["3:36 E0413", "3:36 E0413"],
    );
    assert_said(
        &cluster("sasl: { mechanism: plain }"),
        &["3:55 E0304 `mechanism` cannot be `plain`"],
    );
    assert_said(&route("was: r"), &["10:10 E0413"]);
    assert_said(&route("was: older"), &[]);
    assert_said(&route("rebalance_listener: lgo"), &["10:25 E0417"]);
    assert_said(&route("rebalance_listener: { exec: [notify, now] }"), &[]);
    assert_said(&route("rebalance_listener: { exec: [] }"), &["10:33 E0304"]);
}

#[test]
fn dead_letters_need_a_topic() {
    assert_said(&route("on_error: dead_letter"), &["10:15 E0411"]);
    assert_said(
        &route("dead_letter: { topic: mirror.rejected }"),
        &["10:5 W0606"],
    );
    assert_said(
        &route("on_error: dead_letter\n    dead_letter: { topic: 'a b' }"),
        &["11:27 E0418"],
    );
    assert_said(&route("queue: { records: 5 }"), &["10:5 W0606"]);
}

#[test]
fn patterns() {
    let with = |pattern: &str| file("", "", "").replace("[orders]", &format!("[{pattern}]"));
    assert_said(&with("'^(?!test).*'"), &["9:27 E0406"]);
    assert_said(&with(r"'(a)\1'"), &["9:29 E0406"]);
    assert_said(&with("orders.eu"), &["9:31 W0601"]);
    assert_said(&with(r#""a\b""#), &["9:25 E0419", "9:25 W0602"]);
    assert_said(&with("'a[z-a]'"), &["9:28 E0405"]);
    assert_said(&with(r#""\d""#), &["9:"]);
    assert_said(
        &with("012"),
        &["9:25 E0303 an item of `include` must be a text"],
    );
    assert_said(&with(""), &["9:24 E0304 `include` must not be empty"]);
}

#[test]
fn client_properties() {
    let with = |p: &str| cluster(&format!("properties: {{ {p} }}"));
    assert_said(
        &with("socket.keepalive.enable: true, fetch.min.bytes: 5"),
        &[],
    );
    assert_said(&with("'enable.idempotence': false"), &["3:50 E0407"]);
    assert_said(&with("plugin.library.paths: x"), &["3:50 E0407"]);
    assert_said(&with("no.such.thing: 1"), &["3:50 E0408"]);
    assert_said(&with("fetch.min.bytes: many"), &["3:67 E0409"]);
    assert_said(&with("acks: 1, group.id: g"), &["3:50 E0407", "3:59 E0407"]);
    assert_said(&with("linger.ms: 5"), &["3:50 W0709"]);
    let typed = cluster("tls: {}, properties: { security.protocol: SSL }");
    assert_said(&typed, &["3:59 E0407"]);
}

#[test]
fn chains_are_resolved_and_their_mistakes_found() {
    let with = |handlers: &str, steps: &str| {
        file(
            "",
            &format!("    handlers: [{steps}]\n"),
            &format!("handlers: {handlers}\n"),
        )
    };
    assert_said(&with("{ h: [{ use: g }], g: [] }", "{ use: h }"), &[]);
    assert_said(&with("{ h: [] }", "{ use: hh }"), &["10:23 E0403"]);
    assert_said(&with("{ h: [{ use: h }] }", "{ use: h }"), &["11:24 E0404"]);
    assert_said(&with("{ h: [] }", ""), &["11:13 W0604"]);
    assert_said(&with("{ h: [] }", "{ use: h, name: x }"), &["10:26 E0413"]);
    assert_said(&with("{ H: [] }", "{ use: H }"), &["11:13 E0401"]);
}
