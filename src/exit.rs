//! How the program ends, as the shell sees it. One closed set for every command.

use std::process::ExitCode;

/// The exit codes of `mirror`, the same for every command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done: the answer is yes.
    Done,
    /// The answer is no: invalid file, failed test, unhealthy route, rejected reload.
    No,
    /// Wrong usage of the command line.
    Usage,
    /// Only warnings, and `--deny-warnings` was given.
    Warnings,
    /// Changes are pending, and `--exit-code` was given.
    Changes,
    /// Could not ask: a broker or process is unreachable, or a deadline passed.
    Unreachable,
    /// Stopped before everything in flight was confirmed: some records may be copied again.
    Unconfirmed,
    /// A bug in `mirror`.
    Bug,
}

impl Exit {
    /// Every code, in the order of the manual.
    pub const ALL: [Exit; 8] = [
        Exit::Done,
        Exit::No,
        Exit::Usage,
        Exit::Warnings,
        Exit::Changes,
        Exit::Unreachable,
        Exit::Unconfirmed,
        Exit::Bug,
    ];

    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::No => 1,
            Exit::Usage => 2,
            Exit::Warnings => 3,
            Exit::Changes => 4,
            Exit::Unreachable => 5,
            Exit::Unconfirmed => 6,
            Exit::Bug => 70,
        }
    }

    /// What the code means, as printed in the manual.
    pub fn meaning(self) -> &'static str {
        match self {
            Exit::Done => "done",
            Exit::No => {
                "the answer is no: invalid file, failed test, unhealthy route, rejected reload"
            }
            Exit::Usage => "wrong usage of the command line",
            Exit::Warnings => "only warnings, and --deny-warnings was given",
            Exit::Changes => "changes are pending, and --exit-code was given",
            Exit::Unreachable => "could not ask: broker or process unreachable, deadline passed",
            Exit::Unconfirmed => {
                "stopped before everything in flight was confirmed; what may be copied again was listed"
            }
            Exit::Bug => "a bug in mirror",
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_ascend() {
        let codes: Vec<u8> = Exit::ALL.iter().map(|e| e.code()).collect();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 70]);
    }
}
