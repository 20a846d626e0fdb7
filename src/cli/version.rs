//! `mirror version`.

use super::{OutputFormat, text};
use crate::exit::Exit;
use crate::version;
use serde_json::json;

pub(super) fn version(format: OutputFormat) -> Exit {
    let mirror = env!("CARGO_PKG_VERSION");
    let (librdkafka, features) = (version::librdkafka(), version::features());
    let answer = json!({ "mirror": mirror, "librdkafka": librdkafka, "features": features });
    match format {
        OutputFormat::Text => text::out(&format!(
            "mirror {mirror}\nlibrdkafka {librdkafka}\nfeatures {}",
            features.join(" ")
        )),
        OutputFormat::Json => text::out(&answer.to_string()),
        OutputFormat::Yaml => text::out(&text::as_yaml(&answer.to_string())),
    }
    Exit::Done
}
