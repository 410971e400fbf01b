//! `weir tables` shows the statements of a program with the plans of the database.

use super::text;
use crate::support::{Scratch, Served, TableStore, say};

const MAIL: &str = r#"use http

record User { name: Text, mood: Option(Text) }
record Message { id: Int, from: Text, to: Text, size: Int, read: Bool }

table users: User key name
table messages: Message key id auto index (to, read)
table seen: User key name soft(ttl: 5m)

service mail on http(port: 8080) {
  get "/{me}" (me: Text, after: Int = 0) {
    let page = for m in messages if m.to == me && m.id > after order by m.size desc limit 50 { (m.from, users[m.from]) }
    http.json((page, unread(me), (for m in messages if m.from == me { m.size }).sum(), seen[me]))
  }
  get "/{me}/unread" (me: Text) { http.json(unread(me)) }
  get "/{me}/unread/again" (me: Text) { http.json(messages.count(|m| m.to == me && !m.read)) }
  get "/all" { http.json(for m in messages { (m.size, users[m.from], users["ada"], users[m.from]) }) }
  get "/calm" { http.json(users.count(|user| user.mood == None)) }
  delete "/{me}" (me: Text) {
    seen.delete(me)?
    users.delete(me)?
    http.json(messages.delete_all(|m| m.to == me)?)
  }
}

fn unread(me: Text) -> Int { messages.count(|m| m.to == me && !m.read) }
"#;

#[test]
fn every_statement_is_shown_with_its_places_and_its_plan() {
    let program = Scratch::new("mail.weir", MAIL.as_bytes());
    for store in TableStore::each("query-plans") {
        let tables = || {
            let said = say(&[&["tables", program.path()], &store.with(&[])[..]].concat());
            assert_eq!(said.code, 0, "{}", said.messages);
            said.output
        };
        let before = tables();
        let served = Served::start(program.path(), &store.with(&[]));
        assert_eq!(served.get("/calm").status, 200);
        // The program runs meanwhile.
        let after = tables();
        served.stop();
        let is_sqlite = !store.is_shared();
        assert_eq!(before.contains("SEARCH"), is_sqlite, "{before}");
        for shown in [&before, &after] {
            let count = format!("at {0}:16:51, {0}:26:30\n    SELECT count(*) FROM \"messages\" WHERE", program.path());
            assert!(shown.contains(&count), "{shown}");
            assert!(!shown.contains("\"seen\""), "soft tables have no statements in SQL: {shown}");
        }
        let plans: &[&str] = if is_sqlite {
            &[
                "SEARCH users USING PRIMARY KEY (name=?)",
                // The limit comes before the join.
                "CO-ROUTINE rows\n        SEARCH messages USING INDEX weir index messages (to, read) (to=?)\n        USE TEMP \
                 B-TREE FOR ORDER BY\n      SCAN rows\n      SEARCH joined 1 USING PRIMARY KEY (name=?) LEFT-JOIN",
                // Without a limit, there is one query.
                "FROM (SELECT \"messages\".\"id\", \"messages\".\"from\", \"messages\".\"to\", \"messages\".\"size\", \"messages\".\"read\" FROM \"messages\") AS \"rows\" LEFT JOIN \"users\" AS \"joined 1\" \
                 ON \"joined 1\".\"name\" = \"rows\".\"from\" LEFT JOIN \"users\" AS \"joined 2\" ON \"joined 2\".\"name\" = ?1 ORDER BY \
                 \"rows\".\"id\"\n      SCAN messages\n      SEARCH joined 1 USING PRIMARY KEY (name=?) LEFT-JOIN\n      SEARCH joined 2 \
                 USING PRIMARY KEY (name=?) LEFT-JOIN\n  at",
                "SEARCH messages USING COVERING INDEX weir index messages (to, read) (to=? AND read=?)",
                "    SELECT coalesce(sum(\"messages\".\"size\" >> 32), 0), coalesce(sum(\"messages\".\"size\" & 4294967295), 0) FROM \"messages\" \
                 WHERE \"messages\".\"from\" = ?1\n      SCAN messages",
                "DELETE FROM \"messages\" WHERE \"messages\".\"to\" = ?1\n      SEARCH messages",
            ]
        } else {
            &[
                "Index Scan using users_pkey on users",
                "Sort Key: messages.size DESC, messages.id\n",
                "Bitmap Index Scan on \"weir index messages (to, read)\"",
                "Seq Scan on messages\n              Filter: (\"from\" = $1)",
                "    DELETE FROM \"messages\" WHERE \"to\" = $1::text\n      Delete on messages",
            ]
        };
        for plan in plans {
            assert!(after.contains(plan), "{plan} is not in {after}");
            assert!(before.contains(plan) || !is_sqlite, "{plan} is not in {before}");
        }
    }
}

