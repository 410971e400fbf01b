//! Starts of programs whose tables have changed.

use weir::Value;

use super::{RandomRows, TestDatabase, column, declared, everything, schema};
use crate::tables::rows::TableRows;
use crate::tables::schema::{ColumnSchema, IndexSchema, Schema};

#[test]
fn a_start_adds_what_is_new_and_refuses_what_would_change_rows() {
    for database in TestDatabase::each("evolution") {
        let mut random = RandomRows::new(7);
        {
            let table = database.storage().open(schema()).unwrap();
            while table.rows.insert(0, random.row()).is_err() {}
        }
        let with = |change: &dyn Fn(&mut Schema)| {
            let mut changed = schema();
            change(&mut changed);
            database.storage().open(changed).map(|_| ()).map_err(|failure| failure.message.to_string())
        };
        let required = with(&|schema| schema.columns.push(column("new", "Int", false)));
        assert_eq!(
            required.unwrap_err(),
            "1 row has no value for the column `new`; give it a default (`default(new: …)` at the table), or make it an `Option`"
        );
        let changed = with(&|schema| schema.columns[2].kind = "Time".to_owned());
        assert!(
            changed.unwrap_err().contains("is `Float` in the database and `Time` in the program; give it a new name")
        );
        let changed = with(&|schema| schema.columns[1].kind = "Time".to_owned());
        assert!(
            changed.unwrap_err().contains("`Time` in the program; a key keeps its type: give the table a new name")
        );
        with(&|schema| {
            schema.columns.push(column("new", "Int", true));
            schema.columns.push(ColumnSchema { default: Some("it's".to_owned()), ..column("named", "Text", false) });
            schema.indexes.remove(0);
            schema.indexes.push(IndexSchema { columns: vec![6], unique: false });
        })
        .unwrap();
        // The columns that this one does not declare stay, and do not keep rows from being inserted.
        let table = database.storage().open(schema()).unwrap();
        while table.rows.insert(0, random.row()).is_err() {}
    }
}

/// A type of the database says nothing of a type of the program, and nobody writes what the database computes.
#[test]
fn a_column_that_another_program_has_added_is_refused() {
    for database in TestDatabase::each("added_column") {
        let things = |columns: Vec<ColumnSchema>| {
            declared("things", [vec![column("id", "Int", false), column("n", "Int", false)], columns].concat())
        };
        drop(database.storage().open(things(Vec::new())).unwrap());
        let (int, kept) = if database.shell() == "psql" { ("bigint", "STORED") } else { ("INTEGER", "VIRTUAL") };
        database.execute(&format!(
            "ALTER TABLE things ADD COLUMN plain {int};
             ALTER TABLE things ADD COLUMN state TEXT;
             ALTER TABLE things ADD COLUMN twice {int} GENERATED ALWAYS AS (n + 1) {kept}"
        ));
        for (name, kind) in [("plain", "Int"), ("state", "Enum"), ("twice", "Int")] {
            for (optional, default) in [(true, None), (false, Some("5".to_owned()))] {
                let default = default.filter(|_| kind == "Int");
                let new = things(vec![ColumnSchema { default, ..column(name, kind, optional) }]);
                let failure = database.storage().open(new.clone()).map(|_| ()).unwrap_err();
                let why = format!(
                    "another program has added a column `{name}` to the table; drop it, or give the field a new name"
                );
                assert!(failure.message.ends_with(&why), "{database:?}: {failure}");
                let report = database.report(&new).unwrap();
                assert!(report.contains("a start fails: ") && report.contains(&why), "{report}");
            }
        }
        database.storage().open(things(Vec::new())).unwrap();
    }
}

/// The key of the database keeps its order, by which it still finds rows.
#[test]
fn the_columns_of_a_key_may_come_in_another_order() {
    let columns = || vec![column("a", "Int", false), column("b", "Int", false), column("x", "Text", false)];
    let pairs = |key| Schema { key, ..declared("pairs", columns()) };
    let row = |a, b, x: &str| Value::Record([Value::Int(a), Value::Int(b), Value::text(x)].into());
    for database in TestDatabase::each("key_order") {
        let storage = database.storage();
        let rows = [row(1, 2, "first"), row(2, 1, "second")];
        let table = storage.open(pairs(vec![0, 1])).unwrap();
        rows.iter().for_each(|row| _ = table.rows.insert(0, row.clone()).unwrap());
        drop((table, storage));
        assert!(database.report(&pairs(vec![1, 0])).unwrap().contains("the database has it like this"));
        let table = database.storage().open(pairs(vec![1, 0])).unwrap();
        assert_eq!(table.rows.select(0, &everything()).unwrap(), [rows[1].clone(), rows[0].clone()]);
        let key = Value::Record([Value::Int(2), Value::Int(1)].into());
        assert_eq!(table.rows.get(0, &key).unwrap(), Some(rows[0].clone()));
        table.rows.upsert(0, row(1, 2, "changed")).unwrap();
        assert_eq!(table.rows.select(0, &everything()).unwrap().len(), 2);
    }
}

