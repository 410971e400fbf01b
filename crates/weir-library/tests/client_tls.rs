//! The HTTP client over TLS, against rustls with certificates that `openssl` makes.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]
#![allow(clippy::print_stderr, reason = "a test says that it was skipped")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use weir::{Failure, Size};
use weir_library::client::{self, Client, ClientResponse};

/// A folder with a certificate for `a.example` and its key, removed at the end.
struct Certificate(PathBuf);

impl Certificate {
    /// Makes a certificate that signs itself; `None` if `openssl` is not installed.
    fn new(name: &str) -> Option<Certificate> {
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

    fn certificate(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(self.0.join("certificate.pem")).unwrap()
    }

    /// Returns the roots of a client that trusts this certificate.
    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate()).unwrap();
        roots
    }

    fn acceptor(&self, protocols: &[&[u8]]) -> TlsAcceptor {
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

/// Serves connections whose answers name the version of HTTP; returns the address.
async fn serve(acceptor: TlsAcceptor) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = service_fn(|request: Request<hyper::body::Incoming>| async move {
                    let version = Bytes::from(format!("{:?}", request.version()));
                    Ok::<_, std::convert::Infallible>(Response::new(Full::new(version)))
                });
                let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
                let _ = server.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    address
}

async fn get(client: &Client, url: &str) -> Result<ClientResponse, Failure> {
    let patience = Duration::from_secs(20);
    let (headers, bytes_max) = (client::Headers::new(), Size(1_000));
    let options =
        client::CallOptions { headers, bearer: None, timeout: patience, bytes_max, redirects_max: 0, private: false };
    client::get(client, url.into(), options).await
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn knowing(host: &str, address: SocketAddr, roots: RootCertStore) -> Client {
    Client::default().with_hosts([(host.to_owned(), address)]).with_roots(roots)
}

#[test]
fn the_best_version_that_both_sides_speak_is_used() {
    let Some(certificate) = Certificate::new("versions") else { return };
    block_on(async {
        for (protocols, version) in
            [(&[b"h2".as_slice(), b"http/1.1"][..], "HTTP/2.0"), (&[b"http/1.1"], "HTTP/1.1"), (&[], "HTTP/1.1")]
        {
            let address = serve(certificate.acceptor(protocols)).await;
            let client = knowing("a.example", address, certificate.roots());
            for _ in 0..3 {
                let found = get(&client, "https://a.example/").await.unwrap();
                assert_eq!(client::text(&found).unwrap(), version);
            }
        }
    });
}

#[test]
fn a_server_that_is_not_who_it_should_be_gets_no_request() {
    let Some(certificate) = Certificate::new("wrong") else { return };
    block_on(async {
        let address = serve(certificate.acceptor(&[])).await;
        let strange = knowing("a.example", address, RootCertStore::empty());
        let refused = get(&strange, "https://a.example/?token=secret").await.unwrap_err();
        assert!(refused.message.contains("does not trust the issuer"), "{refused}");
        let other = knowing("b.example", address, certificate.roots());
        let refused = get(&other, "https://b.example/?token=secret").await.unwrap_err();
        assert!(refused.message.starts_with("no response from b.example: invalid peer certificate"), "{refused}");
        assert!(!refused.message.contains("secret"), "{refused}");
    });
}
