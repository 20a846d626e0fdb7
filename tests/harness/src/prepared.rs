//! What is made once and makes every later start faster.
//!
//! * An archive of the classes a broker loads (class data sharing): a start takes half the time with it.
//! * The first metadata of a cluster, as `StorageTool format` writes it: it is the same for every cluster without
//!   SCRAM users, and the tool needs nearly a second.
//!
//! Both come from one broker that is started and stopped for the purpose. They lie in `target/kafka/prepared-<key>`,
//! where the key stands for the Java and the jars they were made with.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::builder::ClusterBuilder;
use crate::error::{Attempt, HarnessError};
use crate::format::CHECKPOINT;
use crate::jars::{Jars, kafka_target};

const ARCHIVE: &str = "classes.jsa";

/// Kafka, ready to be run.
#[derive(Debug)]
pub(crate) struct Kafka {
    pub(crate) jars: Jars,
    /// Java goes without if this is missing; some cannot make one.
    archive: Option<PathBuf>,
    /// The first metadata of a cluster without SCRAM users.
    pub(crate) checkpoint: Option<PathBuf>,
}

impl Kafka {
    /// Finds Kafka and, if nobody has yet, prepares it.
    pub(crate) fn prepared() -> Result<Arc<Self>, HarnessError> {
        let jars = Jars::find()?;
        let target = kafka_target();
        let ready = target.join(format!("prepared-{}", jars.key()?));
        if !ready.exists() {
            fs::create_dir_all(&target)
                .attempt(|| format!("make the folder {}", target.display()))?;
            prepare(&jars, &target, &ready)?;
        }
        let found = |name| Some(ready.join(name)).filter(|path| path.exists());
        Ok(Arc::new(Self {
            jars,
            archive: found(ARCHIVE),
            checkpoint: found(CHECKPOINT),
        }))
    }

    /// The options that make Java use what was prepared.
    pub(crate) fn options(&self) -> Vec<String> {
        self.archive
            .iter()
            .map(|archive| format!("-XX:SharedArchiveFile={}", archive.display()))
            .collect()
    }
}

/// One process prepares, the others wait for it.
fn prepare(jars: &Jars, target: &Path, ready: &Path) -> Result<(), HarnessError> {
    let lock = target.join("prepared.lock");
    let file = File::create(&lock).attempt(|| format!("write {}", lock.display()))?;
    file.lock().attempt(|| format!("lock {}", lock.display()))?;
    if ready.exists() {
        return Ok(());
    }
    let making = tempfile::tempdir_in(target)
        .attempt(|| format!("make a folder in {}", target.display()))?;
    train(jars, making.path())?;
    // Under its final name it is complete: nobody ever reads half of it.
    fs::rename(making.path(), ready).attempt(|| format!("make {}", ready.display()))
}

/// Lets one broker live for a moment. All listeners are on, so that their classes get into the archive as well.
fn train(jars: &Jars, into: &Path) -> Result<(), HarnessError> {
    let bare = Kafka {
        jars: jars.clone(),
        archive: None,
        checkpoint: None,
    };
    let cluster = ClusterBuilder::new("prepare")
        .tls()
        .sasl_plain("nobody", "nothing")
        .acls(&[])
        .jvm_arg(format!(
            "-XX:ArchiveClassesAtExit={}",
            into.join(ARCHIVE).display()
        ))
        .start_with(&Arc::new(bare))?;
    let broker = cluster.broker(1);
    broker.stop()?;
    let written = broker.data().join(CHECKPOINT);
    fs::copy(&written, into.join(CHECKPOINT)).attempt(|| format!("copy {}", written.display()))?;
    Ok(())
}
