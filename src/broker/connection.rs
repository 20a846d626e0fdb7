//! A connection to one broker: requests go out in order, and answers come back in that order (a broker serves one request
//! of a connection at a time).
//!
//! ```text
//! ask → write task → broker → read task → ask
//!            └── who waits for which answer ──┘
//! ```
//!
//! Every request has a deadline. One that passes it ends the connection: what comes later could be anybody's answer.

use super::address::Address;
use super::fault::{Fault, Trouble};
use super::message::api_versions::{ApiVersions, Versions};
use super::message::frame::Frame;
use super::message::read::Malformed;
use super::message::sasl::{SaslAuthenticate, SaslHandshake};
use super::message::{Api, Request, answer, frame};
use super::sasl::{Exchange, Said};
use super::security::{Credentials, Security};
use super::tls;
use bytes::{Bytes, BytesMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

/// The largest answer that is taken: no broker sends more than it was asked for, but for one batch, and those are smaller
/// than this (`message.max.bytes` counts in 32 bits, and is 1 MiB by default).
pub const LARGEST: usize = 256 << 20;

/// Requests that may be on their way at a time; more wait.
const ON_THEIR_WAY: usize = 64;

/// How a connection is made.
#[derive(Clone, Debug)]
pub struct Manner {
    /// How it is secured.
    pub security: Arc<Security>,
    /// Who we are in the broker's log.
    pub client: Arc<str>,
    /// How long it may take to come about.
    pub patience: Duration,
}

/// A connection that is ready for requests. Ends when it is dropped.
#[derive(Debug)]
pub struct Connection {
    broker: Address,
    client: Arc<str>,
    versions: Versions,
    next: AtomicI32,
    out: mpsc::Sender<Outgoing>,
    end: Arc<Notify>,
    /// When the broker wants to be told once more who we are.
    session: Option<Instant>,
}

/// A request on its way.
#[derive(Debug)]
struct Outgoing {
    frame: Frame,
    waiting: Waiting,
}

/// Who waits for an answer.
#[derive(Debug)]
struct Waiting {
    correlation: i32,
    answer: oneshot::Sender<Result<Bytes, Ending>>,
}

/// Why there are no more answers.
#[derive(Clone, Debug)]
enum Ending {
    Malformed(Malformed),
    Closed(String),
}

/// A stream, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

impl Connection {
    /// Connects to `broker`: TLS, versions, SASL.
    ///
    /// # Errors
    /// The step that failed.
    pub async fn open(broker: &Address, manner: &Manner) -> Result<Self, Fault> {
        let begun = Instant::now();
        let opening = Self::opened(broker, manner);
        match timeout(manner.patience, opening).await {
            Ok(opened) => opened.map_err(|trouble| trouble.at(broker)),
            Err(_) => Err(Trouble::Unreachable(format!(
                "not within {} ms",
                begun.elapsed().as_millis()
            ))
            .at(broker)),
        }
    }

    async fn opened(broker: &Address, manner: &Manner) -> Result<Self, Trouble> {
        let stream = connect(broker, &manner.security).await?;
        let (out, inbox) = mpsc::channel(ON_THEIR_WAY);
        let end = Arc::new(Notify::new());
        tokio::spawn(carry(stream, inbox, end.clone()));
        let mut connection = Self {
            broker: broker.clone(),
            client: manner.client.clone(),
            versions: Versions::default(),
            next: AtomicI32::new(0),
            out,
            end,
            session: None,
        };
        connection.versions = connection.ask_versions(manner.patience).await?;
        if let Some(credentials) = &manner.security.sasl {
            connection.session = connection
                .say_who_we_are(credentials, manner.patience)
                .await?;
        }
        Ok(connection)
    }

    /// The broker at the other end.
    pub fn broker(&self) -> &Address {
        &self.broker
    }

    /// Whether it has ended: nothing more is taken.
    pub fn has_ended(&self) -> bool {
        self.out.is_closed()
    }

    /// When the broker wants a new connection, if it does: it closes this one some time after (KIP-368).
    pub fn session_ends(&self) -> Option<Instant> {
        self.session
    }

    /// The version in which `api` is spoken.
    ///
    /// # Errors
    /// None that both sides speak.
    pub fn version(&self, api: Api) -> Result<i16, Fault> {
        self.common(api).map_err(|trouble| trouble.at(&self.broker))
    }

    /// Sends `request`, and waits until `within` is over for its answer. Several may be on their way.
    ///
    /// # Errors
    /// The connection is of no use any more, except after [`Trouble::Version`].
    pub async fn ask<Q: Request>(&self, request: &Q, within: Duration) -> Result<Q::Answer, Fault> {
        self.begin(request, within).await?.answer().await
    }

    /// Sends `request`, behind all that were begun before; its answer is waited for where the caller wants to.
    ///
    /// # Errors
    /// As [`Connection::ask`].
    pub async fn begin<Q: Request>(
        &self,
        request: &Q,
        within: Duration,
    ) -> Result<Pending<Q::Answer>, Fault> {
        let version = self.version(Q::API)?;
        let begun = self.begun(request, version, within).await;
        begun.map_err(|trouble| trouble.at(&self.broker))
    }

    fn common(&self, api: Api) -> Result<i16, Trouble> {
        let common = self.versions.common(api);
        common.map_err(|theirs| Trouble::Version { api, theirs })
    }

    async fn asked<Q: Request>(
        &self,
        request: &Q,
        version: i16,
        within: Duration,
    ) -> Result<Q::Answer, Trouble> {
        self.begun(request, version, within).await?.answered().await
    }

    async fn begun<Q: Request>(
        &self,
        request: &Q,
        version: i16,
        within: Duration,
    ) -> Result<Pending<Q::Answer>, Trouble> {
        let deadline = Instant::now() + within;
        let (answers, answered) = oneshot::channel();
        let pending = Pending {
            broker: self.broker.clone(),
            api: Q::API,
            version,
            read: answer::<Q>,
            within,
            deadline,
            answered,
            end: self.end.clone(),
        };
        // The number is taken and queued without a wait in between, or requests could change their order.
        let permit = timeout_at(deadline, self.out.reserve()).await;
        let permit = permit
            .map_err(|_| pending.fall_silent())?
            .map_err(|_| closed_before())?;
        let correlation = self.next.fetch_add(1, Ordering::Relaxed);
        permit.send(Outgoing {
            frame: frame(request, version, correlation, &self.client),
            waiting: Waiting {
                correlation,
                answer: answers,
            },
        });
        Ok(pending)
    }

    async fn ask_versions(&self, within: Duration) -> Result<Versions, Trouble> {
        let (first, _) = Api::ApiVersions.speaks();
        let versions = self.asked(&ApiVersions, first, within).await?;
        versions.map_err(|code| Trouble::Closed(format!("it does not say what it speaks: {code}")))
    }

    async fn say_who_we_are(
        &self,
        credentials: &Credentials,
        within: Duration,
    ) -> Result<Option<Instant>, Trouble> {
        let mechanism = credentials.mechanism();
        let refused = |detail| Trouble::Refused { mechanism, detail };
        let version = self.common(Api::SaslHandshake)?;
        let chosen = SaslHandshake { mechanism };
        let chosen = self.asked(&chosen, version, within).await?;
        chosen.map_err(|others| {
            let has = others.mechanisms.join(", ");
            refused(format!("this listener has {has} ({})", others.code))
        })?;
        let version = self.common(Api::SaslAuthenticate)?;
        let mut exchange = Exchange::begin(credentials).await.map_err(refused)?;
        let mut said = exchange.step(None).map_err(refused)?;
        loop {
            let (Said::Bytes(bytes) | Said::Last(bytes)) = &said;
            let step = SaslAuthenticate { bytes };
            let step = self.asked(&step, version, within).await?.map_err(refused)?;
            let session = step.session.map(|session| Instant::now() + session);
            match said {
                Said::Last(_) => return Ok(session),
                Said::Bytes(_) => said = exchange.step(Some(&step.bytes)).map_err(refused)?,
            }
            // SCRAM ends with the broker's proof, to which nothing is said.
            if let Said::Last(bytes) = &said
                && bytes.is_empty()
            {
                return Ok(session);
            }
        }
    }
}

/// A request on its way, whose answer follows.
#[derive(Debug)]
pub struct Pending<A> {
    broker: Address,
    api: Api,
    version: i16,
    read: fn(i16, &Bytes) -> Result<A, Malformed>,
    within: Duration,
    deadline: Instant,
    answered: oneshot::Receiver<Result<Bytes, Ending>>,
    end: Arc<Notify>,
}

impl<A> Pending<A> {
    /// Waits for the answer.
    ///
    /// # Errors
    /// As [`Connection::ask`].
    pub async fn answer(self) -> Result<A, Fault> {
        let broker = self.broker.clone();
        self.answered().await.map_err(|trouble| trouble.at(&broker))
    }

    async fn answered(mut self) -> Result<A, Trouble> {
        let api = self.api;
        let malformed = |detail| Trouble::Malformed { api, detail };
        match timeout_at(self.deadline, &mut self.answered).await {
            Ok(Ok(Ok(frame))) => (self.read)(self.version, &frame).map_err(malformed),
            Ok(Ok(Err(Ending::Closed(detail)))) => Err(Trouble::Closed(detail)),
            Ok(Ok(Err(Ending::Malformed(detail)))) => Err(malformed(detail)),
            Ok(Err(_)) => Err(closed_before()),
            Err(_) => Err(self.fall_silent()),
        }
    }

    /// Ends the connection: what comes later could be anybody's answer.
    fn fall_silent(&self) -> Trouble {
        self.end.notify_one();
        Trouble::Silent {
            api: self.api,
            after: self.within,
        }
    }
}

fn closed_before() -> Trouble {
    Trouble::Closed("it ended before".to_owned())
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.end.notify_one();
    }
}

