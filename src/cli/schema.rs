//! `mirror schema`: the JSON schema of the file, for editors.

use crate::config::schema;
use std::io::{self, Write};

/// Prints the schema.
///
/// # Errors
/// The output cannot be written.
pub fn run(out: &mut dyn Write) -> io::Result<()> {
    out.write_all(schema::text().as_bytes())
}
