//! `mirror version`.

use super::text;
use crate::exit::Exit;
use crate::version;

pub(super) fn version() -> Exit {
    text::out(&format!(
        "mirror {}\nlibrdkafka {}\nfeatures {}",
        env!("CARGO_PKG_VERSION"),
        version::librdkafka(),
        version::features().join(" ")
    ));
    Exit::Done
}
