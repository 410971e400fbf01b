//! Another program changes the columns of an existing table while the program runs.

use test_support::postgres::PostgresServer;

use super::existing::Other;
use super::{post, text};
use crate::support::{Scratch, Served, say};

const CUSTOMERS: &str = r#"use http

record Customer { id: Int, name: Text, city: Text }

config shop: Text

table customers: Customer key id existing(database: shop, writable: true)

service front on http(port: 8080) {
  get "/" { http.json(for c in customers { c }) }
  get "/one" { http.json(customers[1]) }
  get "/each" { http.json(for id in [1, 2] { customers[id] }) }
  get "/count" { http.text("{customers.count(|c| c.city == "city")}") }
  get "/groups" { http.json(for (city, theirs) in (for c in customers { c }).group_by(|c| c.city) { (city, theirs.length()) }) }
  get "/together" {
    let both = atomic customers {
      let first = customers[1]
      customers.update(2, |c| Customer { ..c, city: "{c.city}!" })?
      (first, customers[2])
    }
    http.json(both)
  }
  post "/update" { http.json(customers.update(1, |c| Customer { ..c, name: "{c.name}!" })?) }
  post "/delete" { http.text("{customers.delete_all(|c| c.city != "Ulm")?}") }
}
"#;

const ROWS: &str = "INSERT INTO customers VALUES (1, 'ada', 'Ulm'), (2, 'bob', 'Bonn')";
const READS: [&str; 5] = ["/", "/one", "/each", "/count", "/groups"];

fn created(_: &str) -> String {
    let types = "(id bigint PRIMARY KEY, name varchar(40) NOT NULL, city text NOT NULL)";
    format!("CREATE TABLE customers {types}; {ROWS}")
}

#[test]
fn a_column_that_another_program_renames_fails_the_statements_that_name_it() {
    for other in Other::each("renamed-columns", created) {
        let program = Scratch::new("shop.weir", CUSTOMERS.as_bytes());
        let served = Served::start(program.path(), &["--set", &other.option()]);
        assert_eq!(text(&served.get("/count")), "0");
        other.execute("ALTER TABLE customers RENAME COLUMN city TO town");
        for path in READS.iter().filter(|path| **path != "/count").chain(&["/count", "/together"]) {
            assert_eq!(served.get(path).status, 500, "{path}: {}", text(&served.get(path)));
        }
        for path in ["/update", "/delete"] {
            assert_eq!(post(&served, path).map(|answer| answer.status), Some(500), "{path}");
        }
        other.execute("ALTER TABLE customers RENAME COLUMN town TO city");
        assert_eq!(text(&served.get("/groups")), r#"[["Ulm",1],["Bonn",1]]"#);
        served.stop();
    }
}

#[test]
fn statements_go_on_when_another_program_has_made_a_column_wider() {
    for other in Other::each("wider-columns", created).into_iter().filter(|other| !other.is_sqlite()) {
        for engine in ["event", "pool"] {
            let program = Scratch::new("shop.weir", CUSTOMERS.as_bytes());
            let served = Served::start(program.path(), &["--set", &other.option(), "--engine", engine]);
            let answers = || {
                let reads = READS.map(|path| served.get(path));
                let written = [served.get("/together"), post(&served, "/update").expect("it answers")];
                let all = reads.into_iter().chain(written);
                all.map(|answer| (answer.status, text(&answer).to_owned())).collect::<Vec<_>>()
            };
            // The statements are prepared on each connection.
            for _ in 0..6 {
                assert!(answers().iter().all(|(status, _)| *status == 200), "{:?}", answers());
            }
            for wider in ["varchar(80)", "text", "varchar(200)"] {
                other.execute(&format!("ALTER TABLE customers ALTER COLUMN name TYPE {wider}"));
                for _ in 0..3 {
                    let answers = answers();
                    assert!(answers.iter().all(|(status, _)| *status == 200), "{engine} {wider}: {answers:?}");
                }
            }
            served.stop();
        }
    }
}

const ITEMS: &str = r#"use http

record Item { id: Int, n: Int, x: Option(Int), paid: Bool }

table items: Item key id

service front on http(port: 8080) {
  get "/" { http.json(for i in items { (i.id, i.n, i.x) }) }
  get "/found" { http.json((items.count(|i| i.n > 10), for i in items if i.n <= 12 { i.id }, items[1] == None)) }
  post "/fill/{id}" (id: Int) { http.json(items.insert(Item { id, n: 10, x: None, paid: false })?) }
  post "/add/{id}" (id: Int) { http.json(items.update(id, |i| Item { ..i, n: i.n + 1, x: Some(i.n) })?) }
  post "/both" {
    let both = atomic items {
      items.upsert(Item { id: 1, n: 20, x: Some(1), paid: false })?
      items.update_all(|i| i.id == 2, |i| Item { ..i, n: 21, x: Some(2) })?
    }
    http.json(both)
  }
  post "/pay/{id}" (id: Int) { http.json(items.update(id, |i| Item { ..i, paid: true })?) }
}
"#;

/// The values of parameters have the types of the program, and the database converts them, or refuses the statement.
#[test]
fn nothing_is_lost_when_another_program_has_given_a_column_another_type() {
    let Some(server) = PostgresServer::shared() else { return };
    for engine in ["event", "pool"] {
        let schema = format!("other_types_{engine}");
        server.schema(&schema);
        let (program, address) = (Scratch::new("items.weir", ITEMS.as_bytes()), server.address(&schema));
        let served = Served::start(program.path(), &["--tables", &address, "--engine", engine]);
        let posted = |path: &str| {
            let answer = post(&served, path).expect("it answers");
            (answer.status, text(&answer).to_owned())
        };
        for id in 1..4 {
            assert_eq!(posted(&format!("/fill/{id}")).0, 200);
            assert_eq!(posted(&format!("/add/{id}")).0, 200);
        }
        server.execute(&schema, "ALTER TABLE items ALTER n TYPE integer, ALTER x TYPE smallint");
        let checked = say(&["tables", program.path(), "--tables", &address]);
        let advice = "ALTER TABLE \"items\" ALTER COLUMN \"n\" TYPE bigint";
        assert!(checked.code == 1 && checked.output.contains(advice), "{}", checked.output);
        for _ in 0..2 {
            assert_eq!(text(&served.get("/found")), "[3,[1,2,3],false]");
        }
        for id in 1..4 {
            let (status, row) = posted(&format!("/add/{id}"));
            assert_eq!((status, row), (200, format!(r#"{{"id":{id},"n":12,"x":11,"paid":false}}"#)));
        }
        assert_eq!(text(&served.get("/")), "[[1,12,11],[2,12,11],[3,12,11]]");
        for _ in 0..2 {
            assert_eq!(posted("/both"), (200, "1".to_owned()));
        }
        assert_eq!(text(&served.get("/")), "[[1,20,1],[2,21,2],[3,12,11]]");
        // No number is a truth value.
        server.execute(&schema, "ALTER TABLE items ALTER paid TYPE integer USING 0");
        for _ in 0..3 {
            assert_eq!(posted("/pay/3").0, 500);
        }
        assert_eq!(server.execute(&schema, "SELECT id, n, x, paid FROM items WHERE id = 3").trim(), "3|12|11|0");
        served.stop();
    }
}
