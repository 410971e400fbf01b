//! `weir check --explain io`: the reasons for waits, and the words for what repeats.

use crate::support::{Scratch, explained_io, say};

/// Returns the explanation of a program with these routes.
fn explained(routes: &str) -> String {
    let program = format!(
        "use client, http, time\n\nrecord User {{ id: Int, amount: Int }}\ntable users: User key id\n\
         table lines: User key id auto\n\n\
         fn post(path: Text) -> Result(Int) {{ Ok(client.post(\"http://a.example/{{path}}\", 1)?.status()) }}\n\n\
         service shop on http(port: 8080) {{\n{routes}}}\n"
    );
    explained_io("io_reasons.weir", &program)
}

/// The flow waits before each effect until what it has written is durable. That it has written nothing does not drop the order.
#[test]
fn effects_keep_their_order_in_a_program_with_a_table() {
    insta::assert_snapshot!(explained(
        "  get \"/two\" { let a = post(\"a\")?; let b = post(\"b\")?; http.text(\"{a}{b}\") }\n"
    ));
}

#[test]
fn a_statement_is_a_step_that_is_no_atomic() {
    insta::assert_snapshot!(explained(
        "  put \"/behind\" {\n    let a = post(\"a\")?\n    users.upsert(User { id: 1, amount: a })?\n    \
         users.upsert(User { id: 2, amount: 1 })?\n    http.text(\"\")\n  }\n  \
         put \"/each\" (ids: List(Int)) {\n    for id in ids { users.upsert(User { id, amount: 1 })? }\n    \
         for id in ids { lines.insert(User { amount: id })? }\n    http.text(\"\")\n  }\n"
    ));
}

#[test]
fn changes_in_different_arms_of_a_match_do_not_wait_for_each_other() {
    insta::assert_snapshot!(explained(
        "  get \"/{n}\" (n: Int) {\n    let id = match n {\n      0 => users.upsert(User { id: 1, amount: 1 })?,\n      \
         1 => users.upsert(User { id: 2, amount: 1 })?,\n      _ => users.upsert(User { id: 3, amount: 1 })?,\n    }\n    \
         http.text(\"{id}\")\n  }\n"
    ));
}

/// A commit before the answer of a `return` is made once, and nothing waits for it in the rounds of the loop.
#[test]
fn the_commit_of_a_return_is_not_made_for_each_element() {
    insta::assert_snapshot!(explained(
        "  get \"/each\" {\n    for id in [1, 2, 3] {\n      if users[id] != None { return http.not_found() }\n      \
         lines.insert(User { amount: id })?\n    }\n    http.text(\"\")\n  }\n"
    ));
}

#[test]
fn repetitions_are_named_as_the_program_writes_them() {
    insta::assert_snapshot!(explained(
        "  get \"/retry\" {\n    let n = retry(2) { (users[1] else { fail(\"none\") }).amount } else { 0 }\n    \
         http.text(\"{n}\")\n  }\n  \
         get \"/while\" (ids: List(Int)) { http.json(ids.take_while(|id| users[id] != None)) }\n  \
         get \"/any\" (ids: List(Int)) { http.text(\"{ids.any(|id| users[id] != None)}\") }\n"
    ));
}

#[test]
fn everything_waits_for_a_sleep() {
    insta::assert_snapshot!(explained(
        "  get \"/sleep\" { let a = post(\"a\")?; time.sleep(1s); let user = users[1]; http.text(\"{a} {user}\") }\n"
    ));
}

/// A `config` is a constant to the compiler: what is asked for with another value is not listed.
#[test]
fn the_values_of_config_are_named() {
    let text = "use http\n\nrecord User { id: Int }\ntable users: User key id\nconfig shown: Int = 0\n\n\
                service shop on http(port: 8080) {\n  \
                get \"/\" { if shown > 0 { return http.text(\"{users[shown]}\") }; http.text(\"none\") }\n}\n";
    let program = Scratch::new("io_config.weir", text.as_bytes());
    let said = say(&["check", program.path(), "--explain", "io"]);
    assert_eq!((said.code, said.messages.as_str()), (0, ""));
    assert_eq!(said.output, "get /: no queries\n\nthese are the rounds if `shown` is 0\n");
}

/// Reads of one round are one statement, unless the key of one needs the row of the other.
#[test]
fn reads_of_one_round_gather_unless_one_needs_the_other() {
    insta::assert_snapshot!(explained(
        "  get \"/next\" (ids: List(Int)) {\n    \
         let known = for id in ids { (users[id] != None, users[id + 1] != None) }\n    http.text(\"{known}\")\n  }\n  \
         get \"/of\" (ids: List(Int)) {\n    \
         let known = for id in ids { users[(users[id] else { fail(\"none\") }).amount] != None }\n    http.text(\"{known}\")\n  }\n"
    ));
}
