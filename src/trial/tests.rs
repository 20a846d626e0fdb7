use super::*;
use crate::config::spec::OnError;
use crate::config::{self, LoadOptions, Loaded};
use crate::flow::listener::Listeners;
use crate::handler::{FailureCode, Registry};
use std::sync::Arc;

/// A file with one route, `r`, from `eu` and `us` to `hub`.
fn load(route: &str) -> Loaded {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.yaml");
    let text = format!(
        "version: 1\n\
         clusters: {{ eu: {{ bootstrap_servers: ['e:1'] }}, us: {{ bootstrap_servers: ['u:1'] }}, hub: {{ bootstrap_servers: ['h:1'] }} }}\n\
         handlers: {{ h: [{{ filter: {{ drop: tombstone }} }}] }}\n\
         routes:\n  r:\n    source: [eu, us]\n    target: hub\n{route}"
    );
    std::fs::write(&path, text).unwrap();
    let (registry, listeners) = (Registry::default(), Listeners::default());
    let options = LoadOptions {
        environment: &|_| None,
        variables: &crate::config::interpolate::Variables::default(),
        registry: &registry,
        listeners: &listeners,
        running: None,
    };
    match config::load(&[path], &options) {
        Ok(loaded) => loaded,
        Err(rejected) => panic!("{}", rejected.first_error()),
    }
}

fn route(loaded: &Loaded) -> Arc<RouteSpec> {
    loaded.spec.routes.values().next().unwrap().clone()
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn sample(topic: &str, partition: i32, value: Option<&str>) -> Sample {
    Sample {
        source: name("us"),
        topic: topic.into(),
        partition,
        offset: 7,
        timestamp: Some(1),
        key: None,
        value: value.map(|v| v.as_bytes().to_vec()),
        headers: Vec::new(),
    }
}

fn outcome(loaded: &Loaded, sample: &Sample) -> (Outcome, Trace) {
    let (route, hub, mut trace) = (route(loaded), name("hub"), Trace::default());
    let mut trial = Trial::new(&route, &hub, &|_, _| 4, Clock::Fixed(0)).unwrap();
    (trial.pass(sample, &mut trace), trace)
}

const ROUTE: &str =
    "    topics: { include: ['(?<team>[a-z]+)\\.v(?<major>\\d+)?'], exclude: ['x\\..*'] }
    handlers:
      - use: h
      - rename: { topic: '{source}-{team}' }
      - reformat: { unset: [value.a] }
        name: strip
";

#[test]
fn a_record_meets_the_chain_and_the_policy_of_its_route() {
    let loaded = load(ROUTE);
    let (outcome, trace) = outcome(&loaded, &sample("pay.v1", 3, Some(r#"{"a":1,"b":2}"#)));
    assert_eq!(outcome.fate, Fate::Forwarded);
    let [output] = outcome.outputs.as_slice() else {
        panic!("{outcome:?}");
    };
    assert_eq!(
        (output.partition, output.record.topic.as_str()),
        (3, "us-pay")
    );
    assert_eq!(show::bytes(output.record.value.as_deref()), r#"{"b":2}"#);
    let steps: Vec<usize> = trace.passages.iter().map(|p| p.step).collect();
    assert_eq!(steps, [0, 1, 2]);
    assert_eq!(trace.passages[2].before.topic, "us-pay");
    assert_eq!(trace.passages[2].after.first(), Some(&output.record));
}

#[test]
fn what_a_step_remembers_is_of_one_partition() {
    let loaded =
        load("    topics: { include: ['t'] }\n    handlers: [{ filter: { dedupe: value.id } }]\n");
    let (route, hub) = (route(&loaded), name("hub"));
    let mut trial = Trial::new(&route, &hub, &|_, _| 4, Clock::Fixed(0)).unwrap();
    let mut fate = |partition, offset| {
        let mut sample = sample("t", partition, Some(r#"{"id":1}"#));
        sample.offset = offset;
        trial.pass(&sample, &mut ()).fate
    };
    assert_eq!(fate(0, 1), Fate::Forwarded);
    assert_eq!(fate(1, 2), Fate::Forwarded, "another partition");
    assert_eq!(fate(0, 3), Fate::Dropped { step: 0 });
}

#[test]
fn what_does_not_come_through_says_why() {
    let loaded = load(ROUTE);
    let fate = |sample| outcome(&loaded, &sample).0.fate;
    assert_eq!(fate(sample("x.v1", 0, None)), Fate::NotCopied);
    assert_eq!(fate(sample("pay.v1", 0, None)), Fate::Dropped { step: 0 });
    let Fate::Failed {
        step,
        failure,
        on_error,
    } = fate(sample("pay.v1", 0, Some("{")))
    else {
        panic!("it failed");
    };
    assert_eq!(
        (step, failure.code, on_error),
        (Some(2), FailureCode::NotJson, OnError::Stop)
    );
    let few = Fate::TooFew {
        topic: "us-pay".into(),
        has: 4,
        needs: 6,
    };
    assert_eq!(fate(sample("pay.v1", 5, Some("{}"))), few);
}

#[test]
fn a_topic_that_cannot_fill_a_template_is_not_bound() {
    let loaded = load(&ROUTE.replace("'{source}-{team}'", "'{team}-{major}'"));
    let fate = outcome(&loaded, &sample("pay.v", 0, Some("{}"))).0.fate;
    assert!(matches!(&fate, Fate::Unbound(_)), "{fate:?}");
}

#[test]
fn an_output_over_the_limit_is_no_steps_fault() {
    let loaded = load(&format!(
        "{ROUTE}    limits: {{ record: 4B }}\n    on_error: skip\n"
    ));
    let fate = outcome(&loaded, &sample("pay.v1", 0, Some(r#"{"bbbb":1}"#)))
        .0
        .fate;
    let Fate::Failed {
        failure, on_error, ..
    } = fate
    else {
        panic!("{fate:?}");
    };
    assert_eq!(
        (failure.code, on_error),
        (FailureCode::TooLarge, OnError::Skip)
    );
}

#[test]
fn steps_are_known_by_number_name_and_place() {
    let loaded = load(ROUTE);
    let steps = Steps::of(&route(&loaded), &loaded.document);
    let place = |at: usize| {
        steps
            .get(at)
            .unwrap()
            .place
            .as_ref()
            .unwrap()
            .position
            .clone()
    };
    assert_eq!(place(0).unwrap().line, 3);
    assert_eq!(place(2).unwrap().line, 12);
    assert!(steps.label(2).starts_with("step 3 (reformat `strip`) at "));
    assert_eq!(steps.label(9), "step 10");
}

#[test]
fn lines_of_kcat() {
    let line = r#"{"topic":"t","partition":2,"offset":9,"tstype":"create","ts":5,"broker":1,"headers":["a","1","a",null],"key":"k","payload":null}"#;
    let read = parse_line(line, &name("eu")).unwrap();
    let headers = vec![(b"a".to_vec(), Some(b"1".to_vec())), (b"a".to_vec(), None)];
    assert_eq!(read.headers, headers);
    assert_eq!(
        (read.partition, read.offset, read.timestamp),
        (2, 9, Some(5))
    );
    assert_eq!((read.key.as_deref(), read.value), (Some(&b"k"[..]), None));
    for bad in [
        "",
        "{}",
        r#"{"topic":"t","headers":["a"]}"#,
        r#"{"topic":1}"#,
    ] {
        assert!(parse_line(bad, &name("eu")).is_err(), "{bad}");
    }
}
