//! The peers of the case `new-order`: the transaction by hand.
//!
//! In SQLite one thread executes the transactions that wait as one, with a savepoint for each, and answers when it is durable.
//! In PostgreSQL each transaction has a connection of a pool, and two round trips: everything that depends on the request
//! alone is sent together, then everything that depends on the answers, and the commit.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, mpsc};

use bench_harness::{BenchResult, by_hand};
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

use crate::hand::{PeerResult, answered};
use crate::notes_in_postgres::connect;
use crate::notes_in_sqlite::PRAGMAS;

/// The order that a request asks for.
#[derive(Clone)]
struct Order {
    district: i64,
    customer: i64,
    /// The number of the line, the item and the quantity.
    picked: Vec<(i64, i64, i64)>,
}

impl Order {
    fn new(number: i64) -> Order {
        let pick = |line| (line, (number % 100_000 * 31 + line * 7_919) % 100_000 + 1, line % 10 + 1);
        Order {
            district: number % 10 + 1,
            customer: number / 10 % 3_000 + 1,
            picked: (1..number / 30_000 % 11 + 6).map(pick).collect(),
        }
    }
}

fn left_of(quantity: i64, ordered: i64) -> i64 {
    if quantity >= ordered + 10 { quantity - ordered } else { quantity - ordered + 91 }
}

fn total(amounts: i64, discount: i64, taxes: i64) -> i64 {
    amounts * (1_000 - discount) * (1_000 + taxes) / 1_000_000
}

// SQLite takes `?2` for the second parameter, and `$2` for a name.
const WAREHOUSE: &str = "SELECT tax FROM warehouses WHERE id = 1";
const CUSTOMER: &str = "SELECT discount FROM customers WHERE district = ?1 AND id = ?2";
const DISTRICT: &str = "UPDATE districts SET next_order = next_order + 1 WHERE id = ?1 RETURNING next_order - 1, tax";
const ITEM: &str = "SELECT price FROM items WHERE id = ?1";
const STOCK: &str = "SELECT quantity, ordered, orders FROM stocks WHERE item = ?1";
const NEW_STOCK: &str = "UPDATE stocks SET quantity = ?2, ordered = ?3, orders = ?4 WHERE item = ?1";
const ORDER: &str = "INSERT INTO orders VALUES (?1, ?2, ?3, ?4)";
const NEW_ORDER: &str = "INSERT INTO new_orders VALUES (?1, ?2)";
const LINE: &str = "INSERT INTO lines VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
/// All statements.
const ALL: [&str; 9] = [WAREHOUSE, CUSTOMER, DISTRICT, ITEM, STOCK, NEW_STOCK, ORDER, NEW_ORDER, LINE];

/// Serves orders until the process is killed.
pub(crate) fn serve(kind: &str, port: u16, folder: &Path, address: Option<String>) -> BenchResult<()> {
    if let Some(address) = address {
        let pool = Arc::new(Pool { address, idle: Mutex::default(), free: Semaphore::new(CONNECTIONS_MAX) });
        return by_hand::serve(port, move |request| {
            let (pool, number) = (Arc::clone(&pool), number_of(request.uri().path()));
            async move { answered(pool.order(number).await.map(|total| Some(total.to_string()))) }
        });
    }
    if kind != "orders-sqlite" {
        return Err(format!("there is no server {kind}").into());
    }
    let writer = Connection::open(folder.join("orders.db"))?;
    writer.execute_batch(PRAGMAS)?;
    let (orders, waiting) = mpsc::channel();
    std::thread::spawn(move || write(&writer, &waiting).expect("the disk is not full"));
    by_hand::serve(port, move |request| {
        let (done, ordered) = oneshot::channel();
        let sent = orders.send((Order::new(number_of(request.uri().path())), done));
        async move {
            let total: PeerResult<i64> = async {
                sent.map_err(|_| "the writer has ended")?;
                Ok(ordered.await?)
            }
            .await;
            answered(total.map(|total| Some(total.to_string())))
        }
    })
}

