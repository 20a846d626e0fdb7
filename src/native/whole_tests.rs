//! Batches that are handed over whole, and those that are opened between them.

use super::*;
use crate::native::portion::Portion;
use crate::native::room::Room;
use crate::wire::pass::Codecs;
use bytes::Bytes;

/// What was handed over: first offset, last offset, records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handed {
    Records(i64, i64, usize),
    Whole(i64, i64, usize),
}

/// Records of a batch that is worth passing.
const MANY: i64 = 40;
const TRANSACTIONAL: i16 = 0x10;

fn many(base: i64, codec: Codec) -> Bytes {
    batch(base, 0, &["x"; MANY as usize], codec)
}

/// The same with other attributes, of a producer.
fn with(base: i64, attributes: i16, producer: i64) -> Bytes {
    marked(&many(base, Codec::None), attributes, producer)
}

/// The same without its last offsets: compaction has taken these.
fn with_gaps(base: i64, offsets: i32) -> Bytes {
    let mut bytes = many(base, Codec::None).to_vec();
    bytes[23..27].copy_from_slice(&(offsets - 1).to_be_bytes());
    marked(&bytes.into(), 0, -1)
}

fn played(batches: Vec<Bytes>, end: i64, aborted: Vec<(i64, i64)>) -> Played {
    let played = cluster();
    {
        let mut state = played.state();
        let log = state.logs.get_mut(&orders(0)).expect("a log");
        (log.batches, log.end, log.aborted) = (batches, end, aborted);
    }
    played
}

const TAKES: Takes = Takes {
    bytes: 8000,
    codecs: Codecs::Any,
};

/// What the next event hands over; `None` at the end, which is `end`.
fn next(source: &mut Fetching<Alone>, end: i64) -> Option<Handed> {
    let deadline = Instant::now() + LONG;
    loop {
        assert!(Instant::now() < deadline, "nothing comes");
        match source.poll(Duration::from_millis(50)) {
            FetchEvent::Batch(batch) => {
                let (first, last) = (batch.first()?, batch.last()?);
                return Some(Handed::Records(first.0, last.0, batch.records.len()));
            }
            FetchEvent::Run(run) => {
                let (first, last) = (run.first().0, run.last().0);
                return Some(Handed::Whole(first, last, run.records() as usize));
            }
            FetchEvent::End(_, at) if at.0 == end => return None,
            FetchEvent::End(..) | FetchEvent::Idle => {}
            other => panic!("{other:?}"),
        }
    }
}

fn all(played: &Played, from: i64, takes: Takes, end: i64) -> Vec<Handed> {
    let mut source = source(played, ROOMY);
    source.hand_over(&orders(0), Form::Whole(takes));
    let at = (orders(0), Offset(from));
    source.place(&[at]).expect("placed");
    std::iter::from_fn(|| next(&mut source, end)).collect()
}

#[test]
fn what_may_pass_goes_whole_and_the_rest_one_by_one_between_them() {
    let large = "x".repeat(9000);
    let batches = vec![
        many(0, Codec::None),
        many(40, Codec::Lz4),
        // LogAppendTime, and tombstones with a horizon.
        with(80, 0x08, -1),
        with(120, 0x40, -1),
        many(160, Codec::Zstd),
        with_gaps(200, 50),
        many(250, Codec::Snappy),
        // A transaction that was committed, and its marker.
        with(290, TRANSACTIONAL, 5),
        abort(330, 5),
        // One that was not.
        with(331, TRANSACTIONAL, 9),
        abort(371, 9),
        many(372, Codec::Gzip),
        // Small, and larger than the target takes.
        batch(412, 0, &["x"], Codec::None),
        many(413, Codec::None),
        batch(453, 0, &[&large], Codec::None),
    ];
    let played = played(batches, 454, vec![(9, 331)]);
    let wanted = [
        Handed::Whole(0, 79, 80),
        Handed::Records(80, 159, 80),
        Handed::Whole(160, 199, 40),
        Handed::Records(200, 239, 40),
        Handed::Whole(250, 329, 80),
        Handed::Whole(372, 411, 40),
        Handed::Records(412, 412, 1),
        Handed::Whole(413, 452, 40),
        Handed::Records(453, 453, 1),
    ];
    assert_eq!(all(&played, 0, TAKES, 454), wanted);
}

#[test]
fn a_batch_that_is_read_from_its_midst_is_opened() {
    let batches = vec![many(0, Codec::Lz4), many(40, Codec::Lz4)];
    let played = played(batches, 80, Vec::new());
    let wanted = [Handed::Records(10, 39, 30), Handed::Whole(40, 79, 40)];
    assert_eq!(all(&played, 10, TAKES, 80), wanted);
}

#[test]
fn where_the_file_names_a_codec_others_are_opened() {
    let batches = vec![many(0, Codec::Zstd), many(40, Codec::Lz4)];
    let played = played(batches, 80, Vec::new());
    let takes = Takes {
        codecs: Codecs::Only(Codec::Lz4),
        ..TAKES
    };
    let wanted = [Handed::Records(0, 39, 40), Handed::Whole(40, 79, 40)];
    assert_eq!(all(&played, 0, takes, 80), wanted);
}

#[test]
fn another_form_holds_from_the_next_event_on() {
    let batches = vec![
        many(0, Codec::None),
        with_gaps(40, 50),
        many(90, Codec::None),
        many(130, Codec::None),
    ];
    let played = played(batches, 170, Vec::new());
    let mut source = source(&played, ROOMY);
    source.hand_over(&orders(0), Form::Whole(TAKES));
    source.place(&[from(0, 0)]).expect("placed");
    assert_eq!(next(&mut source, 170), Some(Handed::Whole(0, 39, 40)));
    source.hand_over(&orders(0), Form::Records);
    let rest = std::iter::from_fn(|| next(&mut source, 170)).collect::<Vec<_>>();
    assert_eq!(rest, [Handed::Records(40, 169, 120)]);
}

#[test]
fn what_passes_holds_the_room_of_its_answer() {
    let room = Room::new(1 << 20);
    let batches: Bytes = [many(0, Codec::None), many(40, Codec::None)]
        .concat()
        .into();
    let size = batches.len() as u64;
    let mut opened = Opened::of(Portion {
        partition: orders(0),
        turn: 1,
        reached: Offset(80),
        aborted: Vec::new(),
        held: room.hold(size),
        waiting: room.waiting(&orders(0), &Arc::default()),
        batches,
    });
    let run = opened.run(Offset(0), TAKES, 1).expect("readable");
    let run = run.expect("a run");
    assert_eq!(
        (run.records(), run.bytes()),
        (40, size / 2),
        "one was enough"
    );
    let kept: Vec<_> = run.batches().map(|(_, batch)| batch.clone()).collect();
    drop((opened, run));
    assert_eq!(room.left(), room.limit() - size);
    drop(kept);
    assert_eq!(room.left(), room.limit());
}
