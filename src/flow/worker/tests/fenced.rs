//! Who writes, and from when on: fenced writes as the worker sees to them.

use super::*;

fn fenced(judge: impl FnMut(i32, i64) -> Fate + Send + 'static) -> Stand {
    let spec = flow_spec(Chain::default(), OnError::Stop);
    stand_of(spec, 0, Numbers::OfWriters, judge)
}

/// The same for whoever comes after this one.
fn heir(mark: &str, judge: impl FnMut(i32, i64) -> Fate + Send + 'static) -> Stand {
    let stand = fenced(judge);
    let mark = mark.parse().unwrap();
    stand.shared.with(|w| {
        w.mark = Some(mark);
        // What the target gives is another one.
        w.last_id = 100;
    });
    stand
}

/// Fails one record once.
fn fails_once(at: i64, kind: FaultKind) -> impl FnMut(i32, i64) -> Fate + Send + 'static {
    let mut left = 1;
    move |_, offset| match offset == at && left > 0 {
        true => {
            left -= 1;
            Fate::Fail(kind)
        }
        false => Fate::Ack,
    }
}

impl World2 {
    /// The claims and writers of partition 0, as they came.
    fn writing(&self) -> Vec<&str> {
        let of_writing = |s: &&String| s.starts_with("0 ");
        let mut writing: Vec<&str> = self
            .story
            .iter()
            .filter(of_writing)
            .map(|s| s.as_str())
            .collect();
        // It is said with each commit.
        writing.dedup();
        writing
    }
}

#[test]
fn a_writer_is_committed_before_its_first_record_and_partitions_have_their_own() {
    let stand = fenced(|_, _| Fate::Ack);
    stand.assign(&[(0, 10), (1, 10)]);
    stand.committed(0, 10);
    stand.committed(1, 10);
    let (exit, seen) = stand.drain();
    assert!(matches!(exit, WorkerExit::Drained), "{exit:?}");
    let at = |entry: &str| seen.story.iter().position(|s| s == entry);
    let begins = seen.story.iter().find(|s| s.starts_with("0 by "));
    let begins = begins.expect("it is written");
    let id = begins.trim_start_matches("0 by ").trim_end_matches(".0");
    let claims = at(&format!("0 claims {id}.15"));
    assert!(claims.is_some() && claims < at(begins), "{:?}", seen.story);
    assert!(at("commit 0@0") < claims, "the watermark as it was");
    let other = if id == "1" { "1 by 2.0" } else { "1 by 1.0" };
    assert!(at(other).is_some(), "{:?}", seen.story);
}

#[test]
fn nothing_is_written_while_commits_are_refused() {
    let stand = fenced(|_, _| Fate::Ack);
    stand.shared.with(|w| w.refuses_commits = true);
    stand.assign(&[(0, 10)]);
    stand.wait_for_reason(0, |r| *r == Reason::AwaitingWriter);
    let failures = || Counters::get(&stand.view.counters.commit_failures);
    let deadline = Instant::now() + SOON;
    while failures() < 2 {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    assert!(stand.shared.with(|w| w.arrived.is_empty()));
    stand.shared.with(|w| w.refuses_commits = false);
    stand.committed(0, 10);
    assert!(matches!(stand.drain().0, WorkerExit::Drained));
}

#[test]
fn a_next_owner_goes_on_with_the_id_and_a_higher_epoch() {
    let stand = heir("7.31", |_, _| Fate::Ack);
    stand.assign(&[(0, 10)]);
    stand.committed(0, 10);
    let (exit, seen) = stand.drain();
    assert!(matches!(exit, WorkerExit::Drained), "{exit:?}");
    assert_eq!(seen.writing()[..2], ["0 claims 7.47", "0 by 7.32"]);
}

#[test]
fn a_failed_delivery_takes_the_next_epoch_and_no_commit() {
    let stand = heir("7.31", fails_once(5, FaultKind::Collateral));
    stand.assign(&[(0, 10)]);
    stand.committed(0, 10);
    let (exit, seen) = stand.drain();
    assert!(matches!(exit, WorkerExit::Drained), "{exit:?}");
    let wanted = ["0 claims 7.47", "0 by 7.32", "0 by 7.33", "0 claims 7.47"];
    let writing: Vec<&str> = seen.writing();
    let by: Vec<&str> = writing
        .iter()
        .filter(|s| s.contains("by"))
        .copied()
        .collect();
    assert_eq!((writing[0], &by[..]), (wanted[0], &wanted[1..3]));
    assert!(
        !writing.iter().any(|s| s.contains(".48")),
        "what is claimed is enough: {writing:?}"
    );
}

#[test]
fn what_somebody_else_may_have_written_is_written_again_by_another_id() {
    let stand = heir("7.31", fails_once(0, FaultKind::Doubtful));
    stand.assign(&[(0, 10)]);
    stand.committed(0, 10);
    let (exit, seen) = stand.drain();
    assert!(matches!(exit, WorkerExit::Drained), "{exit:?}");
    let writing = seen.writing();
    let wanted = [
        "0 claims 7.47",
        "0 by 7.32",
        "0 claims 101.15",
        "0 by 101.0",
    ];
    assert_eq!(writing[..4], wanted);
    let mut arrived = first_appearances(&seen.arrived[&0]);
    arrived.sort_unstable();
    assert_eq!(arrived, Vec::from_iter(0..10));
}

#[test]
fn i3_who_is_fenced_writes_and_commits_nothing_more() {
    let stand = heir("7.31", |_, offset| match offset {
        0..3 => Fate::Ack,
        _ => Fate::Fail(FaultKind::Fenced),
    });
    stand.assign(&[(0, 10), (1, 3)]);
    stand.committed(1, 3);
    stand.wait_for_reason(0, |r| matches!(r, Reason::Fenced { .. }));
    let before = stand.shared.with(|w| w.committed.get(&0).copied());
    assert_eq!(Counters::get(&stand.view.counters.fenced_partitions), 1);
    stand.says(FetchEvent::Revoked(vec![tp(0)]));
    stand.wait_for_story("release 0");
    let after = stand.shared.with(|w| w.committed.get(&0).copied());
    assert_eq!(before, after);
    let (exit, seen) = stand.drain();
    assert!(matches!(exit, WorkerExit::Drained), "{exit:?}");
    seen.silent_after_release();
}

#[test]
fn i3_who_is_fenced_while_it_leaves_leaves_without_a_commit() {
    let stand = heir("7.31", |_, _| Fate::Hold);
    stand.assign(&[(0, 3)]);
    stand.wait_held(3);
    stand.shared.with(|w| w.refuses_commits = true);
    stand.says(FetchEvent::Revoked(vec![tp(0)]));
    stand.shared.with(|w| {
        let (arrived, refused) = (w.held.remove(0), std::mem::take(&mut w.held));
        let failed = |(_, _, token): (i32, i64, Token)| Outcome::Failed {
            ticket: token.ticket,
            distance: token.distance,
            fault: ProduceFault {
                kind: FaultKind::Fenced,
                detail: "scripted".into(),
            },
        };
        let mut outcomes = vec![acked(arrived.2)];
        outcomes.extend(refused.into_iter().map(failed));
        let _ = stand.shared.inbox.send(Note::Outcomes(outcomes));
    });
    // Nobody waits for a commit, which would be refused for ever.
    stand.wait_for_story("release 0");
    assert_eq!(Counters::get(&stand.view.counters.fenced_partitions), 1);
    assert!(matches!(stand.drain().0, WorkerExit::Drained));
}
