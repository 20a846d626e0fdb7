//! Connections to brokers that are played.

use super::*;
use crate::broker::message::api_versions::all_of_ours;
use crate::broker::message::metadata::{ClusterMap, Metadata};
use crate::broker::message::producer_id::InitProducerId;
use tokio::net::TcpListener;

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(50);

fn manner() -> Manner {
    Manner {
        security: Arc::new(Security {
            tls: None,
            sasl: None,
        }),
        client: "mirror".into(),
        patience: LONG,
    }
}

/// A request as a broker reads it: which message, and its correlation.
async fn heard(stream: &mut TcpStream) -> (i16, i32) {
    let length = stream.read_u32().await.expect("a length");
    let mut frame = vec![0; length as usize];
    stream.read_exact(&mut frame).await.expect("a frame");
    let key = i16::from_be_bytes([frame[0], frame[1]]);
    let correlation = i32::from_be_bytes(frame[4..8].try_into().expect("four bytes"));
    (key, correlation)
}

async fn say(stream: &mut TcpStream, correlation: i32, body: &[u8]) {
    let length = u32::try_from(body.len() + 4).expect("a length");
    stream.write_all(&length.to_be_bytes()).await.expect("said");
    stream
        .write_all(&correlation.to_be_bytes())
        .await
        .expect("said");
    stream.write_all(body).await.expect("said");
}

/// A connection, and the stream on which its broker is played.
async fn opened() -> (Connection, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let broker = Address::new("127.0.0.1", address.port());
    let manner = manner();
    let opening = Connection::open(&broker, &manner);
    let playing = async {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let (key, correlation) = heard(&mut stream).await;
        assert_eq!(key, Api::ApiVersions.key());
        say(&mut stream, correlation, &all_of_ours()).await;
        stream
    };
    let (opened, stream) = tokio::join!(opening, playing);
    (opened.expect("it opens"), stream)
}

/// Producer id 9, epoch 2.
fn producer() -> Vec<u8> {
    let mut body = vec![0; 6];
    body.extend_from_slice(&9i64.to_be_bytes());
    body.extend_from_slice(&2i16.to_be_bytes());
    body
}

fn trouble<T: std::fmt::Debug>(result: Result<T, Fault>) -> Trouble {
    result.expect_err("trouble").trouble
}

#[tokio::test]
async fn answers_find_who_asked() {
    let (connection, mut stream) = opened().await;
    let metadata = Metadata { topics: &[] };
    let asking = async {
        tokio::join!(
            connection.ask(&InitProducerId, LONG),
            connection.ask(&metadata, LONG)
        )
    };
    let playing = async {
        let first = heard(&mut stream).await;
        let second = heard(&mut stream).await;
        assert_eq!((first.0, second.0), (22, 3));
        say(&mut stream, first.1, &producer()).await;
        // No brokers, no cluster id, no controller, no topics.
        let nothing = [&[0; 8][..], &[0xff; 6], &[0; 4]].concat();
        say(&mut stream, second.1, &nothing).await;
    };
    let ((producer, map), ()) = tokio::join!(asking, playing);
    assert_eq!(producer.expect("an answer").expect("no code").id, 9);
    let nothing = ClusterMap {
        brokers: Vec::new(),
        cluster_id: None,
        topics: Vec::new(),
    };
    assert_eq!(map, Ok(nothing));
}

#[tokio::test]
async fn who_is_silent_is_given_up_and_a_late_answer_reaches_nobody() {
    let (connection, mut stream) = opened().await;
    let silent = trouble(connection.ask(&InitProducerId, SHORT).await);
    let api = Api::InitProducerId;
    assert_eq!(silent, Trouble::Silent { api, after: SHORT });
    let (_, correlation) = heard(&mut stream).await;
    let after = connection.ask(&InitProducerId, LONG);
    let late = async {
        // Nobody may be listening any more.
        let _ = stream.write_all(&22u32.to_be_bytes()).await;
        let _ = stream.write_all(&correlation.to_be_bytes()).await;
        let _ = stream.write_all(&producer()).await;
        stream
    };
    let (after, _stream) = tokio::join!(after, late);
    assert!(matches!(trouble(after), Trouble::Closed(_)));
}

#[tokio::test]
async fn an_answer_to_something_else_ends_the_connection() {
    let (connection, mut stream) = opened().await;
    let playing = async {
        let (_, correlation) = heard(&mut stream).await;
        say(&mut stream, correlation + 1, &producer()).await;
    };
    let (asked, ()) = tokio::join!(connection.ask(&InitProducerId, LONG), playing);
    let detail = Malformed::Correlation {
        wanted: 1,
        found: 2,
    };
    let api = Api::InitProducerId;
    assert_eq!(trouble(asked), Trouble::Malformed { api, detail });
    let after = connection.ask(&InitProducerId, LONG).await;
    assert!(matches!(trouble(after), Trouble::Closed(_)));
}

#[tokio::test]
async fn a_length_that_nothing_has_is_not_waited_for() {
    for length in [u32::MAX, 3, LARGEST as u32 + 5] {
        let (connection, mut stream) = opened().await;
        let playing = async {
            let (_, correlation) = heard(&mut stream).await;
            stream.write_all(&length.to_be_bytes()).await.expect("said");
            stream
                .write_all(&correlation.to_be_bytes())
                .await
                .expect("said");
        };
        let (asked, ()) = tokio::join!(connection.ask(&InitProducerId, LONG), playing);
        let detail = Malformed::TooLarge((length as i32).into());
        let api = Api::InitProducerId;
        assert_eq!(trouble(asked), Trouble::Malformed { api, detail });
    }
}

#[tokio::test]
async fn a_broker_that_goes_is_told_to_everyone_who_waits() {
    let (connection, mut stream) = opened().await;
    let asking = async {
        tokio::join!(
            connection.ask(&InitProducerId, LONG),
            connection.ask(&InitProducerId, LONG)
        )
    };
    let playing = async move {
        heard(&mut stream).await;
        heard(&mut stream).await;
        // A part of an answer, and the end.
        stream.write_all(&[0, 0, 0, 20, 0, 0]).await.expect("said");
        drop(stream);
    };
    let ((one, other), ()) = tokio::join!(asking, playing);
    let closed = Trouble::Closed("the broker closed it".into());
    assert_eq!((trouble(one), trouble(other)), (closed.clone(), closed));
}

#[tokio::test]
async fn a_connection_that_is_dropped_is_closed() {
    let (connection, mut stream) = opened().await;
    drop(connection);
    assert_eq!(stream.read(&mut [0; 1]).await.expect("the end"), 0);
}

#[tokio::test]
async fn nobody_there_is_said_with_the_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let broker = Address::new("127.0.0.1", port);
    let fault = Connection::open(&broker, &manner())
        .await
        .expect_err("nobody");
    let words = fault.to_string();
    assert!(
        words.starts_with(&format!("broker 127.0.0.1:{port}: no connection: ")),
        "{words}"
    );
}

#[tokio::test]
async fn a_broker_that_never_says_what_it_speaks_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let impatient = Manner {
        patience: SHORT,
        ..manner()
    };
    let broker = Address::new("127.0.0.1", port);
    let opened = Connection::open(&broker, &impatient).await;
    assert!(matches!(
        trouble(opened),
        Trouble::Unreachable(_) | Trouble::Silent { .. }
    ));
}
