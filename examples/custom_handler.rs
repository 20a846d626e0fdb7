//! `mirror` with a handler of its own: the whole program, and `use: iban` in its file.
//!
//! ```yaml
//! routes:
//!   payments:
//!     source: bank
//!     target: lake
//!     topics: { include: ['payments\..+'] }
//!     handlers:
//!       - use: iban # masks account numbers wherever they stand in the text of a value
//! ```
//!
//! `cargo run --example custom_handler -- run mirror.yaml`, and every other command of `mirror`.

use mirror::cli::link;
use mirror::flow::Environment;
use mirror::handler::{Failure, FailureCode, Handler, Reads};
use mirror::record::Record;
use regex::bytes::Regex;
use std::borrow::Cow;
use std::process::ExitCode;
use std::sync::Arc;

/// Masks account numbers: country and the last two digits stay.
struct MaskIban {
    iban: Regex,
}

impl MaskIban {
    fn new() -> Result<Self, regex::Error> {
        let iban = Regex::new(r"\b([A-Z]{2})[0-9]{2}[0-9A-Z]{9,28}([0-9]{2})\b")?;
        Ok(Self { iban })
    }
}

impl Handler for MaskIban {
    /// The cost class of the route follows from this: headers alone are cheaper than values.
    fn reads(&self) -> Reads {
        Reads::Value
    }

    /// Pushing nothing would drop the record, pushing several would split it.
    fn handle<'a>(
        &'a self,
        mut record: Record<'a>,
        out: &mut Vec<Record<'a>>,
    ) -> Result<(), Failure> {
        // A tombstone has no value, and stays one.
        if let Some(value) = &record.value {
            if std::str::from_utf8(value).is_err() {
                // The whole record goes the way of `on_error`; the words hold no payload.
                return Err(Failure {
                    code: FailureCode::WrongType,
                    detail: "the value is not text".into(),
                });
            }
            // Without a match the bytes stay borrowed from what was fetched.
            let masked = self.iban.replace_all(value, &b"${1}**${2}"[..]);
            if let Cow::Owned(masked) = masked {
                record.value = Some(Cow::Owned(masked));
            }
        }
        out.push(record);
        Ok(())
    }
}

/// What this program brings to `mirror`.
pub fn environment() -> Result<Environment, regex::Error> {
    let mut environment = Environment::default();
    let handler = Arc::new(MaskIban::new()?);
    environment.handlers.register("iban", handler);
    Ok(environment)
}

fn main() -> ExitCode {
    match environment() {
        Ok(environment) => {
            let args = std::env::args_os().collect();
            mirror::cli::main(args, link::embedding(environment)).into()
        }
        Err(error) => {
            eprintln!("custom_handler: {error}");
            ExitCode::FAILURE
        }
    }
}
