//! Certificates for tests, which `openssl` makes.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

/// A folder with a certificate for `a.example` and its key, removed at the end.
pub(crate) struct Certificate(PathBuf);

impl Certificate {
    /// Makes a certificate that signs itself; `None` if `openssl` is not installed.
    pub(crate) fn new(name: &str) -> Option<Certificate> {
        let folder = std::env::temp_dir().join(format!("weir-tls-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
            .args(["-subj", "/CN=a.example", "-addext", "subjectAltName=DNS:a.example", "-keyout", "key.pem"])
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-out", "certificate.pem"])
            .current_dir(&folder)
            .output();
        let Ok(made) = made else {
            eprintln!("skipped: openssl is not installed");
            return None;
        };
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Some(Certificate(folder))
    }

    /// Returns the folder of its files, `certificate.pem` and `key.pem`.
    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    fn certificate(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(self.0.join("certificate.pem")).unwrap()
    }

    /// Returns the roots of a client that trusts this certificate.
    pub(crate) fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate()).unwrap();
        roots
    }

    pub(crate) fn acceptor(&self, protocols: &[&[u8]]) -> TlsAcceptor {
        let key = PrivateKeyDer::from_pem_file(self.0.join("key.pem")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_no_client_auth().with_single_cert(vec![self.certificate()], key).unwrap();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