async fn connect(broker: &Address, security: &Security) -> Result<Box<dyn Stream>, Trouble> {
    let unreachable = |error: std::io::Error| Trouble::Unreachable(error.to_string());
    let stream = TcpStream::connect((&*broker.host, broker.port))
        .await
        .map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    let Some(tls) = &security.tls else {
        return Ok(Box::new(stream));
    };
    let connector = tls::connector(tls).map_err(Trouble::Tls)?;
    let name = tls::name(&broker.host).map_err(Trouble::Tls)?;
    let stream = connector.connect(name, stream).await;
    let stream = stream.map_err(|error| Trouble::Tls(error.to_string()))?;
    Ok(Box::new(stream))
}

/// Carries requests out and answers back, until one of both ends, or nobody wants them any more.
async fn carry(stream: Box<dyn Stream>, out: mpsc::Receiver<Outgoing>, end: Arc<Notify>) {
    let (reading, writing) = split(stream);
    let (sent, waiting) = mpsc::unbounded_channel();
    let (mut waiting, mut out) = (waiting, out);
    let ending = tokio::select! {
        ending = write(writing, &mut out, sent) => ending,
        ending = read(reading, &mut waiting) => ending,
        () = end.notified() => Ending::Closed("it was given up".to_owned()),
    };
    // Whoever waits is told why; who comes later finds the channel closed.
    waiting.close();
    out.close();
    while let Some(waiting) = waiting.recv().await {
        let _ = waiting.answer.send(Err(ending.clone()));
    }
    while let Some(outgoing) = out.recv().await {
        let _ = outgoing.waiting.answer.send(Err(ending.clone()));
    }
}

