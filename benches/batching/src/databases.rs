//! The stores of the pages as tables of SQLite, in the process, and of PostgreSQL, behind a delay that stands for a network.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bench_harness::BenchResult;
use parking_lot::Mutex;
use rusqlite::Connection;
use test_support::postgres::PostgresServer;
use tokio::sync::OnceCell;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};

/// The number of rows of each store: those with the same hundreds belong to one owner.
const ROWS: i64 = 2_200;

/// Each store is a table.
pub(crate) struct Database {
    stores: Vec<String>,
    kind: Kind,
    queries: AtomicU64,
}

enum Kind {
    Sqlite(Mutex<Connection>),
    /// The connection belongs to the event loop that uses it, and is made there.
    Postgres {
        address: String,
        delay: Duration,
        client: OnceCell<Prepared>,
    },
}

/// A connection to PostgreSQL, with the two queries of each store.
struct Prepared {
    client: Client,
    of_stores: Vec<[Statement; 2]>,
}

/// A query: the rows of these keys, or the first rows of these owners.
#[derive(Clone, Copy)]
enum Query {
    Get,
    List { count: i64 },
}

/// The result of a query.
pub(crate) type DatabaseResult<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Pairs of a key or an owner and a value.
type Rows = Vec<(i64, i64)>;

impl Database {
    /// Makes the tables in SQLite, in memory.
    pub(crate) fn sqlite(stores: &[String]) -> BenchResult<Arc<Database>> {
        let connection = Connection::open_in_memory()?;
        for store in stores {
            connection.execute_batch(&format!(
                "CREATE TABLE {store}(id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, value INTEGER NOT NULL);
                 CREATE INDEX {store}_by_owner ON {store}(owner);
                 WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {ROWS})
                 INSERT INTO {store} SELECT n, n / 100, n FROM numbers;"
            ))?;
        }
        Ok(Database::new(stores, Kind::Sqlite(Mutex::new(connection))))
    }

    /// Makes the tables in a schema of PostgreSQL.
    pub(crate) fn postgres(
        server: &PostgresServer,
        schema: &str,
        stores: &[String],
        delay: Duration,
    ) -> BenchResult<Arc<Database>> {
        server.schema(schema);
        for store in stores {
            let sql = format!(
                "CREATE TABLE {store}(id BIGINT PRIMARY KEY, owner BIGINT NOT NULL, value BIGINT NOT NULL);
                 CREATE INDEX ON {store}(owner);
                 INSERT INTO {store} SELECT n, n / 100, n FROM generate_series(0, {ROWS}) n; ANALYZE {store};"
            );
            server.execute(schema, &sql);
        }
        Ok(Database::for_postgres(server.address(schema), stores, delay))
    }

    fn for_postgres(address: String, stores: &[String], delay: Duration) -> Arc<Database> {
        Database::new(stores, Kind::Postgres { address, delay, client: OnceCell::new() })
    }

    fn new(stores: &[String], kind: Kind) -> Arc<Database> {
        Arc::new(Database { stores: stores.to_vec(), kind, queries: AtomicU64::new(0) })
    }

    /// Returns the same tables for another event loop.
    pub(crate) fn for_another_loop(self: &Arc<Database>) -> Arc<Database> {
        match &self.kind {
            Kind::Sqlite(_) => Arc::clone(self),
            Kind::Postgres { address, delay, .. } => Database::for_postgres(address.clone(), &self.stores, *delay),
        }
    }

    /// Returns the number of queries so far.
    pub(crate) fn queries(&self) -> u64 {
        self.queries.load(Ordering::Relaxed)
    }

    /// Returns the values of these keys of a store, in their order.
    pub(crate) async fn get(&self, store: usize, keys: Vec<i64>) -> DatabaseResult<Vec<i64>> {
        let rows = self.ask(store, Query::Get, keys.clone()).await?;
        let value = |key: &i64| rows.iter().find(|(id, _)| id == key).map(|(_, value)| *value);
        keys.iter().map(|key| value(key).ok_or_else(|| "there is no such row".into())).collect()
    }

    /// Returns the first `count` keys of each of these owners.
    pub(crate) async fn list(&self, store: usize, owners: Vec<i64>, count: i64) -> DatabaseResult<Vec<Vec<i64>>> {
        let rows = self.ask(store, Query::List { count }, owners.clone()).await?;
        let of = |owner: &i64| rows.iter().filter(|(of, _)| of == owner).map(|(_, id)| *id).collect();
        Ok(owners.iter().map(of).collect())
    }

    async fn ask(&self, store: usize, query: Query, keys: Vec<i64>) -> DatabaseResult<Rows> {
        self.queries.fetch_add(1, Ordering::Relaxed);
        match &self.kind {
            Kind::Sqlite(connection) => ask_sqlite(&connection.lock(), &self.stores[store], query, &keys),
            // In a box, so that the future of a query of SQLite does not have room for it.
            Kind::Postgres { address, delay, client } => {
                let ask = async {
                    tokio::time::sleep(*delay).await;
                    let prepared = client.get_or_try_init(|| prepared(address, &self.stores)).await?;
                    ask_postgres(prepared, store, query, &keys).await
                };
                Box::pin(ask).await
            }
        }
    }
}

fn ask_sqlite(connection: &Connection, store: &str, query: Query, keys: &[i64]) -> DatabaseResult<Rows> {
    let keys = serde_json::to_string(keys)?;
    let pair = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let rows = match query {
        Query::Get => {
            let sql = format!("SELECT id, value FROM {store} WHERE id IN (SELECT value FROM json_each(?1))");
            connection.prepare_cached(&sql)?.query_map([keys], pair)?.collect::<Result<Rows, _>>()?
        }
        Query::List { count } => {
            let sql = format!(
                "SELECT owner, id FROM {store} WHERE owner IN (SELECT value FROM json_each(?1)) AND id % 100 < ?2 ORDER BY id"
            );
            connection.prepare_cached(&sql)?.query_map((keys, count), pair)?.collect::<Result<Rows, _>>()?
        }
    };
    Ok(rows)
}

async fn prepared(address: &str, stores: &[String]) -> DatabaseResult<Prepared> {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await?;
    tokio::spawn(connection);
    let mut of_stores = Vec::new();
    for store in stores {
        let get = client.prepare(&format!("SELECT id, value FROM {store} WHERE id = ANY($1)")).await?;
        let list = format!("SELECT owner, id FROM {store} WHERE owner = ANY($1) AND id % 100 < $2 ORDER BY id");
        of_stores.push([get, client.prepare(&list).await?]);
    }
    Ok(Prepared { client, of_stores })
}

async fn ask_postgres(prepared: &Prepared, store: usize, query: Query, keys: &[i64]) -> DatabaseResult<Rows> {
    let [get, list] = &prepared.of_stores[store];
    let rows = match query {
        Query::Get => prepared.client.query(get, &[&keys]).await?,
        Query::List { count } => {
            let parameters: [&(dyn ToSql + Sync); 2] = [&keys, &count];
            prepared.client.query(list, &parameters).await?
        }
    };
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}
