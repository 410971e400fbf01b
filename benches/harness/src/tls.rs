//! TLS of servers and of the load: a certificate that signs itself, and version 1.3 without resumption.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::BenchResult;

/// The files of the certificate and its key in their folder.
const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";
/// The name in the certificate.
pub const HOST: &str = "localhost";

/// Makes a certificate of `localhost` and its key in a folder; returns `false` if `openssl` is not installed.
///
/// # Errors
/// Fails if `openssl` does.
pub fn make_certificate(folder: &Path) -> BenchResult<bool> {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", KEY])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-out", CERTIFICATE])
        .current_dir(folder)
        .output();
    match made {
        Ok(made) if made.status.success() => Ok(true),
        Ok(made) => Err(String::from_utf8_lossy(&made.stderr).into()),
        Err(_) => Ok(false),
    }
}

/// Returns the configuration of a server with the certificate in a folder.
///
/// # Errors
/// Fails if the files are not a certificate and its key.
pub fn server_config(folder: &Path) -> BenchResult<Arc<ServerConfig>> {
    let key = PrivateKeyDer::from_pem_file(folder.join(KEY))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = config.with_no_client_auth().with_single_cert(vec![certificate(folder)?], key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Returns the configuration of a client that trusts the certificate in a folder.
///
/// # Errors
/// Fails if the file is no certificate.
pub fn client_config(folder: &Path) -> BenchResult<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate(folder)?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&rustls::version::TLS13])?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn certificate(folder: &Path) -> BenchResult<CertificateDer<'static>> {
    Ok(CertificateDer::from_pem_file(folder.join(CERTIFICATE))?)
}
