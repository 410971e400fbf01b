//! Pages of queries: together they have each row once, also if rows come and go between two pages.

use super::statements::tested_and_served;
use super::{post, request, text};

const PAGES: &str = r#"use http
use text

enum Level { Low, High }

record Message { id: Int, to: Text, sent: Int, text: Text }

record Place { level: Level, city: Text, number: Int, weight: Float }

table messages: Message key id auto index (to, sent)
table places: Place key (level, city, number)

fn write(to: Text, sent: Int, text: Text) -> Result(Int) {
  messages.insert(Message { to, sent, text })
}

fn written() -> Result(Bool) {
  for (to, sent, text) in [
    ("ada", 3, "a"),
    ("ada", 1, "b"),
    ("bob", 3, "c"),
    ("ada", 3, "d"),
    ("ada", 2, "e"),
    ("ada", 3, "f"),
    ("ada", 1, "g"),
  ] {
    write(to, sent, text)?
  }
  for (level, city, number, weight) in [
    (Level.Low, "Ulm", 1, 0.5),
    (Level.High, "Rom\0", 2, -1.5),
    (Level.High, "Rom", 2, 0.5),
    (Level.Low, "ä", 1, 0.5),
    (Level.Low, "Ulm", 0, 7.0),
    (Level.High, "Rom", -4, 0.5),
  ] {
    places.insert(Place { level, city, number, weight })?
  }
  Ok(true)
}

fn newest(to: Text, count: Int, cursor: Option(Text)) -> Result((List(Text), Option(Text))) {
  for m in messages if m.to == to order by m.sent desc limit count after cursor { m.text }
}

fn oldest(to: Text, count: Int, cursor: Option(Text)) -> Result((List(Text), Option(Text))) {
  for m in messages if m.to == to order by m.sent, m.id limit count after cursor { m.text }
}

fn mixed(count: Int, cursor: Option(Text)) -> Result((List(Text), Option(Text))) {
  for m in messages order by m.to desc, m.sent, m.text desc limit count after cursor { m.text }
}

fn last_first(count: Int, cursor: Option(Text)) -> Result((List(Text), Option(Text))) {
  for m in messages if m.to == "ada" order by m.id desc limit count after cursor { m.text }
}

// The condition is one that the table cannot search.
fn short(count: Int, cursor: Option(Text)) -> Result((List(Text), Option(Text))) {
  for m in messages if m.text.length() + m.sent < 4 limit count after cursor { m.text }
}

fn by_key(count: Int, cursor: Option(Text)) -> Result((List(Text), Option(Text))) {
  for p in places limit count after cursor { "{p.city}{p.number}" }
}

fn by_weight(count: Int, cursor: Option(Text)) -> Result((List(Text), Option(Text))) {
  for p in places order by p.weight desc limit count after cursor { "{p.city}{p.number}" }
}

fn by_key_backwards(count: Int, cursor: Option(Text)) -> Result((List(Text), Option(Text))) {
  for p in places order by p.level desc, p.city desc, p.number desc limit count after cursor { "{p.city}{p.number}" }
}

fn in_city(count: Int, cursor: Option(Text)) -> Result((List(Text), Option(Text))) {
  for p in places if p.level == High && p.city == "Rom" limit count after cursor {
    "{p.city}{p.number}"
  }
}

fn page(of: Text, count: Int, cursor: Option(Text)) -> Result((List(Text), Option(Text))) {
  match of {
    "newest" => newest("ada", count, cursor)
    "oldest" => oldest("ada", count, cursor)
    "mixed" => mixed(count, cursor)
    "last_first" => last_first(count, cursor)
    "short" => short(count, cursor)
    "by_key" => by_key(count, cursor)
    "by_weight" => by_weight(count, cursor)
    "by_key_backwards" => by_key_backwards(count, cursor)
    _ => in_city(count, cursor)
  }
}

// All pages of a query, one behind the other.
fn pages(of: Text, count: Int) -> Result(Text) {
  let (texts, _, _) = loop (texts, cursor, more) = ("", None, true) {
    let (page, next) = page(of, count, cursor)?
    (texts + text.join(page, ",")? + ";", next, next != None)
  } until !more at most 20
  Ok(texts)
}

fn all(count: Int) -> Result(List(Text)) {
  let all = for of in [
    "newest",
    "oldest",
    "mixed",
    "last_first",
    "short",
    "by_key",
    "by_weight",
    "by_key_backwards",
    "in_city",
  ] {
    pages(of, count)?
  }
  Ok(all)
}

fn cursor_of(of: Text, count: Int) -> Result(Text) {
  let (_, next) = page(of, count, None)?
  Ok(next else { "" })
}

