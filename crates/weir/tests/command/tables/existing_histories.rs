//! Random transactions on an existing database, whose programs do not take turns in PostgreSQL: is there an order that explains them?

use super::existing::Other;
use crate::histories::{PROGRAM, have_an_order};
use crate::support::ENGINES;

/// The reads are transactions, too: only these are `SERIALIZABLE`.
#[test]
fn transactions_of_existing_databases_have_an_order() {
    let text = PROGRAM
        .replace("table stored: Cell key name index even", EXISTING)
        .replace("{ Ok(cell(key).items) }\n", "{ atomic stored { Ok(cell(key).items) } }\n")
        .replace("{ Ok(for cell in stored { \"{cell.name}{cell.items}\" }) }", READ_ROWS)
        .replace("let found = for c in stored {\n", "let found = atomic stored { for c in stored {\n")
        .replace("let found = for key in [0, 2, 4] {\n", "let found = atomic stored { for key in [0, 2, 4] {\n")
        .replace("  }\n  Ok(found)\n", "  } }\n  Ok(found)\n")
        .replace("table notes: Note key id", "table notes: Note key id existing(database: shop, writable: true)");
    assert_eq!(text.matches("atomic stored").count(), PROGRAM.matches("atomic stored").count() + 4);
    for (seed, engine) in (1..).zip(ENGINES) {
        for other in Other::each(&format!("existing_cells_{seed}"), |_| CELLS.to_owned()) {
            have_an_order(&text, 1, &["--set", &other.option(), "--engine", engine], seed);
        }
    }
}

const EXISTING: &str =
    "config shop: Text\n\ntable stored: Cell key name index even existing(database: shop, writable: true)";

const READ_ROWS: &str = "{ atomic stored { Ok(for cell in stored { \"{cell.name}{cell.items}\" }) } }";

const CELLS: &str =
    "CREATE TABLE stored (name bigint NOT NULL PRIMARY KEY, next bigint NOT NULL, items text NOT NULL, even boolean NOT NULL);
     CREATE INDEX by_even ON stored (even);
     CREATE TABLE notes (id bigint NOT NULL PRIMARY KEY, text text NOT NULL);";
