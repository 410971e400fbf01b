//! Changes of loops in transactions of PostgreSQL, which are few statements, also of tables that number their rows, or whose rows reference
//! others: they write, number and refuse as each change by itself does, and as other stores do.

use test_support::postgres::PostgresServer;

use super::{post, text};
use crate::support::{Scratch, Served, TableStore};

const TOGETHER: &str = r#"use http, list

enum Kind { Small, Large }
record Stock { item: Int, name: Text, left: Int }
record Line { order: Int, name: Text, kind: Kind, count: Option(Int) }
record Tag { line: Text, weight: Float, is_new: Bool, raw: Bytes }

table stocks: Stock key item
table lines: Line key (order, name) unique (kind, count)
table tags: Tag key line

service shop on http(port: 8080) {
  post "/fill" {
    atomic stocks {
      let none = stocks[1]
      for item in list.numbers(1, 13)? { stocks.insert(Stock { item, name: "it's \"{item}\" \\, NULL", left: 10 })? }
    }
    http.text("filled")
  }
  post "/order/{order}/{shift}/{a}/{b}" (order: Int, shift: Int, a: Int, b: Int) {
    let picked = [a, a + 1, b, a + 2]
    let said = atomic stocks, lines, tags {
      let known = for item in picked { stocks[item] }
      for (item, at) in picked.zip([0, 1, 2, 3]) {
        let stock = stocks.update(item, |s| Stock { ..s, left: s.left - 1 })? else { fail("no stock of {item}") }
        lines.insert(Line {
          order,
          name: if order == 8 { "same" } else { "{stock.name} ({at})" },
          kind: if at == 1 { Large } else { Small },
          count: if item == 9 { None } else { Some(shift + at) },
        })?
        tags.upsert(Tag { line: stock.name, weight: 0.1, is_new: at == 0, raw: "\\ {item}".to_bytes() })?
      }
      for item in picked { stocks[item] }
    }
    let left = for s in said { match s { Some(stock) => stock.left, None => 0 } }
    http.text("{left}")
  }
  get "/all" {
    let all = for s in stocks { "{s.item} {s.name} {s.left}" }
    let of_lines = for l in lines { "{l.order} {l.name} {l.kind} {l.count}" }
    let of_tags = for t in tags { "{t.line} {t.weight} {t.is_new} {t.raw.length()}" }
    http.text("{all} {of_lines} {of_tags}")
  }
}
"#;

/// Sends requests to a program in each store, and returns their answers with that of `/all`, and the lines of the log from the places
/// of failures on. They have to be the same in every store.
fn in_every_store(name: &str, text_of: &str, requests: &[String]) -> (Vec<String>, Vec<String>) {
    let program = Scratch::new(&format!("{name}.weir"), text_of.as_bytes());
    let found = TableStore::each(name).into_iter().map(|store| {
        let served = Served::start(program.path(), &store.with(&[]));
        let answers = requests.iter().map(|path| {
            let answer = post(&served, path).expect("an answer");
            if answer.status == 200 { format!("200 {}", text(&answer)) } else { answer.status.to_string() }
        });
        let mut answers: Vec<String> = answers.collect();
        answers.push(text(&served.get("/all")).to_owned());
        let (log, place) = (served.stop().1, format!("{name}.weir:"));
        let failures = log.lines().filter_map(|line| line.find(&place).map(|at| line[at..].to_owned()));
        (answers, failures.collect())
    });
    let found: Vec<(Vec<String>, Vec<String>)> = found.collect();
    for pair in found.windows(2) {
        assert_eq!(pair[0], pair[1]);
    }
    found.into_iter().next().expect("a store")
}

