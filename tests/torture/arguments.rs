//! What the command line says.

/// Seeds that continuous integration runs, and what each is there for.
const NAMED: [(&str, u64); 3] = [
    ("killed and frozen: an instance, brokers of both sides", 155),
    ("topics, transactions, refusals, reloads, retention", 166),
    ("a zombie, a network that is cut, a full disk", 141),
];
/// For so long each of them is struck.
const NAMED_SECONDS: u64 = 20;
/// And each of the others.
const SECONDS: u64 = 40;
/// A soak.
const SOAK_SECONDS: u64 = 3600;

/// Which runs, and how long.
pub struct Arguments {
    pub seeds: Vec<u64>,
    /// For which faults strike; healing and reading to the end come on top.
    pub seconds: u64,
    pub kind: Kind,
    pub plan_only: bool,
    pub logs: Logs,
}

/// Of which runs the logs of mirror are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Logs {
    OfFailures,
    OfAll,
}

/// What a run is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Many faults, and what became of the records.
    Torture,
    /// The same for an hour, with a look at what a process has taken.
    Soak,
}

impl Arguments {
    /// # Errors
    /// If they are wrong.
    pub fn read(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut logs = Logs::OfFailures;
        let (mut count, mut first, mut one, mut seconds, mut plan_only) =
            (None, 1, None, None, false);
        let mut kind = Kind::Torture;
        while let Some(word) = words.next() {
            let mut number = || {
                let text = words.next().ok_or(format!("{word} wants a number"))?;
                text.parse::<u64>()
                    .map_err(|e| format!("{word} {text}: {e}"))
            };
            match word.as_str() {
                "--seeds" => count = Some(number()?),
                "--first" => first = number()?,
                "--seed" => one = Some(number()?),
                "--seconds" => seconds = Some(number()?),
                "--soak" => kind = Kind::Soak,
                "--plan" => plan_only = true,
                "--logs" => logs = Logs::OfAll,
                _ => {
                    return Err(format!(
                        "{word}: not known; --seeds, --first, --seed, --seconds, --soak, --plan, --logs are"
                    ));
                }
            }
        }
        let named = || NAMED.map(|(_, seed)| seed).to_vec();
        let (seeds, usual) = match (one, count) {
            _ if kind == Kind::Soak => (vec![one.unwrap_or(1)], SOAK_SECONDS),
            (Some(seed), _) => (vec![seed], SECONDS),
            (None, Some(count)) => ((first..first + count).collect(), SECONDS),
            (None, None) => (named(), NAMED_SECONDS),
        };
        Ok(Self {
            seeds,
            seconds: seconds.unwrap_or(usual),
            kind,
            plan_only,
            logs,
        })
    }
}
