//! Encrypted connections to PostgreSQL.
//!
//! With `sslmode=require`, the server must have a certificate for its host from an authority that the system trusts, or from
//! one in the file of `sslrootcert`. With `prefer`, the default, the connection is encrypted if the server can do that, and every
//! certificate is accepted: nobody can read along, but a server in between could pass for the database.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use weir::Failure;

use crate::network::system_roots;

/// The certificates that a client accepts.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CertificateTrust {
    /// Every certificate.
    Any,
    /// Certificates of the authorities in this file, or of the authorities that the system trusts.
    Authorities(Option<PathBuf>),
}

/// The settings of encrypted connections.
#[derive(Clone)]
pub(super) struct PostgresTls(Arc<ClientConfig>);

/// A connection whose handshake is to be made.
pub(super) struct PostgresHandshake {
    config: Arc<ClientConfig>,
    /// The host; `None` if it has no name that a certificate could have.
    host: Option<ServerName<'static>>,
}

/// An encrypted connection.
pub(super) struct EncryptedSocket(tokio_rustls::client::TlsStream<Socket>);

impl PostgresTls {
    /// Returns the settings of a client that accepts these certificates.
    ///
    /// # Errors
    /// Fails if the file of the authorities cannot be read.
    pub(super) fn trusting(trust: &CertificateTrust) -> Result<PostgresTls, Failure> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| Failure::function(error.to_string()))?;
        let config = match trust {
            CertificateTrust::Any => {
                let verifier = Arc::new(AnyCertificate(provider));
                builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
            }
            CertificateTrust::Authorities(Some(file)) => {
                builder.with_root_certificates(roots_in(file)?).with_no_client_auth()
            }
            CertificateTrust::Authorities(None) => builder.with_root_certificates(system_roots()).with_no_client_auth(),
        };
        Ok(PostgresTls(Arc::new(config)))
    }
}

fn roots_in(file: &Path) -> Result<RootCertStore, Failure> {
    let unreadable = |why: String| {
        Failure::function(format!("the certificates of `sslrootcert` in {} cannot be read: {why}", file.display()))
    };
    let certificates = CertificateDer::pem_file_iter(file).map_err(|error| unreadable(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
    }
    if roots.is_empty() { Err(unreadable("there are none".to_owned())) } else { Ok(roots) }
}

impl MakeTlsConnect<Socket> for PostgresTls {
    type Stream = EncryptedSocket;
    type TlsConnect = PostgresHandshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<PostgresHandshake> {
        let host = ServerName::try_from(host.to_owned()).ok();
        Ok(PostgresHandshake { config: Arc::clone(&self.0), host })
    }
}

impl TlsConnect<Socket> for PostgresHandshake {
    type Stream = EncryptedSocket;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<EncryptedSocket>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let host =
                self.host.ok_or_else(|| io::Error::other("the host has no name that a certificate could have"))?;
            TlsConnector::from(self.config).connect(host, stream).await.map(EncryptedSocket)
        })
    }
}

impl TlsStream for EncryptedSocket {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for EncryptedSocket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, out)
    }
}

impl AsyncWrite for EncryptedSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// Accepts every certificate whose key the server has.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