/// The evolution of a small table, from one start to the next.
pub(super) struct Evolution {
    pub(super) database: TestDatabase,
}

impl Evolution {
    /// Returns one in a database of each kind.
    pub(super) fn each(name: &str) -> Vec<Evolution> {
        TestDatabase::each(name).into_iter().map(|database| Evolution { database }).collect()
    }

    /// Starts a program that declares these columns behind the key, after `weir tables` has promised the same.
    pub(super) fn start(
        &self,
        columns: &[ColumnSchema],
        indexes: &[IndexSchema],
        run: impl FnOnce(&dyn TableRows),
    ) -> Result<(), String> {
        let key = column("name", "Text", false);
        let schema = Schema {
            indexes: indexes.to_vec(),
            ..declared("users", std::iter::once(key).chain(columns.iter().cloned()).collect())
        };
        let promised = self.database.report(&schema).unwrap();
        let storage = self.database.storage();
        let opened = storage.open(schema).map_err(|failure| failure.message.to_string());
        let fails = promised.lines().find_map(|line| line.strip_prefix("  a start fails: "));
        assert_eq!(fails, opened.as_ref().err().map(String::as_str), "{promised}");
        run(&*opened?.rows);
        weir::Closing::close(&storage).map_err(|failure| failure.message.to_string())
    }
}

pub(super) fn state(variants: &[&str]) -> ColumnSchema {
    let variants = variants.iter().map(|&variant| variant.to_owned()).collect();
    ColumnSchema { variants, ..column("state", "Enum", false) }
}

pub(super) fn user<const N: usize>(name: &str, others: [Value; N]) -> Value {
    Value::Record(std::iter::once(Value::text(name)).chain(others).collect())
}

#[test]
fn an_update_of_many_rows_keeps_the_values_of_undeclared_columns() {
    for evolution in Evolution::each("undeclared") {
        let place = column("place", "Int", false);
        let note = ColumnSchema { default: Some("none".to_owned()), ..column("note", "Text", false) };
        let mark = column("mark", "Float", true);
        let unique = [IndexSchema { columns: vec![1], unique: true }];
        let of_ada = user("ada", [Value::Int(1), Value::text("first"), Value::some(Value::Float(0.5))]);
        let of_bob = user("bob", [Value::Int(2), Value::text("second"), Value::none()]);
        let all = [place.clone(), note, mark];
        evolution
            .start(&all, &unique, |rows| {
                for row in [&of_ada, &of_bob] {
                    rows.insert(0, row.clone()).unwrap();
                }
            })
            .unwrap();
        evolution
            .start(&[place], &unique, |rows| {
                let at = |ada, bob| [user("ada", [Value::Int(ada)]), user("bob", [Value::Int(bob)])];
                assert_eq!(rows.replace_rows(0, &at(1, 2), at(2, 1).to_vec()).unwrap(), 2);
            })
            .unwrap();
        evolution
            .start(&all, &unique, |rows| {
                let found = [Value::text("ada"), Value::text("bob")].map(|name| rows.get(0, &name).unwrap().unwrap());
                let of_ada = user("ada", [Value::Int(2), Value::text("first"), Value::some(Value::Float(0.5))]);
                let of_bob = user("bob", [Value::Int(1), Value::text("second"), Value::none()]);
                assert_eq!(found, [of_ada, of_bob]);
            })
            .unwrap();
    }
}

#[test]
fn rows_of_an_older_program_have_no_invented_values() {
    for evolution in Evolution::each("older") {
        let (born, mail) = (column("born", "Time", false), column("mail", "Text", false));
        let newer = [born.clone(), mail.clone(), state(&["Open", "Closed"])];
        let row = user("ada", [Value::Time(5), Value::text("a"), Value::Variant(1, None)]);
        evolution.start(&newer, &[], |table| _ = table.insert(0, row.clone()).unwrap()).unwrap();
        evolution.start(&[], &[], |table| _ = table.insert(0, user("bob", [])).unwrap()).unwrap();
        assert_eq!(
            evolution.start(&newer, &[], |_| ()).unwrap_err(),
            "1 row has no value for the column `born`; make it an `Option`, or give the rows a value by a `migrate`"
        );
        let mail_default = ColumnSchema { default: Some("no".to_owned()), ..mail };
        let state_default = ColumnSchema { default: Some("Open".to_owned()), ..state(&["Open", "Closed"]) };
        let forward = [column("born", "Time", true), mail_default, state_default];
        evolution
            .start(&forward, &[], |table| {
                let found = |name: &str| table.get(0, &Value::text(name)).unwrap().unwrap();
                let ada = [Value::some(Value::Time(5)), Value::text("a"), Value::Variant(1, None)];
                assert_eq!(found("ada"), user("ada", ada));
                assert_eq!(found("bob"), user("bob", [Value::none(), Value::text("no"), Value::Variant(0, None)]));
            })
            .unwrap();
        let required = [born, forward[1].clone(), forward[2].clone()];
        assert!(
            evolution.start(&required, &[], |_| ()).unwrap_err().contains("1 row has no value for the column `born`")
        );
    }
}

