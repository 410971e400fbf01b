//! Tables that modules declare: statements, transactions, joins and references across files.

use std::fs;
use std::path::Path;

use super::{post, request, text};
use crate::support::{Scratch, Served, TableStore, say};

const MAIN: &str = r#"use accounts, http, posts, text

record Like { id: Int, author: Text, post: Int }

table likes: Like
  key id auto
  references author: accounts.users cascade
  references post: posts.posts cascade
  unique (author, post)

service blog on http(port: 8080) {
  post "/users/{name}" (name: Text) { http.text(accounts.join(name)?) }
  post "/posts/{name}" (name: Text) { http.text("{posts.publish(name, "A post")?}") }
  post "/likes/{name}/{post}" (name: Text, post: Int) {
    http.text("{likes.insert(Like { author: name, post })?}")
  }
  post "/register/{name}" (name: Text) {
    atomic accounts.users, posts.posts {
      accounts.users.insert(accounts.User { name, state: Active })?
      posts.posts.insert(posts.Post { author: name, title: "Hello" })?
    }
    http.text("registered {name}")
  }
  post "/close/{name}" (name: Text) {
    let closed = accounts.users.update(name, |user| accounts.User { ..user, state: Closed })?
    http.text(if closed == None { "nobody" } else { "closed" })
  }
  get "/posts" {
    let lines = for post in posts.posts order by post.id {
      match accounts.users[post.author] { Some(user) => "{user.name}: {post.title}", None => "?" }
    }
    http.text(text.join(lines, "; ")?)
  }
  get "/active" {
    let names = for user in accounts.users if user.state == Active order by user.name { user.name }
    http.text("{text.join(names, " ")?}, {likes.count()} likes, {posts.drafted()} drafts")
  }
  delete "/users/{name}" (name: Text) { http.text("{accounts.users.delete(name)?}") }
}

test "a transaction writes the tables of two modules" {
  atomic accounts.users, posts.posts {
    accounts.users.insert(accounts.User { name: "ada" })?
    posts.posts.insert(posts.Post { author: "ada", title: "One" })?
  }
  expect accounts.users["ada"] == Some(accounts.User { name: "ada", state: Active })
  likes.insert(Like { author: "ada", post: 1 })?
  expect accounts.users.delete("ada")?
  expect posts.posts.count() == 0 && likes.count() == 0
}
"#;

const ACCOUNTS: &str = r#"/// A user.
pub record User { name: Text, state: State }

/// The state of a user.
pub enum State { Active, Closed }

/// The users.
pub table users: User
  key name
  index state
  default(state: State.Active)

/// Adds a user.
pub fn join(name: Text) -> Result(Text) { users.insert(User { name }) }

test "a user joins" {
  expect join("bob")? == "bob"
  expect users.count(|user| user.state == Active) == 1
}
"#;

const POSTS: &str = r#"use accounts

/// A post.
pub record Post { id: Int, author: Text, title: Text }

/// The posts.
pub table posts: Post
  key id auto
  references author: accounts.users cascade

record Draft { author: Text, text: Text }

table drafts: Draft
  key author
  references author: accounts.users cascade

/// Publishes a post.
pub fn publish(author: Text, title: Text) -> Result(Int) {
  drafts.upsert(Draft { author, text: title })?
  posts.insert(Post { author, title })
}

/// Counts the drafts.
pub fn drafted() -> Int { drafts.count() }
"#;

fn folder(name: &str, files: &[(&str, &str)]) -> Scratch {
    let folder = Scratch::folder(name);
    for (file, text) in files {
        fs::write(Path::new(folder.path()).join(file), text).expect("the folder is ours");
    }
    folder
}

fn blog(name: &str) -> Scratch {
    folder(name, &[("main.weir", MAIN), ("accounts.weir", ACCOUNTS), ("posts.weir", POSTS)])
}

#[track_caller]
fn assert_posts(served: &Served, path: &str, answer: &str) {
    assert_eq!(text(&post(served, path).expect("an answer")), answer, "{path}");
}