async fn write(
    mut stream: impl AsyncWrite + Unpin,
    out: &mut mpsc::Receiver<Outgoing>,
    sent: mpsc::UnboundedSender<Waiting>,
) -> Ending {
    let failed = |error: std::io::Error| Ending::Closed(error.to_string());
    while let Some(Outgoing { mut frame, waiting }) = out.recv().await {
        // Known before the answer can come.
        if sent.send(waiting).is_err() {
            break;
        }
        if let Err(error) = stream.write_all_buf(&mut frame).await {
            return failed(error);
        }
        if let Err(error) = stream.flush().await {
            return failed(error);
        }
    }
    Ending::Closed("nobody asks any more".to_owned())
}

async fn read(
    mut stream: impl AsyncRead + Unpin,
    waiting: &mut mpsc::UnboundedReceiver<Waiting>,
) -> Ending {
    loop {
        let frame = match next_frame(&mut stream).await {
            Ok(frame) => frame,
            Err(ending) => return ending,
        };
        let (correlation, body) = frame;
        let Some(next) = waiting.recv().await else {
            return Ending::Closed("nobody asks any more".to_owned());
        };
        if next.correlation != correlation {
            let ending = Ending::Malformed(Malformed::Correlation {
                wanted: next.correlation,
                found: correlation,
            });
            let _ = next.answer.send(Err(ending.clone()));
            return ending;
        }
        // Who asked may have gone.
        let _ = next.answer.send(Ok(body));
    }
}

/// The next frame: its correlation, and what is behind it.
async fn next_frame(stream: &mut (impl AsyncRead + Unpin)) -> Result<(i32, Bytes), Ending> {
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => Ending::Closed("the broker closed it".to_owned()),
        _ => Ending::Closed(error.to_string()),
    };
    let head = stream.read_u64().await.map_err(failed)?;
    let (length, correlation) = ((head >> 32) as i32, head as i32);
    let size = usize::try_from(length)
        .ok()
        .and_then(|length| length.checked_sub(4))
        .filter(|size| *size <= LARGEST)
        .ok_or(Ending::Malformed(Malformed::TooLarge(length.into())))?;
    // Memory that nothing was written to is not resident: an announcement alone costs nothing.
    let mut body = BytesMut::with_capacity(size);
    while body.len() < size {
        let left = (size - body.len()) as u64;
        let read = (&mut *stream).take(left).read_buf(&mut body).await;
        if read.map_err(failed)? == 0 {
            return Err(Ending::Closed("the broker closed it".to_owned()));
        }
    }
    Ok((correlation, body.freeze()))
}

#[cfg(test)]
mod tests;
