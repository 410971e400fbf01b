//! References between tables in memory and in the database against each other, and rows that a new reference finds broken.

use std::sync::Arc;

use test_support::random::Random;
use weir::{FailureKind, Value};

use super::agreement::STATEMENTS;
use super::{TestDatabase, column, declared, everything, reference};
use crate::tables::open_table::OpenTable;
use crate::tables::row::fields;
use crate::tables::schema::{IndexSchema, Schema, TableCondition, TableQuery, TableReference, TableSearch};
use crate::tables::storage::TableStorage;

const TABLES: [&str; 3] = ["users", "posts", "likes"];

/// Returns users, their posts, which may answer other posts, and what users like.
fn schemas(authors_cascade: bool) -> [Schema; 3] {
    let references = [
        reference("posts", &[(1, "author", false)], ("users", "name"), authors_cascade),
        reference("posts", &[(2, "answers", true)], ("posts", "id"), true),
        reference("likes", &[(0, "user", false)], ("users", "name"), true),
        reference("likes", &[(1, "post", false)], ("posts", "id"), false),
    ];
    let table = |name: &str, columns, key| Schema {
        key,
        references: references.iter().filter(|reference| reference.source == name).cloned().collect(),
        referenced_by: references.iter().filter(|reference| reference.target == name).cloned().collect(),
        ..declared(name, columns)
    };
    let index = |column| IndexSchema { columns: vec![column], unique: false };
    let posts = vec![column("id", "Int", false), column("author", "Text", false), column("answers", "Int", true)];
    [
        table("users", vec![column("name", "Text", false)], vec![0]),
        Schema { indexes: vec![index(1), index(2)], ..table("posts", posts, vec![0]) },
        Schema {
            indexes: vec![index(1)],
            ..table("likes", vec![column("user", "Text", false), column("post", "Int", false)], vec![0, 1])
        },
    ]
}

fn row(table: &str, random: &mut Random) -> Value {
    let mut user = || Value::text(["ada", "bob", "eve", "joe"][random.below(4) as usize]);
    let name = user();
    let mut number = || Value::Int(random.below(8) as i64);
    let row = match table {
        "users" => vec![name],
        "likes" => vec![name, number()],
        _ => {
            let (id, answered) = (number(), number());
            let answers = if random.below(2) == 0 { Value::none() } else { Value::some(answered) };
            vec![id, name, answers]
        }
    };
    Value::Record(row.into())
}

/// Runs a random statement on a table, and returns the result as a text.
fn statement(storage: &TableStorage, transaction: i64, seed: u64) -> String {
    let mut random = Random::new(seed);
    let name = TABLES[random.below(3) as usize];
    let table = storage.table(name).unwrap();
    let row = row(name, &mut random);
    let key = table.schema.key_of(fields(&row));
    let checked = |numbered| table.check_references(storage, transaction, (&row, numbered));
    let result = match random.below(8) {
        0..=2 => checked(false).and_then(|()| table.rows.insert(transaction, row.clone())).map(|_| "inserted".into()),
        3 => checked(false).and_then(|()| table.rows.upsert(transaction, row.clone())).map(|_| "upserted".into()),
        4 => table.delete(storage, transaction, &key).map(|deleted| deleted.to_string()),
        5 => {
            let condition = TableCondition { column: 0, comparison: ["==", "<"][random.below(2) as usize].to_owned() };
            let query = TableQuery { conditions: vec![condition], order: Vec::new() };
            let values = [Value::Int(i64::MAX), Value::Unit, fields(&row)[0].clone()];
            let search = TableSearch::new(query, Value::Record(values.into()));
            table.delete_all(storage, transaction, &search).map(|count| count.to_string())
        }
        6 => {
            let rows = table.rows.select(transaction, &everything()).unwrap();
            let rows = rows.into_iter().filter(|_| random.below(3) == 0).collect();
            table.delete_rows(storage, transaction, rows).map(|count| count.to_string())
        }
        _ => table.rows.select(transaction, &everything()).map(|rows| format!("{rows:?}")),
    };
    result.unwrap_or_else(|failure| {
        assert_eq!(failure.kind, FailureKind::Constraint, "{failure}");
        failure.message.to_string()
    })
}

/// Returns the rows of all tables, after checking that every reference has its row.
fn checked_rows(storage: &TableStorage, transaction: i64) -> Vec<Vec<Value>> {
    let rows = TABLES.map(|name| {
        let table: Arc<OpenTable> = storage.table(name).unwrap();
        let rows = table.rows.select(transaction, &everything()).unwrap();
        for row in &rows {
            table.check_references(storage, transaction, (row, false)).unwrap();
        }
        rows
    });
    rows.into()
}

