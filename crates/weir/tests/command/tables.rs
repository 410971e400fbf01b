//! Stored tables of a real process: restarts, kills, other databases.

use std::io::Write;
use std::sync::Mutex;
use std::thread;

use crate::support::{Answer, Scratch, Served, read_answer, say, weir};

const COUNTER: &str = r#"use http

record Entry { id: Int, by: Int, number: Int }

record Total { name: Text, count: Int }

table entries: Entry key id auto unique (by, number)
table totals: Total key name

service ledger on http(port: 8080) {
  post "/{by}/{number}" (by: Int, number: Int) {
    atomic entries, totals {
      entries.insert(Entry { by, number })?
      let known = totals["all"] else { Total { name: "all", count: 0 } }
      totals.upsert(Total { ..known, count: known.count + 1 })?
    }
    http.text("written")
  }
  get "/total" {
    let total = totals["all"] else { return http.text("0 {entries.count()}") }
    http.text("{total.count} {entries.count()}")
  }
  get "/all/{by}" (by: Int) {
    http.json(for entry in entries if entry.by == by order by entry.number { entry.number })
  }
}
"#;

fn post(served: &Served, path: &str) -> Option<Answer> {
    let mut stream = std::net::TcpStream::connect(&served.address).ok()?;
    let request =
        format!("POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", served.address);
    stream.write_all(request.as_bytes()).ok()?;
    let mut head = [0; 15];
    let read = stream.peek(&mut head).ok()?;
    if read == 0 { None } else { std::panic::catch_unwind(|| read_answer(stream)).ok() }
}

fn text(answer: &Answer) -> &str {
    std::str::from_utf8(&answer.body).expect("a text")
}

