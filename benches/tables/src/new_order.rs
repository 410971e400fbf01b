//! The case `new-order`: a transaction of 20 to 48 statements, beside the same by hand.

use std::fmt::Write;
use std::sync::Arc;

use bench_harness::{BenchResult, LoadOptions, LoadReport, Workload, measure};
use rusqlite::Connection;

use crate::filled::{FilledTables, schema_of};
use crate::servers::{Place, Setting, Store};

const PROGRAM: &str = include_str!("../programs/new_order.weir");
/// One warehouse of TPC-C (clause 1.2).
const TABLES: FilledTables = FilledTables {
    file: "orders.db",
    schema: include_str!("new_order.sql"),
    end: ") STRICT, WITHOUT ROWID;",
    rows: &[
        ("warehouses", 1, "n, 50"),
        ("districts", 10, "n, n * 3, 3001"),
        ("customers", 30_000, "(n - 1) / 3000 + 1, (n - 1) % 3000 + 1, n % 100"),
        ("items", 100_000, "n, n % 9900 + 100"),
        ("stocks", 100_000, "n, n % 91 + 10, 0, 0"),
    ],
};

/// Measures the transaction on these stores.
pub(crate) fn run(stores: &[Store], setting: &Setting, options: LoadOptions) -> BenchResult<()> {
    let mut report = LoadReport::default();
    for store in stores.iter().filter(|store| **store != Store::Soft) {
        let name = store.name();
        let Some(place) = setting.place(&format!("order-hand-{name}"), *store)? else { continue };
        TABLES.create(setting, &place)?;
        let mut servers = vec![place.start_by_hand(&format!("hand-{name}"), &format!("orders-{name}"))?];
        let mut places = vec![(place.folder.join(TABLES.file), place)];
        for engine in &setting.engines {
            let Some(place) = setting.place(&format!("order-{engine}-{name}"), *store)? else { continue };
            // The first start creates the tables.
            place.start_weir("first", PROGRAM, engine)?.terminate()?;
            TABLES.fill(setting, &place, &place.database())?;
            servers.push(place.start_weir(&format!("weir-{engine}"), PROGRAM, engine)?);
            places.push((place.database(), place));
        }
        check(&servers)?;
        let rows = places.iter().map(|(database, place)| rows_of(setting, place, database));
        let rows = rows.collect::<BenchResult<Vec<String>>>()?;
        if rows.iter().any(|row| *row != rows[0]) {
            return Err(format!("the servers write different rows: {rows:?}").into());
        }
        let request = |random: u64, request: &mut String| {
            write!(request, "POST /orders/{}", random % 330_000).expect("a `String` takes everything");
        };
        report.cases.push(measure(&format!("{name}-order"), &servers, options, &Workload::kept(Arc::new(request)))?);
    }
    report.publish("bench-tables-new-order")
}

/// Fails if the servers do not give the same totals.
fn check(servers: &[bench_harness::ServerProcess]) -> BenchResult<()> {
    let load = bench_harness::Load::new(1)?;
    let asked: Vec<String> = [7, 123_456, 329_999].iter().map(|number| format!("POST /orders/{number}")).collect();
    let answers = servers.iter().map(|server| load.bodies(server, &asked)).collect::<BenchResult<Vec<_>>>()?;
    if answers.iter().any(|answer| *answer != answers[0]) {
        return Err(format!("the servers give different totals: {answers:?}").into());
    }
    Ok(())
}

/// Returns sums over the rows that orders write.
fn rows_of(setting: &Setting, place: &Place, database: &std::path::Path) -> BenchResult<String> {
    const SUMS: [(&str, &str); 7] = [
        ("quantity", "stocks"),
        ("item * ordered", "stocks"),
        ("orders", "stocks"),
        ("next_order", "districts"),
        ("line_count * id", "orders"),
        ("id", "new_orders"),
        ("number * amount", "lines"),
    ];
    let sums = SUMS.map(|(of, table)| format!("(SELECT CAST(sum({of}) AS text) FROM {table})"));
    let sql = format!("SELECT {}", sums.join(" || ' ' || "));
    Ok(match (&place.address, setting.postgres()) {
        (Some(address), Some(server)) => server.execute(schema_of(address), &sql).trim().to_owned(),
        _ => Connection::open(database)?.query_row(&sql, [], |row| row.get(0))?,
    })
}
