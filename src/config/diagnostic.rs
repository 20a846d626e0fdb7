//! A diagnostic: one thing to say about a configuration, with its code and its place.

use crate::config::place::{Place, Position};
use crate::config::story::Story;
use crate::redact;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::path::PathBuf;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The configuration is refused.
    Error,
    /// It runs, and is probably not what was meant.
    Warning,
}

impl Severity {
    /// The word that is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Everything that can be said about a configuration. The texts are stable.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[$doc])* $name,)*
        }

        impl Code {
            /// Every code.
            pub const ALL: &[Code] = &[$(Code::$name,)*];

            /// The stable text, such as `E0104`.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Code::$name => $text,)*
                }
            }

            /// The long story: what it means, why it is so, an example that is wrong and one that
            /// is right. A code without a story does not compile.
            pub fn story(self) -> Story {
                match self {
                    $(Code::$name => Story::of(include_str!(concat!("stories/", $text, ".md"))),)*
                }
            }

            /// The code of that text, in any case.
            pub fn named(text: &str) -> Option<Self> {
                let mut codes = Self::ALL.iter();
                codes.find(|code| code.as_str().eq_ignore_ascii_case(text)).copied()
            }
        }
    };
}

codes! {
    /// A file cannot be read.
    Unreadable = "E0101",
    /// The text is not YAML.
    Syntax = "E0102",
    /// There is no configuration in the file.
    Empty = "E0103",
    /// A second document in one file.
    SecondDocument = "E0104",
    /// A key that stands twice in one map.
    DuplicateKey = "E0105",
    /// YAML that has no meaning here: tags, maps as keys.
    Unsupported = "E0106",
    /// Nested too deeply, or too many nodes through aliases.
    TooLarge = "E0107",
    /// A name that is defined in two files.
    DefinedTwice = "E0108",
    /// `${…}` that is not one of the forms.
    BadSubstitution = "E0201",
    /// A variable without a value and without a default.
    MissingVariable = "E0202",
    /// `${file:…}` that cannot be read.
    MissingSecret = "E0203",
    /// A key that does not exist.
    UnknownKey = "E0301",
    /// A key that must be there.
    MissingKey = "E0302",
    /// A value of the wrong type.
    WrongType = "E0303",
    /// A value that is not one of those allowed.
    WrongValue = "E0304",
    /// A duration, size or ratio that is none.
    WrongUnit = "E0305",
    /// A name with other characters than `a-z 0-9 _ -`.
    BadName = "E0401",
    /// A cluster that is not defined.
    UnknownCluster = "E0402",
    /// A chain or handler that is not defined.
    UnknownChain = "E0403",
    /// A chain that uses itself.
    RecursiveChain = "E0404",
    /// A regex that does not compile.
    BadRegex = "E0405",
    /// Look-around or a back-reference, which the regexes here do not have.
    LookAround = "E0406",
    /// A client property that mirror sets itself.
    ProtectedProperty = "E0407",
    /// A client property that does not exist.
    UnknownProperty = "E0408",
    /// A value that the client property does not take.
    BadProperty = "E0409",
    /// A route that gets its own records again, directly or over other routes.
    FeedsItself = "E0410",
    /// `on_error: dead_letter` without a dead-letter topic.
    NoDeadLetter = "E0411",
    /// A target cluster with `access: read`.
    ReadOnlyTarget = "E0412",
    /// Settings that cannot stand together, or that need another one.
    Conflict = "E0413",
    /// Something that this version does not do.
    NotYet = "E0414",
    /// A step that is wrong.
    BadStep = "E0415",
    /// An address that is none.
    BadAddress = "E0416",
    /// A rebalance listener that nobody registered.
    UnknownListener = "E0417",
    /// A topic name that Kafka does not take.
    BadTopic = "E0418",
    /// A route that can select no topic at all.
    SelectsNothing = "E0419",
    /// A setting that gives up on records, under `--no-data-loss`.
    DataLoss = "E0501",
    /// A test of a route that is not defined.
    UnknownRoute = "E0701",
    /// Bytes of a test that are not what they are said to be.
    BadBytes = "E0702",
    /// A test that names a step that its route does not have.
    UnknownStep = "E0703",
    /// Something other than tests in a test file.
    NotATest = "E0704",
    /// A host name that nobody knows (`--online`, as all of these).
    UnknownHost = "E0801",
    /// Nothing listens where a cluster should be.
    ConnectionRefused = "E0802",
    /// A cluster that did not answer in time.
    NoAnswer = "E0803",
    /// A certificate that is not trusted.
    TlsFailed = "E0804",
    /// One side speaks TLS or SASL and the other does not.
    OtherProtocol = "E0805",
    /// A cluster that refuses the user.
    NotAuthenticated = "E0806",
    /// A cluster with another id than the file expects.
    OtherCluster = "E0807",
    /// Source and target are one cluster under two names.
    CopiesOntoItself = "E0808",
    /// A right that is needed and not granted.
    RightMissing = "E0809",
    /// A topic that is not there and may not be created.
    TopicMissing = "E0810",
    /// A topic that the target would not create or grow.
    ChangeRefused = "E0811",
    /// A target topic with fewer partitions than the policy needs.
    TooFewPartitions = "E0812",
    /// More replicas than brokers.
    TooFewBrokers = "E0813",
    /// Fewer replicas than must be in sync.
    TooFewReplicas = "E0814",
    /// Timestamps that the target refuses.
    TimestampRefused = "E0815",
    /// Records without a key for a topic that is compacted.
    KeyMissing = "E0816",
    /// Somebody else is in the consumer group.
    GroupTaken = "E0817",
    /// A position at which a partition halts.
    PositionLost = "E0818",
    /// Settings of which no client can be made.
    NoClient = "E0819",
    /// A topic that the route's handlers cannot be set up for.
    TopicUnbound = "E0820",
    /// An unescaped dot between words: it matches every character.
    UnescapedDot = "W0601",
    /// A control character in a pattern: a double-quoted escape, as a rule.
    ControlCharacter = "W0602",
    /// A cluster that no route uses.
    UnusedCluster = "W0603",
    /// A chain that no route uses.
    UnusedChain = "W0604",
    /// A partition policy that breaks the order of keys.
    BreaksOrder = "W0605",
    /// A setting that has no effect.
    NoEffect = "W0606",
    /// A pattern of `include:` that matches no file.
    NothingIncluded = "W0607",
    /// A variable that is not set and was taken as an empty text.
    UnsetVariable = "W0608",
    /// A filter by headers behind a step that reads the value.
    DearFirst = "W0609",
    /// A route that may get its own records again: it depends on them, or cannot be told.
    MayFeedItself = "W0701",
    /// Dead letters that come back to the route that wrote them.
    DeadLettersReturn = "W0702",
    /// Dead letters that another route copies on.
    DeadLettersCopied = "W0703",
    /// A target topic that two routes write.
    SharedTarget = "W0704",
    /// Topics of one route that land in one target topic.
    TopicsMerge = "W0705",
    /// Target topics that differ only in `.` and `_`.
    NamesClash = "W0706",
    /// A pattern that can match no topic.
    MatchesNothing = "W0707",
    /// A setting that takes back what `delivery` promises.
    WeakensDelivery = "W0708",
    /// A client property that no client of this cluster reads.
    WrongClient = "W0709",
    /// Two names for one cluster.
    OneCluster = "W0710",
    /// More than the machine has.
    OverLimit = "W0711",
    /// A topic setting that Kafka does not have.
    UnknownTopicConfig = "W0712",
    /// Two names for one cluster.
    SameCluster = "W0801",
    /// A route that no topic matches.
    NothingMatches = "W0802",
    /// Several source partitions in one target partition.
    PartitionsShared = "W0803",
    /// A target topic that takes smaller records than the source topic.
    SmallerRecords = "W0804",
    /// A target topic that replaces timestamps.
    TimestampReplaced = "W0805",
    /// A topic that is compacted on one side only.
    CleanupDiffers = "W0806",
    /// Deletes that never reach a compacted target.
    TombstonesDropped = "W0807",
    /// A target topic that compresses every batch anew.
    Recompressed = "W0808",
    /// Records that the target deletes soon after they were copied.
    ExpiresAtTarget = "W0809",
    /// Records that the source deletes before they are copied.
    ExpiresAtSource = "W0810",
    /// Positions in the group that are not mirror's.
    ForeignPositions = "W0811",
    /// Records that are gone, and `on_gap` goes on behind them.
    GapSkipped = "W0812",
    /// Something that could not be found out for want of a right.
    NotSeen = "W0813",
    /// A cluster without topic ids.
    NoTopicIds = "W0814",
    /// A partition without a leader, or a topic that cannot be written now.
    NotAvailable = "W0815",
    /// A right that is needed later and not granted.
    RightMissingLater = "W0816",
}

