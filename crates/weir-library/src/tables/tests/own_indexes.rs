//! Indexes that somebody has created in advance, and the order in which a start creates them.

use weir::Value;

use super::evolution::{Evolution, user};
use super::{TestDatabase, column, declared};
use crate::tables::rows::TableRows;
use crate::tables::schema::{IndexSchema, Schema};

/// It was perhaps made in advance, and has failed, as `CREATE INDEX CONCURRENTLY` does if rows are equal.
#[test]
fn an_index_of_the_name_of_a_declared_one_is_made_anew_if_it_is_another_one() {
    let wrong = [
        "CREATE INDEX {name} ON users (mail)",
        "CREATE UNIQUE INDEX {name} ON users (name)",
        "CREATE UNIQUE INDEX {name} ON users (mail, name)",
        "CREATE UNIQUE INDEX {name} ON users (mail) WHERE mail <> 'a'",
        "CREATE UNIQUE INDEX {name} ON users (lower(mail))",
        "CREATE UNIQUE INDEX {name} ON users (mail COLLATE {other})",
        "CREATE UNIQUE INDEX {name} ON users (mail DESC)",
    ];
    let of_postgres = [
        "CREATE UNIQUE INDEX {name} ON users (mail text_pattern_ops)",
        "CREATE UNIQUE INDEX {name} ON users USING btree (mail NULLS FIRST)",
    ];
    for evolution in Evolution::each("wrong_indexes") {
        let is_sqlite = matches!(evolution.database, TestDatabase::Sqlite(_));
        let other = if is_sqlite { "NOCASE" } else { "pg_catalog.\"default\"" };
        let execute = |sql: &str| {
            let sql = sql.replace("{name}", "\"weir unique users (mail)\"").replace("{other}", other);
            evolution.database.execute(&sql);
        };
        let mail = [column("mail", "Text", true)];
        let unique = [IndexSchema { columns: vec![1], unique: true }];
        let is_kept = |table: &dyn TableRows| {
            for (name, is_new) in [("ada", true), ("bob", false)] {
                let row = user(name, [Value::some(Value::text("a"))]);
                assert_eq!(table.insert(0, row).is_ok(), is_new, "{name}");
            }
            assert!(table.delete(0, &Value::text("ada")).unwrap());
        };
        evolution.start(&mail, &[], |_| ()).unwrap();
        for sql in wrong.iter().chain(of_postgres.iter().filter(|_| !is_sqlite)) {
            execute(sql);
            evolution.start(&mail, &unique, is_kept).unwrap();
            evolution.start(&mail, &[], |_| ()).unwrap();
        }
        // One that is right stays.
        execute("CREATE UNIQUE INDEX {name} ON users (mail)");
        let key = column("name", "Text", false);
        let schema = Schema {
            indexes: unique.to_vec(),
            ..declared("users", std::iter::once(key).chain(mail.clone()).collect())
        };
        let promised = evolution.database.report(&schema).unwrap();
        assert!(promised.contains("the database has it like this"), "{promised}");
        evolution.start(&mail, &unique, is_kept).unwrap();
        if !is_sqlite {
            execute("DROP INDEX {name}");
            execute("ALTER TABLE users ADD CONSTRAINT {name} UNIQUE (mail) DEFERRABLE INITIALLY DEFERRED");
            evolution.start(&mail, &unique, is_kept).unwrap();
        }
    }
}

