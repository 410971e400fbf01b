//! `weir check --explain io`: statements on tables, atomic steps, time limits, and calls of other services.

use crate::support::{Scratch, say};

const PROGRAM: &str = "\
use http, time

record User { id: Int, name: Text }
record Post { author: Int, title: Text }
table users: User key id
table posts: Post key title index author
shared hits: Map(Int, Int) = [:]

fn name_of(id: Int) -> Text {
  let user = users[id] else { return \"none\" }
  user.name
}

service blog on http(port: 8080) {
  get \"/names\" (ids: List(Int)) {
    let names = for id in ids { users[id] }
    http.text(\"{names.length()}\")
  }
  get \"/posts/{title}\" (title: Text) {
    let post = posts[title] else { return http.not_found() }
    let name = name_of(post.author)
    let more = for post in posts if post.author == 7 { post.title }
    http.text(\"{name} {post.title} {more.length()}\")
  }
  post \"/hits\" (title: Text) {
    let post = posts[title] else { return http.not_found() }
    let name = atomic hits {
      let name = name_of(7)
      hits.put(3, name.length() + post.author)
      name
    }
    http.text(\"{name}\")
  }
  post \"/users\" (id: Int) {
    let added = users.insert(User { id: id, name: \"x\" })?
    let name = name_of(id)
    let late = name_of(id + 1) within 50ms else { \"\" }
    time.sleep(1s)
    http.text(\"{name} {late} {added}\")
  }
}
";

#[test]
fn statements_on_tables_are_queries_one_after_the_other() {
    let program = Scratch::new("io_rounds.weir", PROGRAM.as_bytes());
    let said = say(&["check", program.path(), "--explain", "io"]);
    assert_eq!((said.code, said.messages.as_str()), (0, ""));
    insta::assert_snapshot!(said.output);
}

#[test]
fn reads_in_the_condition_of_a_for_and_in_a_fold_are_one_query() {
    let text = "use http\n\nrecord Right { user: Int, product: Int }\ntable rights: Right key product\n\n\
                fn may(user: Int, product: Int) -> Bool {\n  let right = rights[product] else { return false }\n  \
                right.user == user\n}\n\nservice shop on http(port: 8080) {\n  get \"/\" (user: Int, products: List(Int)) {\n    \
                let shown = for product in products if may(user, product) { product }\n    http.text(\"{shown}\")\n  }\n  \
                get \"/count\" (products: List(Int)) {\n    \
                let count = fold count = 0 for product in products { if may(count, product) { count + 1 } else { count } }\n    \
                http.text(\"{count}\")\n  }\n}\n";
    let program = Scratch::new("rights.weir", text.as_bytes());
    let said = say(&["check", program.path(), "--explain", "io"]);
    assert_eq!((said.code, said.messages.as_str()), (0, ""));
    let expected = [("/", 13), ("/count", 17)].map(|(route, line)| {
        format!(
            "get {route}: 1 round, 1 query\n  round 1\n    rights[key] (line 7, called at line {line}), for each element, in \
             batches of at most 1,000\n"
        )
    });
    assert_eq!(said.output, expected.join("\n"));
}

#[test]
fn a_read_waits_for_a_return_and_not_for_a_branch_that_another_value_decides() {
    let text = "use client, http\n\nrecord User { id: Int, name: Text }\ntable users: User key id\n\n\
                fn name(id: Int) -> Text {\n  if id == 4 { return \"four\" }\n  \
                let user = users[id] else { return \"none\" }\n  user.name\n}\n\n\
                service api on http(port: 8080) {\n  get \"/\" (id: Int) {\n    \
                let who = users[1] else { fail(\"nobody\") }\n    \
                let name = name(id)\n    \
                if who.name == name { return http.not_found() }\n    \
                http.text(client.get(\"http://a.example/\")?.text()?)\n  }\n  \
                get \"/all\" {\n    \
                let all = for id in [1, 2] {\n      let page = client.get(\"http://a.example/{id}\")?\n      \
                if page.status() == 404 { return http.not_found() }\n      page.status()\n    }\n    \
                http.text(\"{all.length()}\")\n  }\n}\n";
    let program = Scratch::new("returns.weir", text.as_bytes());
    let said = say(&["check", program.path(), "--explain", "io"]);
    assert_eq!((said.code, said.messages.as_str()), (0, ""));
    insta::assert_snapshot!(said.output, @r"
get /: 2 rounds, 3 queries
  round 1
    users[key] (line 14)
    users[key] (line 8, called at line 15)
  round 2
    client.get (line 17)
      is behind the `return` at line 16, which depends on `users[key]` (line 14)

get /all: at least 1 round, 1 query
  round 1
    client.get (line 21), for one element after the other, because each element may end the request by the `return` at line 22
");
}

const SEVERAL_TABLES: &str = "\
use http

record User { id: Int, v: Int }
table us: User key id index v
table ts: User key id
table vs: User key id
table fixed: User key id
table other: User key id

service s on http(port: 8080) {
  put \"/init\" { for id in [1] { us.upsert(User { id, v: 1 })?; ts.upsert(User { id, v: 1 })?; vs.upsert(User { id, v: 1 })? }; http.text(\"\") }
  get \"/three\" { http.text(\"{us[2]} {ts[3]} {vs[2]}\") }
  get \"/same\" { http.text(\"{us[2]} {us[4]}\") }
  get \"/counts\" { http.text(\"{us.count()} {ts.count()}\") }
  get \"/for\" { http.text(\"{for i in [1, 2] { us[i] != None }} {for i in [1, 2] { ts[i] != None }}\") }
  get \"/write\" { let a = us.upsert(User { id: 2, v: 1 }) else { 0 }; http.text(\"{a} {ts.count()} {vs.count()}\") }
  get \"/atomic\" { let n = atomic us, ts { us.count() + ts.count() }; http.text(\"{n} {vs.count()}\") }
  get \"/fixed\" { http.text(\"{fixed.count()} {other.count()} {us.count()} {ts.count()}\") }
  get \"/fixed/same\" { http.text(\"{fixed[2]} {fixed[4]} {fixed.count()} {other[1]}\") }
  get \"/fixed/next\" { http.text(\"{fixed[2].map(|u| other[u.v])} {fixed[4]}\") }
  get \"/fixed/given_up\" { http.text(\"{(fixed[2] != None && fixed[4] != None) within 1s else { false }}\") }
  get \"/fixed/atomic\" { let n = atomic us { us.upsert(User { id: 2, v: fixed.count() }) else { 0 } }; http.text(\"{n}\") }
  get \"/page\" {
    let (page, next) = for u in us order by u.v limit 2 after None { u.id } else { return http.not_found() }
    http.text(\"{page} {next} {ts[2]}\")
  }
}
";

/// Reads of different tables overlap, and so do those of a table that no flow changes. Cursors of pages are computed.
#[test]
fn reads_of_different_tables_are_one_round() {
    let program = Scratch::new("several.weir", SEVERAL_TABLES.as_bytes());
    let said = say(&["check", program.path(), "--explain", "io"]);
    assert_eq!(said.code, 0, "{}", said.messages);
    insta::assert_snapshot!(said.output);
}

/// The second one does not come behind the first, which is not made then.
#[test]
fn reads_in_both_arms_of_an_if_do_not_wait_for_each_other() {
    let text = "use http\n\nrecord User { id: Int, name: Text }\ntable users: User key id\n\nservice api on http(port: 8080) {\n  \
                get \"/{id}\" (id: Int) {\n    \
                let user = if id > 3 {\n      if users[2] == None { users[3] } else { users[id] }\n    } else { users[1] }\n    \
                let first = users[0]\n    http.text(\"{user} {first}\")\n  }\n}\n";
    let program = Scratch::new("arms.weir", text.as_bytes());
    let said = say(&["check", program.path(), "--explain", "io"]);
    assert_eq!((said.code, said.messages.as_str()), (0, ""));
    insta::assert_snapshot!(said.output, @r"
get /{id}: 2 rounds, 5 queries
  round 1
    users[key] (line 9), if the condition at line 8 holds
    users[key] (line 10), if the condition at line 8 does not hold
  round 2
    users[key] (line 9), if the condition at line 9 holds
      is behind the `if` at line 9, which needs the answer of `users[key]` (line 9)
    users[key] (line 9), if the condition at line 9 does not hold
      is behind the `if` at line 9, which needs the answer of `users[key]` (line 9)
    users[key] (line 11)
      reads the table `users`, as `users[key]` (line 9) does: reads of one value keep the order of the text
");
}

const METHODS: &str = "\
use http

record Product { id: Int, vendor: Int }
record Vendor { id: Int, name: Text }
table products: Product key id
table vendors: Vendor key id

fn vendor(id: Int) -> Option(Text) {
  let product = products[id] else { return None }
  let vendor = vendors[product.vendor] else { return None }
  Some(vendor.name)
}

service shop on http(port: 8080) {
  get \"/filter\" (id: List(Int)) { http.json(id.filter(|i| vendor(i) != None)) }
  get \"/filter_map\" (id: List(Int)) { http.json(id.filter_map(|i| vendor(i))) }
  get \"/fold\" (id: List(Int)) { http.text(\"{fold sum = 0 for i in id { match vendor(i) { Some(_) => sum + i, None => sum } }}\") }
  get \"/next\" (id: List(Int)) { http.text(\"{fold last = 0 for i in id { if vendor(last) == None { i } else { last } }}\") }
}
";

/// A branch that needs nothing of the rounds before leaves its `fold` with the reads in it.
#[test]
fn functions_that_take_functions_gather_like_a_for() {
    let program = Scratch::new("methods.weir", METHODS.as_bytes());
    let said = say(&["check", program.path(), "--explain", "io"]);
    assert_eq!((said.code, said.messages.as_str()), (0, ""));
    insta::assert_snapshot!(said.output);
}

const CARDS: &str = "\
use http

record Post { id: Int, author: Int, title: Text }
record User { id: Int, name: Text }
table posts: Post key id
table users: User key id

fn titles(ids: List(Int)) -> Result(List(Text)) {
  let titles = for id in ids {
    let post = posts[id] else { fail(\"no post {id}\") }
    let author = users[post.author] else { fail(\"{post.title} has no author\") }
    \"{post.title} by {author.name}\"
  }
  Ok(titles)
}

fn found(ids: List(Int)) -> Option(List(Text)) {
  let titles = for id in ids {
    let post = posts[id] else { return None }
    let author = users[post.author] else { return None }
    \"{post.title} by {author.name}\"
  }
  Some(titles)
}

fn shown(id: Int) -> Result(Int) {
  let post = posts[id] else { fail(\"no post {id}\") }
  let later = posts[id + 1] else { fail(\"no later post\") }
  Ok(post.title.length() + later.title.length())
}

fn greeted(ids: List(Int)) -> Result(Int) {
  let greetings = for id in ids {
    let user = users[id] else { fail(\"no user {id}\") }
    posts.insert(Post { id, author: id, title: user.name })?
  }
  Ok(greetings.length())
}

service blog on http(port: 8080) {
  post \"/greetings\" (id: List(Int)) { http.text(\"{greeted(id)?}\") }
  get \"/titles\" (id: List(Int)) {
    match titles(id) { Ok(titles) => http.json(titles), Err(_) => http.not_found() }
  }
  get \"/found\" (id: List(Int)) {
    match found(id) { Some(titles) => http.json(titles), None => http.not_found() }
  }
  get \"/total\" (id: List(Int)) {
    let total = fold total = 0 for one in id { total + shown(one)? }
    http.text(\"{total}\")
  }
}
";

/// A read whose key is known at once is made with the other one of its round.
#[test]
fn two_reads_of_a_round_are_one_query() {
    let text = "use http\n\nrecord User { id: Int, n: Int }\n\ntable users: User key id\n\n\
                service front on http(port: 8080) {\n  get \"/pairs\" (id: List(Int)) {\n    \
                http.json(for one in id { (users[one] != None, users[one + 1] != None) })\n  }\n}\n";
    let program = Scratch::new("pairs.weir", text.as_bytes());
    let said = say(&["check", program.path(), "--explain", "io"]);
    assert_eq!((said.code, said.messages.as_str()), (0, ""));
    assert!(said.output.starts_with("get /pairs: 1 round, 1 query\n"), "{}", said.output);
}

/// A `return` is not passed. A `fail` is, and so is an operation that may fail before the read.
#[test]
fn loops_that_failures_leave_gather() {
    let program = Scratch::new("cards.weir", CARDS.as_bytes());
    let said = say(&["check", program.path(), "--explain", "io"]);
    assert_eq!((said.code, said.messages.as_str()), (0, ""));
    insta::assert_snapshot!(said.output);
}

const TRANSFER: &str = "\
use http

record Account { owner: Text, balance: Int }
record Rate { currency: Text, fee: Int }
record Entry { id: Int, payer: Text, payee: Text, amount: Int }
table accounts: Account key owner
table rates: Rate key currency
table entries: Entry key id auto

service bank on http(port: 8080) {
  post \"/{from}/{to}\" (from: Text, to: Text, amount: Int) {
    if amount < 1 { return http.bad_request(\"the amount is not positive\") }
    atomic accounts, entries {
      let rate = rates[\"EUR\"] else { fail(\"no rate\") }
      accounts.update(from, |a| Account { ..a, balance: a.balance - amount - rate.fee })? else { fail(\"no payer\") }
      accounts.update(to, |a| Account { ..a, balance: a.balance + amount })? else { fail(\"no payee\") }
      entries.insert(Entry { payer: from, payee: to, amount })?
    }
    http.text(\"paid\")
  }
}
";

/// Keys that are known are asked for at once, changes are sent without waiting, and what takes the transaction back is no query.
#[test]
fn a_flow_runs_ahead_of_the_statements_of_its_transaction() {
    let program = Scratch::new("transfer.weir", TRANSFER.as_bytes());
    let said = say(&["check", program.path(), "--explain", "io"]);
    assert_eq!(said.code, 0, "{}", said.messages);
    insta::assert_snapshot!(said.output);
    let said = say(&["check", program.path(), "--explain", "io", "--error-format", "json"]);
    assert!(
        said.output.contains(r#""ahead":"placed""#) && said.output.contains(r#""ahead":"asked-early""#),
        "{}",
        said.output
    );
}
