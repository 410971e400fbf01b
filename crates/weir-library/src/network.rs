//! Connections to other machines, for all modules that make them: the HTTP client, `tcp`, `tls`, `udp`, `dns` and
//! `mail`.
//!
//! 1. A host has to be among those that the plan permits, if it names any.
//! 2. Its name is resolved, and each address is checked: without `private: true` it must be a public one (`addresses`).
//! 3. The connection is made to an address that has been checked: no second look-up can give another one.

mod addresses;
mod roots;

pub use addresses::is_public;
pub(crate) use roots::of_system as system_roots;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use indexmap::IndexMap;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use weir::{ReachableHosts, ends_in_number};
use weir_events::{after, until};

/// Maximum number of addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;
/// Maximum time to connect to one address.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of connections that a program has made by `tcp.connect` and `tls.connect` and not closed.
const CONNECTIONS_MAX: usize = 1024;

/// Addresses to which a connection may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Public addresses only.
    Public,
    /// Addresses of private networks, too.
    Private,
}

impl Reach {
    /// Returns the reach of a call with this argument `private`.
    pub(crate) fn of(private: bool) -> Reach {
        if private { Reach::Private } else { Reach::Public }
    }
}

/// The network as a program may use it. Cloning it increments reference counts.
#[derive(Clone)]
pub struct Network {
    /// Addresses of names that need neither look-up nor check.
    known: Arc<IndexMap<String, SocketAddr>>,
    /// Hosts that the program may reach.
    reachable: ReachableHosts,
    /// Certificates of authorities; those of the system if there are none.
    roots: Option<RootCertStore>,
    tls: Arc<OnceCell<Arc<ClientConfig>>>,
    connections: Arc<Semaphore>,
}

/// Reason why no connection was made.
#[derive(Debug)]
pub(crate) enum ConnectError {
    /// The plan does not permit this host.
    Unreachable(String),
    /// The text is neither a name nor an address. The second text is what to do.
    NoHost(String, &'static str),
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
            ConnectError::Unreachable(host) => {
                write!(f, "the plan does not permit the host `{host}`; add it to `hosts` in the plan")
            }
            ConnectError::NoHost(host, help) => {
                write!(f, "{host:?} is neither the name of a host nor an address: {help}")
            }
            ConnectError::Lookup(host, error) => write!(f, "`{host}` has no address: {error}"),
            ConnectError::Private(host, address) => write!(
                f,
                "`{host}` has the private address {address}; `private: true` permits private addresses, for hosts that \
                 no client chooses"
            ),
            ConnectError::Refused(address, error) => write!(f, "cannot connect to {address}: {error}"),
        }
    }
}

impl std::error::Error for ConnectError {}

impl Default for Network {
    fn default() -> Self {
        Network {
            known: Arc::default(),
            reachable: ReachableHosts::default(),
            roots: None,
            tls: Arc::default(),
            connections: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
        }
    }
}

impl Network {
    /// Returns a network in which hosts have given addresses, which are neither looked up nor checked.
    #[must_use]
    pub fn with_hosts(self, hosts: impl IntoIterator<Item = (String, SocketAddr)>) -> Self {
        Network { known: Arc::new(hosts.into_iter().collect()), ..self }
    }

    /// Returns a network that trusts these authorities instead of the system's.
    #[must_use]
    pub fn with_roots(self, roots: RootCertStore) -> Self {
        Network { roots: Some(roots), tls: Arc::default(), ..self }
    }

    /// Returns a network in which only these hosts can be reached.
    #[must_use]
    pub fn with_reachable(self, reachable: ReachableHosts) -> Self {
        Network { reachable, ..self }
    }