/// Number of kills; `WEIR_KILLS` sets another one.
fn kills() -> u64 {
    std::env::var("WEIR_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(20)
}

#[test]
fn what_was_acknowledged_survives_a_kill_and_no_transaction_is_torn() {
    let (program, data) = (Scratch::new("ledger.weir", COUNTER.as_bytes()), Scratch::folder("ledger"));
    let arguments = ["--data", data.path()];
    let acknowledged: Mutex<Vec<Vec<u64>>> = Mutex::new(vec![Vec::new(); 4]);
    for round in 0..kills() {
        let served = Served::start(program.path(), &arguments);
        thread::scope(|scope| {
            for by in 0..4_u64 {
                let (served, acknowledged) = (&served, &acknowledged);
                scope.spawn(move || {
                    for number in round * 1_000.. {
                        match post(served, &format!("/{by}/{number}")) {
                            Some(answer) if answer.status == 200 => {
                                acknowledged.lock().unwrap()[by as usize].push(number);
                            }
                            _ => return,
                        }
                    }
                });
            }
            let answered = || acknowledged.lock().unwrap().iter().map(Vec::len).sum::<usize>();
            let before_kill = answered() + 5 + (round % 7) as usize * 4;
            while answered() < before_kill {
                thread::yield_now();
            }
            served.signal("-KILL");
        });
        served.kill();
    }
    let served = Served::start(program.path(), &arguments);
    let total = served.get("/total");
    let (total, rows) = text(&total).split_once(' ').expect("two numbers");
    assert_eq!(total, rows, "a transaction is torn");
    let mut count = 0;
    for (by, numbers) in acknowledged.lock().unwrap().iter().enumerate() {
        let stored = served.get(&format!("/all/{by}"));
        let stored: Vec<u64> =
            text(&stored).trim_matches(['[', ']', '\n']).split(',').filter_map(|n| n.parse().ok()).collect();
        let lost: Vec<&u64> = numbers.iter().filter(|number| stored.binary_search(number).is_err()).collect();
        assert!(lost.is_empty(), "acknowledged, and lost: {lost:?}");
        count += numbers.len();
    }
    assert!(count > 0, "nothing was acknowledged");
    eprintln!("{} kills, {count} acknowledged, {rows} stored", kills());
    served.stop();
}

#[test]
fn tables_are_there_after_a_restart_and_are_shown() {
    let (program, data) = (Scratch::new("ledger.weir", COUNTER.as_bytes()), Scratch::folder("ledger"));
    let arguments = ["--data", data.path()];
    let shown = say(&["tables", program.path(), "--data", data.path()]);
    assert!(shown.output.contains("a start runs: CREATE TABLE \"entries\""), "{}", shown.output);
    let served = Served::start(program.path(), &arguments);
    assert_eq!(post(&served, "/1/1").map(|answer| answer.status), Some(200));
    assert_eq!(post(&served, "/1/1").map(|answer| answer.status), Some(500));
    let second = weir(&["run", program.path(), "--port", "0", "--data", data.path()]).output().unwrap();
    let messages = String::from_utf8(second.stderr).unwrap();
    assert!(messages.contains("another Weir program uses the database"), "{messages}");
    served.stop();
    // After a clean stop, the file alone holds all rows.
    let copy = Scratch::folder("ledger-copy");
    let files: Vec<_> = std::fs::read_dir(data.path()).unwrap().map(|file| file.unwrap()).collect();
    let log = files.iter().filter(|file| file.file_name().to_string_lossy().ends_with("-wal"));
    assert_eq!(log.map(|log| log.metadata().unwrap().len()).sum::<u64>(), 0, "the log is empty");
    for database in files.iter().filter(|file| file.file_name().to_string_lossy().ends_with(".db")) {
        std::fs::copy(database.path(), std::path::Path::new(copy.path()).join(database.file_name())).unwrap();
    }
    let served = Served::start(program.path(), &["--data", copy.path()]);
    assert_eq!(text(&served.get("/total")).trim(), "1 1");
    served.stop();
    let shown = say(&["tables", program.path(), "--data", data.path()]);
    assert!(shown.output.contains("the database has it like this"), "{}", shown.output);
}

#[test]
fn writes_of_many_clients_take_effect_once() {
    const CLIENTS: u64 = 48;
    for engine in ["event", "pool", "staged", "elastic"] {
        let (program, data) = (Scratch::new("ledger.weir", COUNTER.as_bytes()), Scratch::folder("ledger"));
        let served = Served::start(program.path(), &["--data", data.path(), "--engine", engine]);
        // A debug build may be overloaded: what is refused is sent again.
        let written = &|by: u64, number: u64| loop {
            match post(&served, &format!("/{by}/{number}")).map(|answer| answer.status) {
                Some(503) => {}
                status => return status,
            }
        };
        let write = &|by: u64| (0..10).map(|number| written(by, number)).collect::<Vec<_>>();
        let answers: Vec<Option<u16>> = thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS).map(|by| scope.spawn(move || write(by))).collect();
            clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
        });
        let failed: Vec<_> = answers.iter().filter(|status| **status != Some(200)).collect();
        assert!(failed.is_empty(), "of {} writes under `{engine}`: {failed:?}", answers.len());
        assert_eq!(text(&served.get("/total")).trim(), "480 480");
        served.stop();
    }
}

const STEPS: &str = r#"use http

record Account { owner: Text, balance: Int }

table accounts: Account key owner

fn refused() -> Result(Int) { fail("refused") }

fn write(how: Text) -> Result(Int) {
  let written = atomic accounts {
    accounts.upsert(Account { owner: how, balance: 1 })?
    if how == "returned err" { return refused() }
    if how == "returned ok" { return Ok(1) }
    if how == "tried" { refused()? }
    if how == "failed" { fail("refused") }
    if how == "value err" { refused() } else { Ok(1) }
  }
  written
}

fn kept(how: Text) -> Bool {
  let written = write(how) else { 0 }
  let row = atomic accounts { accounts[how] }
  accounts.exists(|a| a.owner == how) && row != None && written == 1
}

fn taken_back(how: Text) -> Bool {
  let written = write(how) else { 0 }
  !accounts.exists(|a| a.owner == how) && written == 0
}

