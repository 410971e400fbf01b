//! Servers of the benchmark: stores, child processes, and the programs in Weir.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use bench_harness::{BenchResult, ServerProcess, free_port};
use test_support::postgres::PostgresServer;

use crate::{hand, new_order_by_hand, shop};

/// The text of every note: a hundred characters.
pub(crate) const TEXT: &str =
    "A note of a hundred characters, as people leave them on a board: short, and with no more than it says.";

/// A store of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    Sqlite,
    Soft,
    Postgres,
}

impl Store {
    pub(crate) const ALL: [Store; 3] = [Store::Sqlite, Store::Soft, Store::Postgres];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Store::Sqlite => "sqlite",
            Store::Soft => "soft",
            Store::Postgres => "postgres",
        }
    }
}

/// The things that all cases share: a folder, the engines, and the server of PostgreSQL.
pub(crate) struct Setting {
    folder: PathBuf,
    pub(crate) engines: Vec<String>,
    postgres: OnceLock<Option<PostgresServer>>,
}

impl Setting {
    pub(crate) fn new(engines: &[&str]) -> BenchResult<Setting> {
        let folder = std::env::temp_dir().join(format!("weir-bench-tables-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let engines = engines.iter().map(|engine| (*engine).to_owned()).collect();
        Ok(Setting { folder, engines, postgres: OnceLock::new() })
    }

    /// Returns an empty folder of this name.
    pub(crate) fn folder(&self, name: &str) -> BenchResult<PathBuf> {
        let folder = self.folder.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Returns the server of PostgreSQL, which starts before its first use; `None` if it is not installed.
    pub(crate) fn postgres(&self) -> Option<&PostgresServer> {
        self.postgres.get_or_init(PostgresServer::start_durable).as_ref()
    }

    /// Creates the place of a server's rows: a folder, and with PostgreSQL the address of an empty schema. `None` if the store
    /// is not installed.
    pub(crate) fn place(&self, name: &str, store: Store) -> BenchResult<Option<Place>> {
        let folder = self.folder(name)?;
        let address = match store {
            Store::Postgres => {
                let Some(server) = self.postgres() else { return Ok(None) };
                let schema = name.replace('-', "_");
                server.execute("public", &format!("DROP SCHEMA IF EXISTS \"{schema}\" CASCADE"));
                Some(server.schema(&schema))
            }
            Store::Sqlite | Store::Soft => None,
        };
        Ok(Some(Place { folder, address }))
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.folder);
    }
}

/// The place of a server's rows.
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    pub(crate) address: Option<String>,
}

impl Place {
    /// Starts the server by hand of this name: `notes-sqlite`, for example.
    pub(crate) fn start_by_hand(&self, name: &str, kind: &str) -> BenchResult<ServerProcess> {
        let port = free_port()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--child", kind, &port.to_string()]).arg(&self.folder).args(&self.address);
        ServerProcess::start(name, &mut command, port)
    }

    /// Starts a program in Weir, in which `PORT` and `TEXT` are replaced.
    pub(crate) fn start_weir(&self, name: &str, program: &str, engine: &str) -> BenchResult<ServerProcess> {
        let port = free_port()?;
        let file = self.folder.join("tables.weir");
        fs::write(&file, program.replace("PORT", &port.to_string()).replace("TEXT", TEXT))?;
        let threads = if engine == "pool" { "64" } else { "1" };
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--child", "weir", "run"]).arg(&file).args(["--engine", engine, "--threads", threads]);
        if let Some(address) = &self.address {
            command.args(["--tables", address]);
        }
        ServerProcess::start(name, &mut command, port)
    }

    /// Returns the database in SQLite of a program that [`Place::start_weir`] starts.
    pub(crate) fn database(&self) -> PathBuf {
        self.folder.join("tables.db")
    }
}

/// Runs a child process: `weir run …`, or `KIND PORT FOLDER [ADDRESS]`.
pub(crate) fn child(arguments: &[String]) -> BenchResult<()> {
    if arguments.first().is_some_and(|first| first == "weir") {
        let exit = weir::cli().run_from(arguments.iter().map(String::as_str));
        return if exit.code() == 0 { Ok(()) } else { Err("weir has ended".into()) };
    }
    let [kind, port, folder, address @ ..] = arguments else { return Err("KIND PORT FOLDER expected".into()) };
    let (port, folder, address) = (port.parse()?, Path::new(folder), address.first().cloned());
    match kind.strip_prefix("notes-") {
        Some(store) => hand::serve(store, port, folder, address),
        None if kind.starts_with("shop-") => shop::serve(kind, port, folder, address),
        None => new_order_by_hand::serve(kind, port, folder, address),
    }
}
