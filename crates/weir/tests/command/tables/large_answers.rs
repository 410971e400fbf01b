//! Answers of PostgreSQL that are larger than what a connection keeps for those that do not take them.

use test_support::postgres::PostgresServer;

use super::{post, text};
use crate::support::{Scratch, Served};

/// A transaction asks for the rows of two tables, and takes those of the first table last.
const STOCKS: &str = r#"use http, list

record Stock { id: Int, shop: Int, left: Int }
record Shop { id: Int, name: Text }

table stocks: Stock key id
table shops: Shop key id

service shop on http(port: 8080) {
  post "/fill" {
    atomic stocks, shops {
      for id in list.numbers(0, 400)? { stocks.upsert(Stock { id, shop: id % 50, left: id })? }
      for id in list.numbers(0, 50)? { shops.upsert(Shop { id, name: "shop {id}" })? }
    }
    http.text("filled")
  }
  post "/sell" {
    let total = atomic stocks, shops {
      fold total = 0 for id in list.numbers(0, 400)? {
        let shop = shops[id % 50].map(|s| s.id) else { 0 }
        let left = stocks[id].map(|s| s.left) else { 0 }
        stocks.upsert(Stock { id, shop, left: left - 1 })?
        total + left
      }
    }
    http.text("{total}")
  }
  post "/count" {
    let total = atomic stocks, shops {
      let total = fold total = 0 for id in list.numbers(0, 400)? {
        let shop = shops[id % 50]
        total + (stocks[id].map(|s| s.left) else { 0 })
      }
      total + shops.count()
    }
    http.text("{total}")
  }
  get "/one" { http.text("{stocks[1] != None}") }
}
"#;

#[test]
fn a_transaction_does_not_wait_for_an_answer_behind_one_that_it_takes_later() {
    let Some(server) = PostgresServer::shared() else { return };
    let program = Scratch::new("stocks.weir", STOCKS.as_bytes());
    for engine in weir_runtime::ENGINES.iter().map(|engine| engine.name) {
        let address = server.schema(&format!("large_{}", engine.replace('-', "_")));
        let arguments = ["--tables", &address, "--engine", engine, "--threads", "2"];
        let served = Served::start(program.path(), &arguments);
        assert_eq!(post(&served, "/fill").map(|answer| answer.status), Some(200));
        // The first transactions prepare their statements. If one waits for ever, it is ended by the time limit of a statement.
        for sold in 0..3 {
            for (path, total) in [("/sell", 79_800 - sold * 400), ("/count", 79_450 - sold * 400)] {
                let answer = post(&served, path).expect("an answer");
                assert_eq!((answer.status, text(&answer)), (200, &*total.to_string()), "{path} under `{engine}`");
            }
            assert_eq!(text(&served.get("/one")), "true");
        }
        served.stop();
    }
}