/// In PostgreSQL, the changes of each table are one statement. Each kind of request comes twice, because the statement is prepared for
/// the second one.
#[test]
fn changes_of_a_loop_that_are_one_statement_write_and_fail_as_each_by_itself() {
    let orders =
        ["1/10/1/5", "2/20/1/5", "3/30/1/1", "1/40/1/5", "4/9/1/5", "5/19/4/7", "6/50/5/9", "7/52/6/9", "8/70/1/5"];
    let requests = ["/fill".to_owned()].into_iter().chain(orders.map(|order| format!("/order/{order}")));
    let (answers, failures) = in_every_store("together", TOGETHER, &requests.collect::<Vec<_>>());
    assert!(failures.len() >= 3 && answers[2].starts_with("200"), "{answers:#?} {failures:#?}");
}

#[test]
fn the_changes_of_a_loop_are_one_statement_for_each_table() {
    let Some(server) = PostgresServer::shared() else { return };
    let program = Scratch::new("once.weir", TOGETHER.as_bytes());
    let served = Served::start(program.path(), &["--tables", &server.schema("changes_together")]);
    let orders = (1..=6).map(|order| format!("/order/{order}/{}/1/5", 10 * order));
    for path in ["/fill".to_owned()].into_iter().chain(orders) {
        assert_eq!(post(&served, &path).expect("an answer").status, 200, "{path}");
    }
    served.stop();
    // A row tells which command of its transaction has written it.
    let commands = |table: &str, rows: &str| {
        let sql = format!("SELECT count(*) || ' ' || count(DISTINCT cmin::text) FROM {table} WHERE {rows}");
        server.execute("changes_together", &sql).trim().to_owned()
    };
    assert_eq!(commands("lines", "\"order\" = 6"), "4 1");
    assert_eq!(commands("stocks", "\"left\" = 4"), "4 1");
    assert_eq!(commands("tags", "true"), "4 4");
}

const NUMBERED: &str = r#"use http, list

record Line { id: Int, name: Text, count: Int }
record Tag { id: Int, name: Text }

table lines: Line key id auto unique name
table tags: Tag key id auto

fn line(name: Text, count: Int) -> Line { Line { id: 0, name, count } }

service numbering on http(port: 8080) {
  post "/add/{name}/{count}" (name: Text, count: Int) {
    let ids = atomic lines, tags {
      for at in list.numbers(0, count)? {
        let id = lines.insert(line("{name} {at}", at))?
        let tag = if at % 3 == 0 { tags.insert(Tag { name: "{id}" })? } else { 0 }
        (id, tag)
      }
    }
    let said = for (id, tag) in ids { "{id} {tag}" }
    http.text("{said}")
  }
  post "/many/{name}/{count}" (name: Text, count: Int) {
    atomic lines { for at in list.numbers(0, count)? { lines.insert(line("{name} {at}", at))? } }
    http.text("added")
  }
  post "/behind/{name}" (name: Text) {
    let said = atomic lines {
      let first = lines.insert(line(name, 1))?
      let second = lines.insert(line("{name} second", 2))?
      let at_second = lines[second]
      lines.delete(second)?
      let third = lines.insert(line("{name} third", 3))?
      lines.upsert(Line { id: third + 10, name: "{name} chosen", count: 4 })?
      let fourth = lines.insert(line("{name} fourth", 5))?
      let matched = match lines.insert(line(name, 6)) {
        Ok(id) => "inserted {id}"
        Err(failure) => failure.kind()
      }
      let fifth = lines.insert(line("{name} fifth", 7))?
      lines.update(fifth, |l| Line { ..l, count: l.count + 1 })?
      lines.upsert(Line { id: first, name: "{name} first", count: 8 })?
      let sixth = lines.insert(line("{name} sixth", 9))?
      "{first} {second} {at_second} {third} {fourth} {matched} {fifth} {sixth} {lines.count()}"
    }
    http.text(said)
  }
  post "/fails/{name}/{count}" (name: Text, count: Int) {
    atomic lines, tags {
      for at in list.numbers(0, count)? {
        tags.insert(Tag { name })?
        lines.insert(line(if at == count - 1 { name } else { "{name} failed {at}" }, at))?
      }
    }
    http.text("kept")
  }
  get "/all" {
    let all = for l in lines { "{l.id} {l.name} {l.count}" }
    let of_tags = for t in tags { "{t.id} {t.name}" }
    http.text("{all} {of_tags}")
  }
}
"#;

