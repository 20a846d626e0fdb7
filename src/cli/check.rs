//! `mirror check`: every diagnostic, a line for each route, and on demand what the clusters say.

use super::answers;
use crate::config::diagnostic::{Code, Diagnostic, Severity};
use crate::config::loss;
use crate::config::place::Sources;
use crate::config::render::{self, Colour};
use crate::config::spec::{ClusterSpec, RouteSpec};
use crate::config::{self, LoadOptions, Loaded, Rejected, effective, github, sarif};
use crate::estimate::{Estimate, Machine};
use crate::flow::passing::Passing;
use crate::handler::Analysis;
use crate::online::{self, Ahead, Answers};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How the result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people: diagnostics on standard error, routes on standard output.
    Text(Colour),
    /// As text, with the effective configuration on standard output.
    Effective(Colour),
    /// One JSON object on standard output.
    Json,
    /// A SARIF 2.1.0 log on standard output.
    Sarif,
    /// Workflow commands of GitHub Actions on standard output.
    Github,
}

/// What warnings mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Warnings {
    /// They are printed.
    Allow,
    /// They are the result: exit code 3.
    Deny,
}

/// What is asked beyond soundness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Nothing.
    Sound,
    /// `--no-data-loss`: nothing that gives up on a record on purpose.
    NoDataLoss,
}

/// Whether the clusters are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// They are not.
    Nobody,
    /// `--online`: they are, and each question may take this long.
    Clusters(Duration),
}

/// The options of the command.
pub struct CheckOptions<'a> {
    /// What the files are read with.
    pub load: LoadOptions<'a>,
    /// How the result is printed.
    pub format: Format,
    /// What warnings mean.
    pub warnings: Warnings,
    /// What is asked beyond soundness.
    pub demand: Demand,
    /// Whether the clusters are asked.
    pub ask: Ask,
}

/// What came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Sound.
    Ok,
    /// Refused.
    Invalid,
    /// A cluster could not be asked, and nothing else is wrong.
    Unanswered,
    /// Only warnings, and those are denied.
    WarningsDenied,
}

impl Outcome {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Outcome::Ok => 0,
            Outcome::Invalid => 1,
            Outcome::Unanswered => 5,
            Outcome::WarningsDenied => 3,
        }
    }
}

