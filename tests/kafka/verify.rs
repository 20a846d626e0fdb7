//! `mirror verify` against copies that are right, and against copies that are wrong on purpose.

use crate::support::cluster::{Admin, pair};
use crate::support::process::{Setup, cluster, route};
use crate::support::record::Record;
use crate::support::wait::{self, PATIENCE};
use crate::support::workload::{Load, Writer, field, fill};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};
use tempfile::TempDir;

/// A route from the shared source to the shared target.
fn setup(topics: &str, settings: Value) -> Setup {
    let pair = pair();
    let mut copy = route("source", "target", topics);
    for (key, value) in settings.as_object().into_iter().flatten() {
        copy[key] = value.clone();
    }
    let clusters = json!({
        "source": cluster(&pair.source.bootstrap()),
        "target": cluster(&pair.target.bootstrap()),
    });
    Setup::new(clusters, json!({ "copy": copy }))
}

/// What `mirror verify` says, and its exit code.
fn verify(setup: &Setup, args: &[&str]) -> (Value, i32) {
    let output = setup.ask(&[&["verify", "copy", "--format", "json"], args].concat());
    let text = String::from_utf8_lossy(&output.stdout);
    let report = serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{e}: {text}{}", String::from_utf8_lossy(&output.stderr)));
    (report, output.status.code().expect("it ended by itself"))
}

fn number(report: &Value, name: &str) -> u64 {
    report["total"][name].as_u64().expect("a number")
}

#[test]
fn a_copy_is_equal_after_kills_and_repeats_are_told_apart() {
    let pair = pair();
    let admin = Admin::new(&pair.source.bootstrap());
    let field = field("verify-kills", 6);
    admin.create(&field.topic, 6, &[]);
    let setup = setup("verify-kills", json!({ "commit_interval": "5s" }));
    let load = Load::start(&pair.source.bootstrap(), &[field], 3000);
    for _ in 0..2 {
        let mut mirror = setup.run(&[]);
        mirror.wait_delivered("copy", 4000);
        mirror.kill();
    }
    let expected = load.stop();
    let mut mirror = setup.run(&[]);
    mirror.wait_copied(&admin, "copy", &["verify-kills"]);
    // While it runs: nothing of this may disturb the group.
    let rebalances = mirror.number("copy", "rebalances");
    let (report, exit) = verify(&setup, &["--until", "end"]);
    println!("{}", report["total"]);
    assert_eq!((exit, &report["equal"]), (0, &json!(true)), "{report}");
    assert_eq!(number(&report, "matched"), expected.total());
    assert!(number(&report, "repeated") > 0, "it was killed");
    assert_eq!(mirror.number("copy", "rebalances"), rebalances);
    assert!(mirror.terminate().success());
    let (report, exit) = verify(&setup, &[]);
    assert_eq!((exit, &report["equal"]), (0, &json!(true)), "{report}");
    assert_eq!(number(&report, "source_read"), expected.total());
    let (report, _) = verify(&setup, &["--sample", "10%"]);
    assert_eq!(report["partitions_left_out"], 5);
}

#[test]
fn handlers_run_again_and_a_policy_that_mixes_partitions_is_compared() {
    let pair = pair();
    let admin = Admin::new(&pair.source.bootstrap());
    let fields = ["verify-mix-a", "verify-mix-b"].map(|t| field(t, 3));
    fields.iter().for_each(|f| admin.create(&f.topic, 3, &[]));
    let expected = fill(&pair.source.bootstrap(), &fields, 500);
    let setup = setup(
        "verify-mix-.",
        json!({
            "partitions": "key_hash",
            "handlers": [
                { "filter": { "sample": "50%", "by": "key" } },
                { "rename": { "topic": "verify-mixed" } },
                { "reformat": { "set": { "header.from": "{source}.{topic}.{partition}" } } },
                // Another run writes another time: it is not compared.
                { "reformat": { "timestamp": "now" } },
            ],
        }),
    );
    let mut mirror = setup.run(&["--until-caught-up"]);
    assert!(mirror.wait(crate::support::wait::PATIENCE).success());
    let (report, exit) = verify(&setup, &[]);
    println!("{}", report["total"]);
    assert_eq!(exit, 0, "{report}");
    let (matched, dropped) = (number(&report, "matched"), number(&report, "dropped"));
    assert_eq!(matched + dropped, expected.total());
    assert!(matched > 0 && dropped > 0);
}

