//! Tokens for SASL/OAUTHBEARER (KIP-255, KIP-768), by librdkafka's own properties: from an endpoint, for a client's credentials,
//! or unsecured ones that say of themselves who we are.

use super::security::Unsuited;
use crate::config::secret::Secret;
use crate::config::spec::ClusterSpec;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Mutex;
use tokio::time::Instant;

const PREFIX: &str = "sasl.oauthbearer.";
const UNSECURED: &str = "enable.sasl.oauthbearer.unsecure.jwt";
/// How long an endpoint may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes of its answer.
const ANSWER: u64 = 1 << 20;
/// How long a token is used that does not say how long it may be.
const UNSAID: Duration = Duration::from_secs(300);
/// How long an unsecured token lasts, as librdkafka's.
const LIFE: u64 = 3600;

/// Tokens of one cluster, each used until a fifth of its life is left.
#[derive(Debug)]
pub struct Tokens {
    issuer: Issuer,
    /// Names and values that are said beside the token (KIP-342).
    extensions: Vec<(String, String)>,
    current: Mutex<Option<Token>>,
}

/// Where tokens come from.
#[derive(Clone, Debug, PartialEq)]
enum Issuer {
    /// OAuth 2.0, grant type `client_credentials`.
    Endpoint {
        url: String,
        client: String,
        secret: Secret,
        scope: Option<String>,
    },
    /// Nobody signs it: for tests.
    Unsecured {
        claims: Map<String, Value>,
        life: u64,
    },
}

#[derive(Clone, Debug)]
struct Token {
    text: Secret,
    renew: Instant,
}

impl PartialEq for Tokens {
    /// The same settings; what was fetched by them does not count.
    fn eq(&self, other: &Self) -> bool {
        self.issuer == other.issuer && self.extensions == other.extensions
    }
}

impl Tokens {
    /// By the properties of a cluster.
    ///
    /// # Errors
    /// One that only librdkafka follows, or one that is missing.
    pub fn of(cluster: &ClusterSpec) -> Result<Self, Unsuited> {
        let said = Said(cluster);
        said.only_what_is_known()?;
        let mut extensions = pairs(said.text("extensions").unwrap_or_default(), ',')
            .ok_or_else(|| Unsuited::Property(format!("{PREFIX}extensions")))?;
        let issuer = match said.text("method").unwrap_or("oidc") {
            "oidc" => said.endpoint()?,
            _ if said.is_unsecured() => {
                let (issuer, more) = said.unsecured()?;
                extensions.extend(more);
                issuer
            }
            _ => return Err(Unsuited::Property(format!("{PREFIX}method"))),
        };
        Ok(Self {
            issuer,
            extensions,
            current: Mutex::default(),
        })
    }

    /// What is said to a broker: the token and the extensions, in the words of RFC 7628.
    ///
    /// # Errors
    /// The endpoint gives none, in words.
    pub async fn message(&self) -> Result<Vec<u8>, String> {
        let token = self.token().await?;
        let mut message = format!("n,,\u{1}auth=Bearer {}", token.reveal());
        for (name, value) in &self.extensions {
            message.push_str(&format!("\u{1}{name}={value}"));
        }
        message.push_str("\u{1}\u{1}");
        Ok(message.into_bytes())
    }

    /// One connection asks for all that wait.
    async fn token(&self) -> Result<Secret, String> {
        let mut current = self.current.lock().await;
        if let Some(token) = current.as_ref().filter(|t| t.renew > Instant::now()) {
            return Ok(token.text.clone());
        }
        let issuer = self.issuer.clone();
        let issued = tokio::task::spawn_blocking(move || issuer.issue()).await;
        let (text, life) = issued.map_err(|error| error.to_string())??;
        let token = current.insert(Token {
            text,
            renew: Instant::now() + life.mul_f64(0.8),
        });
        Ok(token.text.clone())
    }
}

impl Issuer {
    /// A token, and how long it lasts.
    fn issue(&self) -> Result<(Secret, Duration), String> {
        match self {
            Issuer::Endpoint {
                url,
                client,
                secret,
                scope,
            } => fetch(url, client, secret, scope.as_deref()),
            Issuer::Unsecured { claims, life } => {
                let text = unsecured(claims, *life)?;
                Ok((Secret::new(&text), Duration::from_secs(*life)))
            }
        }
    }
}

fn fetch(
    url: &str,
    client: &str,
    secret: &Secret,
    scope: Option<&str>,
) -> Result<(Secret, Duration), String> {
    let failed = |error: ureq::Error| format!("token endpoint {url}: {error}");
    let login = STANDARD.encode(format!("{client}:{}", secret.reveal()));
    let mut form = vec![("grant_type", "client_credentials")];
    form.extend(scope.map(|scope| ("scope", scope)));
    let asked = agent()
        .post(url)
        .header("Authorization", format!("Basic {login}"))
        .header("Accept", "application/json")
        .send_form(form);
    let mut answer = asked.map_err(failed)?;
    let status = answer.status();
    let body = answer.body_mut().with_config().limit(ANSWER);
    let body = body.read_to_string().map_err(failed)?;
    let answer: Value = serde_json::from_str(&body).unwrap_or_default();
    let Some(token) = answer["access_token"].as_str() else {
        // Its words for the fault; nothing else of an answer is told, since a token may be in it.
        let words = answer["error_description"].as_str();
        let words = words.or(answer["error"].as_str());
        let words = words.unwrap_or("no access_token in its answer");
        return Err(format!("token endpoint {url}: {status}: {words}"));
    };
    let stated = answer["expires_in"].as_u64().map(Duration::from_secs);
    let life = life(token).or(stated).unwrap_or(UNSAID);
    Ok((Secret::new(token), life))
}

