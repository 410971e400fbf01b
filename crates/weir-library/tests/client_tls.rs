//! The HTTP client over TLS, against rustls with certificates that `openssl` makes.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]
#![allow(clippy::print_stderr, reason = "a test says that it was skipped")]

mod certificates;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use certificates::Certificate;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::RootCertStore;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use weir::{Failure, Size};
use weir_library::client::{self, Client, ClientResponse};
use weir_library::network::Network;

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
    Client::new(Network::default().with_hosts([(host.to_owned(), address)]).with_roots(roots))
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

/// Answers the first request on each connection, and closes the socket at the second one, without the end of TLS.
async fn forgetful(acceptor: TlsAcceptor) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, requests) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = acceptor.accept(stream).await.unwrap();
            let mut read = [0; 1024];
            for answer in [Some(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), None] {
                assert!(stream.read(&mut read).await.unwrap() > 0);
                count.fetch_add(1, Ordering::SeqCst);
                match answer {
                    Some(answer) => stream.write_all(answer).await.unwrap(),
                    None => drop(stream.get_mut().0.shutdown().await),
                }
            }
        }
    });
    (address, requests)
}

#[test]
fn a_read_is_sent_again_when_the_server_has_closed_the_socket_under_tls() {
    let Some(certificate) = Certificate::new("forgetful") else { return };
    block_on(async {
        let (address, requests) = forgetful(certificate.acceptor(&[])).await;
        let client = knowing("a.example", address, certificate.roots());
        for sent in [1, 3, 5] {
            assert_eq!(client::text(&get(&client, "https://a.example/").await.unwrap()).unwrap(), "ok");
            assert_eq!(requests.load(Ordering::SeqCst), sent);
        }
    });
}

#[test]
fn an_answer_that_ends_without_the_end_of_tls_is_a_failure() {
    let Some(certificate) = Certificate::new("cut") else { return };
    block_on(async {
        for answer in ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ncut", "HTTP/1.0 200 OK\r\n\r\ncut", ""] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let acceptor = certificate.acceptor(&[]);
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let mut stream = acceptor.accept(stream).await.unwrap();
                    assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0);
                    stream.write_all(answer.as_bytes()).await.unwrap();
                    drop(stream.get_mut().0.shutdown().await);
                }
            });
            let client = knowing("a.example", address, certificate.roots());
            let cut = get(&client, "https://a.example/").await.unwrap_err();
            let said =
                if answer.is_empty() { "no response from a.example: peer closed" } else { "the response ended early" };
            assert!(cut.message.starts_with(said) && !cut.message.contains("https://"), "{cut}");
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
