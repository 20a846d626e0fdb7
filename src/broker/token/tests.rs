use super::*;
use crate::config::spec::{Access, DataPlane, Name};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

fn cluster(properties: &[(&str, &str)]) -> ClusterSpec {
    let properties = properties.iter();
    let properties = properties.map(|(name, value)| ((*name).to_owned(), Secret::new(*value)));
    ClusterSpec {
        name: Name::new("lisbon").expect("a name"),
        bootstrap_servers: vec!["127.0.0.1:9092".into()],
        properties: properties.collect(),
        tls: None,
        sasl: None,
        access: Access::ReadWrite,
        expect_cluster_id: None,
        data_plane: DataPlane::Auto,
    }
}

/// An endpoint that gives these answers, one after the other, and says what it was asked.
fn endpoint(answers: Vec<String>) -> (String, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!(
        "http://{}/token",
        listener.local_addr().expect("an address")
    );
    let asked = std::thread::spawn(move || {
        let serve = |answer: String| {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut heard = Vec::new();
            let mut some = [0; 4096];
            while !is_whole(&heard) {
                let count = stream.read(&mut some).expect("a request");
                heard.extend_from_slice(&some[..count]);
            }
            stream.write_all(answer.as_bytes()).expect("an answer");
            String::from_utf8(heard).expect("a text")
        };
        answers.into_iter().map(serve).collect()
    });
    (url, asked)
}

fn answer(status: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
}

fn is_whole(heard: &[u8]) -> bool {
    let text = String::from_utf8_lossy(heard).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.split("content-length: ").nth(1);
    let length = length.and_then(|rest| rest.split("\r\n").next());
    let length = length.and_then(|length| length.parse().ok());
    length.map_or(body.ends_with("0\r\n\r\n"), |length: usize| {
        body.len() >= length
    })
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(work)
}

fn of_endpoint(url: &str) -> Arc<Tokens> {
    let tokens = Tokens::of(&cluster(&[
        ("sasl.oauthbearer.token.endpoint.url", url),
        ("sasl.oauthbearer.client.id", "alice"),
        ("sasl.oauthbearer.client.secret", "a secret"),
        ("sasl.oauthbearer.scope", "copy all"),
        (
            "sasl.oauthbearer.extensions",
            "logicalCluster=lkc-1,pool=p-2",
        ),
    ]));
    Arc::new(tokens.expect("tokens"))
}

#[test]
fn a_token_is_fetched_once_for_as_long_as_it_lasts() {
    let body = answer("200 OK", r#"{"access_token":"abc","expires_in":100}"#);
    let (url, asked) = endpoint(vec![body]);
    let tokens = of_endpoint(&url);
    let twice = run(async {
        let (one, other) = tokio::join!(tokens.message(), tokens.message());
        [one.expect("a token"), other.expect("a token")]
    });
    let message = b"n,,\x01auth=Bearer abc\x01logicalCluster=lkc-1\x01pool=p-2\x01\x01";
    assert_eq!(twice, [message.to_vec(), message.to_vec()]);
    let asked = asked.join().expect("it served").remove(0);
    let login = STANDARD.encode("alice:a secret");
    assert!(asked.contains(&format!("Basic {login}")), "{asked}");
    assert!(
        asked.contains("grant_type=client_credentials&scope=copy"),
        "{asked}"
    );
}

#[test]
fn one_that_is_over_is_fetched_anew() {
    let body = answer("200 OK", r#"{"access_token":"abc","expires_in":0}"#);
    let (url, asked) = endpoint(vec![body.clone(), body]);
    let tokens = of_endpoint(&url);
    for _ in 0..2 {
        run(tokens.message()).expect("a token");
    }
    assert_eq!(asked.join().expect("it served").len(), 2);
}

#[test]
fn an_endpoint_that_refuses_is_quoted_without_what_may_be_secret() {
    let body = r#"{"error":"invalid_client","hint":"a secret was not right"}"#;
    let refusal = answer("401 Unauthorized", body);
    let (url, _asked) = endpoint(vec![refusal]);
    let fault = run(of_endpoint(&url).message()).expect_err("refused");
    assert!(
        fault.contains("401") && fault.contains("invalid_client"),
        "{fault}"
    );
    assert!(!fault.contains("a secret"), "{fault}");
}

#[test]
fn an_unsecured_token_says_who_we_are() {
    let tokens = Tokens::of(&cluster(&[
        ("sasl.oauthbearer.method", "default"),
        (UNSECURED, "true"),
        (
            "sasl.oauthbearer.config",
            "principal=alice scope=a,b lifeSeconds=60 extension_pool=p-2",
        ),
    ]));
    let message = run(tokens.expect("tokens").message()).expect("a token");
    let message = String::from_utf8(message).expect("a text");
    let token = message.split("Bearer ").nth(1).expect("a token");
    let (token, rest) = token.split_once('\u{1}').expect("more");
    assert_eq!(rest, "pool=p-2\u{1}\u{1}");
    let claims = token.split('.').nth(1).expect("claims");
    let claims = URL_SAFE_NO_PAD.decode(claims).expect("base64");
    let claims: Value = serde_json::from_slice(&claims).expect("claims");
    assert_eq!(claims["sub"], "alice");
    assert_eq!(claims["scope"], json!(["a", "b"]));
    let lasts = claims["exp"].as_u64().zip(claims["iat"].as_u64());
    assert!(lasts.is_some_and(|(end, begin)| end - begin == 60));
    let left = life(token).expect("a life");
    assert!(left > Duration::from_secs(30) && left <= Duration::from_secs(60));
}

#[test]
fn what_only_librdkafka_follows_is_left_to_it() {
    let property = |name: &str| Err(Unsuited::Property(name.to_owned()));
    let of = |properties: &[(&str, &str)]| Tokens::of(&cluster(properties)).map(drop);
    let assertion = "sasl.oauthbearer.assertion.file";
    assert_eq!(of(&[(assertion, "/token")]), property(assertion));
    let grant = "sasl.oauthbearer.grant.type";
    assert_eq!(
        of(&[(grant, "urn:ietf:params:oauth:grant-type:jwt-bearer")]),
        property(grant)
    );
    assert_eq!(
        of(&[("sasl.oauthbearer.method", "default")]),
        property("sasl.oauthbearer.method")
    );
    assert_eq!(of(&[]), Err(Unsuited::Incomplete("OAUTHBEARER")));
    let config = "sasl.oauthbearer.config";
    let strange = [
        ("sasl.oauthbearer.method", "default"),
        (UNSECURED, "true"),
        (config, "principal=a colour=red"),
    ];
    assert_eq!(of(&strange), property(config));
}
