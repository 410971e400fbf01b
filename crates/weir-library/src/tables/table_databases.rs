//! The databases that have the tables of a program: where they are, and those which are open.

use std::path::PathBuf;
use std::sync::Arc;

use weir::Failure;

use super::group_commit::GroupCommit;
use super::postgres::{PostgresAddress, PostgresDatabase, ScratchSchema};
use super::table_log::TableLog;
use crate::tables::sqlite::database::Database;

/// The place of the stored tables of a program.
#[derive(Clone, Debug)]
pub enum TableLocation {
    /// In memory.
    Memory,
    /// In an SQLite database, which the first of them creates.
    File(PathBuf),
    /// In a PostgreSQL database.
    Postgres(PostgresAddress),
    /// In an empty schema of a PostgreSQL database, which the first of them creates, and which is dropped at the end.
    Scratch(Arc<ScratchSchema>),
}

/// The database of the stored tables.
#[derive(Clone, Debug)]
pub(super) enum OpenDatabase {
    Sqlite(Arc<Database>),
    Postgres(Arc<PostgresDatabase>),
}

/// The way in which a program finds databases that other programs have made.
#[derive(Clone, Debug, Default)]
pub struct ExistingDatabases {
    /// The folder from which paths begin.
    pub folder: PathBuf,
    /// The password of addresses that have none.
    pub password: Option<String>,
    /// The maximum number of connections to a PostgreSQL database, if it is limited.
    pub connections_max: Option<usize>,
}

impl ExistingDatabases {
    /// Returns the place of a database that a program names.
    pub(super) fn place(&self, address: &str) -> Result<TableLocation, Failure> {
        if PostgresAddress::is_meant(address) {
            let address = PostgresAddress::parse(address, self.password.as_deref())?;
            return Ok(TableLocation::Postgres(address.with_connections_max(self.connections_max)));
        }
        if address.is_empty() {
            return Err(Failure::function(
                "the address of an existing database is empty: set the `config` that names it",
            ));
        }
        Ok(TableLocation::File(self.folder.join(address)))
    }

    /// Returns the path of an SQLite database that a program names; `None` if it is no such database.
    #[must_use]
    pub fn file(&self, address: &str) -> Option<PathBuf> {
        match self.place(address) {
            Ok(TableLocation::File(file)) => Some(file),
            _ => None,
        }
    }

    /// Opens a database that a program names. Warnings are written to the log.
    pub(super) fn open(&self, address: &str, log: Option<TableLog>) -> Result<OpenDatabase, Failure> {
        Ok(match self.place(address)? {
            TableLocation::Postgres(address) => {
                OpenDatabase::Postgres(Arc::new(PostgresDatabase::open_existing(address, log)?))
            }
            TableLocation::File(file) => OpenDatabase::Sqlite(Arc::new(Database::open_existing(&file, log)?)),
            TableLocation::Memory | TableLocation::Scratch(_) => {
                return Err(Failure::function("an existing database is a file, or has an address"));
            }
        })
    }
}

impl TableLocation {
    /// Returns whether two places may be one database: one file, or any databases of PostgreSQL, which have several addresses.
    pub(super) fn may_be(&self, other: &TableLocation) -> bool {
        match (self, other) {
            (TableLocation::File(file), TableLocation::File(other)) => {
                match (file.canonicalize(), other.canonicalize()) {
                    (Ok(file), Ok(other)) => file == other,
                    _ => false,
                }
            }
            (TableLocation::Postgres(_), TableLocation::Postgres(_)) => true,
            _ => false,
        }
    }
}

impl OpenDatabase {
    /// Returns the commits that become durable in groups, if they do.
    pub(super) fn commits(&self) -> Option<&Arc<GroupCommit>> {
        match self {
            OpenDatabase::Sqlite(database) => database.commits(),
            OpenDatabase::Postgres(database) => database.commits(),
        }
    }

    /// Takes back the transaction that is open, if there is one.
    pub(super) fn take_back_unfinished(&self) {
        match self {
            OpenDatabase::Sqlite(database) => database.take_back_unfinished(),
            OpenDatabase::Postgres(database) => database.take_back_unfinished(),
        }
    }

    pub(super) fn close(&self) -> Result<(), Failure> {
        match self {
            OpenDatabase::Sqlite(database) => database.close(),
            OpenDatabase::Postgres(database) => database.close(),
        }
    }
}
