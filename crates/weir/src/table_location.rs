//! The place of a program's stored tables: a file in the data folder, or the PostgreSQL database of an address.

use std::path::{Path, PathBuf};

use weir_host::Failure;
use weir_library::tables::{ExistingDatabases, PostgresAddress, TableLocation};

use crate::programs::database_of;

/// Variable of the environment with the password of the database, as for `psql`.
const PASSWORD: &str = "PGPASSWORD";

/// Returns the place of the tables of a program. `given` is the address of the option `--tables`, `planned` that of the plan,
/// which the options override.
///
/// # Errors
/// Fails if the address is none.
pub(crate) fn table_location(
    file: &Path,
    data: Option<&Path>,
    given: Option<&str>,
    planned: Option<&str>,
) -> Result<TableLocation, Failure> {
    let Some(address) = given.or(planned.filter(|_| data.is_none())) else {
        return Ok(TableLocation::File(database_of(file, data)));
    };
    postgres_address(address).map(TableLocation::Postgres)
}

/// Returns the way in which a program finds databases that other programs have made: paths begin in its folder.
pub(crate) fn existing_databases(file: &Path) -> ExistingDatabases {
    let folder = database_of(file, None).parent().map_or_else(PathBuf::new, Path::to_owned);
    ExistingDatabases { folder, password: std::env::var(PASSWORD).ok() }
}

/// Returns the PostgreSQL database of an address.
///
/// # Errors
/// Fails if the address is none.
pub(crate) fn postgres_address(address: &str) -> Result<PostgresAddress, Failure> {
    let password = std::env::var(PASSWORD).ok();
    PostgresAddress::parse(address, password.as_deref())
}