const SHOP: &str = r#"use http

enum State { Open, Sent }
record Order { id: Int, shop: Text, buyer: Option(Text), price: Int, state: State }
record Item { order: Int, place: Int, name: Text }

table orders: Order key id auto index (shop, state)
table items: Item key (order, place) references order: orders cascade

service shop on http(port: 8080) {
  get "/{shop}/page" (shop: Text, after: Option(Text)) {
    let (page, next) = for o in orders if o.shop == shop && o.buyer != Some("x{o.id}") order by o.price desc limit 9 after after {
      o.id
    }?
    http.json((page, next))
  }
  get "/{shop}" (shop: Text, buyer: Option(Text)) {
    let average = (for o in orders if o.shop == shop { o.price }).average()
    let buyers = (for o in orders if o.shop == shop { o.buyer }).unique().length()
    let long = for o in orders if o.shop == shop && o.price % 2 == 0 limit 3 { o.id }
    http.json((average, buyers, long, orders.count(|o| o.buyer == buyer)))
  }
  get "/" {
    http.json(
      for (shop, theirs) in (for o in orders { o }).group_by(|o| o.shop)
        if theirs.map(|o| o.price).sum() > 1 && theirs.length() > 2
        order by shop desc limit 7 {
        (shop, theirs.length())
      },
    )
  }
  get "/busy/{but}" (but: Text) {
    http.json(
      for ((shop, state), theirs) in (for o in orders { o }).group_by(|o| (o.shop, o.state)) if shop != but
        order by theirs.length() desc limit 7 {
        (shop, state, theirs.length())
      },
    )
  }
  delete "/{shop}" (shop: Text) { http.json((orders.delete(1)?, orders.delete_all(|o| o.shop == shop)?)) }
}
"#;