fn right() -> Bool {
  kept("returned ok") && kept("value ok") && taken_back("returned err") && taken_back("tried") && taken_back("failed")
    && taken_back("value err")
}

service steps on http(port: 8080) {
  get "/" { http.text("{right()} {accounts.count()}") }
}

test "a step that ends with an err has written nothing" { expect right() }
"#;

#[test]
fn a_step_that_ends_with_an_err_takes_back_its_writes() {
    let (program, data) = (Scratch::new("steps.weir", STEPS.as_bytes()), Scratch::folder("steps"));
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 0, "{}{}", said.output, said.messages);
    let served = Served::start(program.path(), &["--data", data.path()]);
    assert_eq!(text(&served.get("/")).trim(), "true 2");
    served.stop();
}

#[test]
fn a_start_that_a_table_prevents_says_which() {
    let before = "use http\nrecord Row { id: Int }\ntable rows: Row key id\nservice s on http(port: 80) { get \"/\" { http.json(for r in rows { r }) } }\n";
    let after = before.replace("id: Int }", "id: Text }");
    let (program, data) = (Scratch::new("rows.weir", before.as_bytes()), Scratch::folder("rows"));
    Served::start(program.path(), &["--data", data.path()]).stop();
    program.write(after.as_bytes());
    let said = say(&["run", program.path(), "--port", "0", "--data", data.path()]);
    let expected =
        "cannot be opened: the column `id` is `Int` in the database and `Text` in the program; give it a new name";
    let expected = format!(":3:7: the table `rows` {expected}");
    assert_eq!(said.code, 3, "{}", said.messages);
    assert!(said.messages.contains(&expected), "{}", said.messages);
}

const AGGREGATES: &str = r#"use http

record Sale { id: Int, shop: Text, price: Int, weight: Float, at: Option(Int) }

table sales: Sale key id auto index (shop, price)

fn add(shop: Text, price: Int, weight: Float) -> Result(Int) {
  sales.insert(Sale { shop, price, weight, at: None })
}

// Each aggregate, as the table computes it and as the list of the rows has it.
fn both(shop: Text) -> List((Text, Text)) {
  let prices = for s in sales if s.shop == shop { s.price }
  let weights = for s in sales if s.shop == shop { s.weight }
  [
    ("{(for s in sales if s.shop == shop { s.price }).max()}", "{prices.max()}"),
    ("{(for s in sales if s.shop == shop { s.price }).min()}", "{prices.min()}"),
    ("{(for s in sales if s.shop == shop { s.price }).sum()}", "{prices.sum()}"),
    ("{(for s in sales if s.shop == shop { s.price }).length()}", "{prices.length()}"),
    ("{(for s in sales if s.shop == shop { s.weight }).max()}", "{weights.max()}"),
    ("{(for s in sales if s.shop == shop { s.weight }).min()}", "{weights.min()}"),
    ("{(for s in sales if s.shop == shop && s.weight > 0.0 { s.price }).sum()}", "{(for s in sales if s.shop == shop { s }).map(|s| if s.weight > 0.0 { s.price } else { 0 }).sum()}"),
    ("{(for s in sales if s.shop == shop order by s.price limit 1 { s.price }).sum()}", "{prices.min() else { 0 }}")
  ]
}

fn written() -> Result(Bool) {
  add("a", 3, 0.5)?
  add("a", 9_223_372_036_854_775_807, -1.5)?
  add("a", -9_223_372_036_854_775_807, 2.25)?
  add("a", -5, -0.0)?
  add("b", 7, 1.0)?
  Ok(true)
}

fn right() -> Bool {
  let wrong = for shop in ["a", "b", "none"] { (for (table, list) in both(shop) if table != list { table }).length() }
  wrong.sum() == 0
}

fn total() -> Int { (for s in sales { s.price }).sum() }

service shops on http(port: 8080) {
  post "/" { http.text("{written()?}") }
  post "/more" { http.text("{add("a", 9_223_372_036_854_775_807, 0.0)?}") }
  get "/" { http.text("{right()} {total()}") }
}

