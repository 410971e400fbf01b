//! TLS of a server: its certificate and key, which are read again when their files change.
//!
//! 1. The files are read when the server starts, which fails if they are not valid.
//! 2. A handshake takes the current configuration. At most once a second it compares the identities, lengths and times of the
//!    files with those that were read, and reads them again if they differ.
//! 3. Files that are not valid at that moment, for example because one of them has been replaced and the other one has not, are
//!    reported and read again later; the configuration stays as it was.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoClientAuth, WebPkiClientVerifier, danger::ClientCertVerifier};
use rustls::{RootCertStore, ServerConfig};

/// Time between two looks at the files.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// The protocols that are negotiated, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Files in PEM that identify a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate of the server, followed by those between it and its authority.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
    /// The authorities that sign the certificates of clients. If it is set, each client has to present one.
    pub client_authorities: Option<PathBuf>,
}

/// The identity of a server.
pub(super) struct TlsIdentity {
    files: TlsFiles,
    current: Mutex<CurrentConfig>,
}

struct CurrentConfig {
    config: Arc<ServerConfig>,
    read: Vec<FileState>,
    checked: Instant,
}

/// The state of a file by which a change is seen.
#[derive(Clone, PartialEq, Eq)]
struct FileState {
    device: u64,
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl TlsFiles {
    fn all(&self) -> impl Iterator<Item = &Path> {
        let paths = [Some(&self.certificate), Some(&self.key), self.client_authorities.as_ref()];
        paths.into_iter().flatten().map(PathBuf::as_path)
    }

    fn states(&self) -> io::Result<Vec<FileState>> {
        self.all().map(|path| std::fs::metadata(path).map(state_of).map_err(|error| unreadable(path, &error))).collect()
    }

    /// Checks that the files can be read, and are a certificate and its key.
    ///
    /// # Errors
    /// Says which of them is wrong.
    pub(in crate::http) fn check(&self) -> io::Result<()> {
        self.config().map(drop)
    }

    /// Reads the files.
    fn config(&self) -> io::Result<Arc<ServerConfig>> {
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| unreadable(&self.key, &error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let verifier: Arc<dyn ClientCertVerifier> = match &self.client_authorities {
            None => Arc::new(NoClientAuth),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for authority in certificates(path)? {
                    roots.add(authority).map_err(|error| unreadable(path, &error))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                verifier.map_err(|error| unreadable(path, &error))?
            }
        };
        let config = config.map_err(io::Error::other)?.with_client_cert_verifier(verifier);
        let mut config = config.with_single_cert(chain, key).map_err(|error| {
            let (certificate, key) = (self.certificate.display(), self.key.display());
            io::Error::other(format!("`{key}` is not the key of the certificate `{certificate}`: {error}"))
        })?;
        config.alpn_protocols = PROTOCOLS.iter().map(|protocol| protocol.to_vec()).collect();
        config.ticketer = rustls::crypto::ring::Ticketer::new().map_err(io::Error::other)?;
        Ok(Arc::new(config))
    }
}

impl TlsIdentity {
    /// Reads the files.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or the files are not a certificate and its key.
    pub(super) fn read(files: TlsFiles) -> io::Result<TlsIdentity> {
        let read = files.states()?;
        let config = files.config()?;
        let current = Mutex::new(CurrentConfig { config, read, checked: Instant::now() });
        Ok(TlsIdentity { files, current })
    }

    /// Returns the configuration for the next handshake. `report` is told about changed files that are not valid.
    pub(super) fn config(&self, report: impl FnOnce(&io::Error)) -> Arc<ServerConfig> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.checked.elapsed() >= CHECK_INTERVAL {
            current.checked = Instant::now();
            if let Err(error) = self.renew(&mut current) {
                report(&error);
            }
        }
        Arc::clone(&current.config)
    }

    /// Reads the files if they have changed.
    fn renew(&self, current: &mut CurrentConfig) -> io::Result<()> {
        let states = self.files.states()?;
        if states != current.read {
            current.config = self.files.config()?;
            current.read = states;
        }
        Ok(())
    }
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(path, &error))?;
    let all: Vec<_> = read.collect::<Result<_, _>>().map_err(|error| unreadable(path, &error))?;
    if all.is_empty() { Err(unreadable(path, &"it contains no certificate in PEM")) } else { Ok(all) }
}

fn unreadable(path: &Path, reason: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("cannot use `{}` for TLS: {reason}", path.display()))
}

fn state_of(file: std::fs::Metadata) -> FileState {
    FileState { device: file.dev(), inode: file.ino(), length: file.len(), changed: (file.ctime(), file.ctime_nsec()) }
}
