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