test "aggregates of the table are those of the list" {
  written()?
  expect right()
  expect total() == 5
}
"#;

#[test]
fn aggregates_of_a_table_are_those_of_the_list_of_its_rows() {
    let (program, data) = (Scratch::new("shops.weir", AGGREGATES.as_bytes()), Scratch::folder("shops"));
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 0, "{}{}", said.output, said.messages);
    let served = Served::start(program.path(), &["--data", data.path()]);
    assert_eq!(text(&post(&served, "/").unwrap()).trim(), "true");
    assert_eq!(text(&served.get("/")).trim(), "true 5");
    assert_eq!(post(&served, "/more").map(|answer| answer.status), Some(200));
    assert_eq!(served.get("/").status, 500, "the sum does not fit into an `Int`");
    served.stop();
    let graph = say(&["graph", program.path(), "--format", "text"]);
    assert!(graph.output.contains("tables.sum"), "{}{}", graph.output, graph.messages);
}

const JOINS: &str = r#"use http

record User { name: Text, city: Text }

record Message { id: Int, from: Text, to: Text }

record Place { city: Text, number: Int, street: Text }

table users: User key name
table messages: Message key id auto
table places: Place key (city, number)

fn written() -> Result(Bool) {
  users.upsert(User { name: "ada", city: "Rom" })?
  users.upsert(User { name: "bob", city: "Ulm" })?
  places.upsert(Place { city: "Rom", number: 2, street: "Via" })?
  for (from, to) in [("ada", "bob"), ("bob", "eve"), ("eve", "ada"), ("ada", "ada")] {
    messages.insert(Message { from, to })?
  }
  Ok(true)
}

fn shown(user: Option(User)) -> Text {
  let user = user else { User { name: "?", city: "?" } }
  "{user.name} of {user.city}"
}

fn cities() -> List((Int, Option(User), Option(User))) {
  for m in messages order by m.id desc { (m.id, users[m.from], users[m.to]) }
}

fn streets(names: List(Text), number: Int) -> List(Text) {
  for name in names {
    let user = users[name] else { return ["{name} is unknown"] }
    let place = places[(user.city, number)] else { Place { city: user.city, number, street: "none" } }
    place.street
  }
}

fn moved() -> Result(List(Text)) {
  let seen = for name in ["ada", "ada"] {
    let user = users[name] else { User { name, city: "" } }
    users.upsert(User { ..user, city: "{user.city}!" })?
    user.city
  }
  Ok(seen)
}

fn nested() -> List(Text) {
  for user in users {
    let twice = for n in [1, 2] {
      let same = users[user.name] else { return [] }
      if users[user.name] == Some(user) { "{same.city}{n}" } else { "" }
    }
    "{twice}"
  }
}

fn all() -> Text {
  let cities = for (id, from, to) in cities() { "{id} {shown(from)} {shown(to)}" }
  "{cities} {streets(["ada", "bob"], 2)} {streets(["bob", "eve"], 2)} {nested()}"
}

service board on http(port: 8080) {
  post "/" { http.text("{written()?}") }
  post "/move" { http.text("{moved()?}") }
  get "/" { http.text(all()) }
}

test "rows by keys" {
  written()?
  expect all() == JOINED
  expect moved()? == ["Rom", "Rom!"]
}
"#;

const JOINED: &str = r#"["4 ada of Rom ada of Rom", "3 ? of ? ada of Rom", "2 bob of Ulm ? of ?", "1 ada of Rom bob of Ulm"] ["Via", "none"] ["eve is unknown"] ["[\"Rom1\", \"Rom2\"]", "[\"Ulm1\", \"Ulm2\"]"]"#;

