//! Columns of existing tables that the database computes from others: they are read, and no row is written with them.

use super::existing::Other;
use super::{request, text};
use crate::support::{Scratch, Served, say};

fn items(number: &str) -> String {
    format!(
        "CREATE TABLE items (id {number}, price INTEGER NOT NULL, pieces INTEGER NOT NULL,
         total INTEGER NOT NULL GENERATED ALWAYS AS (price * pieces) STORED);
         INSERT INTO items (id, price, pieces) VALUES (1, 1, 2), (2, 4, 5), (3, 1, 1);"
    )
}

/// Returns a program with this type of rows and this clause.
fn program(fields: &str, clause: &str, routes: &str) -> Scratch {
    let text = format!(
        "use http\n\nrecord Item {{ id: Int, price: Int, pieces: Int{fields} }}\n\nconfig shop: Text\n\n\
         table items: Item key id existing(database: shop{clause})\n\nservice s on http(port: 8080) {{\n{routes}\n}}\n"
    );
    Scratch::new("items.weir", text.as_bytes())
}

#[test]
fn a_column_that_the_database_computes_is_read_like_others() {
    let route = "  get \"/\" { http.json(for i in items if i.total > 1 order by i.total desc { i }) }";
    let program = program(", total: Int", "", route);
    for other in Other::each("existing_computed", items) {
        let served = Served::start(program.path(), &["--set", &other.option()]);
        assert_eq!(
            text(&served.get("/")).trim(),
            r#"[{"id":2,"price":4,"pieces":5,"total":20},{"id":1,"price":1,"pieces":2,"total":2}]"#
        );
        served.stop();
    }
}

#[test]
fn a_writable_table_leaves_out_a_column_that_the_database_computes() {
    let routes = "  post \"/\" {
    items.insert(Item { id: 7, price: 2, pieces: 3 })?
    items.upsert(Item { id: 1, price: 5, pieces: 5 })?
    items.update(2, |i| Item { ..i, pieces: 6 })?
    http.text(\"{items.update_all(|i| i.id == 3, |i| Item { ..i, price: 9 })?}\")
  }";
    let count = "  get \"/\" { http.json(items.count()) }";
    let with = program(", total: Int", ", writable: true", count);
    let without = program("", ", writable: true", routes);
    for other in Other::each("existing_left_out", items) {
        let said = say(&["tables", with.path(), "--set", &other.option()]).output;
        assert!(said.contains("the database computes its column `total`, and no row is written with it"), "{said}");
        let served = Served::start(without.path(), &["--set", &other.option()]);
        let answer = request(&served, "POST", "/").expect("an answer");
        assert_eq!((answer.status, text(&answer).trim()), (200, "1"));
        served.stop();
        let totals = other.execute("SELECT total FROM items ORDER BY id");
        assert_eq!(totals.split_whitespace().collect::<Vec<_>>(), ["25", "24", "9", "6"]);
    }
}
