//! DNS: the addresses of names.

use std::pin::pin;
use std::time::Duration;

use weir::{Failure, FailureKind, Text};
use weir_events::{after, until};

use crate::network::Network;

/// Builds the module `dns`.
pub(crate) fn dns() -> weir::Module {
    functions::dns()
}

mod functions {
    //! The module's functions, in a submodule because `library!` generates a function named like the module.

    weir::library! {
        /// The addresses of names.
        pub(crate) dns: super::lookup
    }
}

/// Returns the addresses of a name, at most 8, as the resolver of the system knows them. A check of these addresses says
/// nothing about a later connection: it looks the name up again, and checks for itself.
///
/// # Errors
/// Fails if the name has no address, if the resolver does not answer within `timeout`, and if the plan does not permit
/// the host.
#[weir::function(reads, awaits_peer)]
pub async fn lookup(
    #[environment] network: &Network,
    name: Text,
    #[default(Duration::from_secs(5))] timeout: Duration,
) -> Result<Vec<String>, Failure> {
    let late = || Failure::new(FailureKind::Timeout, format!("`{name}` was not looked up within {timeout:?}"));
    let found = until(pin!(network.resolve(&name, 0)), &after(timeout)).await.map_err(|()| late())??;
    let mut addresses: Vec<String> = Vec::new();
    for address in found {
        let address = address.ip().to_string();
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}
