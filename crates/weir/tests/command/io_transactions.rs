//! `weir check --explain io`: the rounds of transactions in PostgreSQL, as a proxy with a delay measures them.

use crate::support::explained_io;

/// Returns the explanation of a program with these routes, and tables with keys, with numbered rows, with references, in memory, and
/// with a unique value.
fn explained(routes: &str) -> String {
    let program = format!(
        "use http\n\nrecord Account {{ id: Int, amount: Int }}\nrecord Line {{ id: Int, account: Int }}\n\
         table accounts: Account key id\ntable lines: Line key id auto\n\
         table owned: Line key id references account: accounts\ntable seen: Line key id soft\ntable ranked: Account key id unique amount\nservice bank on http(port: 8080) {{\n{routes}}}\n"
    );
    explained_io("io_transactions.weir", &program)
}

/// The first statement begins the transaction, which only an answer shows, and the answer of the request waits for the disk.
#[test]
fn a_transaction_has_a_round_for_its_beginning_its_commit_and_the_disk() {
    insta::assert_snapshot!(explained(
        "  get \"/one\" { accounts.upsert(Account { id: 1, amount: 1 })?; http.text(\"\") }\n  \
         get \"/step\" { atomic accounts { accounts.upsert(Account { id: 1, amount: 1 })? }; http.text(\"\") }\n  \
         get \"/two\" {\n    atomic accounts {\n      accounts.upsert(Account { id: 1, amount: 1 })?\n      \
         accounts.upsert(Account { id: 2, amount: 1 })?\n    }\n    http.text(\"\")\n  }\n  \
         get \"/read\" { let same = atomic accounts { accounts[1] == accounts[2] }; http.text(\"{same}\") }\n  \
         get \"/each\" (ids: List(Int)) {\n    \
         atomic accounts { for id in ids { accounts.upsert(Account { id, amount: 1 })? } }\n    http.text(\"\")\n  }\n"
    ));
}

#[test]
fn changes_of_tables_that_number_rows_or_have_references_are_waited_for() {
    insta::assert_snapshot!(explained(
        "  get \"/auto\" {\n    atomic lines {\n      lines.insert(Line { account: 1 })?\n      \
         lines.insert(Line { account: 2 })?\n    }\n    http.text(\"\")\n  }\n  \
         get \"/owned\" {\n    atomic owned {\n      owned.upsert(Line { id: 1, account: 1 })?\n      \
         owned.upsert(Line { id: 2, account: 2 })?\n    }\n    http.text(\"\")\n  }\n"
    ));
}

/// The rows that a transaction has asked for may be old behind a change that it has waited for.
#[test]
fn rows_are_read_again_behind_a_change_that_is_waited_for() {
    insta::assert_snapshot!(explained(
        "  get \"/loop\" (ids: List(Int)) {\n    atomic lines {\n      for id in ids {\n        \
         let account = accounts[id] else { fail(\"no account\") }\n        \
         lines.insert(Line { account: account.id })?\n      }\n    }\n    http.text(\"\")\n  }\n  \
         get \"/placed\" (ids: List(Int)) {\n    atomic accounts {\n      for id in ids {\n        \
         let account = accounts[id] else { fail(\"no account\") }\n        \
         accounts.upsert(Account { ..account, amount: 0 })?\n      }\n    }\n    http.text(\"\")\n  }\n"
    ));
}

#[test]
fn statements_on_tables_in_memory_have_no_round() {
    insta::assert_snapshot!(explained(
        "  get \"/mixed\" { let one = accounts[1]; let two = seen[1]; http.text(\"{one} {two}\") }\n  \
         get \"/memory\" {\n    atomic seen {\n      seen.upsert(Line { id: 1, account: 1 })?\n    }\n    http.text(\"\")\n  }\n"
    ));
}

/// A change looks up the rows that its row references, and a deletion those that reference its row.
#[test]
fn statements_on_tables_with_references_look_rows_up_first() {
    insta::assert_snapshot!(explained(
        "  get \"/change\" { owned.upsert(Line { id: 1, account: 1 })?; http.text(\"\") }\n  \
         get \"/delete\" { accounts.delete(1)?; http.text(\"\") }\n"
    ));
}

/// Rows between which a unique value may move are deleted before the first new one is inserted, under a savepoint, with the columns that
/// other programs have added.
#[test]
fn an_update_of_all_rows_has_more_rounds_if_a_unique_value_may_move() {
    insta::assert_snapshot!(explained(
        "  get \"/all\" { let n = accounts.update_all(|a| a.amount > 1, |a| Account { ..a, amount: 0 })?; http.text(\"{n}\") }\n  \
         get \"/ranked\" { let n = ranked.update_all(|a| a.amount > 1, |a| Account { ..a, amount: 0 })?; http.text(\"{n}\") }\n"
    ));
}
