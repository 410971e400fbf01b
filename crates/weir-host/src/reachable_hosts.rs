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
    /// Fails with the first text that is not a name, `*.` and a name, or an address.
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
        hosts.iter().any(|permitted| match permitted {
            ReachableHost::Address(permitted) => address == Some(*permitted),
            ReachableHost::Name(permitted) => name == *permitted,
            ReachableHost::Below(end) => name.len() > end.len() && name.ends_with(end.as_str()),
        })
    }
}

fn parse(host: &str) -> Option<ReachableHost> {
    if let Ok(address) = host.trim_matches(['[', ']']).parse() {
        return Some(ReachableHost::Address(address));
    }
    let (name, is_below) = match host.strip_prefix("*.") {
        Some(name) => (name, true),
        None => (host, false),
    };
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if !name.split('.').all(is_label) {
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
        let hosts = ReachableHosts::only(["api.example", "*.cdn.example", "10.0.0.7", "::1", "[fd00::1]"]).unwrap();
        for host in ["api.example", "API.example.", "a.cdn.example", "a.b.cdn.example", "10.0.0.7", "::1", "fd00::1"] {
            assert!(hosts.permits(host), "{host}");
        }
        for host in ["example", "a.api.example", "cdn.example", "xcdn.example", "10.0.0.8", "", ".cdn.example"] {
            assert!(!hosts.permits(host), "{host}");
        }
        assert!(ReachableHosts::default().permits("anything"));
        assert!(!ReachableHosts::only([]).unwrap().permits("anything"));
    }

    #[test]
    fn texts_that_are_no_hosts_are_refused() {
        for text in ["", "https://a.example", "a.example:80", "a.example/x", "*", "a.*.example", "a..b", "a b"] {
            assert_eq!(ReachableHosts::only([text]).unwrap_err(), text);
        }
    }
}