/// In PostgreSQL, a transaction knows the numbers of its rows behind the first one.
#[test]
fn rows_of_a_transaction_have_the_next_numbers_whatever_stands_between_them() {
    let requests = (1..=4).flat_map(|round| {
        [
            format!("/add/a{round}/{}", 3 * round),
            format!("/behind/b{round}"),
            format!("/fails/a{round}%201/{}", 5 * round),
            format!("/fails/b{round}%20third/2"),
            format!("/add/c{round}/70"),
        ]
    });
    let (answers, _) = in_every_store("numbered", NUMBERED, &requests.collect::<Vec<_>>());
    let first = "200 [\"1 1\", \"2 0\", \"3 0\"]";
    assert_eq!((answers[0].as_str(), answers[2].as_str()), (first, "500"), "{answers:#?}");
}

#[test]
fn numbered_rows_of_a_loop_are_few_statements() {
    let Some(server) = PostgresServer::shared() else { return };
    let program = Scratch::new("numbered_once.weir", NUMBERED.as_bytes());
    let served = Served::start(program.path(), &["--tables", &server.schema("numbered_together")]);
    for name in ["a", "b", "c"] {
        assert_eq!(post(&served, &format!("/many/{name}/200")).expect("an answer").status, 200);
    }
    served.stop();
    // A row tells which command of its transaction has written it.
    let sql = "SELECT count(*) || ' ' || (count(DISTINCT cmin::text) < 20) FROM lines WHERE name LIKE 'c %'";
    assert_eq!(server.execute("numbered_together", sql).trim(), "200 true");
    let last = "SELECT last FROM weir_numbers WHERE \"table\" = 'lines'";
    assert_eq!(server.execute("numbered_together", last).trim(), "600");
}

/// Inserts a tag behind each line, with the next number.
const TAGGING: &str = "CREATE FUNCTION tag() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO tags (id, name) SELECT coalesce(max(id), 0) + 1, 'by a trigger' FROM tags; RETURN NULL;
END $$; CREATE TRIGGER tag AFTER INSERT ON lines FOR EACH ROW EXECUTE FUNCTION tag()";

/// The program has not noticed the trigger, and notices it when it starts.
#[test]
fn a_number_that_a_trigger_takes_is_not_that_of_the_next_row() {
    let Some(server) = PostgresServer::shared() else { return };
    let program = Scratch::new("tagging.weir", NUMBERED.as_bytes());
    let tables = server.schema("numbers_of_triggers");
    for begin in [0, 40] {
        let served = Served::start(program.path(), &["--tables", &tables]);
        let added: Vec<u16> = (0..8)
            .map(|round| {
                if (begin, round) == (0, 4) {
                    server.execute("numbers_of_triggers", TAGGING);
                }
                post(&served, &format!("/add/{}/5", begin + round)).expect("an answer").status
            })
            .collect();
        assert_eq!(added, [200; 8]);
        served.stop();
    }
    // Sixteen requests have added five lines and two tags each, and the trigger a tag for each line of twelve of them.
    let counts =
        "SELECT (SELECT count(*) || ' ' || max(id) FROM lines) || ' ' || (SELECT count(*) || ' ' || max(id) FROM tags)";
    assert_eq!(server.execute("numbers_of_triggers", counts).trim(), "80 80 92 92");
}

const REFERENCING: &str = r#"use http, list

record Order { id: Int, name: Text }
record Item { id: Int, order: Int, parent: Option(Int), count: Int }

table orders: Order key id auto unique name
table items: Item key id auto references order: orders references parent: items cascade

