//! Connector of the client, which connects within its reach.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::Uri;
use tower_service::Service;

use super::stoppable_stream::StoppableStream;
use crate::network::{ConnectError, Network, Reach};

/// Connector of the client.
#[derive(Clone)]
pub(super) struct CheckedConnector {
    pub(super) reach: Reach,
    pub(super) network: Network,
}

impl Service<Uri> for CheckedConnector {
    type Response = StoppableStream;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        let CheckedConnector { reach, network } = self.clone();
        Box::pin(async move {
            let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
            let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("https") { 443 } else { 80 });
            network.connect(host, port, reach).await.map(StoppableStream::new)
        })
    }
}