impl Code {
    /// Whether it is an error or a warning.
    pub fn severity(self) -> Severity {
        if self.as_str().starts_with('W') {
            Severity::Warning
        } else {
            Severity::Error
        }
    }
}

/// One thing to say about a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Which one.
    pub code: Code,
    /// Where.
    pub place: Place,
    /// What is wrong, in lower case, without a full stop.
    pub message: String,
    /// Other places that belong to it.
    pub related: Vec<(Place, String)>,
    /// What to do.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic about `place`.
    pub fn new(code: Code, place: Place, message: impl Into<String>) -> Self {
        Self {
            code,
            place,
            message: message.into(),
            related: Vec::new(),
            help: None,
        }
    }

    /// A diagnostic about a file as a whole.
    pub fn of_file(code: Code, file: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        let place = Place {
            file: file.into(),
            position: None,
        };
        Self::new(code, place, message)
    }

    /// With what to do.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// With what to do, if there is something.
    pub fn help_if(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }

    /// Without the secrets that were loaded.
    pub fn redact(&mut self) {
        let texts = self.related.iter_mut().map(|(_, text)| text);
        for text in texts.chain([&mut self.message]).chain(&mut self.help) {
            if let Cow::Owned(clean) = redact::text(text) {
                *text = clean;
            }
        }
    }

    /// With another place.
    pub fn related(mut self, place: Place, message: impl Into<String>) -> Self {
        self.related.push((place, message.into()));
        self
    }

    /// Error or warning.
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }

    /// `file:line:col: error[E0104]: message`.
    pub fn one_line(&self) -> String {
        format!(
            "{}: {}[{}]: {}",
            self.place,
            self.severity().as_str(),
            self.code.as_str(),
            self.message
        )
    }

    /// As JSON, for `--format json`.
    pub fn to_json(&self) -> Value {
        let related: Vec<Value> = self
            .related
            .iter()
            .map(|(place, message)| json!({"place": place_json(place), "message": message}))
            .collect();
        json!({
            "code": self.code.as_str(),
            "severity": self.severity().as_str(),
            "place": place_json(&self.place),
            "message": self.message,
            "related": related,
            "help": self.help,
        })
    }
}

fn place_json(place: &Place) -> Value {
    let at = |get: fn(&Position) -> usize| place.position.as_ref().map(get);
    json!({
        "file": place.file.display().to_string(),
        "line": at(|p| p.line),
        "column": at(|p| p.column),
        "start": at(|p| p.start),
        "end": at(|p| p.end),
    })
}

/// Sorts by place and drops repetitions (an anchor's mistake is met once for each alias).
pub fn arrange(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by(|a, b| (&a.place, a.code, &a.message).cmp(&(&b.place, b.code, &b.message)));
    diagnostics.dedup();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn codes_are_unique_and_well_formed() {
        let texts: BTreeSet<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(texts.len(), Code::ALL.len());
        assert!(texts.iter().all(|t| t.len() == 5));
    }

    #[test]
    fn one_line_names_place_severity_and_code() {
        let d = Diagnostic::of_file(Code::Empty, "a.yaml", "no configuration");
        assert_eq!(d.one_line(), "a.yaml: error[E0103]: no configuration");
        assert_eq!(d.to_json()["place"]["line"], Value::Null);
    }
}
