//! The place of a program's stored tables: a file in the data folder, or the PostgreSQL database of an address.

use std::path::{Path, PathBuf};

use weir_host::{Failure, HostType};
use weir_ir::graph::{Graph, NodeKind, Operand, Program};
use weir_library::tables::{ExistingDatabases, PostgresAddress, Schema, TableLocation};

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
    ExistingDatabases { folder, password: std::env::var(PASSWORD).ok(), connections_max: None }
}

/// Returns the paths of the SQLite databases of other programs that a program names.
pub(crate) fn existing_files(program: &Program, file: &Path) -> Vec<PathBuf> {
    let found = existing_databases(file);
    let schemas = program.shared.iter().filter_map(|shared| schema_in(&shared.init));
    schemas.filter_map(|schema| found.file(&schema.existing?.database)).collect()
}

/// Returns the PostgreSQL database of an address.
///
/// # Errors
/// Fails if the address is none.
pub(crate) fn postgres_address(address: &str) -> Result<PostgresAddress, Failure> {
    let password = std::env::var(PASSWORD).ok();
    PostgresAddress::parse(address, password.as_deref())
}

/// Returns the description of the table that an initial value opens.
pub(crate) fn schema_in(init: &Graph) -> Option<Schema> {
    let opens = |kind: &NodeKind| matches!(kind, NodeKind::Call { function, .. } if function.as_str() == "tables.open");
    let open = init.nodes.iter().find(|node| opens(&node.kind))?;
    let Some(Operand::Constant(index)) = open.inputs.first() else { return None };
    Schema::from_value(init.constants.get(*index as usize)?.clone()).ok()
}
