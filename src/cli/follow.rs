//! `mirror verify --follow`: the continuous audit, with a line for each round and metrics.

use super::{OutputFormat, VerifyArgs, text};
use crate::admin::metrics::CONTENT_TYPE;
use crate::exit::Exit;
use crate::verify::audit::{Audit, Round, Verdict};
use crate::verify::compare::Sum;
use crate::verify::ledger::Ledger;
use crate::verify::report::{differing, line, tally_json, told_json};
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;
use std::io;
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What reaches the loop.
enum Heard {
    Round(Box<Entry>),
    Stop,
}

/// A round of one audit.
struct Entry {
    route: String,
    target: String,
    at: Duration,
    round: Round,
}

pub(super) fn follow(audits: Vec<Audit>, args: &VerifyArgs) -> Exit {
    let ledger = Ledger::default();
    for audit in &audits {
        ledger.open(audit.route().as_str(), audit.target().as_str());
    }
    let (heard, inbox) = channel();
    if let Err(error) = attend(args, &ledger, heard.clone()) {
        return text::fail(&error, Exit::No);
    }
    let every = args.every;
    let working = std::thread::Builder::new()
        .name("mirror-audit".into())
        .spawn(move || go_round(audits, every, &heard));
    match working {
        Ok(_) => listen(&inbox, &ledger, args.format),
        Err(error) => text::fail(&format!("no thread for the audit: {error}"), Exit::No),
    }
}

/// Takes each round as it comes, until a signal. An audit holds nothing that has to be let go in order, so it ends at
/// once.
fn listen(inbox: &Receiver<Heard>, ledger: &Ledger, format: OutputFormat) -> Exit {
    let mut exit = Exit::Done;
    while let Ok(Heard::Round(entry)) = inbox.recv() {
        if entry.round.verdict() == Verdict::Different {
            exit = Exit::No;
        }
        ledger.enter(&entry.route, &entry.target, entry.at, &entry.round);
        match format {
            OutputFormat::Text => text::out(&words(&entry)),
            OutputFormat::Json => text::out(&json(&entry).to_string()),
            OutputFormat::Yaml => {
                text::out(&format!(
                    "---\n{}",
                    text::as_yaml(&json(&entry).to_string())
                ));
            }
        }
    }
    exit
}

/// A round of every audit, and then the next at its time; one that takes longer delays it.
fn go_round(mut audits: Vec<Audit>, every: Duration, heard: &Sender<Heard>) {
    loop {
        let next = Instant::now() + every;
        for audit in &mut audits {
            let round = audit.round();
            let entry = Entry {
                route: audit.route().to_string(),
                target: audit.target().to_string(),
                at: SystemTime::now()
                    .duration_since(UNIX_EPOCH)
                    .unwrap_or_default(),
                round,
            };
            if heard.send(Heard::Round(Box::new(entry))).is_err() {
                return;
            }
        }
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// Serves metrics where that is wanted, and waits for signals.
fn attend(args: &VerifyArgs, ledger: &Ledger, heard: Sender<Heard>) -> Result<(), String> {
    let listener = args
        .listen
        .map(|at| bind(at).map_err(|error| format!("--listen {at}: {error}")))
        .transpose()?;
    if let Some(at) = listener.as_ref().and_then(|l| l.local_addr().ok()) {
        text::err(&format!("metrics at http://{at}/metrics"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let signals = {
        let _inside = runtime.enter();
        [SignalKind::terminate(), SignalKind::interrupt()]
            .into_iter()
            .map(signal)
            .collect::<io::Result<Vec<Signal>>>()
            .map_err(|error| error.to_string())?
    };
    let ledger = ledger.clone();
    std::thread::Builder::new()
        .name("mirror-admin".into())
        .spawn(move || runtime.block_on(serve(listener, ledger, signals, heard)))
        .map(drop)
        .map_err(|error| error.to_string())
}

fn bind(at: std::net::SocketAddr) -> io::Result<TcpListener> {
    let listener = TcpListener::bind(at)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

async fn serve(
    listener: Option<TcpListener>,
    ledger: Ledger,
    signals: Vec<Signal>,
    heard: Sender<Heard>,
) {
    if let Some(listener) = listener.and_then(|l| tokio::net::TcpListener::from_std(l).ok()) {
        let scrape = move || async move { scrape(&ledger) };
        let pages = Router::new()
            .route("/livez", get(|| async { "live\n" }))
            .route("/metrics", get(scrape));
        tokio::spawn(async move { axum::serve(listener, pages).await });
    }
    let waiting = signals.into_iter().map(|mut signal| {
        let heard = heard.clone();
        tokio::spawn(async move {
            signal.recv().await;
            let _ = heard.send(Heard::Stop);
        })
    });
    for waiting in waiting.collect::<Vec<_>>() {
        let _ = waiting.await;
    }
}

fn scrape(ledger: &Ledger) -> Response {
    match ledger.render() {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

fn time(at: Duration) -> String {
    let millis = i64::try_from(at.as_millis()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(millis)
        .map(|at| format!("{at:.0}"))
        .unwrap_or_default()
}

fn words(entry: &Entry) -> String {
    let Round {
        tally,
        ends,
        differences,
        unasked,
    } = &entry.round;
    let sum = |sum: &Sum| format!("{} {:016x}", sum.records, sum.hash);
    let mut words = format!(
        "{} {} -> {}: {:<9}  source {}  target {}",
        time(entry.at),
        entry.route,
        entry.target,
        entry.round.verdict().as_str(),
        sum(&ends.source),
        sum(&ends.target)
    );
    if tally.repeated > 0 {
        words += &format!("  repeated {}", tally.repeated);
    }
    if tally.differences() > 0 {
        words += &format!("  {}", differing(tally));
    }
    if let Some(unasked) = unasked {
        words += &format!("\n  not all could be compared: cluster {unasked}");
    }
    for difference in differences {
        words += &format!("\n  {}", line(difference, &entry.target));
    }
    words
}

fn json(entry: &Entry) -> serde_json::Value {
    let end = |sum: &Sum| json!({ "records": sum.records, "hash": format!("{:016x}", sum.hash) });
    let round = &entry.round;
    let mut object = tally_json(&round.tally);
    for (name, value) in [
        ("at", json!(time(entry.at))),
        ("route", json!(entry.route)),
        ("target", json!(entry.target)),
        ("verdict", json!(round.verdict().as_str())),
        ("source_end", end(&round.ends.source)),
        ("target_end", end(&round.ends.target)),
        (
            "differences",
            round.differences.iter().map(told_json).collect(),
        ),
        (
            "unasked",
            json!(round.unasked.as_ref().map(ToString::to_string)),
        ),
    ] {
        object[name] = value;
    }
    object
}