#[test]
fn keyed_reads_of_a_for_are_one_statement_unless_it_writes() {
    let joins = JOINS.replace("JOINED", &format!("{JOINED:?}"));
    let (program, data) = (Scratch::new("joins.weir", joins.as_bytes()), Scratch::folder("joins"));
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 0, "{}{}", said.output, said.messages);
    let served = Served::start(program.path(), &["--data", data.path()]);
    assert_eq!(text(&post(&served, "/").unwrap()).trim(), "true");
    assert_eq!(text(&served.get("/")).trim(), JOINED);
    assert_eq!(text(&post(&served, "/move").unwrap()).trim(), "[\"Rom\", \"Rom!\"]");
    served.stop();
    let graph = say(&["graph", program.path(), "--all"]).output;
    let reads = |function: &str| {
        graph.split(|c: char| !(c.is_alphanumeric() || c == '.' || c == '_')).filter(|word| *word == function).count()
    };
    assert!(reads("tables.get_all") > 0 && reads("tables.get") > 0, "{graph}");
}

#[test]
fn a_backup_under_load_is_a_database_of_one_moment() {
    let (program, data) = (Scratch::new("ledger.weir", COUNTER.as_bytes()), Scratch::folder("ledger"));
    let copies = Scratch::folder("copies");
    let backup = |number: usize| {
        let copy = format!("{}/{number}.db", copies.path());
        say(&["tables", program.path(), "--data", data.path(), "--backup", &copy])
    };
    assert!(backup(0).messages.contains("there is no database"), "{}", backup(0).messages);
    let served = Served::start(program.path(), &["--data", data.path()]);
    assert_eq!(post(&served, "/9/9").map(|answer| answer.status), Some(200));
    let ended = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        for by in 0..4 {
            let (served, ended) = (&served, &ended);
            scope.spawn(move || {
                for number in (0..).take_while(|_| !ended.load(std::sync::atomic::Ordering::Relaxed)) {
                    post(served, &format!("/{by}/{number}"));
                }
            });
        }
        let said: Vec<_> = (1..6).map(backup).collect();
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(said.iter().all(|said| said.code == 0 && said.output.contains("bytes copied")), "{}", said[0].messages);
    });
    assert!(backup(1).messages.contains("exists already"), "{}", backup(1).messages);
    let database = std::fs::read_dir(data.path()).unwrap().map(|file| file.unwrap().file_name());
    let database = database.into_iter().find(|name| name.to_string_lossy().ends_with(".db")).unwrap();
    served.stop();
    for number in 1..6 {
        let restored = Scratch::folder("restored");
        let copy = format!("{}/{number}.db", copies.path());
        std::fs::copy(copy, std::path::Path::new(restored.path()).join(&database)).unwrap();
        let served = Served::start(program.path(), &["--data", restored.path()]);
        let total = served.get("/total");
        let (total, rows) = text(&total).trim().split_once(' ').expect("two numbers");
        assert_eq!(total, rows, "a transaction is torn");
        assert_ne!(rows, "0");
        served.stop();
    }
}

#[test]
fn a_flow_that_waits_for_the_disk_leaves_its_thread() {
    let program = Scratch::new("ledger.weir", COUNTER.as_bytes());
    let plan = say(&["plan", program.path(), "--engine", "pool"]);
    assert!(plan.output.contains("settle"), "the plan shows the calls: {}", plan.output);
    assert!(!plan.output.contains("hold their thread"), "{}", plan.output);
}

/// Messages name what a program writes: tables and the database, no functions, types or locks of the implementation.
#[test]
fn messages_about_tables_have_no_internal_names() {
    let text = r#"use http

record User { name: Text, age: Int }

table users: User key name

shared total = 0

service web on http(port: 8080) {
  post "/{name}" (name: Text) {
    atomic users {
      total.add(1)
      users.delete(name)?
    }
    users.update(name, |user| { total.add(1); User { ..user, age: 2 } })?
    retry(3) { atomic users { users.insert(User { name, age: 4 })? } }?
    http.text("ok")
  }
}
"#;
    let file = Scratch::new("names.weir", text.as_bytes());
    let said = say(&["check", file.path()]);
    insta::assert_snapshot!(said.messages.replace(file.path(), "FILE"));
    let fixed = Scratch::new("value.weir", text.replace("\"ok\"", "\"{users}\"").as_bytes());
    let said = say(&["check", fixed.path()]);
    assert!(said.messages.contains("`users` is a table, and no value"), "{}", said.messages);
    assert!(!said.messages.contains("tables.Table"), "{}", said.messages);
}

