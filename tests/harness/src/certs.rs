//! A certificate authority that lives as long as a cluster, a certificate for its brokers and one for a client.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::error::{Attempt, HarnessError};
use crate::tool::run;

const PATIENCE: Duration = Duration::from_secs(30);

/// Files in PEM, which Kafka, librdkafka and OpenSSL all read.
#[derive(Debug)]
pub(crate) struct Certs {
    /// What a client has to trust.
    pub(crate) ca: PathBuf,
    /// The brokers' key and certificate, in one file as Kafka wants it.
    pub(crate) server: PathBuf,
    /// A client's certificate, for `CN=client`.
    pub(crate) client: PathBuf,
    /// The key to it.
    pub(crate) client_key: PathBuf,
}

impl Certs {
    pub(crate) fn create(dir: &Path) -> Result<Self, HarnessError> {
        fs::create_dir_all(dir).attempt(|| format!("make the folder {}", dir.display()))?;
        certificate(
            dir,
            "ca",
            &["-addext", "keyUsage=critical,keyCertSign,cRLSign"],
        )?;
        let signed = [
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ];
        let names = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"];
        certificate(dir, "broker", &[&signed[..], &names].concat())?;
        certificate(dir, "client", &signed)?;
        let server = dir.join("server.pem");
        join(&[dir.join("broker.key"), dir.join("broker.pem")], &server)?;
        Ok(Self {
            ca: dir.join("ca.pem"),
            server,
            client: dir.join("client.pem"),
            client_key: dir.join("client.key"),
        })
    }
}

/// Makes `<name>.key` and `<name>.pem` in `dir`. Keys on an elliptic curve take no time to make.
fn certificate(dir: &Path, name: &str, more: &[&str]) -> Result<(), HarnessError> {
    let mut openssl = Command::new("openssl");
    openssl
        .current_dir(dir)
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "30",
        ])
        .args([
            "-subj",
            &format!("/CN={name}"),
            "-keyout",
            &format!("{name}.key"),
            "-out",
            &format!("{name}.pem"),
        ])
        .args(more);
    run("openssl", openssl, PATIENCE).map(drop)
}

fn join(parts: &[PathBuf], into: &Path) -> Result<(), HarnessError> {
    let mut text = String::new();
    for part in parts {
        text += &fs::read_to_string(part).attempt(|| format!("read {}", part.display()))?;
    }
    fs::write(into, text).attempt(|| format!("write {}", into.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_brokers_certificate_is_signed_by_the_authority_for_loopback() {
        let dir = tempfile::tempdir().unwrap();
        let certs = Certs::create(dir.path()).unwrap();
        let mut verify = Command::new("openssl");
        verify
            .args(["verify", "-verify_ip", "127.0.0.1", "-CAfile"])
            .arg(&certs.ca)
            .arg(&certs.server);
        assert!(run("openssl", verify, PATIENCE).unwrap().contains("OK"));
    }
}
