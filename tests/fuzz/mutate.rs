//! Inputs from others: bytes, lines, words of the grammar and whole files are mixed.

use crate::random::Random;

/// What means something to the parser or to the grammar.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ": ",
    ",",
    "- ",
    "\n",
    "\n  ",
    "\t",
    "'",
    "\"",
    "|\n",
    ">-\n",
    "#",
    "---\n",
    "...\n",
    "%YAML 1.2\n",
    "&a ",
    "*a",
    "<<: *a",
    "!!str ",
    "!x ",
    "~",
    "null",
    "true",
    "no",
    "012",
    "0x1f",
    "1e999",
    "-1",
    "99999999999999999999",
    "''",
    "\u{feff}",
    "\u{0}",
    "é",
    "🦀",
    "${",
    "${X}",
    "${XX}",
    "${X:-d}",
    "${X:?w}",
    "${file:mirror.yaml}",
    "$${",
    "5s",
    "1h30m",
    "64MiB",
    "1%",
    "version: 1",
    "clusters:",
    "routes:",
    "handlers:",
    "defaults:",
    "include:",
    "tests:",
    "source: a",
    "target: b",
    "topics: { include: ['.*'] }",
    "filter: { drop: tombstone }",
    "filter: { keep: 'value.a > 1' }",
    "filter: { sample: 1% }",
    "rename: { topic: '{source}.{topic}' }",
    "rename: { to: [{ topic: x }] }",
    "reformat: { set: { value.a: 1 } }",
    "reformat: { split: { array: value.a } }",
    "use: a",
    "when: { not: empty }",
    "partitions: { fixed: 0 }",
    "partitions: { by: key }",
    "(?<x>a+)",
    "(?!a)",
    "\\1",
    "[a-",
    "((((",
    "{0,9999}",
    "mirror.yaml",
    "*.yaml",
];

/// Makes one input out of the corpus.
pub struct Mutator<'a> {
    random: &'a mut Random,
    corpus: &'a [Vec<u8>],
}

impl<'a> Mutator<'a> {
    /// A mutator of `corpus`.
    pub fn new(random: &'a mut Random, corpus: &'a [Vec<u8>]) -> Self {
        Self { random, corpus }
    }

    /// One of the corpus, changed once or several times.
    pub fn mutate(&mut self) -> Vec<u8> {
        let mut input = self.other();
        for _ in 0..=self.random.below(6) {
            self.change(&mut input);
            input.truncate(1 << 20);
        }
        input
    }

    fn other(&mut self) -> Vec<u8> {
        let index = self.random.below(self.corpus.len());
        self.corpus.get(index).cloned().unwrap_or_default()
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.random.below(input.len() + 1);
        let length = self.random.below(24).min(input.len() - at);
        match self.random.below(10) {
            0 => insert(
                input,
                at,
                self.random.next().to_le_bytes().get(..1).unwrap_or(&[]),
            ),
            1 => drop(input.drain(at..at + length)),
            2..=4 => insert(input, at, self.random.pick(WORDS).as_bytes()),
            5 => {
                drop(input.drain(at..at + length));
                insert(input, at, self.random.pick(WORDS).as_bytes());
            }
            6 => {
                let line = line_at(input, at);
                let copies = 1 + self.random.below(3);
                let end = line.end;
                let text = input[line].repeat(copies);
                insert(input, end, &text);
            }
            7 => {
                let other = self.other();
                let line = line_at(&other, self.random.below(other.len() + 1));
                let place = line_at(input, at).start;
                insert(input, place, &other[line]);
            }
            8 => {
                let other = self.other();
                input.truncate(at);
                input.extend(&other[self.random.below(other.len() + 1)..]);
            }
            _ => {
                let word = self
                    .random
                    .pick(&["[", "{a: ", "- ", "a", "'", "(", "&x [*x, "]);
                let times = self.random.below(400);
                insert(input, at, word.repeat(times).as_bytes());
            }
        }
    }
}

fn insert(input: &mut Vec<u8>, at: usize, what: &[u8]) {
    input.splice(at..at, what.iter().copied());
}

/// The line around `at`, its end included.
fn line_at(input: &[u8], at: usize) -> std::ops::Range<usize> {
    let is_end = |byte: &u8| *byte == b'\n';
    let start = input[..at]
        .iter()
        .rposition(is_end)
        .map_or(0, |end| end + 1);
    let end = input[at..]
        .iter()
        .position(is_end)
        .map_or(input.len(), |end| at + end + 1);
    start..end
}