#[test]
fn references_agree_in_memory_and_in_databases_and_hold() {
    for seed in 0..4 {
        for database in TestDatabase::each(&format!("references_{seed}")) {
            references_agree(&database, seed);
        }
    }
}

/// Executes the same random statements on tables with references in memory and in a database.
fn references_agree(database: &TestDatabase, seed: u64) {
    let (memory, stored) = (TableStorage::default(), database.storage());
    for schema in schemas(seed.is_multiple_of(2)) {
        memory.open(schema.clone()).unwrap();
        stored.open(schema).unwrap();
    }
    let mut random = Random::new(seed);
    let mut transaction = 0;
    // A statement of a database that is another process takes longer.
    let statements = if matches!(database, TestDatabase::Postgres(_)) { STATEMENTS / 16 } else { STATEMENTS / 4 };
    for at in 0..statements {
        match random.below(12) {
            0 if transaction == 0 => {
                transaction = memory.next_transaction().max(stored.next_transaction());
            }
            0 | 1 if transaction != 0 => {
                for (place, name) in TABLES.iter().enumerate() {
                    memory.table(name).unwrap().rows.commit(transaction, true).unwrap();
                    stored.table(name).unwrap().rows.commit(transaction, place == 2).unwrap();
                }
                transaction = 0;
            }
            // Left unfinished: the next statement takes it back.
            2 if transaction != 0 => transaction = 0,
            _ => {}
        }
        let of = random.below(u64::MAX);
        let (one, other) = (statement(&memory, transaction, of), statement(&stored, transaction, of));
        assert_eq!(one, other, "statement {at} of seed {seed} in {database:?}");
        let rows = checked_rows(&memory, transaction);
        assert_eq!(rows, checked_rows(&stored, transaction), "after statement {at} of seed {seed} in {database:?}");
    }
}

/// A database that is another process finds the references to many rows together.
#[test]
fn a_deletion_of_many_rows_finds_all_that_reference_them() {
    let databases = TestDatabase::each("many_references");
    for storage in databases.iter().map(TestDatabase::storage).chain([TableStorage::default()]) {
        let [users, posts, likes] = schemas(true).map(|schema| storage.open(schema).unwrap());
        let named = |number: i64| Value::text(&format!("user {number}"));
        let record = |values: Vec<Value>| Value::Record(values.into());
        storage.next_transaction();
        for number in 0..40 {
            users.rows.insert(1, record(vec![named(number)])).unwrap();
        }
        // Every second post answers the one before.
        for number in 0..2_500 {
            let answers = if number % 2 == 1 { Value::some(Value::Int(number - 1)) } else { Value::none() };
            posts.rows.insert(1, record(vec![Value::Int(number), named(number % 40), answers])).unwrap();
        }
        likes.rows.insert(1, record(vec![named(39), Value::Int(1_199)])).unwrap();
        users.rows.commit(1, true).unwrap();
        [&posts, &likes].iter().for_each(|table| table.rows.commit(1, false).unwrap());
        let find = |from: i64| (from..39).map(|number| record(vec![named(number)])).collect::<Vec<_>>();
        let refused = users.delete_rows(&storage, 0, find(0)).unwrap_err();
        let wanted = "a row of `likes` with the user \"user 39\" and the post 1199 references it by the post 1199";
        assert!(refused.message.contains(wanted), "{refused}");
        likes.rows.delete(0, &Value::Record([named(39), Value::Int(1_199)].into())).unwrap();
        assert_eq!(users.delete_rows(&storage, 0, find(1)).unwrap(), 38);
        let left = posts.rows.select(0, &everything()).unwrap();
        // Those of the first user, and of the last one as far as they answer none that is gone.
        let authors: Vec<&Value> = left.iter().map(|row| &fields(row)[1]).collect();
        assert_eq!(authors.len(), 63, "{storage:?}");
        assert!(authors.iter().all(|author| **author == named(0)), "{authors:?}");
    }
}

