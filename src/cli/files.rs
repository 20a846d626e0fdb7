//! Which configuration is meant.

use std::path::{Path, PathBuf};

/// Where a configuration is looked for when none is named.
pub(super) const DEFAULTS: [&str; 2] = ["mirror.yaml", "/etc/mirror/mirror.yaml"];

/// The files as named, or the first default that is there.
///
/// # Errors
/// The words for a user who named none, when none is there.
pub(super) fn find(mut named: Vec<PathBuf>, config: Vec<PathBuf>) -> Result<Vec<PathBuf>, String> {
    named.extend(config);
    if !named.is_empty() {
        return match named.iter().find(|path| !path.exists()) {
            Some(missing) => Err(format!("{}: no such file or folder", missing.display())),
            None => Ok(named),
        };
    }
    let found = DEFAULTS.iter().map(Path::new).find(|path| path.exists());
    found.map(|path| vec![path.to_owned()]).ok_or_else(|| {
        format!(
            "no configuration found: looked for {} in this folder and {}\n\
             write a first one (`mirror init`), name one (`mirror run FILE`), or try without Kafka: `mirror sandbox`",
            DEFAULTS[0], DEFAULTS[1]
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_file_that_is_missing_is_named_in_the_error() {
        let error = find(vec!["/nowhere/m.yaml".into()], vec![]).unwrap_err();
        assert_eq!(error, "/nowhere/m.yaml: no such file or folder");
    }

    #[test]
    fn arguments_come_before_options() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&a, "").unwrap();
        std::fs::write(&b, "").unwrap();
        assert_eq!(find(vec![a.clone()], vec![b.clone()]), Ok(vec![a, b]));
    }
}