#[test]
fn the_sql_is_that_which_the_database_gets() {
    let (program, data) = (Scratch::new("shop.weir", SHOP.as_bytes()), Scratch::folder("shown-sql"));
    let said = say(&["tables", program.path(), "--data", data.path()]);
    assert_eq!(said.code, 0, "{}", said.messages);
    let all = "SELECT \"orders\".\"id\", \"orders\".\"shop\", \"orders\".\"buyer\", \"orders\".\"price\", \"orders\".\"state\" FROM \"orders\"";
    let shown = [
        format!("    the first page:\n    {all} WHERE \"orders\".\"shop\" = ?1 ORDER BY \"price\" DESC, \"id\" LIMIT ?2\n"),
        format!(
            "    a page behind a cursor:\n    {all} WHERE \"orders\".\"shop\" = ?1 AND \"price\" <= ?2 AND (\"price\" < ?2 OR \
             (\"price\" = ?2 AND \"id\" > ?3)) ORDER BY \"price\" DESC, \"id\" LIMIT ?4\n"
        ),
        "    then the program keeps the rows with `o.buyer != Some(\"x{o.id}\")`\n".to_owned(),
        "    SELECT coalesce(sum(\"orders\".\"price\" >> 32), 0), coalesce(sum(\"orders\".\"price\" & 4294967295), 0), count(*) FROM \"orders\" \
         WHERE \"orders\".\"shop\" = ?1\n"
            .to_owned(),
        "    SELECT count(DISTINCT \"orders\".\"buyer\") + CASE WHEN count(*) > count(\"orders\".\"buyer\") THEN 1 ELSE 0 END FROM \"orders\" WHERE"
            .to_owned(),
        "    then the program keeps the rows with `o.price % 2 == 0`\n    then the program takes the first ones of these\n"
            .to_owned(),
        "    SELECT count(*) FROM \"orders\" WHERE \"orders\".\"buyer\" = ?1\n      SCAN orders\n    if the value for `buyer` is \
         absent:\n    SELECT count(*) FROM \"orders\" WHERE \"orders\".\"buyer\" IS NULL\n"
            .to_owned(),
        "FROM \"orders\" GROUP BY \"orders\".\"shop\" HAVING count(*) > ?1 ORDER BY \"orders\".\"shop\" DESC, min(\"orders\".\"id\")\n".to_owned(),
        "    then the program keeps the groups with `theirs.map(|o| o.price).sum() > 1`\n    then the program takes the first \
         ones of these\n"
            .to_owned(),
        "GROUP BY \"orders\".\"shop\", \"orders\".\"state\" HAVING \"orders\".\"shop\" <> ?1 ORDER BY count(*) DESC, min(\"orders\".\"id\") LIMIT ?2\n".to_owned(),
        format!(
            "    finds the row:\n    {all} WHERE \"orders\".\"id\" = ?1\n      SEARCH orders USING INTEGER PRIMARY KEY (rowid=?)\n    \
             finds the rows of `items` that go with each:\n    SELECT \"items\".\"order\", \"items\".\"place\", \"items\".\"name\" FROM \"items\" WHERE \
             \"items\".\"order\" = ?1 ORDER BY \"place\" LIMIT ?2\n      SEARCH items USING PRIMARY KEY (order=?)\n    deletes each \
             row:\n    DELETE FROM \"orders\" WHERE \"orders\".\"id\" = ?1\n"
        ),
    ];
    for part in shown {
        assert!(said.output.contains(&part), "{part} is not in {}", said.output);
    }
}

/// Sessions that end at a time, with what belongs to them.
const SESSIONS: &str = r#"use http

record Session { id: Int, user: Text, ends: Int }
record Basket { id: Int, session: Int, item: Text }

table sessions: Session key id auto index ends
table baskets: Basket key id auto references session: sessions cascade

service s on http(port: 8080) {
  delete "/over/{now}" (now: Int) { http.json(sessions.delete_all(|s| s.ends < now)?) }
  get "/over/{now}" (now: Int) { http.json(for s in sessions if s.ends < now { s.user }) }
  get "/between/{now}" (now: Int) { http.json(for s in sessions if s.ends >= now && s.id > now { s.user }) }
  get "/at/{now}" (now: Int) { http.json(for s in sessions if s.ends == now { s.user }) }
}
"#;

#[test]
fn an_index_finds_the_rows_between_bounds_that_are_read_or_deleted_with_what_belongs_to_them() {
    let (program, data) = (Scratch::new("sessions.weir", SESSIONS.as_bytes()), Scratch::folder("bounds"));
    let said = say(&["tables", program.path(), "--data", data.path()]);
    assert_eq!(said.code, 0, "{}", said.messages);
    let rows = "SELECT \"sessions\".\"id\", \"sessions\".\"user\", \"sessions\".\"ends\" FROM \"sessions\"";
    let found = "SEARCH sessions USING INDEX weir index sessions (ends)";
    let bounded = format!(
        "{rows} WHERE \"sessions\".\"ends\" < ?1 ORDER BY +\"id\" LIMIT ?2\n      {found} (ends<?)\n      USE TEMP B-TREE FOR ORDER BY"
    );
    let shown = [
        format!("{bounded}\n    finds the rows of `baskets`"),
        "SEARCH baskets USING INDEX weir index baskets (session) (session=?)".to_owned(),
        format!("{bounded}\n  at"),
        format!(
            "{rows} WHERE \"sessions\".\"ends\" >= ?1 AND \"sessions\".\"id\" > ?2 ORDER BY \"id\" LIMIT ?3\n      SEARCH sessions USING INTEGER PRIMARY KEY"
        ),
        format!("{rows} WHERE \"sessions\".\"ends\" = ?1 ORDER BY \"id\" LIMIT ?2\n      {found} (ends=?)\nbaskets"),
    ];
    for part in shown {
        assert!(said.output.contains(&part), "{part} is not in {}", said.output);
    }
}

