//! Addresses at which sources listen, checked before anything is opened.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A protocol whose ports are separate from those of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// The address at which a source listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    /// The protocol.
    pub protocol: ListenProtocol,
    /// The address and the port.
    pub address: SocketAddr,
}

impl ListenAddress {
    /// Returns the port that an argument names.
    ///
    /// # Errors
    /// If there is no such port.
    pub fn port(port: i64) -> Result<u16, String> {
        u16::try_from(port).map_err(|_| format!("`port` must be 0 to 65535, not {port}"))
    }

    /// Returns the IP address that an argument names: its numbers, or `localhost`, which is 127.0.0.1.
    ///
    /// # Errors
    /// If it is neither.
    pub fn ip(text: &str) -> Result<IpAddr, String> {
        if text == "localhost" {
            return Ok(Ipv4Addr::LOCALHOST.into());
        }
        let refused = |_| format!("`address` must be an IP address such as 127.0.0.1, or `localhost`, not {text:?}");
        text.parse().map_err(refused)
    }

    /// Returns true if no program can listen at both addresses. The system chooses a free port for port 0.
    #[must_use]
    pub fn excludes(self, other: ListenAddress) -> bool {
        let (one, two) = (self.address, other.address);
        let overlap = one.ip() == two.ip() || one.ip().is_unspecified() || two.ip().is_unspecified();
        self.protocol == other.protocol && one.port() == two.port() && one.port() != 0 && overlap
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            ListenProtocol::Tcp => "TCP",
            ListenProtocol::Udp => "UDP",
        };
        write!(out, "{protocol} {}", self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(protocol: ListenProtocol, address: &str) -> ListenAddress {
        ListenAddress { protocol, address: address.parse().expect("an address") }
    }

    #[test]
    fn ports_and_addresses_are_numbers_or_localhost() {
        assert_eq!(ListenAddress::port(65_535), Ok(65_535));
        assert!(ListenAddress::port(99_999).is_err() && ListenAddress::port(-1).is_err());
        assert_eq!(ListenAddress::ip("localhost"), ListenAddress::ip("127.0.0.1"));
        assert!(ListenAddress::ip("::").is_ok() && ListenAddress::ip("example").is_err());
    }

    #[test]
    fn the_same_port_of_overlapping_addresses_is_exclusive() {
        use ListenProtocol::{Tcp, Udp};
        let web = at(Tcp, "127.0.0.1:80");
        assert!(web.excludes(web) && web.excludes(at(Tcp, "0.0.0.0:80")) && at(Tcp, "[::]:80").excludes(web));
        assert!(!web.excludes(at(Tcp, "127.0.0.2:80")) && !web.excludes(at(Udp, "127.0.0.1:80")));
        assert!(!web.excludes(at(Tcp, "127.0.0.1:81")) && !at(Tcp, "0.0.0.0:0").excludes(at(Tcp, "0.0.0.0:0")));
    }
}
