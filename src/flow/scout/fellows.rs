//! What other members of the group commit, and under which settings: instances of one group that follow different files
//! are found out.
//!
//! Beside each offset stands a fingerprint of the settings that it was copied under. A commit from before a reload stands as
//! long as its partition is quiet, so what stands there says nothing: only a commit that is new since the last look does.

use super::positions::Committed;
use super::{ASK, Scout};
use crate::flow::position::CommitMetadata;
use crate::observe::{Differing, Reason};
use crate::plan::Fingerprint;
use crate::record::TopicPartition;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long a commit under other settings is held against its member: after that, nothing is known of it any more.
const MEMORY: Duration = Duration::from_secs(60);
/// Looks at which other settings must have been seen: the members of a group do not reload in the same moment.
const OFTEN: u32 = 2;

/// A commit of another member.
struct Commit {
    partition: TopicPartition,
    offset: i64,
    settings: Option<Fingerprint>,
}

/// The other members of the group, as far as their commits show them.
#[derive(Default)]
pub(super) struct Fellows {
    /// Where each partition of theirs stood at the last look.
    stood: HashMap<TopicPartition, i64>,
    suspicion: Option<Suspicion>,
}

/// Commits under other settings.
struct Suspicion {
    differing: Differing,
    looks: u32,
    last: Instant,
}

impl Fellows {
    /// Takes in what stands at the partitions that others have, and says which member differs.
    fn look(&mut self, commits: Vec<Commit>, ours: Fingerprint, now: Instant) -> Option<Differing> {
        let over = |s: &Suspicion| commits.is_empty() || s.is_over(&commits, ours, now);
        if self.suspicion.as_ref().is_some_and(over) {
            self.suspicion = None;
        }
        let moved = |c: &&Commit| {
            let stood = self.stood.get(&c.partition);
            stood.is_some_and(|stood| *stood != c.offset)
        };
        let other = |c: &Commit| {
            let theirs = c.settings.filter(|theirs| *theirs != ours)?;
            let at = c.partition.clone();
            Some(Differing { ours, theirs, at })
        };
        if let Some(differing) = commits.iter().filter(moved).find_map(other) {
            let before = self.suspicion.as_ref().map_or(0, |s| s.looks);
            self.suspicion = Some(Suspicion {
                differing,
                looks: before.saturating_add(1),
                last: now,
            });
        }
        self.stood = commits
            .into_iter()
            .map(|c| (c.partition, c.offset))
            .collect();
        let proven = self.suspicion.as_ref().filter(|s| s.looks >= OFTEN);
        proven.map(|s| s.differing.clone())
    }
}

impl Suspicion {
    /// Whether it is of settings that we had, too old, or refuted by what stands there now.
    fn is_over(&self, commits: &[Commit], ours: Fingerprint, now: Instant) -> bool {
        let agrees = |c: &Commit| c.partition == self.differing.at && c.settings == Some(ours);
        self.differing.ours != ours
            || now.duration_since(self.last) > MEMORY
            || commits.iter().any(agrees)
    }
}

impl Scout {
    /// Looks at the commits of partitions that others have. Who has all partitions asks nothing.
    pub(super) fn look_at_fellows(&mut self) {
        let Ok(commits) = self.commits_of_others() else {
            // Discovery says that the source does not answer.
            return;
        };
        let differing = self
            .fellows
            .look(commits, self.spec.settings, Instant::now());
        let said = differing.as_ref().map(ToString::to_string);
        if !self.spec.view.see_differing(differing) {
            return;
        }
        match said {
            Some(said) => {
                tracing::warn!(event = "members_differ", subject = %self.spec.subject, "{said}");
            }
            None => tracing::info!(event = "members_agree", subject = %self.spec.subject,
                "no member of the group was seen to copy with other settings for a while"),
        }
    }

    fn commits_of_others(&mut self) -> Result<Vec<Commit>, Reason> {
        let ours = self.spec.view.partitions();
        let mut theirs = self.matching_partitions();
        theirs.retain(|tp| !ours.contains_key(tp));
        if theirs.is_empty() {
            return Ok(Vec::new());
        }
        let answers = self.observer()?.committed(&theirs, ASK);
        let committed = Committed::read(answers.map_err(|detail| self.unreachable(detail))?)?;
        let commit = |(partition, (offset, metadata)): (_, (_, CommitMetadata))| Commit {
            partition,
            offset,
            settings: metadata.settings,
        };
        Ok(committed.positions.into_iter().map(commit).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Fingerprint {
        text.parse().unwrap()
    }

    fn commit(offset: i64, under: Option<Fingerprint>) -> Vec<Commit> {
        vec![Commit {
            partition: TopicPartition::new("orders", 3),
            offset,
            settings: under,
        }]
    }

    /// Looks with a commit each, five seconds apart; whether the last one differs.
    fn last_look(commits: &[(i64, Option<Fingerprint>)], ours: Fingerprint) -> bool {
        let (mut fellows, begin) = (Fellows::default(), Instant::now());
        let looks = commits.iter().zip(0..).map(|((offset, under), n)| {
            let now = begin + FIVE_SECONDS * n;
            fellows.look(commit(*offset, *under), ours, now).is_some()
        });
        looks.last().unwrap_or_default()
    }

    const FIVE_SECONDS: Duration = Duration::from_secs(5);

    #[test]
    fn who_goes_on_committing_under_other_settings_differs() {
        let (ours, theirs) = (settings("00000001"), Some(settings("00000002")));
        assert!(!last_look(&[(1, theirs)], ours), "it may be from before");
        assert!(
            !last_look(&[(1, theirs), (1, theirs), (1, theirs)], ours),
            "quiet"
        );
        assert!(
            !last_look(&[(1, theirs), (2, theirs)], ours),
            "a reload goes round"
        );
        assert!(last_look(&[(1, theirs), (2, theirs), (3, theirs)], ours));
    }

    #[test]
    fn who_has_the_same_or_says_nothing_does_not() {
        let ours = settings("00000001");
        assert!(!last_look(
            &[(1, Some(ours)), (2, Some(ours)), (3, Some(ours))],
            ours
        ));
        assert!(!last_look(&[(1, None), (2, None), (3, None)], ours));
    }

    #[test]
    fn it_is_over_after_a_reload_here_or_there_and_after_a_quiet_minute() {
        let (ours, theirs) = (settings("00000001"), settings("00000002"));
        let suspicious = |begin| {
            let mut fellows = Fellows::default();
            for offset in 1..4 {
                fellows.look(commit(offset, Some(theirs)), ours, begin);
            }
            assert!(fellows.suspicion.is_some());
            fellows
        };
        let now = Instant::now();
        let still = suspicious(now).look(commit(3, Some(theirs)), ours, now + FIVE_SECONDS);
        assert!(still.is_some(), "a quiet moment");
        let reloaded = suspicious(now).look(commit(4, Some(theirs)), theirs, now);
        assert_eq!(reloaded, None);
        let agreed = suspicious(now).look(commit(4, Some(ours)), ours, now);
        assert_eq!(agreed, None);
        let later = now + MEMORY + FIVE_SECONDS;
        assert_eq!(
            suspicious(now).look(commit(3, Some(theirs)), ours, later),
            None
        );
        assert_eq!(suspicious(now).look(Vec::new(), ours, now), None);
    }
}
