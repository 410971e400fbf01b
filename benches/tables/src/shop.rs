//! The case `shop`: a page with nine products and their sellers, which the program reads one by one in its text, beside a server by
//! hand that asks for all of them at once.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bench_harness::{BenchResult, Load, LoadOptions, LoadReport, ServerProcess, Workload, by_hand, measure};
use rusqlite::{Connection, OptionalExtension};
use tokio::sync::OnceCell;
use tokio_postgres::{Client, Statement};

use crate::filled::FilledTables;
use crate::hand::{PeerResult, answered};
use crate::notes_in_postgres::connect;
use crate::notes_in_sqlite::read_from;
use crate::servers::{Setting, Store};

const PROGRAM: &str = include_str!("../programs/shop.weir");
const TABLES: FilledTables = FilledTables {
    file: "shop.db",
    schema: "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE sellers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
        CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT NOT NULL, cents INTEGER NOT NULL, seller INTEGER NOT NULL);",
    end: ") STRICT;",
    rows: &[
        ("customers", CUSTOMERS, "n, 'customer ' || n"),
        ("sellers", 500, "n, 'seller ' || n"),
        ("products", 10_000, "n, 'product ' || n, n % 9900 + 100, n % 500 + 1"),
    ],
};
const CUSTOMERS: u64 = 1_000;
/// The number of products of a page.
const SHOWN: i64 = 9;

/// Measures the page on these stores.
pub(crate) fn run(stores: &[Store], setting: &Setting, options: LoadOptions) -> BenchResult<()> {
    let mut report = LoadReport::default();
    for store in stores.iter().filter(|store| **store != Store::Soft) {
        let name = store.name();
        let Some(place) = setting.place(&format!("shop-hand-{name}"), *store)? else { continue };
        TABLES.create(setting, &place)?;
        let mut servers = vec![place.start_by_hand(&format!("hand-{name}"), &format!("shop-{name}"))?];
        for engine in &setting.engines {
            let Some(place) = setting.place(&format!("shop-{engine}-{name}"), *store)? else { continue };
            // The first start creates the tables.
            place.start_weir("first", PROGRAM, engine)?.terminate()?;
            TABLES.fill(setting, &place, &place.database())?;
            servers.push(place.start_weir(&format!("weir-{engine}"), PROGRAM, engine)?);
        }
        check(&servers)?;
        let request = |random: u64, request: &mut String| {
            write!(request, "/home/{}", random % CUSTOMERS + 1).expect("a `String` takes everything");
        };
        report.cases.push(measure(&format!("{name}-shop"), &servers, options, &Workload::kept(Arc::new(request)))?);
    }
    report.publish("bench-tables-shop")
}

/// Fails if the servers do not answer the same.
fn check(servers: &[ServerProcess]) -> BenchResult<()> {
    let load = Load::new(1)?;
    let asked: Vec<String> = (1..=CUSTOMERS).step_by(111).map(|id| format!("/home/{id}")).collect();
    let answers = servers.iter().map(|server| load.bodies(server, &asked)).collect::<BenchResult<Vec<_>>>()?;
    if answers.iter().any(|answer| *answer != answers[0]) {
        return Err(format!("the servers give different pages: {answers:?}").into());
    }
    Ok(())
}

/// Serves pages by hand until the process is killed.
pub(crate) fn serve(kind: &str, port: u16, folder: &Path, address: Option<String>) -> BenchResult<()> {
    let shop = Arc::new(match (kind, address) {
        ("shop-sqlite", _) => Shop::Sqlite(folder.join(TABLES.file)),
        ("shop-postgres", Some(address)) => Shop::Postgres(address, OnceCell::new()),
        _ => return Err(format!("there is no server {kind}").into()),
    });
    by_hand::serve(port, move |request| {
        let shop = Arc::clone(&shop);
        async move {
            let id = request.uri().path().strip_prefix("/home/").and_then(|id| id.parse().ok());
            let Some(id) = id else { return answered(Ok(None)) };
            answered(shop.home(id).await)
        }
    })
}

/// The tables.
enum Shop {
    Sqlite(PathBuf),
    /// The connection is made by the first request, on its event loop.
    Postgres(String, OnceCell<Prepared>),
}

