//! Benchmark of tables: services in Weir against servers that are written by hand on hyper, rusqlite and tokio-postgres, in
//! turns.
//!
//! | case | load |
//! |---|---|
//! | `read` | one row by its key, out of 10,000 |
//! | `mixed` | of 20 requests, 16 reads by key, 1 query of the last ten rows of a board, and 3 insertions |
//! | `write` | insertions, each durable before it is answered; also the latency of a bare loop of `fdatasync` |
//! | `soft-read` | the time of one read of a soft table, without HTTP |
//! | `large` | 10 million rows in SQLite: the start, a read by key beside one of 1,000 rows, the last page beside the first |
//! | `shop` | a page with nine products and their sellers, which the program reads one by one in its text |
//! | `steps` | the time of 1,000 steps of SQLite's machine, in SQLite alone and in Weir |
//! | `new-order` | the transaction `NewOrder` of TPC-C with one warehouse |
//!
//! The first three run for the stores `sqlite`, `soft` and `postgres`, and `shop` and `new-order` for `sqlite` and `postgres`. The servers
//! by hand have one thread with inline reads:
//!
//! | server | is |
//! |---|---|
//! | `hand-sqlite` | hyper and rusqlite: a connection for each thread with prepared statements; a thread that writes with group commit (`synchronous=FULL`, one transaction for all insertions that wait) |
//! | `hand-soft` | hyper and two maps behind a lock |
//! | `hand-postgres` | hyper and tokio-postgres: reads are pipelined on one connection, and the insertions that wait are one transaction on another |
//! | `weir-STORE-ENGINE` | `programs/notes.weir` |
//!
//! The PostgreSQL server is a private one that the benchmark starts, with its default durability (`fsync=on`).
//!
//! ```sh
//! cargo run --release -p bench-tables -- [--case read] [--store sqlite] [--engines event,pool] [--rows 10000000] [--rounds 10]
//!     [--seconds 1] [--connections 64]
//! ```
//!
//! The program prints a table for each case, and writes `bench-tables-CASE.json` into the target directory.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

mod filled;
mod hand;
mod http_cases;
mod large;
mod new_order;
mod new_order_by_hand;
mod notes_in_memory;
mod notes_in_postgres;
mod notes_in_sqlite;
mod servers;
mod shop;
mod soft_read;
mod steps;
mod sync_loop;

use bench_harness::{BenchResult, LoadOptions, taken};
use servers::{Setting, Store};

fn main() -> BenchResult<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "--child") {
        return servers::child(&arguments[1..]);
    }
    let case = taken(&mut arguments, "--case");
    let store = taken(&mut arguments, "--store");
    let engines = taken(&mut arguments, "--engines").unwrap_or_else(|| "event".to_owned());
    let rows: u64 = taken(&mut arguments, "--rows").map_or(Ok(10_000_000), |rows| rows.parse())?;
    let options = LoadOptions::read(&arguments)?;
    let engines: Vec<&str> = engines.split(',').collect();
    let wants = |name: &str| case.as_ref().is_none_or(|case| case == name);
    let stores: Vec<Store> =
        Store::ALL.into_iter().filter(|one| store.as_ref().is_none_or(|s| s == one.name())).collect();
    println!("load of the machine: {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    let setting = Setting::new(&engines)?;
    for case in http_cases::CASES.iter().filter(|case| wants(case.name)) {
        http_cases::run(case, &stores, &setting, options)?;
    }
    if wants("soft-read") {
        soft_read::run(&setting, options)?;
    }
    if wants("steps") {
        steps::run(&setting, options)?;
    }
    if wants("shop") {
        shop::run(&stores, &setting, options)?;
    }
    if wants("new-order") {
        new_order::run(&stores, &setting, options)?;
    }
    if wants("large") { large::run(&setting, rows, options) } else { Ok(()) }
}