    /// Returns the settings of TLS for clients, without protocols of ALPN.
    pub(crate) async fn tls(&self) -> Arc<ClientConfig> {
        let make = || async {
            let roots = match &self.roots {
                Some(roots) => roots.clone(),
                None => tokio::task::spawn_blocking(roots::of_system).await.unwrap_or_else(|_| RootCertStore::empty()),
            };
            Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth())
        };
        Arc::clone(self.tls.get_or_init(make).await)
    }

    /// Waits for the permit of a connection that the program keeps.
    pub(crate) async fn permit(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.connections).acquire_owned().await.expect("the semaphore is never closed")
    }

    /// Connects to a host.
    pub(crate) async fn connect(&self, host: &str, port: u16, reach: Reach) -> Result<TcpStream, ConnectError> {
        let mut refused = ConnectError::Lookup(host.to_owned(), io::ErrorKind::NotFound.into());
        for address in self.addresses(host, port, reach).await? {
            match until(Box::pin(TcpStream::connect(address)), &after(CONNECT_TIMEOUT)).await {
                Ok(Ok(stream)) => {
                    // Messages are written as a whole; waiting to fill a packet would only delay their ends.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(error)) => refused = ConnectError::Refused(address, error),
                Err(()) => refused = ConnectError::Refused(address, io::ErrorKind::TimedOut.into()),
            }
        }
        Err(refused)
    }

    /// Returns the addresses of a host that may be connected to, at least one.
    pub(crate) async fn addresses(&self, host: &str, port: u16, reach: Reach) -> Result<Vec<SocketAddr>, ConnectError> {
        if let (Some(known), true) = (self.known.get(host), self.reachable.permits(host)) {
            return Ok(vec![*known]);
        }
        permitted(host, self.resolve(host, port).await?, reach)
    }

    /// Returns the addresses of a host, public or private, at most [`ADDRESSES_MAX`].
    pub(crate) async fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
        self.check_host(host)?;
        match host.parse::<IpAddr>() {
            Err(_) if ends_in_number(host) => {
                Err(ConnectError::NoHost(host.to_owned(), "an address of IPv4 has four parts, such as \"192.0.2.1\""))
            }
            Err(_) if host.starts_with('[') => {
                Err(ConnectError::NoHost(host.to_owned(), "an address of IPv6 is written without brackets here"))
            }
            Ok(address) => Ok(vec![SocketAddr::new(address, port)]),
            Err(_) => {
                let found = lookup_host((host, port)).await;
                let found = found.map_err(|error| ConnectError::Lookup(host.to_owned(), error))?;
                Ok(found.take(ADDRESSES_MAX).collect())
            }
        }
    }

    /// Checks that the plan permits the host.
    pub(crate) fn check_host(&self, host: &str) -> Result<(), ConnectError> {
        if self.reachable.permits(host) { Ok(()) } else { Err(ConnectError::Unreachable(host.to_owned())) }
    }
}

/// Returns the addresses of the name that are within reach.
fn permitted(host: &str, found: Vec<SocketAddr>, reach: Reach) -> Result<Vec<SocketAddr>, ConnectError> {
    let first = found.first().copied();
    let is_permitted = |address: &SocketAddr| reach == Reach::Private || is_public(address.ip());
    let permitted: Vec<SocketAddr> = found.into_iter().filter(is_permitted).collect();
    match (permitted.is_empty(), first) {
        (false, _) => Ok(permitted),
        (true, Some(private)) => Err(ConnectError::Private(host.to_owned(), private.ip())),
        (true, None) => Err(ConnectError::Lookup(host.to_owned(), io::ErrorKind::NotFound.into())),
    }
}

#[cfg(test)]
mod tests {
    use test_support::at_once;

    use super::*;

    #[test]
    fn of_several_addresses_only_the_public_ones_are_used() {
        let found: Vec<SocketAddr> =
            ["10.0.0.1:80", "1.1.1.1:80", "[::1]:80"].iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(permitted("a", found.clone(), Reach::Public).unwrap(), &found[1..2]);
        assert_eq!(permitted("a", found.clone(), Reach::Private).unwrap(), found);
        let private = permitted("a", found[..1].to_vec(), Reach::Public).unwrap_err();
        assert!(private.to_string().starts_with("`a` has the private address 10.0.0.1"), "{private}");
        assert!(permitted("a", Vec::new(), Reach::Public).is_err());
    }

    #[test]
    fn other_ways_to_write_an_address_are_refused() {
        let network = Network::default();
        for host in ["0x7f000001", "127.1", "2130706433", "127.0.0.1.", "a.0x1", "010.0.0.1", "[::1]"] {
            let refused = at_once(network.resolve(host, 1)).expect("nothing is looked up").unwrap_err();
            assert!(refused.to_string().contains("neither the name of a host nor an address"), "{refused}");
        }
        assert_eq!(at_once(network.resolve("::1", 1)).unwrap().unwrap(), ["[::1]:1".parse().unwrap()]);
    }

    #[test]
    fn the_connections_of_a_program_are_bounded() {
        let network = Network::default();
        let held: Vec<_> = (0..CONNECTIONS_MAX).filter_map(|_| at_once(network.permit())).collect();
        assert_eq!(held.len(), CONNECTIONS_MAX);
        assert!(at_once(network.clone().permit()).is_none());
        drop(held);
        assert!(at_once(network.permit()).is_some());
    }
}