#[test]
fn each_deliberate_fault_is_told_with_its_offsets() {
    let pair = pair();
    let topic = "verify-wrong";
    for cluster in [&pair.source, &pair.target] {
        Admin::new(&cluster.bootstrap()).create(topic, 1, &[]);
    }
    let field = field(topic, 1);
    let mut made: Vec<Record> = Vec::new();
    let mut writer = Writer::new(&pair.source.bootstrap());
    for _ in 0..10 {
        writer.write(&field, 0, |record| made.push(record.clone()));
    }
    writer.finish();
    let mut altered = made[4].clone();
    altered.headers.push((b"added".to_vec(), None));
    let mut strange = made[0].clone();
    strange.key = Some(b"nobody".to_vec());
    strange.value = Some(b"knows".to_vec());
    // 0 2 1 3 (4 altered) 6 (strange) 3 7 8: 5 is left out, 9 is lost at the end, 3 comes twice.
    let copied = [
        &made[0], &made[2], &made[1], &made[3], &altered, &made[6], &strange, &made[3], &made[7],
        &made[8],
    ];
    let mut writer = Writer::new(&pair.target.bootstrap());
    for record in copied {
        writer.write(&field, 0, |r| *r = record.clone());
    }
    writer.finish();

    let setup = setup(topic, json!({}));
    let (report, exit) = verify(&setup, &[]);
    assert_eq!(
        exit, 1,
        "strangers are strangers whatever is committed: {report}"
    );
    let (report, exit) = verify(&setup, &["--until", "end"]);
    assert_eq!(exit, 1);
    let mut told: Vec<String> = report["differences"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|d| {
            let (kind, source, target) =
                (&d["kind"], &d["source"]["offset"], &d["target"]["offset"]);
            format!(
                "{} {source} {target} {}",
                kind.as_str().unwrap_or(""),
                d["parts"]
            )
        })
        .collect();
    told.sort();
    assert_eq!(
        told,
        [
            "altered 4 4 [\"headers\"]",
            "extra null 6 null",
            "missing 5 null null",
            "missing 9 null null",
            "reordered 1 2 null",
        ]
    );
    assert_eq!(
        (number(&report, "matched"), number(&report, "repeated")),
        (7, 1)
    );
    let text = setup.ask(&["verify", "copy", "--until", "end"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    println!("{text}");
    assert!(text.contains(
        "altered    source verify-wrong[0] offset 4 -> target verify-wrong[0] offset 4: headers"
    ));
    assert!(text.contains("different: 2 missing, 1 altered, 1 reordered, 1 extra"));
}

/// A running `mirror verify --follow`; killed when it is dropped.
struct Audit {
    child: Child,
    folder: TempDir,
}

impl Audit {
    fn start(setup: &Setup, args: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let open = |name| File::create(folder.path().join(name)).expect("a file");
        let child = Command::new(env!("CARGO_BIN_EXE_mirror"))
            .args([
                "verify", "copy", "--follow", "--every", "1s", "--format", "json",
            ])
            .args(args)
            .arg("-c")
            .arg(setup.folder().join("mirror.yaml"))
            .stdout(open("rounds"))
            .stderr(open("words"))
            .spawn()
            .expect("mirror starts");
        Self { child, folder }
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).expect("a file")
    }

    /// The rounds so far, without one that is being written.
    fn rounds(&self) -> Vec<Value> {
        let text = self.text("rounds");
        let lines = text.lines();
        lines
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    fn sum(&self, name: &str) -> u64 {
        self.rounds()
            .iter()
            .filter_map(|round| round[name].as_u64())
            .sum()
    }

    fn wait_matched(&self, records: u64) {
        wait::until(&format!("{records} records are matched"), PATIENCE, || {
            self.sum("matched") >= records
        });
    }

    fn metrics(&self) -> String {
        let words = self.text("words");
        let address = words
            .lines()
            .find_map(|line| line.strip_prefix("metrics at http://"));
        let address = address.expect("an address").trim_end_matches("/metrics");
        let mut stream = TcpStream::connect(address).expect("it listens");
        write!(stream, "GET /metrics HTTP/1.0\r\n\r\n").expect("asked");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    fn terminate(mut self) -> Option<i32> {
        let pid = libc::pid_t::try_from(self.child.id()).expect("a pid");
        // SAFETY: kill takes two integers; the child is not waited for yet, so the pid is its own.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGTERM) }, 0);
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!(
                "--- the audit\n{}\n{}",
                self.text("rounds"),
                self.text("words")
            );
        }
    }
}

#[test]
fn an_audit_follows_kills_and_growth_and_tells_what_nobody_copied() {
    let pair = pair();
    let source = pair.source.bootstrap();
    let admin = Admin::new(&source);
    let topic = field("verify-audit", 3);
    admin.create(&topic.topic, 3, &[]);
    let setup = setup("verify-audit", json!({ "discovery_interval": "1s" }));
    let load = Load::start(&source, std::slice::from_ref(&topic), 2000);
    let mut mirror = setup.run(&[]);
    mirror.wait_delivered("copy", 2000);
    let audit = Audit::start(&setup, &["--listen", "127.0.0.1:0"]);
    audit.wait_matched(4000);
    mirror.wait_in_flight("copy");
    mirror.kill();
    let mut mirror = setup.run(&[]);
    mirror.wait_delivered("copy", 2000);
    admin.grow(&topic.topic, 5);
    load.add(field(&topic.topic, 5).only(3..5));
    mirror.wait_delivered("copy", 8000);
    let expected = load.stop();
    mirror.wait_copied(&admin, "copy", &[&topic.topic]);
    assert!(mirror.terminate().success());
    audit.wait_matched(expected.total());
    println!(
        "{} rounds, repeated {}",
        audit.rounds().len(),
        audit.sum("repeated")
    );
    for round in audit.rounds() {
        assert_eq!(round["verdict"], "equal", "{round:#}");
        assert_eq!(round["source_end"], round["target_end"], "{round:#}");
    }
    assert_eq!(audit.sum("matched"), expected.total());

    let mut writer = Writer::new(&pair.target.bootstrap());
    writer.write(&topic, 1, |record| {
        record.value = Some(b"from nowhere".to_vec())
    });
    writer.finish();
    let different = |round: &Value| round["verdict"] == "different";
    wait::until("the strange record is told", PATIENCE, || {
        audit.rounds().iter().any(different)
    });
    let rounds = audit.rounds();
    let told = rounds
        .iter()
        .find(|round| different(round))
        .expect("one differs");
    assert_eq!(
        (&told["extra"], &told["differences"][0]["kind"]),
        (&json!(1), &json!("extra"))
    );
    let metrics = audit.metrics();
    for series in [
        "mirror_audit_rounds_total{route=\"copy\",target=\"target\",verdict=\"different\"} 1"
            .to_owned(),
        format!(
            "mirror_audit_records_total{{route=\"copy\",target=\"target\",outcome=\"matched\"}} {}",
            expected.total()
        ),
        "mirror_audit_round_hash{route=\"copy\",target=\"target\",end=\"target\"}".to_owned(),
    ] {
        assert!(metrics.contains(&series), "{series} is not in\n{metrics}");
    }
    assert_eq!(audit.terminate(), Some(1), "something differed");
}

#[test]
fn a_cluster_that_is_away_is_no_difference() {
    let clusters =
        json!({ "source": cluster("127.0.0.1:1"), "target": cluster(&pair().target.bootstrap()) });
    let setup = Setup::new(
        clusters,
        json!({ "copy": route("source", "target", "verify-.") }),
    );
    let output = setup.ask(&["verify", "copy", "--timeout", "2"]);
    assert_eq!(output.status.code(), Some(5));
    let nobody = setup.ask(&["verify", "copy", "--target", "source"]);
    assert_eq!(nobody.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&nobody.stderr).contains("its targets: target"));
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(
        words.contains("nothing can be said: cluster source:"),
        "{words}"
    );
}
