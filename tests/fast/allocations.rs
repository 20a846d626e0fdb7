//! What is allocated for a record: nothing, where a chain looks at coordinates, headers and fields.

use mirror::config::pattern::Pattern;
use mirror::handler::{Binding, BoundChain, Chain, Clock, Registry, StepSpec};
use mirror::record::{HeaderSource, Headers, Origin, Record};
use mirror::wire::codec::{Codec, Compression, Compressor, Decompressor};
use mirror::wire::cut::{Cut, Cuts};
use mirror::wire::header::Stamp;
use mirror::wire::writer::{Piece, Writer, Written};
use serde_json::{Value, json};
use std::alloc::{GlobalAlloc, Layout, System};
use std::borrow::Cow;
use std::cell::Cell;

/// The system's allocator, counting for each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    /// Bytes that were allocated here and not freed here, and the most of them.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends may allocate after its counter is gone.
    let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
}

fn hold(bytes: usize) {
    let now = HELD.try_with(|held| held.replace(held.get() + bytes as isize) + bytes as isize);
    let _ = MOST.try_with(|most| most.set(most.get().max(now.unwrap_or_default())));
}

fn let_go(bytes: usize) {
    let _ = HELD.try_with(|held| held.set(held.get() - bytes as isize));
}

/// What `work` gives, the bytes that this thread held for it at most, and those that it holds still.
pub fn held_by<T>(work: impl FnOnce() -> T) -> (T, isize, isize) {
    let before = HELD.get();
    MOST.set(before);
    let done = work();
    (done, MOST.get() - before, HELD.get() - before)
}

// SAFETY: every call is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        hold(layout.size());
        // SAFETY: the caller's promise is the one that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let_go(layout.size());
        // SAFETY: as above; the pointer came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        let_go(layout.size());
        hold(size);
        // SAFETY: as above.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const VALUE: &str = r#"{"id":"9f2c","status":"paid","amount":149.95,"n":7,"big":18446744073709551616,"user":{"tier":"gold","age":33},"tags":["new","eu"],"items":[{"sku":"a","qty":2}]}"#;

type HeaderList = Vec<(Vec<u8>, Option<Vec<u8>>)>;

fn bound(steps: Value) -> BoundChain {
    let steps: Vec<StepSpec> = serde_json::from_value(steps).expect("steps");
    let chain = Chain::compile(steps, &Registry::default()).expect("a chain");
    let binding = Binding {
        route: "r",
        source: "eu",
        target: "hub",
        topic: "orders",
        selected_by: &Pattern::new("orders").expect("a pattern"),
        clock: Clock::default(),
        record_bytes: None,
    };
    chain.bind(&binding).expect("bound")
}

fn record(headers: &dyn HeaderSource) -> Record<'_> {
    Record {
        origin: Origin {
            source: "eu",
            topic: "orders",
            partition: 3,
            offset: 42,
            timestamp: Some(1234),
        },
        topic: Cow::Borrowed("orders"),
        key: Some(Cow::Borrowed(br#"{"k":1}"#)),
        value: Some(Cow::Borrowed(VALUE.as_bytes())),
        headers: Headers::Untouched(headers),
        timestamp: Some(1234),
    }
}

/// How many allocations the second of two equal records takes: the first may warm something up.
fn allocations(steps: Value, headers: &HeaderList) -> usize {
    let chain = bound(steps);
    let mut outputs = Vec::with_capacity(1);
    let mut taken = 0;
    for _ in 0..2 {
        outputs.clear();
        let before = ALLOCATIONS.get();
        chain.apply(record(headers), &mut outputs).expect("handled");
        taken = ALLOCATIONS.get() - before;
    }
    taken
}

#[test]
fn headers_and_lazy_fields_take_no_allocation() {
    let headers: HeaderList = vec![
        (b"region".to_vec(), Some(b"pt".to_vec())),
        (b"v".to_vec(), Some(b"2".to_vec())),
    ];
    for steps in [
        json!([]),
        json!([{"rename": {"topic": "{source}.{topic}"}}]),
        json!([{"filter": {"drop": "tombstone"}}]),
        json!([{"filter": {"keep": {"header.region": ["pt", "es"], "header.v": {"gt": 1}}}}]),
        json!([{"filter": {"keep": {"partition": 3, "timestamp": {"gt": 1000.5}, "topic": "orders"}}}]),
        json!([{"filter": {"keep": "header.region == 'pt' && header['v'] > 1 && offset != 1"}}]),
        json!([{"filter": {"keep": {"value.status": "paid", "value.amount": {"gt": 100, "lte": 149.95}}}}]),
        json!([{"filter": {"keep": {"value.tags": {"contains": "eu"}, "value.user.tier": {"matches": "g.*"}, "key.k": 1}}}]),
        json!([{"filter": {"drop": {"value.big": {"lt": 5}, "value.items[0].qty": {"not": 2}}}}]),
        json!([{"filter": {"keep": "value.status == 'paid' && value.amount > 100 || has(value.none)"}}]),
        json!([{"filter": {"keep": "value.user.tier.startsWith('go') && value.n in [1, 7] && 'eu' in value.tags"}}]),
        json!([{"filter": {"keep": "value.n * 2 + 1 == 15 && value.n % 2 == 1 && size(value.status) == 4"}}]),
        json!([{"filter": {"keep": "value.n > value.user.age ? false : value.status != value.id"}}]),
        json!([{"filter": {"sample": "100%", "by": "value.id", "seed": "s"}}]),
        json!([{"reformat": {"hoist": "x"}, "when": {"value.status": "open"}}]),
        json!([{"reformat": {"hoist": "x"}, "when": false}]),
    ] {
        assert_eq!(allocations(steps.clone(), &headers), 0, "{steps}");
    }
    assert_ne!(
        allocations(json!([{"reformat": {"hoist": "x"}}]), &headers),
        0,
        "the counter counts"
    );
}

#[test]
fn records_of_a_batch_are_lent_and_written_without_allocations() {
    let records = 200;
    for codec in [Codec::None, Codec::Lz4, Codec::Zstd] {
        let compressor = Compressor::new(Compression { codec, level: None });
        let mut compressor = compressor.expect("a compressor");
        let mut writer = Writer::default();
        let headers = Vec::from([(b"trace".to_vec(), Some(b"1".to_vec()))]);
        let headers = Headers::Untouched(&headers);
        let push = |writer: &mut Writer| {
            writer.push(&Piece {
                timestamp: Some(5),
                key: Some(b"k"),
                value: Some(VALUE.as_bytes()),
                headers: Written::Each(&headers),
            });
        };
        let stamp = Stamp {
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
        };
        (0..records).for_each(|_| push(&mut writer));
        let room = writer.size();
        let finished = writer.finish(&mut compressor, stamp);
        let batch = finished.expect("a batch");
        let mut writer = Writer::with_room(room);
        let before = ALLOCATIONS.get();
        (0..records).for_each(|_| push(&mut writer));
        assert_eq!(ALLOCATIONS.get() - before, 0, "writing, {}", codec.as_str());

        let Some(Ok(Cut::Batch(raw))) = Cuts::of(&batch).next() else {
            panic!("no batch");
        };
        let mut buffer = Vec::new();
        let opened = raw.open(&mut Decompressor::default(), 1 << 20, &mut buffer);
        let before = ALLOCATIONS.get();
        let read = opened.expect("records").filter(Result::is_ok).count();
        assert_eq!(ALLOCATIONS.get() - before, 0, "reading, {}", codec.as_str());
        assert_eq!(read, records);
    }
}