service ordering on http(port: 8080) {
  post "/order/{name}/{count}" (name: Text, count: Int) {
    let said = atomic orders, items {
      let order = orders.insert(Order { name })?
      let ids = for at in list.numbers(0, count)? { items.insert(Item { order, parent: None, count: at })? }
      "{order} {ids}"
    }
    http.text(said)
  }
  post "/more/{order}/{count}" (order: Int, count: Int) {
    atomic items { for at in list.numbers(0, count)? { items.insert(Item { order, parent: None, count: at })? } }
    http.text("added")
  }
  post "/tree/{order}/{parent}" (order: Int, parent: Int) {
    let said = atomic orders, items {
      let found = orders[order] else { fail("no order") }
      let first = items.insert(Item { order: found.id, parent: Some(parent), count: 1 })?
      let second = items.insert(Item { order, parent: Some(first), count: 2 })?
      items.update(first, |i| Item { ..i, parent: Some(second) })?
      let third = items.insert(Item { order, parent: Some(second), count: 3 })?
      "{first} {second} {third}"
    }
    http.text(said)
  }
  post "/deleted/{name}" (name: Text) {
    let said = atomic orders, items {
      let order = orders.insert(Order { name })?
      let first = items.insert(Item { order, parent: None, count: 1 })?
      let second = items.insert(Item { order, parent: Some(first), count: 2 })?
      items.delete(first)?
      let third = items.insert(Item { order, parent: None, count: 3 })?
      let behind = match items.insert(Item { order, parent: Some(second), count: 4 }) {
        Ok(id) => "inserted {id}"
        Err(failure) => failure.kind()
      }
      "{order} {first} {second} {third} {behind}"
    }
    http.text(said)
  }
  post "/dangling/{name}" (name: Text) {
    atomic orders, items {
      let order = orders.insert(Order { name })?
      let first = items.insert(Item { order, parent: None, count: 1 })?
      items.insert(Item { order, parent: Some(first), count: 2 })?
      items.delete_all(|i| i.order == order)?
      items.insert(Item { order, parent: Some(first), count: 3 })?
    }
    http.text("kept")
  }
  get "/all" {
    let all = for i in items { "{i.id} {i.order} {i.parent} {i.count}" }
    let of_orders = for o in orders { "{o.id} {o.name}" }
    http.text("{all} {of_orders}")
  }
}
"#;

/// In PostgreSQL, a transaction does not look for rows that it knows before it writes others that reference them.
#[test]
fn rows_that_reference_those_of_the_same_transaction_are_written_and_refused_as_in_every_store() {
    let requests = (1..=4).flat_map(|round| {
        [
            format!("/order/a{round}/{}", 2 * round),
            format!("/more/{round}/3"),
            format!("/more/{}/3", 100 + round),
            format!("/tree/{round}/1"),
            format!("/tree/{round}/1000"),
            format!("/deleted/b{round}"),
            format!("/dangling/c{round}"),
            format!("/order/a{round}/2"),
        ]
    });
    let (answers, _) = in_every_store("referencing", REFERENCING, &requests.collect::<Vec<_>>());
    let refused = [2, 4, 6, 7].map(|at: usize| answers[at].as_str());
    assert_eq!((answers[5].as_str(), refused), ("200 2 9 10 11 constraint", ["500"; 4]), "{answers:#?}");
}

#[test]
fn rows_that_reference_known_ones_are_few_statements() {
    let Some(server) = PostgresServer::shared() else { return };
    let program = Scratch::new("referencing_once.weir", REFERENCING.as_bytes());
    let served = Served::start(program.path(), &["--tables", &server.schema("referencing_together")]);
    let paths = ["/order/a/200", "/order/b/200", "/order/c/200", "/more/1/200"];
    assert!(paths.iter().all(|path| post(&served, path).expect("an answer").status == 200));
    served.stop();
    for (rows, number) in [("id > 400 AND \"order\" = 3", "200 true"), ("id > 600 AND \"order\" = 1", "200 true")] {
        let sql = format!("SELECT count(*) || ' ' || (count(DISTINCT cmin::text) < 20) FROM items WHERE {rows}");
        assert_eq!(server.execute("referencing_together", &sql).trim(), number, "{rows}");
    }
}