fn number_of(path: &str) -> i64 {
    path.rsplit('/').next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

type Waiting = (Order, oneshot::Sender<i64>);

fn write(writer: &Connection, waiting: &mpsc::Receiver<Waiting>) -> rusqlite::Result<()> {
    writer.set_prepared_statement_cache_capacity(32);
    while let Ok(first) = waiting.recv() {
        let group: Vec<Waiting> = std::iter::once(first).chain(waiting.try_iter().take(1_024)).collect();
        writer.execute_batch("BEGIN IMMEDIATE")?;
        let mut totals = Vec::with_capacity(group.len());
        for (order, _) in &group {
            writer.execute_batch("SAVEPOINT ordered")?;
            totals.push(ordered(writer, order)?);
            writer.execute_batch("RELEASE ordered")?;
        }
        writer.execute_batch("COMMIT")?;
        for ((_, done), total) in group.into_iter().zip(totals) {
            _ = done.send(total);
        }
    }
    Ok(())
}

fn ordered(writer: &Connection, order: &Order) -> rusqlite::Result<i64> {
    let Order { district, customer, picked } = order;
    let statement = |sql| writer.prepare_cached(sql);
    let here: i64 = statement(WAREHOUSE)?.query_row([], |row| row.get(0))?;
    let discount: i64 = statement(CUSTOMER)?.query_row((district, customer), |row| row.get(0))?;
    let (number, tax): (i64, i64) = statement(DISTRICT)?.query_row([district], |row| Ok((row.get(0)?, row.get(1)?)))?;
    statement(ORDER)?.execute((district, number, customer, picked.len() as i64))?;
    statement(NEW_ORDER)?.execute((district, number))?;
    let mut amounts = 0;
    for (line, item, quantity) in picked {
        let price: i64 = statement(ITEM)?.query_row([item], |row| row.get(0))?;
        let stock = statement(STOCK)?.query_row([item], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        let (left, sold, orders): (i64, i64, i64) = stock?;
        statement(NEW_STOCK)?.execute((item, left_of(left, *quantity), sold + quantity, orders + 1))?;
        statement(LINE)?.execute((district, number, line, item, quantity, price * quantity))?;
        amounts += price * quantity;
    }
    Ok(total(amounts, discount, here + tax))
}

/// Maximum number of connections.
const CONNECTIONS_MAX: usize = 16;

/// Connections to PostgreSQL, each with its prepared statements.
struct Pool {
    address: String,
    idle: Mutex<VecDeque<Arc<Prepared>>>,
    free: Semaphore,
}

struct Prepared {
    client: Client,
    statements: Vec<Statement>,
}

type Parameter = Box<dyn ToSql + Sync + Send>;

impl Prepared {
    /// Sends a statement behind those that were sent before. Tasks run in the order in which they are spawned.
    fn send(self: &Arc<Self>, sql: &str, parameters: Vec<i64>) -> JoinHandle<Result<Vec<Row>, Error>> {
        let (connection, at) = (Arc::clone(self), ALL.iter().position(|known| *known == sql).expect("it is prepared"));
        tokio::spawn(async move {
            let parameters: Vec<Parameter> =
                parameters.into_iter().map(|parameter| Box::new(parameter) as Parameter).collect();
            let borrowed: Vec<&(dyn ToSql + Sync)> =
                parameters.iter().map(|parameter| &**parameter as &(dyn ToSql + Sync)).collect();
            connection.client.query(&connection.statements[at], &borrowed).await
        })
    }

    fn command(self: &Arc<Self>, sql: &'static str) -> JoinHandle<Result<(), Error>> {
        let connection = Arc::clone(self);
        tokio::spawn(async move { connection.client.batch_execute(sql).await })
    }
}

impl Pool {
    async fn order(&self, number: i64) -> PeerResult<i64> {
        let _free = self.free.acquire().await?;
        let idle = self.idle.lock().pop_front();
        let connection = match idle {
            Some(connection) => connection,
            None => {
                let client = connect(&self.address).await?;
                let mut statements = Vec::new();
                for sql in ALL {
                    // Another district may sell the same item at the same time.
                    let locks = if sql == STOCK { " FOR UPDATE" } else { "" };
                    statements.push(client.prepare(&format!("{}{locks}", sql.replace('?', "$"))).await?);
                }
                Arc::new(Prepared { client, statements })
            }
        };
        let total = ordered_in_postgres(&connection, Order::new(number)).await;
        self.idle.lock().push_front(connection);
        total
    }
}

async fn ordered_in_postgres(connection: &Arc<Prepared>, order: Order) -> PeerResult<i64> {
    let Order { district, customer, mut picked } = order;
    let line_count = picked.len() as i64;
    // In one order, so that no two transactions wait for each other.
    picked.sort_by_key(|(_, item, _)| *item);
    let began = connection.command("BEGIN");
    let served = connection.send(DISTRICT, vec![district]);
    let here = connection.send(WAREHOUSE, vec![]);
    let buyer = connection.send(CUSTOMER, vec![district, customer]);
    let each = picked.iter();
    let read: Vec<_> =
        each.map(|(_, item, _)| (connection.send(ITEM, vec![*item]), connection.send(STOCK, vec![*item]))).collect();
    began.await??;
    let (served, here, buyer) = (served.await??, here.await??, buyer.await??);
    let (number, tax): (i64, i64) = (served[0].get(0), served[0].get(1));
    let mut sent = vec![
        connection.send(ORDER, vec![district, number, customer, line_count]),
        connection.send(NEW_ORDER, vec![district, number]),
    ];
    let mut amounts = 0;
    for ((line, item, quantity), (price, stock)) in picked.into_iter().zip(read) {
        let (price, stock) = (price.await??, stock.await??);
        let (left, sold, orders): (i64, i64, i64) = (stock[0].get(0), stock[0].get(1), stock[0].get(2));
        let amount = price[0].get::<_, i64>(0) * quantity;
        sent.push(connection.send(NEW_STOCK, vec![item, left_of(left, quantity), sold + quantity, orders + 1]));
        sent.push(connection.send(LINE, vec![district, number, line, item, quantity, amount]));
        amounts += amount;
    }
    let committed = connection.command("COMMIT");
    for answer in sent {
        answer.await??;
    }
    committed.await??;
    Ok(total(amounts, buyer[0].get(0), here[0].get::<_, i64>(0) + tax))
}
