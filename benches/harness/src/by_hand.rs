//! The loop around a peer that is written by hand on hyper: one thread, connections that are kept, a limit for heads.

use std::convert::Infallible;
use std::future::Future;
use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use crate::Outcome;

/// Answers every request at this port of 127.0.0.1 until the process is killed.
///
/// # Errors
/// Fails where it cannot listen, or the system gives no event loop.
pub fn serve<A>(port: u16, answer: impl Fn(Request<Incoming>) -> A + Clone + Send + 'static) -> Outcome<()>
where
    A: Future<Output = Response<Full<Bytes>>> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let answer = answer.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let answer = answer(request);
                    async move { Ok::<_, Infallible>(answer.await) }
                });
                let mut server = http1::Builder::new();
                server.timer(TokioTimer::new()).header_read_timeout(Duration::from_secs(10)).pipeline_flush(true);
                // A client that goes away is no error of the server's.
                _ = server.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    })
}