#[test]
fn a_variant_that_rows_have_cannot_go() {
    for evolution in Evolution::each("variants") {
        let insert = |name: &'static str, tag| {
            move |table: &dyn TableRows| _ = table.insert(0, user(name, [Value::Variant(tag, None)])).unwrap()
        };
        evolution.start(&[state(&["Open", "Closed", "Lost"])], &[], insert("ada", 1)).unwrap();
        evolution.start(&[state(&["Closed", "New", "Open"])], &[], insert("bob", 2)).unwrap();
        assert_eq!(
            evolution.start(&[state(&["Open"])], &[], |_| ()).unwrap_err(),
            format!(
                "1 row has the state `Closed`, which the program does not declare; declare the variant until the rows are \
                 changed, by the program or by `{}`: UPDATE \"users\" SET \"state\" = '…' WHERE \"state\" = 'Closed'",
                evolution.database.shell()
            )
        );
    }
}

#[test]
fn a_new_unique_needs_rows_that_differ() {
    for evolution in Evolution::each("unique") {
        let mail = column("mail", "Text", true);
        let rows = |table: &dyn TableRows| {
            for (name, mail) in [("ada", Some("a")), ("bob", Some("a")), ("eve", None), ("joe", None)] {
                let mail = mail.map_or(Value::none(), |mail| Value::some(Value::text(mail)));
                table.insert(0, user(name, [mail])).unwrap();
            }
        };
        evolution.start(std::slice::from_ref(&mail), &[], rows).unwrap();
        let unique = [IndexSchema { columns: vec![1], unique: true }];
        assert_eq!(
            evolution.start(std::slice::from_ref(&mail), &unique, |_| ()).unwrap_err(),
            "`unique (mail)` does not hold: 1 value occurs in more than one row, such as \"a\"; change or delete these rows first"
        );
        let added = [mail.clone(), ColumnSchema { default: Some("0".to_owned()), ..column("place", "Int", false) }];
        let of_place = [IndexSchema { columns: vec![2], unique: true }];
        assert_eq!(
            evolution.start(&added, &of_place, |_| ()).unwrap_err(),
            "`unique (place)` does not hold: the default of the new column `place` gives it one value in all rows; make it an \
             `Option`"
        );
        let both =
            [IndexSchema { columns: vec![2, 0], unique: true }, IndexSchema { columns: vec![0, 2], unique: false }];
        evolution.start(&added, &both, |_| ()).unwrap();
    }
}

#[test]
fn an_option_under_unique_becomes_required_if_the_default_is_the_value_of_one_row() {
    for evolution in Evolution::each("filled") {
        let unique = [IndexSchema { columns: vec![1], unique: true }];
        let without = |names: &'static [&str]| {
            move |table: &dyn TableRows| {
                names.iter().for_each(|name| _ = table.insert(0, user(name, [Value::none()])).unwrap());
            }
        };
        evolution.start(&[column("mail", "Text", true)], &unique, without(&["ada", "bob"])).unwrap();
        let required = [ColumnSchema { default: Some("none".to_owned()), ..column("mail", "Text", false) }];
        assert_eq!(
            evolution.start(&required, &unique, |_| ()).unwrap_err(),
            "`unique (mail)` does not hold: the default of the column `mail` gives several rows without a value the same one; leave it \
             an `Option`, or give these rows values first"
        );
        let optional = [column("mail", "Text", true)];
        evolution.start(&optional, &unique, |table| assert!(table.delete(0, &Value::text("bob")).unwrap())).unwrap();
        evolution
            .start(&required, &unique, |table| {
                let ada = table.get(0, &Value::text("ada")).unwrap();
                assert_eq!(ada, Some(user("ada", [Value::text("none")])));
            })
            .unwrap();
    }
}

