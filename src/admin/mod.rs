//! The admin interface: looking over HTTP, looking and changing over a Unix socket.
//!
//! It runs on a thread and runtime of its own, so that a busy process still answers its probes.

use crate::config::spec::{AdminSpec, Name};
use crate::supervisor::{Board, EventSender, Load};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::oneshot;

pub mod client;
mod http;
pub mod metrics;
pub mod plan;
pub mod ready;
pub mod socket;
pub mod status;

/// What the admin interface reads and whom it tells.
#[derive(Clone)]
pub struct Desk {
    /// What is seen.
    pub board: Arc<Board>,
    /// Where changing calls go.
    pub events: EventSender,
    /// Loads a configuration as the process would, for plans.
    pub load: Load,
}

/// Why the admin interface does not start.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The TCP address cannot be had.
    #[error(
        "admin.listen: cannot listen on {address}: {cause}; choose another address, \
         or write `admin: {{ listen: off }}` to do without"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The operating system's words.
        cause: std::io::Error,
    },
    /// The Unix socket cannot be had.
    #[error(
        "admin.socket: cannot listen on {}: {cause}; set admin.socket to a path of this process's own",
        path.display()
    )]
    Socket {
        /// The path.
        path: PathBuf,
        /// The operating system's words.
        cause: std::io::Error,
    },
    /// The thread or its runtime cannot be had.
    #[error("admin: cannot start its thread: {0}")]
    Thread(std::io::Error),
}

/// A running admin interface. Dropping it stops it and removes the socket's file.
#[derive(Debug)]
pub struct Admin {
    address: Option<SocketAddr>,
    socket: PathBuf,
    _stop: oneshot::Sender<()>,
}

impl Admin {
    /// Binds everything, so that what cannot be had is known at once, and serves it.
    ///
    /// # Errors
    /// An address or path is taken.
    pub fn start(spec: &AdminSpec, group: &Name, desk: Desk) -> Result<Self, AdminError> {
        let tcp = spec.listen.map(listen_tcp).transpose()?;
        let address = tcp.as_ref().and_then(|tcp| tcp.local_addr().ok());
        let (socket, unix) = socket::listen(spec.socket.as_deref(), group)?;
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(AdminError::Thread)?;
        std::thread::Builder::new()
            .name("mirror-admin".into())
            .spawn(move || runtime.block_on(http::serve(tcp, unix, desk, stopped)))
            .map_err(AdminError::Thread)?;
        Ok(Self {
            address,
            socket,
            _stop: stop,
        })
    }

    /// Where HTTP is served, if it is.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The Unix socket's path.
    pub fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
    }
}

fn listen_tcp(address: SocketAddr) -> Result<std::net::TcpListener, AdminError> {
    let failed = |cause| AdminError::Listen { address, cause };
    let listener = std::net::TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

#[cfg(test)]
mod tests;
