//! Public addresses: those that the internet routes, by the special-purpose registries of IANA (RFC 6890).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Blocks of IPv4 addresses that are not public, with the number of bits of their prefixes.
const SPECIAL_V4: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];
/// Blocks of IPv6 addresses within the global unicast addresses (`2000::/3`) that are not public: those of protocols
/// (such as Teredo), of documentation, and 6to4, which contains IPv4 addresses.
const SPECIAL_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];
/// The global unicast addresses.
const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
/// Addresses that a gateway translates to the IPv4 address in their last 32 bits (RFC 6052).
const TRANSLATED_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Returns `true` if the address is one of the public internet: neither of this machine, nor of a private network, nor
/// of a link, nor reserved. An IPv6 address that contains an IPv4 address is as public as that one.
#[must_use]
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => match contained_v4(address) {
            Some(contained) => is_public_v4(contained),
            None => is_in_v6(address, GLOBAL_V6) && !SPECIAL_V6.iter().any(|block| is_in_v6(address, *block)),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !SPECIAL_V4.iter().any(|(block, bits)| (address.to_bits() ^ block.to_bits()) >> (32 - bits) == 0)
}

fn is_in_v6(address: Ipv6Addr, (block, bits): (Ipv6Addr, u32)) -> bool {
    (address.to_bits() ^ block.to_bits()) >> (128 - bits) == 0
}

fn contained_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let translated = is_in_v6(address, TRANSLATED_V6).then(|| Ipv4Addr::from_bits(address.to_bits() as u32));
    address.to_ipv4_mapped().or(translated)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_machines_and_networks_are_not_public() {
        let private = [
            "0.0.0.0",
            "10.255.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.8.8.8",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.168.1.1",
            "198.19.0.1",
            "203.0.113.7",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::7f00:1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "5f00::1",
        ];
        for address in private {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn addresses_of_the_internet_are_public() {
        let public = [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.167.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
        ];
        for address in public {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