#[test]
fn a_value_that_breaks_a_new_unique_is_shown_as_programs_write_it() {
    for evolution in Evolution::each("unique_time") {
        let at = [column("at", "Time", false)];
        let rows = |table: &dyn TableRows| {
            for name in ["ada", "bob"] {
                table.insert(0, user(name, [Value::Time(1_000_000_000)])).unwrap();
            }
        };
        evolution.start(&at, &[], rows).unwrap();
        let why = evolution.start(&at, &[IndexSchema { columns: vec![1], unique: true }], |_| ()).unwrap_err();
        assert!(why.contains(&format!("such as {};", Value::Time(1_000_000_000))), "{why}");
    }
}

#[test]
fn a_table_that_the_database_does_not_number_is_refused() {
    for database in TestDatabase::each("number_later") {
        let numbered = |auto| Schema {
            auto,
            ..declared("lines", vec![column("id", "Int", false), column("text", "Text", false)])
        };
        drop(database.storage().open(numbered(false)).unwrap());
        let refused = database.storage().open(numbered(true)).map(|_| ()).unwrap_err();
        assert!(refused.message.contains("numbers the rows (`auto`)"), "{refused}");
    }
}

#[test]
fn a_new_column_may_have_a_default_with_nul() {
    for evolution in Evolution::each("nul") {
        let mark = ColumnSchema { default: Some("a\0'b".to_owned()), ..column("mark", "Text", false) };
        evolution.start(&[], &[], |table| _ = table.insert(0, user("ada", [])).unwrap()).unwrap();
        evolution
            .start(&[mark], &[], |table| {
                let found = table.get(0, &Value::text("ada")).unwrap();
                assert_eq!(found, Some(user("ada", [Value::text("a\0'b")])));
            })
            .unwrap();
    }
}

#[test]
fn names_and_defaults_that_mean_something_to_a_database_are_stored_or_refused() {
    for database in TestDatabase::each("special") {
        let storage = database.storage();
        let open = |name, of| storage.open(declared(name, vec![column("name", "Text", false), of]));
        let infinite = ColumnSchema { default: Some("-inf".to_owned()), ..column("least", "Float", false) };
        let excluded = open("excluded", infinite).unwrap();
        for number in [1.5, 2.5] {
            excluded.rows.upsert(0, Value::Record([Value::text("one"), Value::Float(number)].into())).unwrap();
        }
        assert!(excluded.rows.get(0, &Value::text("one")).unwrap().is_some());
        let of_system = open("others", column("ctid", "Int", true)).map(|_| ());
        match database {
            TestDatabase::Sqlite(_) => of_system.unwrap(),
            TestDatabase::Postgres(_) => {
                let why = of_system.unwrap_err();
                assert!(why.message.contains("a column `ctid` of its own; choose another name"), "{why}");
            }
        }
    }
}

#[test]
fn names_that_differ_in_case_are_refused() {
    let evolution = Evolution { database: TestDatabase::sqlite("case") };
    evolution.start(&[column("nA", "Int", true)], &[], |_| ()).unwrap();
    assert_eq!(
        evolution.start(&[column("na", "Int", true)], &[], |_| ()).unwrap_err(),
        "the database has the column `nA`, and its names are equal without regard to case: rename `na` to `nA`, or choose a \
         name that differs in more than case"
    );
    let schema = Schema { name: "Users".to_owned(), ..schema() };
    let promised = evolution.database.report(&schema).unwrap();
    assert!(promised.contains("a start fails: the database has the table `users`"), "{promised}");
}

#[test]
fn the_report_shows_a_default_that_has_changed() {
    for evolution in Evolution::each("old_default") {
        let with_default =
            |default: &str| [ColumnSchema { default: Some(default.to_owned()), ..column("place", "Int", false) }];
        evolution.start(&with_default("1"), &[], |_| ()).unwrap();
        evolution.start(&with_default("2"), &[], |_| ()).unwrap();
        let report = |default: &str| {
            let columns = [column("name", "Text", false)].into_iter().chain(with_default(default)).collect();
            let (name, indexes) = ("users".to_owned(), Vec::new());
            let schema = Schema { name, columns, key: vec![0], auto: false, indexes, ..schema() };
            evolution.database.report(&schema).unwrap()
        };
        assert!(
            report("2").contains("does not declare `place` inserts 1, the default with which it was created"),
            "{}",
            report("2")
        );
        assert!(!report("1").contains("does not declare"), "{}", report("1"));
        // A program without the column inserts what the report says.
        evolution.start(&[], &[], |table| _ = table.insert(0, user("ada", [])).unwrap()).unwrap();
        evolution
            .start(&with_default("2"), &[], |table| {
                assert_eq!(table.get(0, &Value::text("ada")).unwrap(), Some(user("ada", [Value::Int(1)])));
            })
            .unwrap();
    }
}
