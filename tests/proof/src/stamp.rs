//! Who a record is: label, partition and number, written into the record itself, in a place that its shape leaves.

use super::record::Record;

/// The first timestamp of every partition; long ago, so that a target that writes its own time is noticed.
const EPOCH_MS: i64 = 1_700_000_000_000;

/// A record's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The source topic, with whatever a test puts before it to tell clusters apart.
    pub label: String,
    /// The source partition.
    pub partition: i32,
    /// The record's number within its partition, from 0.
    pub sequence: u64,
}

impl Stamp {
    fn text(&self) -> Vec<u8> {
        format!("~{}/{}/{}~", self.label, self.partition, self.sequence).into_bytes()
    }

    /// Finds the identity in key, value or headers.
    pub fn of(record: &Record) -> Option<Self> {
        let places = [record.key.as_deref(), record.value.as_deref()];
        let headers = record.headers.iter().map(|(_, value)| value.as_deref());
        places.into_iter().chain(headers).flatten().find_map(parse)
    }

    /// The record of this identity: its shape follows from its number, so that every test meets every oddity.
    pub fn record(&self, value_bytes: usize) -> Record {
        let text = self.text();
        let mut record = Record {
            key: Some(text.clone()),
            value: Some(padded(&text, value_bytes, self.sequence)),
            headers: Vec::new(),
            timestamp: self.timestamp(),
        };
        match self.sequence % 12 {
            0 => record.key = None,
            1 => record.value = None,
            2 => record.value = Some(Vec::new()),
            3 => record.key = Some(Vec::new()),
            4 => (record.key, record.value, record.headers) = (None, None, stamped_header(text)),
            5 => record.headers = odd_headers(),
            6 => record.headers = vec![(b"trace".to_vec(), Some(text))],
            _ => {}
        }
        record
    }

    /// Not rising evenly: some come before their predecessors, as event times do.
    fn timestamp(&self) -> i64 {
        let n = i64::try_from(self.sequence).unwrap_or(0);
        EPOCH_MS + n * 7 - (n % 5) * 40
    }
}

fn parse(bytes: &[u8]) -> Option<Stamp> {
    let text = bytes.strip_prefix(b"~")?;
    let end = text.iter().position(|b| *b == b'~')?;
    let mut parts = std::str::from_utf8(text.get(..end)?).ok()?.rsplitn(3, '/');
    let sequence = parts.next()?.parse().ok()?;
    let partition = parts.next()?.parse().ok()?;
    let label = parts.next()?.to_owned();
    Some(Stamp {
        label,
        partition,
        sequence,
    })
}

fn padded(text: &[u8], bytes: usize, sequence: u64) -> Vec<u8> {
    let mut value = text.to_vec();
    let fill = b'a' + u8::try_from(sequence % 23).unwrap_or(0);
    value.resize(bytes.max(text.len()), fill);
    value
}

fn stamped_header(text: Vec<u8>) -> Vec<super::record::Header> {
    vec![(b"who".to_vec(), Some(text))]
}

/// Twice the same name, a null, an empty value, a name that is not UTF-8, an empty name.
fn odd_headers() -> Vec<super::record::Header> {
    vec![
        (b"twice".to_vec(), Some(b"1".to_vec())),
        (b"null".to_vec(), None),
        (b"twice".to_vec(), Some(b"2".to_vec())),
        (b"empty".to_vec(), Some(Vec::new())),
        (vec![0xff, 0xfe, b'x'], Some(vec![0, 0xff])),
        (Vec::new(), Some(b"no name".to_vec())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_says_who_it_is() {
        for sequence in 0..24 {
            let stamp = Stamp {
                label: "a.b/c".into(),
                partition: 3,
                sequence,
            };
            assert_eq!(Stamp::of(&stamp.record(64)), Some(stamp));
        }
    }

    #[test]
    fn a_stranger_has_no_identity() {
        let record = Record {
            key: Some(b"~x~".to_vec()),
            value: Some(b"anything".to_vec()),
            headers: Vec::new(),
            timestamp: 0,
        };
        assert_eq!(Stamp::of(&record), None);
    }
}
