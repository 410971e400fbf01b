//! Texts with the character NUL and tables of other programs: PostgreSQL stores none, and compares as if it could.

use super::existing::Other;
use super::{post, text};
use crate::support::{Scratch, Served};

const PROGRAM: &str = r#"use http

record Name { name: Text, number: Int }

config shop: Text

table names: Name key name existing(database: shop, writable: true)

const nul: Text = "a\0b"

service s on http(port: 8080) {
  get "/found" {
    let by_key = match names[nul] {
      Some(_) => "a row"
      None => "none"
    }
    let changed = match names.update(nul, |n| Name { ..n, number: 9 })? {
      Some(_) => "a row"
      None => "none"
    }
    let deleted = names.delete(nul)?
    let several = for name in ["a", nul, "abc"] { names[name] }
    http.json((by_key, changed, deleted, names.exists(|n| n.name == nul), for found in several { found != None }))
  }
  get "/compared" {
    let less = for n in names if n.name < nul { n.name.length() }
    let at_most = for n in names if n.name <= nul { n.name.length() }
    let greater = for n in names if n.name > nul && n.number < 9 { n.name.length() }
    let at_least = for n in names if n.name >= nul order by n.name desc { n.name.length() }
    http.json((less, at_most, greater, at_least, names.count(|n| n.name != nul)))
  }
  post "/" {
    let stored = names.insert(Name { name: nul, number: 1 }) else as failure { return http.text("{failure.kind()}") }
    http.text("stored")
  }
}
"#;

fn names(_: &str) -> String {
    "CREATE TABLE names (name TEXT PRIMARY KEY NOT NULL, number INTEGER NOT NULL);
     INSERT INTO names VALUES ('', 1), ('a', 2), ('abc', 3), ('bcde', 4);"
        .to_owned()
}

#[test]
fn a_text_with_nul_is_compared_as_in_memory() {
    let program = Scratch::new("names.weir", PROGRAM.as_bytes());
    for other in Other::each("existing_nul", names) {
        let served = Served::start(program.path(), &["--set", &other.option()]);
        let answer = |path: &str| text(&served.get(path)).trim().to_owned();
        assert_eq!(answer("/found"), r#"["none","none",false,false,[true,false,true]]"#);
        assert_eq!(answer("/compared"), "[[0,1],[0,1],[3,4],[4,3],4]");
        let stored = post(&served, "/").map(|answer| text(&answer).to_owned());
        assert_eq!(stored.as_deref(), Some(if other.is_sqlite() { "stored" } else { "constraint" }));
        served.stop();
    }
}