fn agent() -> ureq::Agent {
    let found = rustls_native_certs::load_native_certs();
    let roots: Vec<_> = found
        .certs
        .iter()
        .map(|cert| ureq::tls::Certificate::from_der(cert).to_owned())
        .collect();
    let provider = tokio_rustls::rustls::crypto::ring::default_provider();
    let tls = ureq::tls::TlsConfig::builder()
        .unversioned_rustls_crypto_provider(std::sync::Arc::new(provider))
        .root_certs(ureq::tls::RootCerts::new_with_certs(&roots))
        .build();
    let config = ureq::Agent::config_builder()
        .timeout_global(Some(PATIENCE))
        .http_status_as_error(false)
        // Credentials go where they were meant to go.
        .max_redirects(0)
        .tls_config(tls)
        .build();
    ureq::Agent::new_with_config(config)
}

/// How long a token says that it lasts.
fn life(token: &str) -> Option<Duration> {
    let claims = token.split('.').nth(1)?;
    let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    let end = Duration::from_secs(claims["exp"].as_u64()?);
    Some(end.saturating_sub(since_epoch()))
}

fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

fn unsecured(claims: &Map<String, Value>, life: u64) -> Result<String, String> {
    let now = since_epoch().as_secs();
    let mut claims = claims.clone();
    claims.insert("iat".to_owned(), json!(now));
    claims.insert("exp".to_owned(), json!(now.saturating_add(life)));
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let (head, body) = (
        part(&json!({ "alg": "none" })),
        part(&Value::Object(claims)),
    );
    Ok(format!("{head}.{body}."))
}

/// What a cluster's properties say.
struct Said<'a>(&'a ClusterSpec);

impl<'a> Said<'a> {
    fn text(&self, name: &str) -> Option<&'a str> {
        let value = self.0.properties.get(&format!("{PREFIX}{name}"))?;
        Some(value.reveal().trim())
    }

    fn needed(&self, names: [&str; 2]) -> Result<&'a str, Unsuited> {
        let said = names.iter().find_map(|name| self.text(name));
        said.ok_or(Unsuited::Incomplete("OAUTHBEARER"))
    }

    fn is_unsecured(&self) -> bool {
        let said = self.0.properties.get(UNSECURED);
        said.is_some_and(|said| said.reveal().trim() == "true")
    }

    fn only_what_is_known(&self) -> Result<(), Unsuited> {
        const KNOWN: [&str; 9] = [
            "method",
            "config",
            "extensions",
            "scope",
            "token.endpoint.url",
            "client.id",
            "client.secret",
            "client.credentials.client.id",
            "client.credentials.client.secret",
        ];
        let of_ours = self.0.properties.iter().filter_map(|(key, value)| {
            let name = key.strip_prefix(PREFIX)?;
            let is_default = name == "grant.type" && value.reveal() == "client_credentials";
            Some((key, KNOWN.contains(&name) || is_default))
        });
        match of_ours.into_iter().find(|(_, is_known)| !is_known) {
            Some((key, _)) => Err(Unsuited::Property(key.clone())),
            None => Ok(()),
        }
    }

    fn endpoint(&self) -> Result<Issuer, Unsuited> {
        let secret = ["client.secret", "client.credentials.client.secret"];
        Ok(Issuer::Endpoint {
            url: self.needed(["token.endpoint.url"; 2])?.to_owned(),
            client: self
                .needed(["client.id", "client.credentials.client.id"])?
                .to_owned(),
            secret: Secret::new(self.needed(secret)?),
            scope: self.text("scope").map(str::to_owned),
        })
    }

    /// The words of librdkafka's `sasl.oauthbearer.config`.
    fn unsecured(&self) -> Result<(Issuer, Vec<(String, String)>), Unsuited> {
        let unsuited = || Unsuited::Property(format!("{PREFIX}config"));
        let words = pairs(self.text("config").unwrap_or_default(), ' ').ok_or_else(unsuited)?;
        let (mut principal, mut principal_claim) = (None, "sub".to_owned());
        let (mut scope, mut scope_claim) = (None, "scope".to_owned());
        let (mut life, mut extensions) = (LIFE, Vec::new());
        for (name, value) in words {
            match name.as_str() {
                "principal" => principal = Some(value),
                "principalClaimName" => principal_claim = value,
                "scope" => scope = Some(value),
                "scopeClaimName" => scope_claim = value,
                "lifeSeconds" => life = value.parse().map_err(|_| unsuited())?,
                name => {
                    let name = name.strip_prefix("extension_").ok_or_else(unsuited)?;
                    extensions.push((name.to_owned(), value));
                }
            }
        }
        let mut claims = Map::new();
        let principal = principal.ok_or(Unsuited::Incomplete("OAUTHBEARER"))?;
        claims.insert(principal_claim, json!(principal));
        if let Some(scope) = scope {
            claims.insert(scope_claim, json!(scope.split(',').collect::<Vec<_>>()));
        }
        Ok((Issuer::Unsecured { claims, life }, extensions))
    }
}

/// `name=value` in a row.
fn pairs(text: &str, between: char) -> Option<Vec<(String, String)>> {
    let parts = text.split(between).map(str::trim);
    let parts = parts.filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (name, value) = part.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    parts.map(pair).collect()
}

#[cfg(test)]
mod tests;
