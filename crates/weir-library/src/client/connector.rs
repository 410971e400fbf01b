//! Connections whose addresses are checked after the name has been resolved.
//!
//! The address that is checked is the one to which the connection is made: no second look-up can give another one.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Uri;
use hyper_util::rt::TokioIo;
use indexmap::IndexMap;
use tokio::net::{TcpStream, lookup_host};
use tower_service::Service;
use weir_events::{after, until};

use super::addresses::is_public;

/// Maximum number of addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;
/// Maximum time to connect to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Addresses to which a connection may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Public addresses only.
    Public,
    /// Addresses of private networks, too.
    Private,
}

/// Names whose addresses are given, and need neither look-up nor check.
pub(super) type KnownHosts = Arc<IndexMap<String, SocketAddr>>;

/// Connector of the client.
#[derive(Clone, Debug)]
pub(super) struct CheckedConnector {
    pub(super) reach: Reach,
    pub(super) known: KnownHosts,
}

/// Reason why no connection was made.
#[derive(Debug)]
pub(super) enum ConnectError {
    /// The name has no address, or the look-up failed.
    Lookup(String, io::Error),
    /// All addresses of the name are private.
    Private(String, IpAddr),
    /// The last address that was tried.
    Refused(SocketAddr, io::Error),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectError::Lookup(host, error) => write!(f, "`{host}` has no address: {error}"),
            ConnectError::Private(host, address) => write!(
                f,
                "`{host}` has the private address {address}; `private: true` permits private addresses, for URLs that \
                 do not come from outside"
            ),
            ConnectError::Refused(address, error) => write!(f, "cannot connect to {address}: {error}"),
        }
    }
}

impl std::error::Error for ConnectError {}

impl Service<Uri> for CheckedConnector {
    type Response = TokioIo<TcpStream>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, url: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.connect(&url).await.map(TokioIo::new) })
    }
}

impl CheckedConnector {
    async fn connect(&self, url: &Uri) -> Result<TcpStream, ConnectError> {
        let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
        let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("https") { 443 } else { 80 });
        let mut refused = ConnectError::Lookup(host.to_owned(), io::ErrorKind::NotFound.into());
        for address in self.addresses(host, port).await? {
            match until(Box::pin(TcpStream::connect(address)), &after(CONNECT_TIMEOUT)).await {
                Ok(Ok(stream)) => {
                    // A request is written as a whole; waiting to fill a packet would only delay its end.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => refused = ConnectError::Refused(address, error),
                Err(()) => refused = ConnectError::Refused(address, io::ErrorKind::TimedOut.into()),
            }
        }
        Err(refused)
    }

    /// Returns the addresses of a name that may be connected to, at least one.
    async fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
        if let Some(known) = self.known.get(host) {
            return Ok(vec![*known]);
        }
        let found = match host.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => {
                let found = lookup_host((host, port)).await;
                found.map_err(|error| ConnectError::Lookup(host.to_owned(), error))?.take(ADDRESSES_MAX).collect()
            }
        };
        self.permitted(host, &found)
    }

    /// Returns the addresses of the name that are within reach.
    fn permitted(&self, host: &str, found: &[SocketAddr]) -> Result<Vec<SocketAddr>, ConnectError> {
        let is_permitted = |address: &&SocketAddr| self.reach == Reach::Private || is_public(address.ip());
        let permitted: Vec<SocketAddr> = found.iter().filter(is_permitted).copied().collect();
        match (permitted.is_empty(), found.first()) {
            (false, _) => Ok(permitted),
            (true, Some(private)) => Err(ConnectError::Private(host.to_owned(), private.ip())),
            (true, None) => Err(ConnectError::Lookup(host.to_owned(), io::ErrorKind::NotFound.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_addresses_only_the_public_ones_are_used() {
        let connector = |reach| CheckedConnector { reach, known: KnownHosts::default() };
        let found: Vec<SocketAddr> =
            ["10.0.0.1:80", "1.1.1.1:80", "[::1]:80"].iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(connector(Reach::Public).permitted("a", &found).unwrap(), &found[1..2]);
        assert_eq!(connector(Reach::Private).permitted("a", &found).unwrap(), found);
        let private = connector(Reach::Public).permitted("a", &found[..1]).unwrap_err();
        assert!(private.to_string().starts_with("`a` has the private address 10.0.0.1"), "{private}");
        assert!(connector(Reach::Public).permitted("a", &[]).is_err());
    }
}
