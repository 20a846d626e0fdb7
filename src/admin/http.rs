//! The HTTP interface: what is read over TCP and the socket, and what the socket may change, and TCP with
//! the token of `admin.write`.

use super::plan::{ConfigPage, PlanRequest};
use super::status::{Detail, Status, route_status};
use super::{Desk, metrics, ready};
use crate::config::secret::Secret;
use crate::config::spec::Name;
use crate::redact;
use crate::supervisor::event::Steered;
use crate::supervisor::journal::Happened;
use crate::supervisor::{Event, ReloadVerdict};
use axum::body::{Body, to_bytes};
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::borrow::Cow;
use tokio::sync::oneshot;

/// Serves both listeners until `stopped` resolves or its sender is gone.
pub(super) async fn serve(
    tcp: Option<std::net::TcpListener>,
    unix: std::os::unix::net::UnixListener,
    desk: Desk,
    stopped: oneshot::Receiver<()>,
) {
    if let Some(tcp) = tcp {
        match tokio::net::TcpListener::from_std(tcp) {
            Ok(tcp) => {
                let changing = changing(desk.clone());
                let with_token = from_fn_with_state(desk.clone(), with_token);
                let both = looking(desk.clone()).merge(changing.route_layer(with_token));
                tokio::spawn(async move { log_end(axum::serve(tcp, both).await) });
            }
            Err(error) => log_end(Err(error)),
        }
    }
    match tokio::net::UnixListener::from_std(unix) {
        Ok(unix) => {
            let changing = looking(desk.clone()).merge(changing(desk));
            tokio::spawn(async move { log_end(axum::serve(unix, changing).await) });
        }
        Err(error) => log_end(Err(error)),
    }
    let _ = stopped.await;
}

fn log_end(result: std::io::Result<()>) {
    if let Err(error) = result {
        tracing::error!(event = "admin_failed", %error, "the admin interface has ended");
    }
}

/// What may be read by anybody who reaches it.
pub(super) fn looking(desk: Desk) -> Router {
    Router::new()
        .route("/livez", get(|| async { "live\n" }))
        .route("/readyz", get(readyz))
        .route("/metrics", get(scrape))
        .route("/api/v1/status", get(status))
        .route("/api/v1/config", get(config))
        .route("/api/v1/events", get(events))
        .route("/api/v1/routes/{name}", get(route))
        .layer(map_response(clean))
        .with_state(desk)
}

/// What changes something, or makes the process read files.
pub(super) fn changing(desk: Desk) -> Router {
    Router::new()
        .route("/api/v1/plan", post(plan))
        .route("/api/v1/reload", post(reload))
        .route("/api/v1/routes/{name}/pause", post(pause))
        .route("/api/v1/routes/{name}/resume", post(resume))
        .layer(map_response(clean))
        .with_state(desk)
}

/// Lets a call through that carries the token of the configuration that runs.
async fn with_token(State(desk): State<Desk>, call: Request, next: Next) -> Response {
    match refusal(&desk, &call) {
        Some(refusal) => refusal,
        None => next.run(call).await,
    }
}

/// What is said to a call that may not change anything.
fn refusal(desk: &Desk, call: &Request) -> Option<Response> {
    let snapshot = desk.board.snapshot();
    let spec = snapshot.process.spec.as_deref();
    let Some(token) = spec.and_then(|spec| spec.admin.token.as_ref()) else {
        let words = "changing calls come over the Unix socket; `admin.write` lets them come here, with a token\n";
        return Some((StatusCode::FORBIDDEN, words).into_response());
    };
    let said = call.headers().get(header::AUTHORIZATION);
    let said = said.and_then(|said| said.to_str().ok()?.split_once(' '));
    let is_right = |(scheme, said): (&str, &str)| {
        scheme.eq_ignore_ascii_case("bearer") && is_same(said, token)
    };
    if said.is_some_and(is_right) {
        return None;
    }
    let words = "send the token of `admin.write` as `Authorization: Bearer TOKEN`\n";
    let how = [(header::WWW_AUTHENTICATE, "Bearer")];
    Some((StatusCode::UNAUTHORIZED, how, words).into_response())
}

/// As hashes: how long the comparison takes says nothing of the token.
fn is_same(said: &str, token: &Secret) -> bool {
    Sha256::digest(said) == Sha256::digest(token.reveal())
}