service board on http(port: 8080) {
  post "/" { http.text("{written()?}") }
  get "/all/{count}" (count: Int) { http.json(all(count)?) }
  get "/page/{of}" (of: Text, count: Int, after: Option(Text)) {
    let (found, next) = page(of, count, after) else as failure {
      return http.bad_request("{failure}")
    }
    http.json((found, next))
  }
  get "/held" (after: Option(Text)) {
    let found = atomic messages {
      let (found, next) = newest("ada", 2, after)?
      messages.delete_all(|m| m.to == "eve")?
      (found, next)
    }
    http.json(found.0)
  }
  delete "/{text}" (text: Text) { http.text("{messages.delete_all(|m| m.text == text)?}") }
  put "/{to}/{sent}/{text}" (to: Text, sent: Int, text: Text) {
    http.text("{write(to, sent, text)?}")
  }
}

test "pages" {
  written()?
  expect all(2)?
    == [
      "a,d;f,e;b,g;",
      "b,g;e,a;d,f;",
      "c,g;b,e;f,d;a;",
      "g,f;e,d;b,a;",
      "b,e;g;",
      "Ulm0,Ulm1;ä1,Rom-4;Rom2,Rom\u{0}2;",
      "Ulm0,Ulm1;ä1,Rom-4;Rom2,Rom\u{0}2;",
      "Rom\u{0}2,Rom2;Rom-4,ä1;Ulm1,Ulm0;",
      "Rom-4,Rom2;",
    ]
  expect all(9)?[0] == "a,d,f,e,b,g;"
  expect pages("newest", 6)? == "a,d,f,e,b,g;"
  expect pages("newest", 1)? == "a;d;f;e;b;g;"
  // An empty page would say that no rows follow.
  let empty = for limit in [0, -1] {
    match newest("ada", limit, None) { Ok(_) => "a page", Err(failure) => "{failure.kind()}: {failure}" }
  }
  expect empty == ["argument: the limit of a page is 0, and a page has at least one row", "argument: the limit of a page is -1, and a page has at least one row"]
  expect pages("newest", 9_223_372_036_854_775_807)? == "a,d,f,e,b,g;"
}

test "a page goes on behind its cursor whatever has changed" {
  written()?
  let cursor = Some(cursor_of("newest", 2)?)
  expect newest("ada", 9, cursor)?.0 == ["f", "e", "b", "g"]
  messages.delete_all(|m| m.text == "d")?
  write("ada", 9, "new")?
  write("ada", 3, "late")?
  expect newest("ada", 9, cursor)?.0 == ["f", "late", "e", "b", "g"]
  messages.delete_all(|_| true)?
  expect newest("ada", 9, cursor)? == ([], None)
}

test "a cursor of something else is refused" {
  written()?
  let cursor = cursor_of("newest", 2)?
  let others = [
    newest("ada", 2, Some("")),
    newest("ada", 2, Some("{cursor}A")),
    newest("ada", 2, Some("A{cursor}")),
    newest("ada", 2, Some("{cursor}=")),
    newest("ada", 2, Some("hello world")),
    newest("ada", 2, Some(cursor_of("oldest", 2)?)),
    newest("ada", 2, Some(cursor_of("by_key", 2)?)),
    oldest("ada", 2, Some(cursor)),
  ]
  for other in others {
    let refused = match other {
      Ok(_) => "accepted"
      Err(failure) => "{failure.kind()}: {failure}"
    }
    expect refused
      == "argument: this is no cursor of the query of `messages`: pass the text that came with the page before, as it was"
  }
}
"#;

#[test]
fn pages_have_each_row_once_in_every_store() {
    tested_and_served("pages", PAGES, |served| {
        let get = |path: &str| text(&served.get(path)).trim().to_owned();
        assert_eq!(get("/all/2"), r#"[";",";",";",";",";",";",";",";",";"]"#);
        assert_eq!(post(served, "/").map(|answer| answer.status), Some(200));
        assert_eq!(
            get("/all/2"),
            r#"["a,d;f,e;b,g;","b,g;e,a;d,f;","c,g;b,e;f,d;a;","g,f;e,d;b,a;","b,e;g;","Ulm0,Ulm1;ä1,Rom-4;Rom2,Rom\u00002;","Ulm0,Ulm1;ä1,Rom-4;Rom2,Rom\u00002;","Rom\u00002,Rom2;Rom-4,ä1;Ulm1,Ulm0;","Rom-4,Rom2;"]"#
        );
        let first = get("/page/newest?count=3");
        let cursor =
            first.strip_prefix(r#"[["a","d","f"],""#).and_then(|rest| rest.strip_suffix("\"]")).expect("a cursor");
        assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{cursor}");
        assert_eq!(request(served, "DELETE", "/f").map(|answer| answer.status), Some(200));
        assert_eq!(request(served, "PUT", "/ada/3/late").map(|answer| answer.status), Some(200));
        assert!(get(&format!("/page/newest?count=2&after={cursor}")).starts_with(r#"[["late","e"],""#));
        assert_eq!(get(&format!("/held?after={cursor}")), r#"["late","e"]"#);
        assert_eq!(served.get("/page/newest?count=2&after=x").status, 400);
    });
}