/// Rows that are valid until a time, or for ever. Each condition is searched by the table, and evaluated by the program.
const EXPIRING: &str = r#"use http

record Pass { id: Int, ends: Option(Int), owner: Text }

table passes: Pass key id auto index ends
table soft: Pass key id auto index ends soft(ttl: 1h)

fn over(now: Int) -> (Int, Int, Int) {
  let stored = passes.count(|p| match p.ends { Some(at) => at < now, None => false })
  let kept = soft.count(|p| match p.ends { Some(at) => at < now, None => false })
  let all = (for p in passes { p }).count(|p| match p.ends { Some(at) => at < now, None => false })
  (stored, kept, all)
}

fn since(now: Int) -> (Int, Int, Int) {
  let stored = passes.count(|p| match p.ends { None => false, Some(at) => now <= at })
  let kept = soft.count(|p| match p.ends { None => false, Some(at) => now <= at })
  let all = (for p in passes { p }).count(|p| match p.ends { None => false, Some(at) => now <= at })
  (stored, kept, all)
}

fn other(now: Int) -> (Int, Int, Int) {
  let stored = passes.count(|p| match p.ends { Some(at) => at != now, _ => false })
  let kept = soft.count(|p| match p.ends { Some(at) => at != now, _ => false })
  let all = (for p in passes { p }).count(|p| match p.ends { Some(at) => at != now, _ => false })
  (stored, kept, all)
}

service s on http(port: 8080) {
  get "/" {
    for ends in [None, Some(1), Some(2), Some(2), Some(9), None] {
      passes.insert(Pass { ends, owner: "ada" })?
      soft.insert(Pass { ends, owner: "ada" })?
    }
    let seen = for now in [0, 2, 3, 10] { (over(now), since(now), other(now)) }
    let gone = passes.delete_all(|p| p.owner == "ada" && match p.ends { Some(at) => at <= 2, _ => false })?
    http.json((seen, gone, passes.count()))
  }
}

test "the same in memory" {
  let all = "[[[0,0,0],[4,4,4],[4,4,4]],[[1,1,1],[3,3,3],[2,2,2]],[[3,3,3],[1,1,1],[4,4,4]],[[4,4,4],[0,0,0],[4,4,4]]]"
  expect s.get("/").text()? == "[{all},3,3]"
}
"#;

#[test]
fn an_index_finds_the_rows_that_are_over_and_no_absent_value_is_less() {
    let program = Scratch::new("passes.weir", EXPIRING.as_bytes());
    let tested = say(&["test", program.path()]);
    assert_eq!(tested.code, 0, "{}{}", tested.output, tested.messages);
    let expected = EXPIRING.split('"').find(|part| part.starts_with("[[[")).expect("the program has the answer");
    for store in TableStore::each("expiring") {
        let served = Served::start(program.path(), &store.with(&[]));
        assert_eq!(text(&served.get("/")), format!("[{expected},3,3]"));
        served.stop();
        let tables = say(&[&["tables", program.path()], &store.with(&[])[..]].concat()).output;
        assert!(
            !tables.contains("is absent:\n    SELECT count(*) FROM \"passes\" WHERE \"passes\".\"ends\""),
            "{tables}"
        );
        if !store.is_shared() {
            let found = "WHERE \"passes\".\"ends\" < ?1\n      SEARCH passes USING COVERING INDEX weir index passes (ends) (ends<?)";
            assert!(tables.contains(found), "{tables}");
            assert!(tables.contains("then the program"), "`!=` is not searched: {tables}");
        }
    }
}

const POSTS: &str = "use http

record User { name: Text }
record Post { id: Int, author: Text }

