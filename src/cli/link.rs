//! Where the engine, the loader, `check` and the schema are plugged into the commands.

use super::{CheckFormat, CheckRequest, LoadRequest, NoDataLoss, Program, check, text};
use crate::cli::program::{Printed, TestRequest, TryRequest, Warnings};
use crate::config::interpolate::Variables;
use crate::config::render::{self, Colour};
use crate::config::{self, LoadOptions, Loaded, loss};
use crate::exit::Exit;
use crate::flow::{self, Environment, FlowSpec};
use crate::logging;
use crate::supervisor::{LoadedConfig, OnExit, RejectedConfig};
use std::sync::Arc;

/// The program as it is shipped.
pub fn program() -> Program {
    embedding(Environment::default())
}

/// The program with handlers and listeners that an embedding program brings.
pub fn embedding(environment: Environment) -> Program {
    let (for_flows, for_load) = (environment.clone(), environment.clone());
    let (for_check, for_test) = (environment.clone(), environment.clone());
    let for_try = environment;
    Program {
        flows: Arc::new(move |spec: FlowSpec, on_exit: OnExit| {
            flow::spawn(spec, &for_flows, on_exit)
        }),
        load: Arc::new(move |request: &LoadRequest| load(request, &for_load)),
        check: Arc::new(move |request: &CheckRequest| check_files(request, &for_check)),
        test: Arc::new(move |request: &TestRequest| {
            let load = options(&for_test, &request.variables);
            super::test::run(request, &load, colour(request.colour))
        }),
        try_route: Arc::new(move |request: &TryRequest| {
            let load = options(&for_try, &request.variables);
            super::try_route::run(request, &load, colour(request.colour))
        }),
        schema: || config::schema::text(),
        variables: Variables::default(),
    }
}

fn options<'a>(environment: &'a Environment, variables: &'a Variables) -> LoadOptions<'a> {
    LoadOptions {
        environment: &config::process_environment,
        variables,
        registry: &environment.handlers,
        listeners: &environment.listeners,
        running: None,
    }
}

fn load(request: &LoadRequest, environment: &Environment) -> Result<LoadedConfig, RejectedConfig> {
    let colour = colour(request.colour);
    let options = LoadOptions {
        running: request.running.as_deref(),
        ..options(environment, &request.variables)
    };
    let loaded = config::load(&request.files, &options).map_err(|rejected| RejectedConfig {
        first_error: rejected.first_error(),
        rendered: rejected.render(colour),
        hash: Some(rejected.hash.clone()),
        files: rejected.files.clone(),
    })?;
    if request.no_data_loss == NoDataLoss::Required {
        refuse_losses(&loaded, colour)?;
    }
    Ok(LoadedConfig {
        warnings: loaded.render(colour),
        hash: loaded.hash,
        files: loaded.files,
        spec: Arc::new(loaded.spec),
    })
}

/// `--no-data-loss`: what gives up on a record on purpose is refused.
fn refuse_losses(loaded: &Loaded, colour: Colour) -> Result<(), RejectedConfig> {
    let losses = loss::no_data_loss(loaded);
    let Some(first) = losses.first() else {
        return Ok(());
    };
    Err(RejectedConfig {
        first_error: first.one_line(),
        rendered: render::render(&losses, &loaded.document.sources, colour),
        hash: Some(loaded.hash.clone()),
        files: loaded.files.clone(),
    })
}

fn check_files(request: &CheckRequest, environment: &Environment) -> Exit {
    let format = match request.format {
        CheckFormat::Text => match request.printed {
            Printed::Routes => check::Format::Text(colour(request.colour)),
            Printed::Effective => check::Format::Effective(colour(request.colour)),
        },
        CheckFormat::Json | CheckFormat::Yaml => check::Format::Json,
        CheckFormat::Sarif => check::Format::Sarif,
        CheckFormat::Github => check::Format::Github,
    };
    let options = check::CheckOptions {
        load: options(environment, &request.variables),
        format,
        warnings: match request.warnings {
            Warnings::Allow => check::Warnings::Allow,
            Warnings::Deny => check::Warnings::Deny,
        },
        demand: match request.no_data_loss {
            NoDataLoss::Required => check::Demand::NoDataLoss,
            NoDataLoss::AsWritten => check::Demand::Sound,
        },
        ask: request.ask,
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let outcome = check::run(&request.files, &options, &mut out, &mut err);
    let (out, err) = (String::from_utf8_lossy(&out), String::from_utf8_lossy(&err));
    if !err.is_empty() {
        text::err(err.trim_end());
    }
    match request.format {
        CheckFormat::Yaml => text::out(&text::as_yaml(&out)),
        _ if out.is_empty() => {}
        _ => text::out(&out),
    }
    if request.no_data_loss == NoDataLoss::Required {
        text::show_enforced();
    }
    match outcome {
        Ok(check::Outcome::Ok) => Exit::Done,
        Ok(check::Outcome::Invalid) => Exit::No,
        Ok(check::Outcome::Unanswered) => Exit::Unreachable,
        Ok(check::Outcome::WarningsDenied) => Exit::Warnings,
        Err(error) => text::fail(&format!("the result cannot be written: {error}"), Exit::No),
    }
}

fn colour(of: logging::Colour) -> Colour {
    match of {
        logging::Colour::On => Colour::Always,
        logging::Colour::Off => Colour::Never,
    }
}
