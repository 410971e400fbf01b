//! References between tables, stored and in memory: under the evaluator, under engines, and from many clients at a time.

use std::thread;

use test_support::random::Random;

use crate::support::{Scratch, Served, TableStore, say};

const FORUM: &str = r#"use http, text

record User { name: Text }

record Post { id: Int, author: Text, answers: Option(Int) }

record Like { user: Text, post: Int }

table users: User key name
table posts: Post
  key id
  references author: users
  references answers: posts cascade
  default(answers: None)
table likes: Like key (user, post) soft references user: users references post: posts cascade

fn post(id: Int, author: Text) -> Text {
  posts.insert(Post { id, author }) else as failure { return "{failure}" }
  "posted"
}

fn answer(id: Int, author: Text, answers: Int) -> Text {
  posts.upsert(Post { id, author, answers: Some(answers) }) else as failure { return "{failure}" }
  "answered"
}

fn moved(id: Int, author: Text) -> Text {
  posts.update(id, |post| Post { ..post, author }) else as failure { return "{failure}" }
  "moved"
}

fn like(user: Text, post: Int) -> Text {
  likes.insert(Like { user, post }) else as failure { return "{failure}" }
  "liked"
}

fn leave(user: Text) -> Text {
  users.delete(user) else as failure { return "{failure}" }
  "left"
}

fn remove(from: Int) -> Text {
  let count = posts.delete_all(|post| post.id >= from) else as failure { return "{failure}" }
  "{count} removed, {posts.count()} and {likes.count()} left"
}

fn together(name: Text) -> Result(()) {
  atomic users, posts {
    users.insert(User { name })?
    posts.insert(Post { id: 7, author: name })?
    posts.insert(Post { id: 8, author: "nobody" })?
  }
  Ok(())
}

fn all() -> Result(List(Text)) {
  users.upsert(User { name: "ada" })?
  users.upsert(User { name: "bob" })?
  let first = [post(1, "eve"), post(1, "ada"), answer(2, "bob", 9), answer(2, "bob", 1), answer(3, "bob", 3)]
  let second = [moved(1, "eve"), like("ada", 4), like("ada", 2), like("bob", 3), leave("ada"), remove(1)]
  together("joe") else as failure { return Ok(first + second + ["{failure}", leave("ada"), "{users.count()}"]) }
  fail("not refused")
}

/// Counts the rows that reference a row which does not exist.
fn broken() -> Int {
  let authors = for p in posts if !users.exists(|user| user.name == p.author) { p }
  let posts_liked = for l in likes if !posts.exists(|post| post.id == l.post) { l }
  let users_liking = for l in likes if !users.exists(|user| user.name == l.user) { l }
  authors.length() + posts_liked.length() + users_liking.length()
}

service forum on http(port: 8080) {
  get "/" { http.text(text.join(all()?, "\n")?) }
  get "/broken" { http.text("{broken()}") }
  get "/do/{what}/{user}/{id}" (what: Int, user: Text, id: Int) {
    let done = match what {
      0 | 1 => "{users.upsert(User { name: user })?}"
      2 | 3 => post(id, user)
      4 => like(user, id)
      5 => leave(user)
      _ => remove(id)
    }
    http.text(done)
  }
}

test "all" { expect text.join(all()?, "\n")? == "EXPECTED" }
"#;

const EXPECTED: &str = r#"a row of `posts` cannot reference `users` by the author \"eve\": there is no such row
posted
a row of `posts` cannot reference `posts` by the answers 9: there is no such row
answered
answered
a row of `posts` cannot reference `users` by the author \"eve\": there is no such row
a row of `likes` cannot reference `posts` by the post 4: there is no such row
liked
liked
the row of `users` cannot be deleted: a row of `posts` with the id 1 references it by the author \"ada\"
3 removed, 0 and 0 left
a row of `posts` cannot reference `users` by the author \"nobody\": there is no such row
left
1"#;

fn program() -> Scratch {
    Scratch::new("forum.weir", FORUM.replace("EXPECTED", &EXPECTED.replace('\n', "\\n")).as_bytes())
}

#[test]
fn references_hold_under_the_evaluator_and_every_engine() {
    let program = program();
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 0, "{}{}", said.output, said.messages);
    for engine in ["event", "pool", "thread-per-flow"] {
        for store in TableStore::each(&format!("forum_{engine}")) {
            let served = Served::start(program.path(), &store.with(&["--engine", engine]));
            let answer = served.get("/");
            assert_eq!(String::from_utf8_lossy(&answer.body).trim(), EXPECTED.replace('\\', ""), "{engine}");
            served.stop();
        }
    }
}

#[test]
fn writes_of_many_clients_break_no_reference() {
    let with_soft = program();
    let stored = FORUM.replace("key (user, post) soft", "key (user, post)").replace("EXPECTED", "");
    assert!(!stored.contains("soft"));
    let stored = Scratch::new("stored_forum.weir", stored.as_bytes());
    for store in TableStore::each("forum_clients") {
        // Others share the tables if they can; the rows of a soft table are those of one program.
        let (program, processes) = if store.is_shared() { (&stored, 2) } else { (&with_soft, 1) };
        let start = |_| Served::start(program.path(), &store.with(&["--engine", "pool"]));
        let served: Vec<Served> = (0..processes).map(start).collect();
        write_at_random(&served);
        assert_eq!(served[0].get("/broken").body, b"0");
        served.into_iter().for_each(|served| _ = served.stop());
    }
}

/// Clients write users, posts and likes, and delete them.
fn write_at_random(served: &[Served]) {
    thread::scope(|scope| {
        for client in 0..4 {
            let served = &served[client as usize % served.len()];
            scope.spawn(move || {
                let mut random = Random::new(client);
                for _ in 0..60 {
                    let (what, user, id) = (random.below(7), random.below(3), random.below(5));
                    assert_ne!(served.get(&format!("/do/{what}/u{user}/{id}")).status, 500);
                }
            });
        }
    });
}

#[test]
fn a_transaction_names_the_tables_of_a_cascade() {
    let text = FORUM.replace("atomic users, posts {", "atomic users, posts {\n    posts.delete(1)?");
    let file = Scratch::new("cascade.weir", text.as_bytes());
    let said = say(&["check", file.path()]);
    let expected = "a deletion from `posts` deletes rows of `likes`, which the transaction does not name";
    assert!(said.messages.contains(expected), "{}", said.messages);
    assert!(said.messages.contains("name it: `atomic users, posts, likes`"), "{}", said.messages);
}
