//! Ctrl-C and TERM: the first ends the story early and well, the second at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Counts the user's interrupts from now to the end of the process.
#[derive(Clone)]
pub struct Interrupts(Arc<AtomicU32>);

impl Interrupts {
    /// Installs the handlers.
    ///
    /// They are the story's and not the supervisor's: what was sent before an interrupt is still
    /// copied and counted.
    ///
    /// # Errors
    /// The operating system's words.
    pub fn listen() -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("no signal handlers: {error}");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let (interrupt, terminate) = {
            let _inside = runtime.enter();
            let interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
            (interrupt, signal(SignalKind::terminate()).map_err(failed)?)
        };
        let counter = Arc::new(AtomicU32::new(0));
        let shared = counter.clone();
        std::thread::Builder::new()
            .name("sandbox-signals".into())
            .spawn(move || runtime.block_on(count(interrupt, terminate, &shared)))
            .map_err(failed)?;
        Ok(Self(counter))
    }

    /// How many there were.
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

async fn count(mut interrupt: Signal, mut terminate: Signal, counter: &AtomicU32) {
    loop {
        let came = tokio::select! {
            came = interrupt.recv() => came,
            came = terminate.recv() => came,
        };
        if came.is_none() {
            return;
        }
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
