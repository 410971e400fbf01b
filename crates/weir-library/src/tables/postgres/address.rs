//! Addresses of PostgreSQL databases: `postgres://user@host/database`.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use weir::Failure;

use super::tls::CertificateTrust;

/// Default of the time limit of a statement.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Time limit for a connection, unless the address names another one (`connect_timeout`).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time after which the database ends a transaction that executes nothing. A program leaves it open if a step fails between
/// two statements, until its next transaction; others that share the database wait for it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3);
/// Time without an answer after which the peer of a connection is asked whether it is there; after three times as long without
/// an answer, the connection is lost, and the database takes back its transaction.
const KEEPALIVE: Duration = Duration::from_secs(5);
/// Time after which the database gives up a connection whose answers nobody reads, or acknowledges, and takes back its transaction: as
/// long as it takes to notice that its peer is gone.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(15);

/// The address of a PostgreSQL database.
#[derive(Clone)]
pub struct PostgresAddress {
    pub(super) config: Config,
    /// The time limit of a statement.
    pub(super) time_limit: Duration,
    /// The maximum number of connections, if it is limited.
    pub(super) connections_max: Option<usize>,
    /// The certificates that are accepted; `None` if connections are not encrypted.
    pub(super) trust: Option<CertificateTrust>,
    /// The schema of the tables, once it is known.
    schema: Arc<OnceLock<String>>,
    shown: String,
}

impl PostgresAddress {
    /// Returns the address of a schema of the same database, whose name needs no quotation marks. The connections have the
    /// name of the schema, too.
    pub(super) fn in_schema(&self, schema: &str) -> PostgresAddress {
        let mut address = self.clone();
        let options = address.config.get_options().unwrap_or_default().to_owned();
        // The last option counts.
        address.config.options(format!("{options} -csearch_path={schema}")).application_name(schema);
        address.schema = Arc::default();
        address
    }

    /// Returns the address, to which a program makes at most this number of connections.
    #[must_use]
    pub fn with_connections_max(self, connections_max: Option<usize>) -> PostgresAddress {
        PostgresAddress { connections_max, ..self }
    }

    /// Notes the schema that has the tables.
    pub(super) fn found_schema(&self, schema: &str) {
        _ = self.schema.set(schema.to_owned());
    }

    /// Returns the schema that has the tables, if it is known.
    pub(super) fn schema(&self) -> Option<&str> {
        self.schema.get().map(String::as_str)
    }

    /// Returns the hosts and ports, as a text.
    pub(super) fn server(&self) -> String {
        format!("{:?} {:?}", self.config.get_hosts(), self.config.get_ports())
    }

    /// Returns whether a text means an address, perhaps an invalid one, and not a path.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        text.contains("://")
    }

    /// Reads an address. A password that it does not have is that of the environment, if it gives one.
    ///
    /// # Errors
    /// Fails if it is no address; the message shows no password.
    pub fn parse(text: &str, password: Option<&str>) -> Result<PostgresAddress, Failure> {
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            return Err(invalid(OTHER_KIND));
        }
        if has_plain_password_characters(text) {
            return Err(invalid(UNENCODED));
        }
        let AddressParameters { address, time_limit, trust } = AddressParameters::of(text)?;
        let mut config: Config = address.parse().map_err(|error: tokio_postgres::Error| {
            let why = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            invalid(&format!("{why}; an address is like `postgres://user@host:5432/database`"))
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(invalid("it names no host; a socket is `postgres://user@%2Frun%2Fpostgresql/database`"));
        }
        if let (None, Some(password)) = (config.get_password(), password) {
            config.password(password);
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("weir");
        }
        config.keepalives_idle(KEEPALIVE).keepalives_interval(KEEPALIVE).keepalives_retries(2);
        let milliseconds = time_limit.as_millis();
        // The options of the address come last, and count.
        let given = config.get_options().unwrap_or_default().to_owned();
        config.options(format!(
            "-cstatement_timeout={milliseconds} -clock_timeout={milliseconds} \
             -cidle_in_transaction_session_timeout={} -ctcp_keepalives_idle={keepalive} \
             -ctcp_keepalives_interval={keepalive} -ctcp_keepalives_count=2 -ctcp_user_timeout={} \
             -cstandard_conforming_strings=on -cclient_min_messages=error {given}",
            IDLE_TIMEOUT.as_millis(),
            UNREAD_TIMEOUT.as_millis(),
            keepalive = KEEPALIVE.as_secs(),
        ));
        let is_local = config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
        let trust = trust.filter(|_| !is_local);
        config.ssl_mode(match &trust {
            None => SslMode::Disable,
            Some(CertificateTrust::Any) => SslMode::Prefer,
            Some(CertificateTrust::Authorities(_)) => SslMode::Require,
        });
        let shown = shown(&config);
        Ok(PostgresAddress { config, time_limit, connections_max: None, trust, schema: Arc::default(), shown })
    }
}

/// Shows the address without its password.
impl fmt::Display for PostgresAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The reason why a text is refused that is not the address of a PostgreSQL database.
const OTHER_KIND: &str = "tables are in a PostgreSQL database, with an address such as `postgres://user@host:5432/database`, or in \
                          an SQLite file, which has a path and no address";