struct Prepared {
    client: Client,
    customer: Statement,
    products: Statement,
    sellers: Statement,
}

struct Product {
    id: i64,
    name: String,
    cents: i64,
    seller: i64,
}

impl Shop {
    async fn home(&self, id: i64) -> PeerResult<Option<String>> {
        let shown: Vec<i64> = (0..SHOWN).map(|n| (id * 31 + n * 997) % 10_000 + 1).collect();
        let (customer, products, sellers) = match self {
            Shop::Sqlite(path) => read_from(path, |reader| of_sqlite(reader, id, &shown))?,
            Shop::Postgres(address, prepared) => {
                of_postgres(prepared.get_or_try_init(|| Prepared::at(address)).await?, id, &shown).await?
            }
        };
        let Some(mut page) = customer else { return Ok(None) };
        for id in shown {
            page.push('\n');
            let Some(product) = products.iter().find(|product| product.id == id) else {
                page.push_str("sold out");
                continue;
            };
            page.push_str(&product.name);
            if let Some((_, seller)) = sellers.iter().find(|(id, _)| *id == product.seller) {
                write!(page, " for {} by {seller}", product.cents)?;
            }
        }
        Ok(Some(page))
    }
}

/// The name of the customer, the products and the sellers of a page.
type Found = (Option<String>, Vec<Product>, Vec<(i64, String)>);

fn of_sqlite(reader: &Connection, id: i64, shown: &[i64]) -> rusqlite::Result<Found> {
    let mut statement = reader.prepare_cached("SELECT name FROM customers WHERE id = ?1")?;
    let customer = statement.query_row([id], |row| row.get(0)).optional()?;
    let of_keys = "id IN (SELECT value FROM json_each(?1))";
    let sql = format!("SELECT id, name, cents, seller FROM products WHERE {of_keys}");
    let product = |row: &rusqlite::Row<'_>| {
        Ok(Product { id: row.get(0)?, name: row.get(1)?, cents: row.get(2)?, seller: row.get(3)? })
    };
    let mut statement = reader.prepare_cached(&sql)?;
    let products = statement.query_map([listed(shown)], product)?.collect::<rusqlite::Result<Vec<_>>>()?;
    let sql = format!("SELECT id, name FROM sellers WHERE {of_keys}");
    let mut statement = reader.prepare_cached(&sql)?;
    let sellers = statement.query_map([listed(&sellers_of(&products))], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let sellers = sellers.collect::<rusqlite::Result<Vec<_>>>()?;
    Ok((customer, products, sellers))
}

/// Returns the sellers of products, each once.
fn sellers_of(products: &[Product]) -> Vec<i64> {
    let mut sellers: Vec<i64> = products.iter().map(|product| product.seller).collect();
    sellers.sort_unstable();
    sellers.dedup();
    sellers
}

/// Returns keys as a list of JSON.
fn listed(keys: &[i64]) -> String {
    format!("[{}]", keys.iter().map(i64::to_string).collect::<Vec<_>>().join(","))
}

impl Prepared {
    async fn at(address: &str) -> PeerResult<Prepared> {
        let client = connect(address).await?;
        let customer = client.prepare("SELECT name FROM customers WHERE id = $1").await?;
        let products = client.prepare("SELECT id, name, cents, seller FROM products WHERE id = ANY($1)").await?;
        let sellers = client.prepare("SELECT id, name FROM sellers WHERE id = ANY($1)").await?;
        Ok(Prepared { client, customer, products, sellers })
    }
}

async fn of_postgres(prepared: &Prepared, id: i64, shown: &[i64]) -> PeerResult<Found> {
    let Prepared { client, customer, products, sellers } = prepared;
    let customer = client.query_opt(customer, &[&id]).await?.map(|row| row.get(0));
    let product =
        |row: tokio_postgres::Row| Product { id: row.get(0), name: row.get(1), cents: row.get(2), seller: row.get(3) };
    let products: Vec<Product> = client.query(products, &[&shown]).await?.into_iter().map(product).collect();
    let sellers = client.query(sellers, &[&sellers_of(&products)]).await?;
    Ok((customer, products, sellers.iter().map(|row| (row.get(0), row.get(1))).collect()))
}
