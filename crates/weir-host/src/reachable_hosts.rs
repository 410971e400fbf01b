//! The hosts that a program may reach, as its plan names them: `hosts = ["api.example", "*.cdn.example", "10.0.0.7"]`.

use std::net::IpAddr;
use std::sync::Arc;

/// The hosts that a program may reach: all, unless its plan names some.
#[derive(Clone, Debug, Default)]
pub struct ReachableHosts(Option<Arc<[ReachableHost]>>);

/// A host, or all names below one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ReachableHost {
    /// A name in lower case.
    Name(String),
    /// The names below a name: `.cdn.example` for `*.cdn.example`.
    Below(String),
    /// An address. A name that resolves to it is not permitted by it.
    Address(IpAddr),
}

impl ReachableHosts {
    /// Permits these hosts only.
    ///
    /// # Errors
    /// Fails with the first text that is not a name, `*.` and a name, or an address. A name may end in a dot. Its last label
    /// must not be a number, because systems take such a name for an address ([`ends_in_number`]).
    pub fn only<'t>(hosts: impl IntoIterator<Item = &'t str>) -> Result<Self, String> {
        let parsed = hosts.into_iter().map(|host| parse(host).ok_or_else(|| host.to_owned()));
        Ok(ReachableHosts(Some(parsed.collect::<Result<_, _>>()?)))
    }

    /// Returns `true` if the program may reach this name or address.
    #[must_use]
    pub fn permits(&self, host: &str) -> bool {
        let Some(hosts) = &self.0 else { return true };
        let address = host.parse::<IpAddr>().ok();
        let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let is_name = address.is_none() && !ends_in_number(&name);
        hosts.iter().any(|permitted| match permitted {
            ReachableHost::Address(permitted) => address == Some(*permitted),
            ReachableHost::Name(permitted) => is_name && name == *permitted,
            ReachableHost::Below(end) => is_name && name.len() > end.len() && name.ends_with(end.as_str()),
        })
    }
}

/// Returns `true` for a host whose last label is a number, such as `127.1` or `0x7f000001`. It is an address or nothing:
/// many systems read other ways to write an IPv4 address from it (<https://url.spec.whatwg.org/#ends-in-a-number-checker>).
#[must_use]
pub fn ends_in_number(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let last = host.rsplit('.').next().unwrap_or(host);
    let hexadecimal = last.strip_prefix("0x").or_else(|| last.strip_prefix("0X"));
    let is_decimal = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
    is_decimal || hexadecimal.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn parse(host: &str) -> Option<ReachableHost> {
    let in_brackets = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Ok(address) = in_brackets.unwrap_or(host).parse() {
        return Some(ReachableHost::Address(address)).filter(|_| in_brackets.is_none() || host.contains(':'));
    }
    let host = host.strip_suffix('.').unwrap_or(host);
    let (name, is_below) = match host.strip_prefix("*.") {
        Some(name) => (name, true),
        None => (host, false),
    };
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if !name.split('.').all(is_label) || ends_in_number(name) {
        return None;
    }
    let name = name.to_ascii_lowercase();
    Some(if is_below { ReachableHost::Below(format!(".{name}")) } else { ReachableHost::Name(name) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_permits_names_the_names_below_one_and_addresses() {
        let hosts =
            ReachableHosts::only(["api.example", "*.cdn.example", "10.0.0.7", "::1", "[fd00::1]", "dot.example."])
                .unwrap();
        for host in [
            "api.example",
            "API.example.",
            "a.cdn.example",
            "a.b.cdn.example",
            "10.0.0.7",
            "::1",
            "fd00::1",
            "dot.example",
        ] {
            assert!(hosts.permits(host), "{host}");
        }
        for host in ["example", "a.api.example", "cdn.example", "xcdn.example", "10.0.0.8", "", ".cdn.example"] {
            assert!(!hosts.permits(host), "{host}");
        }
        assert!(ReachableHosts::default().permits("anything"));
        assert!(!ReachableHosts::only([]).unwrap().permits("anything"));
    }

    #[test]
    fn a_name_permits_no_address() {
        // The check of the plan refuses such names; an address must not match one in any case.
        let below =
            ReachableHosts(Some([ReachableHost::Below(".0.0.1".into()), ReachableHost::Name("1".into())].into()));
        for host in ["127.0.0.1", "127.0.0.1.", "x.0.0.1", "1"] {
            assert!(!below.permits(host), "{host}");
        }
        assert!(ReachableHosts::only(["a1.example", "*.0x.example", "1a", "v4.0xg"]).is_ok());
    }

    #[test]
    fn texts_that_are_no_hosts_are_refused() {
        for text in ["*.0.0.1", "0x7f000001", "127.1", "1", "a.0x", "a.09", "*.1.", "[10.0.0.1]", "[::1", ".", "a.."] {
            assert_eq!(ReachableHosts::only([text]).unwrap_err(), text);
        }
        for text in ["", "https://a.example", "a.example:80", "a.example/x", "*", "a.*.example", "a..b", "a b"] {
            assert_eq!(ReachableHosts::only([text]).unwrap_err(), text);
        }
    }
}