/// The same for rows whose keys have several columns, and references to them that may be absent in part.
#[test]
fn a_deletion_of_rows_with_keys_of_several_columns_takes_along_all_that_reference_them() {
    let databases = TestDatabase::each("wide_references");
    for storage in databases.iter().map(TestDatabase::storage).chain([TableStorage::default()]) {
        let columns = [(1, "shelf", true), (2, "title", true)];
        let shelved = TableReference {
            key: vec!["shelf".to_owned(), "title".to_owned()],
            ..reference("copies", &columns, ("books", "shelf"), true)
        };
        let books = vec![column("shelf", "Int", false), column("title", "Text", false)];
        let copies = vec![column("id", "Int", false), column("shelf", "Int", true), column("title", "Text", true)];
        let books = Schema { key: vec![0, 1], referenced_by: vec![shelved.clone()], ..declared("books", books) };
        let index = IndexSchema { columns: vec![1, 2], unique: false };
        let copies = Schema { indexes: vec![index], references: vec![shelved], ..declared("copies", copies) };
        let [books, copies] = [books, copies].map(|schema| storage.open(schema).unwrap());
        let record = |values: Vec<Value>| Value::Record(values.into());
        let book = |at: i64| record(vec![Value::Int(at % 3), Value::text(&format!("title {}", at / 3))]);
        storage.next_transaction();
        (0..30).for_each(|at| _ = books.rows.insert(1, book(at)).unwrap());
        for id in 0..100 {
            let of = fields(&book(id % 30)).to_vec();
            let shelf = if id % 7 == 0 { Value::none() } else { Value::some(of[0].clone()) };
            copies.rows.insert(1, record(vec![Value::Int(id), shelf, Value::some(of[1].clone())])).unwrap();
        }
        books.rows.commit(1, true).unwrap();
        copies.rows.commit(1, false).unwrap();
        assert_eq!(books.delete_rows(&storage, 0, (0..20).map(book).collect()).unwrap(), 20);
        let left = copies.rows.select(0, &everything()).unwrap();
        let wanted = (0..100).filter(|id| id % 7 == 0 || id % 30 >= 20).map(Value::Int);
        assert_eq!(left.iter().map(|row| fields(row)[0].clone()).collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
    }
}

/// Opens the tables in this order, and returns the first failure.
fn started(database: &TestDatabase, schemas: &[Schema]) -> String {
    let storage = database.storage();
    let failed = schemas.iter().find_map(|schema| storage.open(schema.clone()).err());
    failed.map_or_else(String::new, |failure| failure.message.to_string())
}

#[test]
fn a_start_checks_the_rows_for_a_new_reference() {
    for database in TestDatabase::each("new_reference") {
        rows_are_checked(&database);
    }
}

fn rows_are_checked(database: &TestDatabase) {
    let without = |schema: &Schema| Schema { references: Vec::new(), referenced_by: Vec::new(), ..schema.clone() };
    let [users, posts, _] = schemas(false);
    let posts =
        Schema { indexes: Vec::new(), references: posts.references[..1].to_vec(), referenced_by: Vec::new(), ..posts };
    let users = Schema { referenced_by: posts.references.clone(), ..users };
    let storage = database.storage();
    let open = storage.open(without(&posts)).unwrap();
    let post = |id, author| Value::Record([Value::Int(id), Value::text(author), Value::none()].into());
    for (id, author) in [(1, "ada"), (2, "eve"), (3, "eve")] {
        open.rows.insert(0, post(id, author)).unwrap();
    }
    drop((open, storage));
    // The table of the users is new.
    for order in [[&users, &posts], [&posts, &users]] {
        let failure = started(database, &order.map(Clone::clone));
        assert!(
            failure.starts_with("`references author: users` of `posts` does not hold: 3 rows name no row of `users`"),
            "{failure}"
        );
    }
    let storage = database.storage();
    let open = storage.open(without(&users)).unwrap();
    open.rows.insert(0, Value::Record([Value::text("ada")].into())).unwrap();
    drop((open, storage));
    for order in [[&users, &posts], [&posts, &users]] {
        let failure = started(database, &order.map(Clone::clone));
        assert!(failure.contains("2 rows name no row of `users`, such as 'eve'"), "{failure}");
    }
    let storage = database.storage();
    storage.open(without(&users)).unwrap().rows.insert(0, Value::Record([Value::text("eve")].into())).unwrap();
    drop(storage);
    assert_eq!(started(database, &[posts.clone(), users.clone()]), "");
    // A program that does not declare the reference may break it.
    let storage = database.storage();
    storage.open(without(&users)).unwrap().rows.delete(0, &Value::text("eve")).unwrap();
    drop(storage);
    let failure = started(database, &[posts, users]);
    assert!(failure.contains("2 rows name no row of `users`"), "{failure}");
}

#[test]
fn a_start_adds_an_absent_column_that_references_a_row() {
    for database in TestDatabase::each("added_reference") {
        let [_, posts, _] = schemas(false);
        let before = Schema {
            columns: posts.columns[..2].to_vec(),
            indexes: Vec::new(),
            references: Vec::new(),
            referenced_by: Vec::new(),
            ..posts.clone()
        };
        let storage = database.storage();
        let open = storage.open(before).unwrap();
        open.rows.insert(0, Value::Record([Value::Int(1), Value::text("ada")].into())).unwrap();
        drop((open, storage));
        let answers = vec![posts.references[1].clone()];
        let posts = Schema { references: answers.clone(), referenced_by: answers, ..posts };
        assert_eq!(started(&database, &[posts]), "");
    }
}
