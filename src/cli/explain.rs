//! `mirror explain`: the long story of a code, what a reason of `mirror status` means, or what a setting is for.

use super::{OutputFormat, text};
use crate::config::diagnostic::Code;
use crate::config::explain::{self, Answer, Explanation, Presence};
use crate::config::story::Example;
use crate::config::suggest;
use crate::exit::Exit;
use crate::observe::ReasonCode;
use clap::Args;
use serde_json::{Value, json};

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A code such as E0105, a reason such as target_refuses, or a setting such as routes.*.partitions; without it, all codes and reasons
    pub what: Option<String>,
    /// How the result looks
    #[arg(long, value_enum, default_value_t = OutputFormat::Text)]
    pub format: OutputFormat,
}

/// Explains what is asked for.
pub(super) fn explain(args: &ExplainArgs) -> Exit {
    let Some(what) = &args.what else {
        return print(&codes_text(), &codes_json(), args.format);
    };
    if let Some(code) = Code::named(what) {
        return print(&code_text(code), &code_json(code), args.format);
    }
    if let Some(reason) = ReasonCode::named(what) {
        return print(&reason_text(reason), &reason_json(reason), args.format);
    }
    match explain::explain(what) {
        Answer::One(setting) => print(&setting_text(&setting), &setting.to_json(), args.format),
        Answer::Several(paths) => {
            let heading = format!("{what} is the name of several settings:\n");
            let lines: String = paths.iter().map(|path| format!("  {path}\n")).collect();
            print(
                &(heading + &lines),
                &json!({ "settings": paths }),
                args.format,
            )
        }
        Answer::None(near) => {
            let reasons = ReasonCode::ALL.iter().map(|reason| reason.as_str());
            let near = near.or_else(|| suggest::nearest(what, reasons).map(str::to_owned));
            let near = near.map(|near| format!("; did you mean `{near}`?"));
            let near = near.unwrap_or_else(|| {
                "; `mirror explain` lists the codes and reasons, `mirror explain routes` the settings of a route"
                    .to_owned()
            });
            text::fail(
                &format!("neither a code nor a reason nor a setting: {what}{near}"),
                Exit::No,
            )
        }
    }
}

fn print(for_people: &str, for_programs: &Value, format: OutputFormat) -> Exit {
    let json = format!("{for_programs:#}");
    match format {
        OutputFormat::Text => text::out(for_people),
        OutputFormat::Json => text::out(&json),
        OutputFormat::Yaml => text::out(&text::as_yaml(&json)),
    }
    Exit::Done
}

fn codes_text() -> String {
    let line = |code: &Code| vec![code.as_str().to_owned(), code.story().title.to_owned()];
    let rows: Vec<Vec<String>> = Code::ALL.iter().map(line).collect();
    let reason = |code: &ReasonCode| vec![code.as_str().to_owned(), code.story().title.to_owned()];
    let reasons: Vec<Vec<String>> = ReasonCode::ALL.iter().map(reason).collect();
    text::columns(&rows)
        + "\nReasons of `mirror status`:\n\n"
        + &text::columns(&reasons)
        + "\n`mirror explain E0105` tells the story of a code or a reason, `mirror explain routes.*.partitions` what a setting is for.\n"
}

fn codes_json() -> Value {
    let code = |code: &Code| json!({ "code": code.as_str(), "title": code.story().title });
    let reason =
        |code: &ReasonCode| json!({ "reason": code.as_str(), "title": code.story().title });
    json!({
        "codes": Code::ALL.iter().map(code).collect::<Vec<_>>(),
        "reasons": ReasonCode::ALL.iter().map(reason).collect::<Vec<_>>(),
    })
}

fn reason_text(reason: ReasonCode) -> String {
    let story = reason.story();
    let mut out = format!("{}: {}\n", reason.as_str(), story.title);
    for paragraph in story.paragraphs() {
        out += &format!("\n{}\n", text::wrap(paragraph));
    }
    out
}

fn reason_json(reason: ReasonCode) -> Value {
    let story = reason.story();
    json!({ "reason": reason.as_str(), "title": story.title, "text": story.text })
}

fn code_text(code: Code) -> String {
    let story = code.story();
    let severity = code.severity().as_str();
    let mut out = format!("{severity} {}: {}\n", code.as_str(), story.title);
    for paragraph in story.paragraphs() {
        out += &format!("\n{}\n", text::wrap(paragraph));
    }
    out + &story.examples_text()
}

fn code_json(code: Code) -> Value {
    let story = code.story();
    let files = |examples: &[Example]| {
        let file = |e: &Example| json!({ "file": e.file, "text": e.text });
        examples.iter().map(file).collect::<Vec<_>>()
    };
    json!({
        "code": code.as_str(),
        "severity": code.severity().as_str(),
        "title": story.title,
        "text": story.text,
        "wrong": files(&story.wrong),
        "right": files(&story.right),
    })
}

fn setting_text(setting: &Explanation) -> String {
    let default = match (&setting.default, setting.presence) {
        (Some(default), _) => flow(default),
        (None, Presence::Required) => "none: it must be there".to_owned(),
        (None, Presence::Optional) => "none".to_owned(),
    };
    let class = setting.class;
    let facts = [
        ("takes", setting.takes.clone()),
        ("default", default),
        ("reload", format!("{}: {}", class.as_str(), class.meaning())),
    ];
    let facts = facts.map(|(name, fact)| (name.to_owned(), fact));
    let mut out = format!(
        "{}\n\n{}\n\n{}",
        setting.path,
        text::wrap(&setting.about),
        rows(&facts)
    );
    for (heading, pairs) in [("words", &setting.words), ("keys", &setting.keys)] {
        if !pairs.is_empty() {
            out += &format!("\n{heading}:\n{}", rows(pairs));
        }
    }
    if !setting.examples.is_empty() {
        out += "\nexamples:\n";
        let name = setting.path.rsplit('.').next().unwrap_or_default();
        for example in setting.examples {
            out += &format!("  {name}: {example}\n");
        }
    }
    out
}

fn rows(pairs: &[(String, String)]) -> String {
    let row = |(name, about): &(String, String)| vec![format!("  {name}"), about.clone()];
    text::columns(&pairs.iter().map(row).collect::<Vec<_>>())
}

/// A value in one line, as it may be written in the file.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
