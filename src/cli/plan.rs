//! `mirror plan`: what a file would change about the running process, or about another file.

use super::{
    AskArgs, ColorChoice, LoadRequest, NoDataLoss, OutputFormat, PlanArgs, Program, answers, ask,
    files, text,
};
use crate::admin::client::Method;
use crate::admin::plan::{NoPlan, PlanPage, PlanRequest};
use crate::config::spec::Spec;
use crate::exit::Exit;
use crate::online::{self, Ahead};
use crate::plan::{Plan, Report};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub(super) fn plan(
    args: &PlanArgs,
    config: Vec<PathBuf>,
    color: ColorChoice,
    program: &Program,
) -> Exit {
    let shown = match args.against.is_empty() {
        true => against_process(args, &config, color, program).and_then(|page| {
            let text = process_text(&page, color);
            show(args, &page, &text).map(|()| (page.plan, page.online))
        }),
        false => against_file(args, config, color, program).and_then(|page| {
            let mut text = page.plan.text(text::colour_of_stdout(color));
            text += &online_text(page.online.as_ref());
            show(args, &page, &text).map(|()| (page.plan, page.online))
        }),
    };
    match shown {
        Ok((plan, online)) => exit_of(&plan, online.as_ref(), args),
        Err(exit) => exit,
    }
}

/// The difference of two files.
#[derive(Serialize)]
struct FilesPage {
    #[serde(flatten)]
    plan: Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    online: Option<Ahead>,
}

fn exit_of(plan: &Report, online: Option<&Ahead>, args: &PlanArgs) -> Exit {
    if plan.is_applicable() && online.is_some_and(|ahead| !ahead.complete) {
        return Exit::Unreachable;
    }
    match (plan.is_applicable(), plan.is_empty(), args.exit_code) {
        (false, _, _) => Exit::No,
        (true, false, true) => Exit::Changes,
        (true, _, _) => Exit::Done,
    }
}

fn show(args: &PlanArgs, value: &impl Serialize, words: &str) -> Result<(), Exit> {
    let bug = |error: String| text::fail(&error, Exit::Bug);
    match args.ask.format {
        OutputFormat::Text => text::out(words),
        OutputFormat::Json => {
            text::out(&serde_json::to_string_pretty(value).map_err(|e| bug(e.to_string()))?);
        }
        OutputFormat::Yaml => {
            text::out(&serde_yaml::to_string(value).map_err(|e| bug(e.to_string()))?);
        }
    }
    Ok(())
}

/// Asks the process itself: it knows what it runs and which environment it has, and the answer is
/// what a reload would apply.
fn against_process(
    args: &PlanArgs,
    config: &[PathBuf],
    color: ColorChoice,
    program: &Program,
) -> Result<PlanPage, Exit> {
    // Beside a FILE, `-c` says only which process is meant.
    let named = match args.files.is_empty() {
        true => config.to_vec(),
        false => args.files.clone(),
    };
    let files = match named.is_empty() {
        true => Vec::new(),
        false => files::find(named.clone(), Vec::new())
            .map_err(|missing| text::fail(&missing, Exit::No))?,
    };
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    let request = PlanRequest {
        files: files.into_iter().map(absolute).collect(),
        question_timeout: args.online.then_some(args.question_timeout),
    };
    let body =
        serde_json::to_string(&request).map_err(|e| text::fail(&e.to_string(), Exit::Bug))?;
    let asked = if config.is_empty() { &named } else { config };
    let answer = ask::ask(
        &patient(args),
        asked,
        program,
        Method::PostJson(&body),
        "/api/v1/plan",
    );
    // Nobody to compare with is no reason to keep a mistake to ourselves.
    let answer = answer.map_err(|unasked| {
        let broken = match named.is_empty() {
            true => None,
            false => load(request.files, color, program).err(),
        };
        if broken.is_none() && unasked == Exit::Unreachable {
            text::err("to compare with a file instead of a process: --against FILE");
        }
        broken.unwrap_or(unasked)
    })?;
    if let Ok(page) = serde_json::from_str::<PlanPage>(&answer.body) {
        return Ok(page);
    }
    match serde_json::from_str::<NoPlan>(&answer.body) {
        Ok(refused) => {
            text::err(&refused.error);
            Err(Exit::No)
        }
        Err(_) => Err(text::fail(answer.body.trim(), Exit::Unreachable)),
    }
}

/// With questions to clusters the answer takes as long as they may, beside its own time.
fn patient(args: &PlanArgs) -> AskArgs {
    let questions = match args.online {
        true => online::longest(Duration::from_secs(args.question_timeout)),
        false => Duration::ZERO,
    };
    AskArgs {
        timeout: args.ask.timeout.saturating_add(questions.as_secs()),
        ..args.ask.clone()
    }
}

fn process_text(page: &PlanPage, color: ColorChoice) -> String {
    let short = |hash: &str| hash.get(..12).unwrap_or(hash).to_owned();
    let mut words = format!(
        "against generation {} ({}), with {}\n",
        page.generation,
        short(&page.running_hash),
        short(&page.wanted_hash)
    );
    words += &page.plan.text(text::colour_of_stdout(color));
    for route in &page.paused {
        words += &format!("\nroute {route} is paused by hand; its changes hold when it is resumed");
    }
    words + &online_text(page.online.as_ref())
}

fn online_text(online: Option<&Ahead>) -> String {
    let touched = online.filter(|ahead| !ahead.flows.is_empty());
    touched.map_or_else(String::new, |ahead| {
        format!("\n\n{}", answers::lines(ahead))
    })
}

fn against_file(
    args: &PlanArgs,
    config: Vec<PathBuf>,
    color: ColorChoice,
    program: &Program,
) -> Result<FilesPage, Exit> {
    let found = files::find(args.files.clone(), config);
    let wanted = found.map_err(|missing| text::fail(&missing, Exit::No))?;
    let wanted = load(wanted, color, program)?;
    let against = load(args.against.clone(), color, program)?;
    let plan = Report::from(&Plan::between(Some(&against), &wanted));
    let patience = args
        .online
        .then(|| Duration::from_secs(args.question_timeout));
    Ok(FilesPage {
        online: patience.map(|patience| Ahead::ask(&wanted, &plan, patience)),
        plan,
    })
}

fn load(files: Vec<PathBuf>, color: ColorChoice, program: &Program) -> Result<Arc<Spec>, Exit> {
    let request = LoadRequest {
        files,
        variables: program.variables.clone(),
        no_data_loss: NoDataLoss::AsWritten,
        colour: text::colour_of_stderr(color),
        running: None,
    };
    match (program.load)(&request) {
        Ok(config) => Ok(config.spec),
        Err(rejected) => {
            text::err(rejected.words());
            Err(Exit::No)
        }
    }
}
