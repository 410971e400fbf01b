//! The address of the client behind the proxies that the program trusts.
//!
//! A proxy appends the address from which it got a request to `X-Forwarded-For`. Anybody can send this field, so it is read
//! from its end, and only as long as the address that has appended an entry is one of a trusted proxy. Fields of this kind
//! that come from other addresses are treated as missing.

use std::net::IpAddr;

use hyper::header::HeaderMap;
use weir::Failure;

/// Name of the field in which proxies pass on the addresses of clients.
const FORWARDED_FOR: &str = "x-forwarded-for";
/// Fields that only proxies set.
const OF_PROXIES: [&str; 7] = [
    FORWARDED_FOR,
    "forwarded",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-proto",
    "x-forwarded-prefix",
    "x-real-ip",
];

/// The addresses of proxies that the program trusts.
#[derive(Debug, Default)]
pub(super) struct TrustedProxies(Vec<AddressBlock>);

/// Addresses that begin with the same bits.
#[derive(Debug)]
struct AddressBlock {
    first: IpAddr,
    bits: u32,
}

impl TrustedProxies {
    /// Returns the proxies at these addresses, or in these blocks of addresses, such as `10.0.0.0/8`.
    ///
    /// # Errors
    /// Fails with the first text that is neither.
    pub(super) fn new<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Self, Failure> {
        let invalid = |text| {
            let said = format!("`trusted_proxies`: {text:?} is neither an address nor a block such as \"10.0.0.0/8\"");
            Failure::argument(said)
        };
        let blocks = texts.into_iter().map(|text| {
            let block = AddressBlock::parse(text).ok_or_else(|| invalid(text))?;
            let begins = block.begins();
            if block.first == begins {
                return Ok(block);
            }
            let meant = format!("{begins}/{}", block.bits);
            Err(Failure::argument(format!(
                "`trusted_proxies`: the block {text:?} begins at {begins}; write {meant:?} for it, or {:?} for the one address",
                block.first.to_string()
            )))
        });
        Ok(TrustedProxies(blocks.collect::<Result<_, _>>()?))
    }

    /// Returns `true` if this address is one of a trusted proxy.
    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|block| block.contains(address))
    }

    /// Returns the address of the client of a request that came from `peer`.
    pub(super) fn client(&self, peer: IpAddr, fields: &HeaderMap) -> IpAddr {
        let peer = peer.to_canonical();
        let lines = fields.get_all(FORWARDED_FOR).iter().rev();
        let mut entries = lines.flat_map(|line| line.to_str().unwrap_or_default().rsplit(','));
        let mut client = peer;
        while self.trusts(client) {
            match entries.next().and_then(address_of) {
                Some(before) => client = before,
                None => break,
            }
        }
        client
    }

    /// Returns `true` if a field of a request that came from `peer` says what only a trusted proxy may say.
    pub(super) fn is_untrusted(&self, field: &str, peer: IpAddr) -> bool {
        OF_PROXIES.contains(&field) && !self.trusts(peer.to_canonical())
    }
}

/// Returns the address of an entry, which may have a port.
fn address_of(entry: &str) -> Option<IpAddr> {
    let entry = entry.trim();
    let address = entry.parse::<IpAddr>().ok();
    let address = address.or_else(|| entry.parse::<std::net::SocketAddr>().ok().map(|address| address.ip()));
    let address = address.or_else(|| entry.strip_prefix('[')?.strip_suffix(']')?.parse().ok());
    address.map(|address| address.to_canonical())
}

impl AddressBlock {
    fn parse(text: &str) -> Option<AddressBlock> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let first: IpAddr = address.parse().ok()?;
        // Addresses of clients never have the form `::ffff:10.0.0.1`.
        if first.to_canonical() != first {
            return None;
        }
        let most = if first.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Some(most), |bits| bits.parse().ok().filter(|bits| *bits <= most))?;
        Some(AddressBlock { first, bits })
    }

    /// Returns the first address of the block.
    fn begins(&self) -> IpAddr {
        match self.first {
            IpAddr::V4(first) => {
                let mask = u32::MAX.checked_shl(32 - self.bits).unwrap_or(0);
                IpAddr::V4((first.to_bits() & mask).into())
            }
            IpAddr::V6(first) => {
                let mask = u128::MAX.checked_shl(128 - self.bits).unwrap_or(0);
                IpAddr::V6((first.to_bits() & mask).into())
            }
        }
    }

    fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                (first.to_bits() ^ address.to_bits()).checked_shr(32 - self.bits).unwrap_or(0) == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                (first.to_bits() ^ address.to_bits()).checked_shr(128 - self.bits).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn client(peer: &str, forwarded: &[&str]) -> String {
        let proxies = TrustedProxies::new(["10.0.0.0/8", "127.0.0.1", "fd00::/8"]).unwrap();
        let field = |value: &&str| (HeaderName::from_static(FORWARDED_FOR), HeaderValue::from_str(value).unwrap());
        let mut fields = HeaderMap::new();
        forwarded.iter().map(field).for_each(|(name, value)| _ = fields.append(name, value));
        proxies.client(peer.parse().unwrap(), &fields).to_string()
    }

    #[test]
    fn the_field_is_read_from_its_end_as_long_as_proxies_are_trusted() {
        assert_eq!(client("203.0.113.7", &["198.51.100.1"]), "203.0.113.7");
        assert_eq!(client("127.0.0.1", &["198.51.100.1"]), "198.51.100.1");
        assert_eq!(client("::ffff:127.0.0.1", &["198.51.100.1"]), "198.51.100.1");
        assert_eq!(client("fd00::1", &["1.2.3.4, 198.51.100.1, 10.1.2.3"]), "198.51.100.1");
        assert_eq!(client("10.0.0.1", &["1.2.3.4", "198.51.100.1"]), "198.51.100.1");
        assert_eq!(client("10.0.0.1", &["198.51.100.1:4711"]), "198.51.100.1");
        assert_eq!(client("10.0.0.1", &["[2001:db8::1]:4711"]), "2001:db8::1");
        assert_eq!(client("10.0.0.1", &["1.2.3.4, unknown"]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &["1.2.3.4, unknown, 10.0.0.2"]), "10.0.0.2");
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
    }

    #[test]
    fn fields_of_proxies_count_only_from_them() {
        let proxies = TrustedProxies::new(["10.0.0.0/8"]).unwrap();
        let is_untrusted = |field, peer: &str| proxies.is_untrusted(field, peer.parse().unwrap());
        assert!(is_untrusted("x-forwarded-proto", "203.0.113.7") && is_untrusted("forwarded", "127.0.0.1"));
        assert!(!is_untrusted("x-forwarded-proto", "10.0.0.1") && !is_untrusted("accept", "203.0.113.7"));
    }

    #[test]
    fn blocks_have_as_many_bits_as_an_address() {
        for text in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "localhost",
            "10.0.0",
            "10.1.0.0/8",
            "fd00::1/8",
            "1.2.3.4/0",
            "::ffff:10.0.0.1",
        ] {
            assert!(TrustedProxies::new([text]).is_err(), "{text}");
        }
        let refused = TrustedProxies::new(["10.1.0.0/8"]).unwrap_err().message;
        assert!(refused.contains("write \"10.0.0.0/8\" for it, or \"10.1.0.0\""), "{refused}");
        for text in ["0.0.0.0/0", "::/0"] {
            let all = TrustedProxies::new([text]).unwrap();
            assert_ne!(all.trusts("203.0.113.7".parse().unwrap()), all.trusts("2001:db8::1".parse().unwrap()));
        }
    }
}