#[test]
fn tables_of_modules_answer_alike_in_every_database_and_under_every_engine() {
    let program = blog("blog-of-modules");
    for engine in ["event", "pool", "staged", "elastic", "manual", "thread-per-flow", "dedicated"] {
        for store in TableStore::each(&format!("modules-{engine}")) {
            let served = Served::start(program.path(), &store.with(&["--engine", engine]));
            assert_posts(&served, "/users/ada", "ada");
            assert_posts(&served, "/register/bob", "registered bob");
            assert_posts(&served, "/posts/ada", "2");
            assert_posts(&served, "/likes/bob/2", "1");
            assert_posts(&served, "/close/bob", "closed");
            assert_posts(&served, "/close/nobody", "nobody");
            let orphan = post(&served, "/posts/nobody").expect("an answer");
            assert_ne!(orphan.status, 200, "there is no such user: {}", text(&orphan));
            let again = post(&served, "/register/bob").expect("an answer");
            assert_ne!(again.status, 200, "{}", text(&again));
            assert_eq!(text(&served.get("/posts")), "bob: Hello; ada: A post", "{engine}: nothing of it is left");
            assert_eq!(text(&served.get("/active")), "ada, 1 likes, 1 drafts", "{engine}");
            served.stop();
            let served = Served::start(program.path(), &store.with(&["--engine", engine]));
            let deleted = request(&served, "DELETE", "/users/ada").expect("an answer");
            assert_eq!(text(&deleted), "true", "{engine}");
            assert_eq!(text(&served.get("/posts")), "bob: Hello", "{engine}: her posts go with her");
            assert_eq!(text(&served.get("/active")), ", 0 likes, 0 drafts", "{engine}: so do the likes of them");
            served.stop();
        }
    }
}

#[test]
fn a_program_with_tables_of_modules_is_right_and_each_module_is_tested_by_itself() {
    let program = blog("tested-modules");
    let checked = say(&["check", "--deny-warnings", program.path()]);
    assert_eq!(checked.code, 0, "{}", checked.messages);
    let tested = say(&["test", program.path()]);
    assert!(tested.output.contains("2 passed"), "{}{}", tested.output, tested.messages);
    let module = format!("{}/accounts.weir", program.path());
    let tested = say(&["test", &module]);
    assert!(tested.output.contains("1 passed"), "{}{}", tested.output, tested.messages);
    let formatted = say(&["fmt", "--check", program.path()]);
    assert!(!formatted.messages.contains("error"), "{}", formatted.messages);
}

#[test]
fn commands_show_the_tables_of_modules() {
    let program = blog("shown-modules");
    let data = Scratch::folder("shown-modules-data");
    let shown = say(&["tables", program.path(), "--data", data.path()]);
    for part in [
        "users, stored in ",
        "CREATE TABLE \"users\" (",
        "CREATE TABLE \"drafts\" (",
        "references author: users cascade",
        "LEFT JOIN \"users\" AS",
        "finds the rows of `drafts` that go with each:",
    ] {
        assert!(shown.output.contains(part), "{part}: {}{}", shown.output, shown.messages);
    }
    let documented = say(&["doc", program.path()]);
    for part in ["inserts into accounts.users", "writes posts.drafts (author, text)", "deletes from accounts.users"] {
        assert!(documented.output.contains(part), "{part}: {}", documented.messages);
    }
    let explained = say(&["check", "--explain", "io", program.path()]);
    assert!(explained.output.contains("accounts.users.insert ("), "{}", explained.output);
    assert!(explained.output.contains("accounts.weir:14, called at line 12)"), "{}", explained.output);
}

/// The name in the database is that of the table, so that its rows stay when its declaration moves.
#[test]
fn the_rows_stay_when_the_declaration_moves_into_a_module() {
    const SERVICE: &str = "service s on http(port: 8080) {\n  post \"/{name}\" (name: Text) { http.text(USERS.insert(USER { name })?) }\n  get \"/\" { http.text(\"{USERS.count()}\") }\n}\n";
    let declaration = "record User { name: Text }\n\ntable users: User key name\n";
    let service = |module: &str| {
        SERVICE.replace("USER {", &format!("{module}User {{")).replace("USERS", &format!("{module}users"))
    };
    let before = format!("use http\n\n{declaration}\n{}", service(""));
    let after = format!("use http, people\n\n{}", service("people."));
    let module = declaration.replace("record", "pub record").replace("\ntable", "\npub table");
    let program = folder("moved-table", &[("main.weir", &before)]);
    for store in TableStore::each("moved-table") {
        fs::write(Path::new(program.path()).join("main.weir"), &before).expect("the folder is ours");
        let served = Served::start(program.path(), &store.with(&[]));
        assert_posts(&served, "/ada", "ada");
        served.stop();
        fs::write(Path::new(program.path()).join("main.weir"), &after).expect("the folder is ours");
        fs::write(Path::new(program.path()).join("people.weir"), &module).expect("the folder is ours");
        let served = Served::start(program.path(), &store.with(&[]));
        assert_eq!(text(&served.get("/")), "1");
        assert_posts(&served, "/bob", "bob");
        served.stop();
        // And back again.
        fs::write(Path::new(program.path()).join("main.weir"), &before).expect("the folder is ours");
        let served = Served::start(program.path(), &store.with(&[]));
        assert_eq!(text(&served.get("/")), "2");
        served.stop();
    }
}

