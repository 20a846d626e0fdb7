//! The loop of franz-go, built from the module beside this file.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds it into `folder`.
///
/// # Errors
/// If there is no Go, or it cannot build: a contest without a contender says so and ends.
pub fn build(folder: &Path) -> Result<PathBuf, String> {
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/contest/franz");
    let program = folder.join("franz");
    let output = Command::new("go")
        .args(["build", "-mod=readonly", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(module)
        .output()
        .map_err(|error| {
            format!(
                "no Go for the loop of franz-go ({error}): install Go 1.26 or newer, or name the contenders that shall take part with --contender"
            )
        })?;
    if output.status.success() {
        return Ok(program);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("the loop of franz-go cannot be built:\n{said}"))
}
