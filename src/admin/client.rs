//! The other end of the Unix socket: how `status`, `reload`, `pause` and `resume` ask.
//!
//! HTTP/1.1 with `Connection: close`, one request per connection: small enough that a client
//! library would be the larger risk.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// An answer is never longer than this; a route with thousands of partitions fits.
const LONGEST_ANSWER: u64 = 64 << 20;

/// Why nobody could be asked.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No process listens at any of these places.
    #[error("no mirror process listens at {}; is it running, and with the same admin.socket or group?", list(.0))]
    Nobody(Vec<PathBuf>),
    /// The process did not answer, or not in time.
    #[error("{}: {cause}", path.display())]
    Broken {
        /// The socket.
        path: PathBuf,
        /// What happened.
        cause: io::Error,
    },
}

fn list(places: &[PathBuf]) -> String {
    let places: Vec<String> = places.iter().map(|p| p.display().to_string()).collect();
    places.join(" or ")
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub code: u16,
    /// The body.
    pub body: String,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method<'a> {
    /// Reads.
    Get,
    /// Changes.
    Post,
    /// Sends this JSON along.
    PostJson(&'a str),
}

/// Asks the first process that listens at one of `places`.
///
/// # Errors
/// Nobody listens, or the answer does not come within `patience`.
pub fn ask(
    places: &[PathBuf],
    method: Method<'_>,
    path: &str,
    patience: Duration,
) -> Result<Answer, AskError> {
    for place in places {
        let Ok(stream) = UnixStream::connect(place) else {
            continue;
        };
        return converse(stream, method, path, patience).map_err(|cause| AskError::Broken {
            path: place.to_path_buf(),
            cause,
        });
    }
    Err(AskError::Nobody(places.to_vec()))
}

fn converse(
    mut stream: UnixStream,
    method: Method<'_>,
    path: &str,
    patience: Duration,
) -> io::Result<Answer> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let (verb, body) = match method {
        Method::Get => ("GET", ""),
        Method::Post => ("POST", ""),
        Method::PostJson(body) => ("POST", body),
    };
    write!(
        stream,
        "{verb} {path} HTTP/1.1\r\nHost: mirror\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.take(LONGEST_ANSWER).read_to_string(&mut answer)?;
    parse(&answer).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not an HTTP answer"))
}

/// Our own server sends whole bodies with their length and closes: what follows the head is it.
fn parse(answer: &str) -> Option<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let code = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer {
        code,
        body: body.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_code_and_body() {
        let answer = parse("HTTP/1.1 409 Conflict\r\ncontent-length: 2\r\n\r\n{}").unwrap();
        assert_eq!((answer.code, answer.body.as_str()), (409, "{}"));
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn nobody_listening_names_the_places() {
        let places = [PathBuf::from("/nowhere/a.sock")];
        let error = ask(&places, Method::Get, "/livez", Duration::from_secs(1)).unwrap_err();
        assert!(error.to_string().contains("/nowhere/a.sock"));
    }
}