#[test]
fn a_table_of_a_module_is_migrated_by_a_function_of_the_module() {
    const MAIN: &str = "use http, people\n\nservice s on http(port: 8080) {\n  post \"/{name}\" (name: Text) { http.text(people.add(name)?) }\n  get \"/\" { http.text(people.shown()) }\n}\n";
    let before = "record User { name: Text }\n\ntable users: User key name\n\n\
        pub fn add(name: Text) -> Result(Text) { users.insert(User { name }) }\n\n\
        pub fn shown() -> Text { \"{users.count()}\" }\n";
    let after = "record OldUser { name: Text }\n\nrecord User { name: Text, letters: Int }\n\n\
        fn upgraded(old: OldUser) -> User { User { name: old.name, letters: old.name.length() } }\n\n\
        table users: User\n  key name\n  migrate OldUser: upgraded\n\n\
        pub fn add(name: Text) -> Result(Text) { users.insert(User { name, letters: 0 }) }\n\n\
        pub fn shown() -> Text { \"{for user in users order by user.name { user.letters }}\" }\n";
    let program = folder("migrated-module", &[("main.weir", MAIN)]);
    for store in TableStore::each("migrated-module") {
        fs::write(Path::new(program.path()).join("people.weir"), before).expect("the folder is ours");
        let served = Served::start(program.path(), &store.with(&[]));
        assert_posts(&served, "/ada", "ada");
        assert_posts(&served, "/charles", "charles");
        served.stop();
        fs::write(Path::new(program.path()).join("people.weir"), after).expect("the folder is ours");
        let served = Served::start(program.path(), &store.with(&[]));
        assert_eq!(text(&served.get("/")), "[3, 7]");
        served.stop();
    }
}

/// The advice has the names that are valid in the file that it is for.
#[test]
fn the_advice_on_steps_has_the_names_of_each_file() {
    const MAIN: &str = r#"use http, orders, people

service shop on http(port: 1) {
  post "/{name}" (name: Text) {
    let known = people.users[name] else { people.User { name, visits: 0 } }
    people.users.upsert(people.User { ..known, visits: known.visits + 1 })?
    http.text("{people.visit(name)?} {people.leave(name)?} {people.remove(name)?}")
  }
  put "/{name}" (name: Text) {
    atomic orders.orders { people.users.upsert(people.User { name, visits: 0 })? }
    http.text("")
  }
}
"#;
    const PEOPLE: &str = r#"pub record User { name: Text, visits: Int }

pub table users: User key name

table logins: User key name

pub fn visit(name: Text) -> Result(Int) {
  let known = logins[name] else { User { name, visits: 0 } }
  logins.upsert(User { ..known, visits: known.visits + 1 })?
  Ok(known.visits)
}

pub fn remove(name: Text) -> Result(Bool) {
  atomic logins {
    users.upsert(User { name, visits: 0 })?
    logins.delete(name)
  }
}

pub fn leave(name: Text) -> Result(Bool) { atomic users { users.delete(name) } }
"#;
    const ORDERS: &str = r#"use people

pub record Order { author: Text }

pub table orders: Order key author references author: people.users cascade
"#;
    let program = folder("advised", &[("main.weir", MAIN), ("people.weir", PEOPLE), ("orders.weir", ORDERS)]);
    let said = say(&["check", program.path()]);
    for part in [
        "make it one step: `atomic people.users { … }` around both",
        "make it one step: `atomic logins { … }` around both",
        "name it: `atomic orders.orders, people.users`",
        "name it: `atomic logins, users`",
        "move the step into a file that uses `orders`, and name it there: `atomic users, orders.orders`",
    ] {
        assert!(said.messages.contains(part), "{part}: {}", said.messages);
    }
}