/// Checks files and prints what was found.
///
/// # Errors
/// The output cannot be written.
pub fn run(
    files: &[PathBuf],
    options: &CheckOptions<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Outcome> {
    match config::load(files, &options.load) {
        Err(rejected) => refuse(&rejected, options, out, err),
        Ok(loaded) => accept(&loaded, options, out, err),
    }
}

fn refuse(
    rejected: &Rejected,
    options: &CheckOptions<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Outcome> {
    match options.format {
        Format::Json => write_json(out, &rejected.diagnostics, None, None)?,
        Format::Sarif => write_sarif(out, &rejected.diagnostics, &rejected.sources)?,
        Format::Github => write_github(out, &rejected.diagnostics, &rejected.sources)?,
        Format::Text(colour) | Format::Effective(colour) => {
            write!(err, "{}", rejected.render(colour))?;
            writeln!(err, "{}", summary(&rejected.diagnostics))?;
        }
    }
    Ok(Outcome::Invalid)
}

fn accept(
    loaded: &Loaded,
    options: &CheckOptions<'_>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> io::Result<Outcome> {
    let mut found = loaded.warnings.clone();
    if options.demand == Demand::NoDataLoss {
        found.extend(loss::no_data_loss(loaded));
    }
    let machine = Machine::here();
    let estimate = Estimate::of(&loaded.spec);
    found.extend(over_limit(estimate, &machine, loaded));
    let answers = match options.ask {
        Ask::Nobody => None,
        Ask::Clusters(patience) => Some(online::ask(&loaded.spec, patience)),
    };
    if let Some(answers) = &answers {
        let judged = online::judge(&loaded.spec, answers).into_iter();
        found.extend(judged.map(|finding| finding.placed(loaded)));
    }
    config::diagnostic::arrange(&mut found);
    let outcome = outcome(&found, options.warnings);
    match options.format {
        Format::Json => write_json(out, &found, Some(loaded), answers.as_ref())?,
        Format::Sarif => write_sarif(out, &found, &loaded.document.sources)?,
        Format::Github => write_github(out, &found, &loaded.document.sources)?,
        Format::Effective(colour) => {
            let text = render::render(&found, &loaded.document.sources, colour);
            write!(err, "{text}")?;
            let printed = effective::effective(loaded).map_err(io::Error::other)?;
            write!(out, "{printed}")?;
        }
        Format::Text(colour) => {
            let text = render::render(&found, &loaded.document.sources, colour);
            write!(err, "{text}")?;
            for route in loaded.spec.routes.values() {
                writeln!(out, "{}", line(route))?;
            }
            writeln!(out, "{}", estimate.line(&machine))?;
            if let Some(answers) = &answers {
                write!(out, "\n{}", answers::table(&Ahead::from(answers)))?;
            }
            writeln!(err, "{}", summary(&found))?;
        }
    }
    Ok(outcome)
}

/// What the machine does not have, at the limits of the file.
fn over_limit(estimate: Estimate, machine: &Machine, loaded: &Loaded) -> Vec<Diagnostic> {
    let place = loaded.document.place("/limits");
    let over = estimate.over(machine).into_iter();
    over.map(|(message, help)| Diagnostic::new(Code::OverLimit, place.clone(), message).help(help))
        .collect()
}

fn outcome(found: &[Diagnostic], warnings: Warnings) -> Outcome {
    let errors = || found.iter().filter(|d| d.severity() == Severity::Error);
    if errors().any(|d| !online::could_not_ask(d.code)) {
        return Outcome::Invalid;
    }
    if errors().next().is_some() {
        return Outcome::Unanswered;
    }
    match (found.is_empty(), warnings) {
        (false, Warnings::Deny) => Outcome::WarningsDenied,
        _ => Outcome::Ok,
    }
}

/// `route orders-in: lisbon, virginia → hub, headers only`.
fn line(route: &RouteSpec) -> String {
    format!(
        "route {}: {} → {}, {}",
        route.name,
        names(&route.sources).join(", "),
        names(&route.targets).join(", "),
        Passing::of_route(route),
    )
}

fn names(clusters: &[Arc<ClusterSpec>]) -> Vec<&str> {
    clusters.iter().map(|c| c.name.as_str()).collect()
}

/// What a route's handlers do.
fn analysis(analysis: &Analysis) -> Value {
    let writes: Vec<&str> = analysis.writes.iter().map(|part| part.as_str()).collect();
    json!({
        "writes": writes,
        "drops": analysis.drops,
        "splits": analysis.splits,
        "renames_by_content": analysis.renames_by_content,
    })
}

fn summary(found: &[Diagnostic]) -> String {
    let errors = found
        .iter()
        .filter(|d| d.severity() == Severity::Error)
        .count();
    let warnings = found.len() - errors;
    let sum = match (errors, warnings) {
        (0, 0) => "ok".to_owned(),
        (0, warnings) => format!("ok, {}", count(warnings, "warning")),
        (errors, 0) => count(errors, "error"),
        (errors, warnings) => format!("{}, {}", count(errors, "error"), count(warnings, "warning")),
    };
    match found
        .iter()
        .find(|d| d.severity() == Severity::Error)
        .or(found.first())
    {
        Some(first) => format!("{sum}; `mirror explain {}` tells more", first.code.as_str()),
        None => sum,
    }
}

fn count(number: usize, word: &str) -> String {
    match number {
        1 => format!("1 {word}"),
        _ => format!("{number} {word}s"),
    }
}

fn write_sarif(out: &mut dyn Write, found: &[Diagnostic], sources: &Sources) -> io::Result<()> {
    writeln!(out, "{:#}", sarif::sarif(found, sources))
}

fn write_github(out: &mut dyn Write, found: &[Diagnostic], sources: &Sources) -> io::Result<()> {
    write!(out, "{}", github::annotations(found, sources))
}

fn write_json(
    out: &mut dyn Write,
    found: &[Diagnostic],
    loaded: Option<&Loaded>,
    answers: Option<&Answers>,
) -> io::Result<()> {
    let routes = loaded.into_iter().flat_map(|l| l.spec.routes.values());
    let routes: Vec<Value> = routes
        .map(|route| {
            let passing = Passing::of_route(route);
            json!({
                "name": route.name.as_str(),
                "sources": names(&route.sources),
                "targets": names(&route.targets),
                "cost": passing.class(),
                "because": passing.because(),
                "handlers": analysis(&route.chain.analysis()),
            })
        })
        .collect();
    let diagnostics: Vec<Value> = found.iter().map(Diagnostic::to_json).collect();
    let errors = found.iter().any(|d| d.severity() == Severity::Error);
    let mut result = json!({
        "ok": loaded.is_some() && !errors,
        "hash": loaded.map(|l| l.hash.as_str()),
        "diagnostics": diagnostics,
        "routes": routes,
        "estimate": loaded.map(|l| Estimate::of(&l.spec).to_json(&Machine::here())),
    });
    if let Some(answers) = answers {
        let ahead = serde_json::to_value(Ahead::from(answers)).map_err(io::Error::other)?;
        result["online"] = ahead;
    }
    writeln!(out, "{result:#}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::listener::Listeners;
    use crate::handler::Registry;

    fn check(
        text: &str,
        format: Format,
        warnings: Warnings,
        demand: Demand,
    ) -> (Outcome, String, String) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("m.yaml");
        std::fs::write(&file, text).unwrap();
        let (registry, listeners) = (Registry::default(), Listeners::default());
        let options = CheckOptions {
            load: LoadOptions {
                environment: &|_| None,
                variables: &crate::config::interpolate::Variables::default(),
                registry: &registry,
                listeners: &listeners,
                running: None,
            },
            format,
            warnings,
            demand,
            ask: Ask::Nobody,
        };
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let outcome = run(&[file], &options, &mut out, &mut err).unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (outcome, text(out), text(err))
    }

    const SOUND: &str = "version: 1\nclusters:\n  a: { bootstrap_servers: ['a:1'] }\n  b: { bootstrap_servers: ['b:1'] }\nroutes:\n  r: { source: a, target: b, topics: { include: [orders] } }\n";
    const PLAIN: Format = Format::Text(Colour::Never);

    #[test]
    fn a_sound_file_has_a_line_for_each_route() {
        let (outcome, out, err) = check(SOUND, PLAIN, Warnings::Deny, Demand::NoDataLoss);
        assert_eq!(outcome, Outcome::Ok);
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(
            lines[0],
            "route r: a → b, records as they are (librdkafka fetches from a)"
        );
        assert!(lines[1].starts_with("estimate: at most ") && lines.len() == 2);
        assert_eq!(err, "ok\n");
    }

    #[test]
    fn warnings_are_the_result_if_denied() {
        let text = SOUND.replace("[orders]", "[orders.eu]");
        let (outcome, _, err) = check(&text, PLAIN, Warnings::Deny, Demand::Sound);
        assert_eq!(outcome.code(), 3);
        assert!(
            err.contains("warning[W0601]")
                && err.ends_with("ok, 1 warning; `mirror explain W0601` tells more\n"),
            "{err}"
        );
        let (outcome, _, _) = check(&text, PLAIN, Warnings::Allow, Demand::Sound);
        assert_eq!(outcome.code(), 0);
    }

    #[test]
    fn a_broken_file_is_shown_with_its_lines() {
        let text = SOUND.replace("source: a", "source: c");
        let (outcome, out, err) = check(&text, PLAIN, Warnings::Allow, Demand::Sound);
        assert_eq!((outcome.code(), out.as_str()), (1, ""));
        assert!(err.contains("error[E0402]: unknown cluster `c`"), "{err}");
        assert!(err.contains("m.yaml:6:16") && err.contains('^'), "{err}");
        let (_, out, err) = check(&text, Format::Json, Warnings::Allow, Demand::Sound);
        let json: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(json["diagnostics"][0]["code"], "E0402");
        assert_eq!((json["ok"].as_bool(), err.as_str()), (Some(false), ""));
    }

    /// The essence of the SARIF 2.1.0 schema: what must be there, and of which type.
    fn essence_of_sarif() -> Value {
        let text = json!({ "type": "object", "required": ["text"], "properties": { "text": { "type": "string", "minLength": 1 } } });
        let level = json!({ "enum": ["none", "note", "warning", "error"] });
        let count = json!({ "type": "integer", "minimum": 1 });
        let location = json!({
            "type": "object",
            "required": ["artifactLocation"],
            "properties": {
                "artifactLocation": { "required": ["uri"], "properties": { "uri": { "type": "string", "format": "uri-reference" } } },
                "region": {
                    "required": ["startLine"],
                    "additionalProperties": false,
                    "properties": {
                        "startLine": count, "startColumn": count, "endLine": count, "endColumn": count,
                        "byteOffset": { "type": "integer", "minimum": 0 }, "byteLength": { "type": "integer", "minimum": 0 },
                    },
                },
            },
        });
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "required": ["version", "runs"],
            "additionalProperties": false,
            "properties": {
                "$schema": { "type": "string", "format": "uri" },
                "version": { "const": "2.1.0" },
                "runs": { "type": "array", "minItems": 1, "items": {
                    "required": ["tool", "results"],
                    "properties": {
                        "columnKind": { "enum": ["utf16CodeUnits", "unicodeCodePoints"] },
                        "tool": { "required": ["driver"], "properties": { "driver": {
                            "required": ["name"],
                            "properties": { "rules": { "type": "array", "uniqueItems": true, "items": {
                                "required": ["id"],
                                "properties": { "shortDescription": text, "fullDescription": text, "help": text, "defaultConfiguration": { "properties": { "level": level } } },
                            } } },
                        } } },
                        "results": { "type": "array", "items": {
                            "required": ["message", "ruleId", "ruleIndex"],
                            "properties": {
                                "level": level,
                                "message": text,
                                "ruleIndex": { "type": "integer", "minimum": 0 },
                                "locations": { "type": "array", "items": { "properties": { "physicalLocation": location } } },
                                "relatedLocations": { "type": "array", "uniqueItems": true, "items": {
                                    "properties": { "id": { "type": "integer", "minimum": 0 }, "message": text, "physicalLocation": location },
                                } },
                            },
                        } },
                    },
                } },
            },
        })
    }

    #[test]
    fn sarif_is_sarif() {
        let text = SOUND
            .replace("source: a", "source: c")
            .replace("  b:", "  a:");
        let (outcome, out, err) = check(&text, Format::Sarif, Warnings::Allow, Demand::Sound);
        assert_eq!((outcome.code(), err.as_str()), (1, ""));
        let log: Value = serde_json::from_str(&out).unwrap();
        let validator = jsonschema::validator_for(&essence_of_sarif()).unwrap();
        let errors: Vec<String> = validator.iter_errors(&log).map(|e| e.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new());
        let run = &log["runs"][0];
        let results = run["results"].as_array().unwrap();
        for result in results {
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(
                run["tool"]["driver"]["rules"][index]["id"],
                result["ruleId"]
            );
        }
        let region = &results[0]["locations"][0]["physicalLocation"]["region"];
        let place =
            ["startLine", "startColumn", "endLine", "endColumn"].map(|k| region[k].as_u64());
        assert_eq!(place, [4, 3, 4, 4].map(Some));
        assert_eq!(
            results[0]["relatedLocations"][0]["message"]["text"],
            "first here"
        );
        let (outcome, out, _) = check(SOUND, Format::Sarif, Warnings::Deny, Demand::Sound);
        let log: Value = serde_json::from_str(&out).unwrap();
        assert!(validator.is_valid(&log) && outcome.code() == 0);
    }

    #[test]
    fn workflows_get_a_line_for_each() {
        let text = SOUND.replace("source: a", "source: c");
        let (outcome, out, err) = check(&text, Format::Github, Warnings::Allow, Demand::Sound);
        assert_eq!((outcome.code(), err.as_str()), (1, ""));
        assert!(
            out.starts_with("::error file=")
                && out
                    .contains(",line=6,endLine=6,col=16,endColumn=17,title=E0402::unknown cluster"),
            "{out}"
        );
        assert_eq!(out.lines().count(), 1);
    }

    #[test]
    fn giving_up_on_records_is_refused_on_demand() {
        let text = SOUND.replace("routes:", "defaults: { on_error: skip }\nroutes:");
        let (outcome, _, err) = check(&text, PLAIN, Warnings::Allow, Demand::NoDataLoss);
        assert_eq!(outcome, Outcome::Invalid);
        assert!(
            err.contains("E0501") && err.contains("m.yaml:5:23"),
            "{err}"
        );
        let (outcome, _, _) = check(&text, PLAIN, Warnings::Allow, Demand::Sound);
        assert_eq!(outcome, Outcome::Ok);
    }
}
