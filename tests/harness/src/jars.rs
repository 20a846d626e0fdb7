//! Java and the jars of Kafka: where they are, and how a class in them is run.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Attempt, HarnessError};

/// Quick to start, and small: most of a test broker's life is its start. The collector with threads of its own and the
/// optimising compiler would take the cores from what is tested. Options given later win.
const QUICK: [&str; 2] = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];

/// Nothing but the program's own words on its standard output, and no files in shared folders.
const QUIET: [&str; 2] = ["-Xlog:disable", "-XX:-UsePerfData"];

/// The file, in the folder a class runs in, that takes what it logs.
pub(crate) const LOG: &str = "kafka.log";

/// A Java and a Kafka that were found.
#[derive(Debug, Clone)]
pub(crate) struct Jars {
    java: PathBuf,
    jars: Vec<PathBuf>,
}

impl Jars {
    pub(crate) fn find() -> Result<Self, HarnessError> {
        Ok(Self {
            java: find_java().ok_or(HarnessError::NoJava)?,
            jars: find_jars(&lib())?,
        })
    }

    /// A command that runs `main`; its arguments are still to be added. `work` takes what it logs and unpacks.
    pub(crate) fn command(&self, main: &str, work: &Path, options: &[String]) -> Command {
        let mut command = Command::new(&self.java);
        command
            .args(QUICK)
            .args(QUIET)
            .arg(assign("-Djava.io.tmpdir=", work))
            .arg(concat!(
                "-Dlog4j2.configurationFile=",
                env!("CARGO_MANIFEST_DIR"),
                "/kafka/log4j2.properties"
            ))
            .arg(assign("-Dharness.log=", &work.join(LOG)))
            .args(options)
            .arg("-cp")
            .arg(self.classpath())
            .arg(main)
            .current_dir(work);
        command
    }

    /// Differs whenever a class archive made with these jars and this Java would be of no use with others.
    pub(crate) fn key(&self) -> Result<String, HarnessError> {
        let mut hasher = DefaultHasher::new();
        for file in self.jars.iter().chain([&self.java]) {
            let about = fs::metadata(file).attempt(|| format!("look at {}", file.display()))?;
            (file, about.len(), about.modified().ok()).hash(&mut hasher);
        }
        Ok(format!("{:016x}", hasher.finish()))
    }

    fn classpath(&self) -> OsString {
        let mut path = OsString::new();
        for jar in &self.jars {
            path.push(jar);
            path.push(":");
        }
        path
    }
}

/// The folder of this repository that what belongs to Kafka is put into.
pub(crate) fn kafka_target() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/kafka")
}

fn lib() -> PathBuf {
    env::var_os("MIRROR_KAFKA_LIB").map_or_else(|| kafka_target().join("lib"), PathBuf::from)
}

/// Sorted, because a class archive is only used with the class path it was made with.
fn find_jars(lib: &Path) -> Result<Vec<PathBuf>, HarnessError> {
    let missing = || HarnessError::NoJars {
        lib: lib.to_owned(),
    };
    let lib = lib.canonicalize().map_err(|_| missing())?;
    let mut jars: Vec<PathBuf> = fs::read_dir(&lib)
        .attempt(|| format!("read the folder {}", lib.display()))?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jar"))
        .collect();
    jars.sort();
    let is_kafka = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("kafka_2.13-"))
    };
    if jars.iter().any(is_kafka) {
        Ok(jars)
    } else {
        Err(missing())
    }
}

/// The real file behind the links, which changes when the JDK is updated.
fn find_java() -> Option<PathBuf> {
    let home = env::var_os("JAVA_HOME").map(|home| PathBuf::from(home).join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    home.into_iter()
        .chain(env::split_paths(&path))
        .find_map(|dir| dir.join("java").canonicalize().ok())
}

fn assign(name: &str, value: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(value);
    option
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_without_kafka_is_refused_with_what_to_do() {
        let empty = tempfile::tempdir().unwrap();
        let message = find_jars(empty.path()).unwrap_err().to_string();
        assert!(
            message.contains("scripts/kafka-jars") && message.contains("MIRROR_KAFKA_LIB"),
            "{message}"
        );
    }

    #[test]
    fn the_class_path_is_in_order() {
        let lib = tempfile::tempdir().unwrap();
        for name in ["zstd.jar", "kafka_2.13-4.jar", "README", "a.jar"] {
            fs::write(lib.path().join(name), "").unwrap();
        }
        let jars = find_jars(lib.path()).unwrap();
        let names: Vec<_> = jars
            .iter()
            .map(|jar| jar.file_name().unwrap().to_str().unwrap())
            .collect();
        assert_eq!(names, ["a.jar", "kafka_2.13-4.jar", "zstd.jar"]);
    }
}