/// The reason why an address is refused whose password may be in any part of it.
const UNENCODED: &str =
    "in the user, the password and the database, `@` is written as `%40`, `/` as `%2F` and `?` as `%3F`";

/// Returns whether a `@` stands elsewhere than before the host, and not in a value, so that a part of the password would be taken for
/// a host or a database, and be shown.
fn has_plain_password_characters(text: &str) -> bool {
    let (_, rest) = text.split_once("://").unwrap_or_default();
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = path.split_once('/').unwrap_or((path, ""));
    authority.matches('@').count() > 1
        || database.contains('@')
        || !authority.contains('@') && authority.contains(':') && query.contains('@')
}

fn invalid(why: &str) -> Failure {
    Failure::function(format!("the address of the database is invalid: {why}"))
}

/// The parameters of an address that Weir itself understands.
struct AddressParameters {
    /// The address without them.
    address: String,
    time_limit: Duration,
    trust: Option<CertificateTrust>,
}

impl AddressParameters {
    fn of(text: &str) -> Result<AddressParameters, Failure> {
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut time_limit, mut mode, mut authorities) = (TIME_LIMIT, "prefer", None);
        let mut others = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            match parameter.split_once('=') {
                Some(("statement_timeout", value)) => time_limit = seconds(value)?,
                Some(("sslmode", value)) => mode = value,
                Some(("sslrootcert", value)) => {
                    authorities = Some(percent_decode_str(value).decode_utf8_lossy().into_owned().into());
                }
                _ => others.push(parameter),
            }
        }
        if authorities.is_some() && !["require", "verify-full"].contains(&mode) {
            return Err(invalid("`sslrootcert` names the authority that is checked, which needs `sslmode=require`"));
        }
        let trust = match mode {
            "disable" => None,
            "prefer" => Some(CertificateTrust::Any),
            "require" | "verify-full" => Some(CertificateTrust::Authorities(authorities)),
            _ => return Err(invalid("`sslmode` is `disable`, `prefer`, `require` or `verify-full`")),
        };
        let others = others.join("&");
        let address = if others.is_empty() { path.to_owned() } else { format!("{path}?{others}") };
        Ok(AddressParameters { address, time_limit, trust })
    }
}

/// Returns the time limit `30s`.
fn seconds(text: &str) -> Result<Duration, Failure> {
    let seconds = text.strip_suffix('s').unwrap_or(text).parse::<u32>().ok().filter(|seconds| *seconds > 0);
    let seconds = seconds.ok_or_else(|| invalid("`statement_timeout` is a whole number of seconds, such as `30s`"))?;
    Ok(Duration::from_secs(u64::from(seconds)))
}

fn shown(config: &Config) -> String {
    let hosts = config.get_hosts().iter().zip(config.get_ports().iter().map(Some).chain(std::iter::repeat(None)));
    let host = |(host, port): (&Host, Option<&u16>)| {
        let name = match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(path) => path.display().to_string(),
        };
        port.filter(|port| **port != 5432).map_or(name.clone(), |port| format!("{name}:{port}"))
    };
    let hosts: Vec<String> = hosts.map(host).collect();
    let user = config.get_user().map_or_else(String::new, |user| format!("{user}@"));
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{user}{}/{database}", hosts.join(","))
}

#[cfg(test)]
mod tests {
    use super::PostgresAddress;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let shown = |text: &str| match PostgresAddress::parse(text, None) {
            Ok(address) => format!("{address} {}s", address.time_limit.as_secs()),
            Err(failure) => failure.message.to_string(),
        };
        assert_eq!(shown("postgres://ada:secret@db.example:5433/shop"), "postgres://ada@db.example:5433/shop 30s");
        assert_eq!(shown("postgresql://ada@%2Frun%2Fpg/shop?statement_timeout=7s"), "postgres://ada@/run/pg/shop 7s");
        assert!(shown("postgres://ada:secret@db/shop?statement_timeout=soon").contains("whole number of seconds"));
        assert!(!shown("postgres://ada:secret@db:port/shop").contains("secret"));
        assert!(shown("postgres:///shop").contains("names no host"));
        for password in ["se@cret", "se/cret", "sec?ret", "s@e/cret", "@secret/", "12/sec@ret", "a/b@c?d"] {
            let refused = shown(&format!("postgres://ada:{password}@db.example/shop"));
            assert!(refused.contains("as `%40`"), "{refused}");
        }
        for other in ["mysql://ada:secret@db/shop", "sqlite:shop.db", "shop.db", "host=db password=secret", ""] {
            assert!(
                shown(other).contains("a PostgreSQL database") && !shown(other).contains("secret"),
                "{}",
                shown(other)
            );
        }
        let address = PostgresAddress::parse("postgres://ada@db/shop?options=-ctcp_user_timeout%3D0", None).unwrap();
        let options = address.config.get_options().unwrap_or_default();
        assert!(
            options.contains("-ctcp_user_timeout=15000 ") && options.ends_with("-ctcp_user_timeout=0"),
            "{options}"
        );
        assert!(
            shown("postgres://ada@db/shop?sslmode=maybe").contains("`disable`, `prefer`, `require` or `verify-full`")
        );
        assert!(shown("postgres://ada@db/shop?sslrootcert=ca.pem").contains("needs `sslmode=require`"));
    }
}