/// No answer holds a secret, whatever error it repeats.
async fn clean(answer: Response) -> Response {
    let (mut parts, body) = answer.into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let metrics = parts.headers.get(header::CONTENT_TYPE);
    let metrics = metrics.is_some_and(|kind| kind == metrics::CONTENT_TYPE);
    let starred = match std::str::from_utf8(&body) {
        Ok(text) if metrics => match redact::exposition(text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(clean) => Some(clean.into_bytes()),
        },
        _ => match redact::bytes(&body) {
            Cow::Borrowed(_) => None,
            Cow::Owned(clean) => Some(clean),
        },
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    // Mostly there is nothing to star out, and a page of a thousand routes is not copied for it.
    let clean = starred.map_or(body, Bytes::from);
    Response::from_parts(parts, Body::from(clean))
}

async fn readyz(State(desk): State<Desk>) -> Response {
    let missing = ready::missing(&desk.board.snapshot());
    if missing.is_empty() {
        return "ready\n".into_response();
    }
    let body = format!("not ready\n{}\n", missing.join("\n"));
    (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
}

async fn scrape(State(desk): State<Desk>) -> Response {
    match metrics::render(&desk.board) {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn status(State(desk): State<Desk>) -> Json<Status> {
    Json(Status::from(&*desk.board.snapshot()))
}

async fn route(State(desk): State<Desk>, Path(name): Path<String>) -> Response {
    let snapshot = desk.board.snapshot();
    let found = Name::new(&name).and_then(|name| snapshot.routes.get(&name));
    match found {
        Some(route) => Json(route_status(route, Detail::All)).into_response(),
        None => unknown_route(&name),
    }
}

fn unknown_route(name: &str) -> Response {
    (
        StatusCode::NOT_FOUND,
        format!("no route is called {name}\n"),
    )
        .into_response()
}

async fn config(State(desk): State<Desk>) -> Json<ConfigPage> {
    Json(ConfigPage::from(&*desk.board.snapshot()))
}

async fn events(State(desk): State<Desk>) -> Json<Vec<Happened>> {
    Json(desk.board.events())
}

async fn plan(State(desk): State<Desk>, Json(request): Json<PlanRequest>) -> Response {
    let planned = tokio::task::spawn_blocking(move || desk.plan(&request)).await;
    match planned {
        Ok(Ok(page)) => Json(page).into_response(),
        Ok(Err(refused)) => (StatusCode::CONFLICT, Json(refused)).into_response(),
        Err(_) => {
            let words = "the plan panicked; this is a bug in mirror\n";
            (StatusCode::INTERNAL_SERVER_ERROR, words).into_response()
        }
    }
}

async fn reload(State(desk): State<Desk>) -> Response {
    let (reply, verdict) = oneshot::channel();
    desk.events.send(Event::Reload { reply });
    let Ok(verdict) = verdict.await else {
        return (StatusCode::SERVICE_UNAVAILABLE, "the process is stopping\n").into_response();
    };
    let code = match &verdict {
        ReloadVerdict::Applied { .. } | ReloadVerdict::Unchanged { .. } => StatusCode::OK,
        ReloadVerdict::Rejected { .. } => StatusCode::CONFLICT,
    };
    (code, Json(verdict)).into_response()
}

async fn pause(State(desk): State<Desk>, Path(name): Path<String>) -> Response {
    steer(desk, name, |route, reply| Event::Pause { route, reply }).await
}

async fn resume(State(desk): State<Desk>, Path(name): Path<String>) -> Response {
    steer(desk, name, |route, reply| Event::Resume { route, reply }).await
}

async fn steer(
    desk: Desk,
    name: String,
    event: fn(Name, oneshot::Sender<Steered>) -> Event,
) -> Response {
    let Some(route) = Name::new(&name) else {
        return unknown_route(&name);
    };
    let (reply, answer) = oneshot::channel();
    desk.events.send(event(route, reply));
    match answer.await {
        Ok(Steered::Accepted) => (StatusCode::ACCEPTED, "under way\n").into_response(),
        Ok(Steered::Already) => (StatusCode::OK, "it is so already\n").into_response(),
        Ok(Steered::Unknown) => unknown_route(&name),
        Ok(Steered::Stopping) | Err(_) => {
            (StatusCode::SERVICE_UNAVAILABLE, "the process is stopping\n").into_response()
        }
    }
}