table users: User key name
table posts: Post key id auto references author: users

service board on http(port: 8080) {
  get \"/\" { http.json(for p in posts { users[p.author] }) }
  delete \"/{name}\" (name: Text) { http.json(users.delete(name)?) }
}
";

#[test]
fn statements_are_shown_that_name_what_a_start_adds_to_another_table() {
    let program = Scratch::new("posts.weir", POSTS.as_bytes());
    let newer = [
        // A column of a table that is joined, a table that is joined, and a column of a table that references.
        POSTS.replace("User { name: Text }", "User { name: Text, title: Option(Text) }"),
        POSTS
            .replace("table posts", "record Team { name: Text, boss: Text }\ntable teams: Team key name\ntable posts")
            .replace("{ users[p.author] }", "{ (users[p.author], teams[p.author]) }"),
        POSTS.replace("author: Text }", "author: Text, title: Option(Text) }"),
    ];
    for store in TableStore::each("statements-of-new-columns") {
        std::fs::write(program.path(), POSTS).expect("the program is ours");
        Served::start(program.path(), &store.with(&[])).stop();
        for version in &newer {
            std::fs::write(program.path(), version).expect("the program is ours");
            let said = say(&[&["tables", program.path()], &store.with(&[])[..]].concat());
            assert_eq!(said.code, 0, "{}", said.messages);
            assert!(said.output.contains("LEFT JOIN"), "{}", said.output);
        }
    }
}

const TASKS: &str = r#"use http

record Task { id: Int, owner: Text, due: Int }

table tasks: Task key id auto index owner

service board on http(port: 8080) {
  put "/{id}" (id: Int, due: Int) { http.json(tasks.update(id, |t| Task { ..t, due })?) }
  put "/of/{owner}" (owner: Text, due: Int) { http.json(tasks.update_all(|t| t.owner == owner, |t| Task { ..t, due })?) }
  delete "/of/{owner}" (owner: Text) { http.json(tasks.delete_all(|t| t.owner == owner && t.id % 2 == 0)?) }
}
"#;

#[test]
fn statements_that_read_the_rows_which_they_change_are_shown() {
    let (program, data) = (Scratch::new("tasks.weir", TASKS.as_bytes()), Scratch::folder("shown-changes"));
    let said = say(&["tables", program.path(), "--data", data.path()]);
    assert_eq!(said.code, 0, "{}", said.messages);
    for (line, by) in [
        (8, "PRIMARY KEY (rowid=?)"),
        (9, "INDEX weir index tasks (owner) (owner=?)"),
        (10, "INDEX weir index tasks (owner) (owner=?)"),
    ] {
        let place = format!("  at {}:{line}:", program.path());
        let (_, shown) = said.output.split_once(&place).unwrap_or_else(|| panic!("{}", said.output));
        let shown = shown.split("  at ").next().unwrap_or_default();
        assert!(shown.contains("SELECT") && shown.contains(by), "{line}: {shown}");
    }
}

/// The first variant of an enum is no absent value.
#[test]
fn an_optional_enum_is_shown_as_it_is_compared() {
    let text = "use http\n\nenum Kind { Left, Right }\n\nrecord Turn { id: Int, kind: Option(Kind) }\n\ntable turns: Turn key id\n\n\
        service s on http(port: 8080) {\n  post \"/\" { http.text(\"{turns.delete_all(|t| t.kind == Some(Right))?}\") }\n  \
        get \"/\" { http.json(for t in turns if t.kind != Some(Left) { t }) }\n}\n";
    let (program, data) = (Scratch::new("turns.weir", text.as_bytes()), Scratch::folder("shown-kinds"));
    let said = say(&["tables", program.path(), "--data", data.path()]);
    for shown in [
        "DELETE FROM \"turns\" WHERE \"turns\".\"kind\" = ?1\n",
        "WHERE (\"turns\".\"kind\" <> ?1 OR \"turns\".\"kind\" IS NULL)",
    ] {
        assert!(said.output.contains(shown), "{shown} is not shown:\n{}", said.output);
    }
}