/// Nobody keeps the rule, and rows may be equal.
#[test]
fn a_unique_that_could_not_be_created_to_its_end_does_not_hold() {
    for evolution in Evolution::each("unfinished_unique") {
        let TestDatabase::Postgres(_) = &evolution.database else { continue };
        let mail = [column("mail", "Text", true)];
        let unique = [IndexSchema { columns: vec![1], unique: true }];
        let row = |name: &str, mail: &str| user(name, [Value::some(Value::text(mail))]);
        evolution
            .start(&mail, &unique, |table| {
                [row("ada", "a"), row("bob", "b")].into_iter().for_each(|row| _ = table.insert(0, row).unwrap());
            })
            .unwrap();
        evolution.database.execute(
            "UPDATE pg_index SET indisvalid = false, indisready = false
             WHERE indexrelid = '\"weir unique users (mail)\"'::regclass",
        );
        evolution.database.execute("UPDATE users SET mail = 'a'");
        assert_eq!(
            evolution.start(&mail, &unique, |_| ()).unwrap_err(),
            "`unique (mail)` does not hold: 1 value occurs in more than one row, such as \"a\"; change or delete these rows first"
        );
        evolution.database.execute("UPDATE users SET mail = 'b' WHERE name = 'bob'");
        evolution.start(&mail, &unique, |table| assert!(table.upsert(0, row("bob", "a")).is_err())).unwrap();
    }
}

/// Behind a change of a column, others would wait until the index is created before they read the table.
#[test]
fn an_index_on_columns_that_stay_is_created_before_columns_change() {
    for evolution in Evolution::each("index_first") {
        let [mail, place] = ["mail", "place"].map(|name| column(name, "Text", true));
        evolution.start(std::slice::from_ref(&mail), &[], |_| ()).unwrap();
        let indexes = [2, 1].map(|at| IndexSchema { columns: vec![at], unique: false });
        let columns = [column("name", "Text", false), mail, place];
        let schema = Schema { indexes: indexes.to_vec(), ..declared("users", columns.to_vec()) };
        let promised = evolution.database.report(&schema).unwrap();
        let place_of = |part: &str| promised.find(part).unwrap_or_else(|| panic!("{part} in {promised}"));
        let [of_mail, added, of_place] = ["(\"mail\")", "ADD COLUMN", "(\"place\")"].map(place_of);
        assert!(of_mail < added && added < of_place, "{promised}");
    }
}

/// Such as a view of somebody, or an index of a table that was renamed.
#[test]
fn what_has_the_name_of_a_declared_index_is_named_with_the_table_and_the_way_on() {
    let takers = [
        ("TABLE {} (a int)", "table", ""),
        ("VIEW {} AS SELECT 1 AS a", "view", ""),
        ("INDEX {} ON before (mail)", "index", " of the table `before`"),
        ("SEQUENCE {}", "sequence", ""),
        ("MATERIALIZED VIEW {} AS SELECT 1 AS a", "materialized view", ""),
    ];
    for evolution in Evolution::each("taken_names") {
        let is_sqlite = matches!(evolution.database, TestDatabase::Sqlite(_));
        let (mail, unique) = ([column("mail", "Text", true)], [IndexSchema { columns: vec![1], unique: true }]);
        // Makes the database one of Weir.
        evolution.database.storage().open(declared("others", vec![column("name", "Text", false)])).unwrap();
        evolution.database.execute("CREATE TABLE before (mail text)");
        for is_new in [true, false] {
            if !is_new {
                evolution.start(&mail, &[], |_| ()).unwrap();
            }
            for (created, kind, of_table) in takers.iter().take(if is_sqlite { 3 } else { takers.len() }) {
                let (name, keyword) = ("\"weir unique users (mail)\"", kind.to_uppercase());
                evolution.database.execute(&format!("CREATE {}", created.replace("{}", name)));
                let refused = evolution.start(&mail, &unique, |_| ()).unwrap_err();
                let is_renamed = !is_sqlite || *kind == "table";
                let way = if is_renamed {
                    format!("ALTER {keyword} {name} RENAME TO …")
                } else {
                    format!("DROP {keyword} {name}")
                };
                let what = format!("the database has the {kind} `weir unique users (mail)`{of_table}, and ");
                assert!(refused.contains(&format!("{what}`unique (mail)` of `users` needs this name")), "{refused}");
                assert!(refused.contains(&format!("it: `{way}`")) && refused.ends_with("and start again"), "{refused}");
                evolution.database.execute(&format!("DROP {keyword} {name}"));
            }
        }
        evolution.start(&mail, &unique, |_| ()).unwrap();
    }
}