const READINGS: &str = r#"use http

record Reading { id: Int, mark: Text }

table readings: Reading key id default(mark: "a\0b")

service s on http(port: 80) {
  post "/{id}" (id: Int) { http.text("{readings.insert(Reading { id })?}") }
  get "/{id}" (id: Int) {
    let found = readings[id] else { return http.not_found() }
    http.text("{found.mark == "a\0b"} {found.mark.length()}")
  }
}
"#;

#[test]
fn a_default_may_contain_nul() {
    let (program, data) = (Scratch::new("nul.weir", READINGS.as_bytes()), Scratch::folder("nul"));
    let served = Served::start(program.path(), &["--data", data.path()]);
    assert_eq!(post(&served, "/1").map(|answer| answer.status), Some(200));
    assert_eq!(text(&served.get("/1")).trim(), "true 3");
    served.stop();
}

#[test]
fn a_backup_says_why_the_copy_cannot_be_written() {
    let (program, data) = (Scratch::new("nul.weir", READINGS.as_bytes()), Scratch::folder("no-copy"));
    Served::start(program.path(), &["--data", data.path()]).stop();
    let copy = format!("{}/none/monday.db", data.path());
    let said = say(&["tables", program.path(), "--data", data.path(), "--backup", &copy]);
    assert_eq!(said.code, 3, "{}", said.messages);
    assert!(said.messages.contains(&format!("cannot write the copy {copy}: ")), "{}", said.messages);
    assert!(said.messages.contains("create its folder"), "{}", said.messages);
    assert!(!said.messages.contains("partial"), "{}", said.messages);
}

const TASKS: &str = r#"use http

record Task { id: Int, owner: Text, place: Int, done: Bool }

table tasks: Task key id unique (owner, place) index done default(done: false)

fn failed(place: Int, id: Int) -> Text {
  tasks.update_all(|t| t.owner == "ada", |t| Task { ..t, place, id: t.id + id }) else as failure { return "{failure}" }
  "none"
}

fn all() -> Result(Text) {
  for (id, owner, place) in [(1, "ada", 1), (2, "ada", 2), (3, "bob", 1)] { tasks.insert(Task { id, owner, place })? }
  let moved = tasks.update_all(|t| t.owner == "ada", |t| Task { ..t, place: 3 - t.place })?
  let shifted = tasks.update_all(|t| t.owner == "ada", |t| Task { ..t, place: t.place + 1 })?
  let found_here = tasks.update_all(|t| t.place * 2 > 4, |t| Task { ..t, done: true })?
  let none = atomic tasks { tasks.update_all(|t| t.place > 9, |t| Task { ..t, done: true })? }
  let places = for t in tasks { t.place }
  Ok("{moved} {shifted} {found_here} {none} {places} {tasks.count(|t| t.done)}\n{failed(9, 0)}\n{failed(1, 1)}\n{places == (for t in tasks { t.place })}")
}

service todo on http(port: 80) {
  get "/" { http.text(all()?) }
}

test "all" { expect all()? == "EXPECTED" }
"#;

#[test]
fn an_update_of_many_rows_takes_effect_as_a_whole() {
    let expected = "2 2 1 0 [3, 2, 1] 1\n\
                    a row of `tasks` with the owner \"ada\" and the place 9 exists already\n\
                    an update of `tasks` cannot change the key: delete the row, and insert another one\n\
                    true";
    let program = TASKS.replace("EXPECTED", &expected.replace('"', "\\\"").replace('\n', "\\n"));
    let (program, data) = (Scratch::new("todo.weir", program.as_bytes()), Scratch::folder("todo"));
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 0, "{}{}", said.output, said.messages);
    let served = Served::start(program.path(), &["--data", data.path()]);
    assert_eq!(text(&served.get("/")), expected);
    served.stop();
}
