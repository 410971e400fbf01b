//! Old versions of a program whose `migrate` clause was left in place, when later versions bring back names of columns or convert the rows
//! back.

use weir::Value;

use super::TestDatabase;
use super::migrations::{FIRST, SECOND, Version, in_cents, number, row};

/// Counts euros again, as the first one.
const BACK: Version = Version {
    columns: "price: Int",
    migration: Some(("price: Int, currency: Text", |old| vec![old[0].clone(), number(&old[1], |cents| cents / 100)])),
};

#[test]
fn a_program_that_converts_the_rows_back_may_start_and_the_one_before_it_does_not_convert_them_again() {
    for (name, batched) in [("cents_back", false), ("cents_back_batched", true)] {
        for database in TestDatabase::each(name) {
            let start = |version: &Version, row| version.start(&database, batched, row);
            assert_eq!(start(&FIRST, row(1, 5, None)), Ok("1 5".to_owned()));
            assert_eq!(start(&SECOND, None), Ok("1 500 EUR".to_owned()));
            for version in [&BACK, &BACK, &FIRST, &BACK] {
                assert_eq!(start(version, None), Ok("1 5".to_owned()));
            }
            let refused = start(&Version { migration: None, ..SECOND }, None).unwrap_err();
            assert!(refused.contains("this one has `currency`, which is an old one"), "{refused}");
            let refused = start(&SECOND, None).unwrap_err();
            assert!(refused.contains("The `migrate` of this one was made before that"), "{refused}");
            assert_eq!(start(&BACK, None), Ok("1 5".to_owned()));
            // Deliberately, they are.
            database.execute(refused.split_once("with `sqlite3` or `psql`: ").unwrap().1);
            assert_eq!(start(&SECOND, None), Ok("1 500 EUR".to_owned()));
            for version in [&FIRST, &BACK] {
                assert!(start(version, None).unwrap_err().contains("no `currency`"));
            }
        }
    }
}

/// Its text alone tells an old version with the clause from a new one.
#[test]
fn an_old_version_with_its_clause_is_refused_when_the_name_of_a_column_comes_back() {
    let city = Version { columns: "city: Text", migration: None };
    let place = Version { columns: "place: Text", migration: Some(("city: Text", |old| old.to_vec())) };
    let city_again = Version { columns: "city: Text", migration: Some(("place: Text", |old| old.to_vec())) };
    let report = Version { columns: "note: Option(Int)", migration: None };
    for (name, batched) in [("name_again", false), ("name_again_batched", true)] {
        for database in TestDatabase::each(name) {
            let start = |version: &Version, row| version.start(&database, batched, row);
            start(&city, Some(vec![Value::Int(1), Value::text("London")])).unwrap();
            assert_eq!(start(&place, None), Ok("1 London".to_owned()));
            start(&report, None).unwrap();
            for version in [&city_again, &city, &city_again] {
                assert_eq!(start(version, None), Ok("1 London".to_owned()));
                for clause in [place.migration, None] {
                    let refused = start(&Version { migration: clause, ..place }, None).unwrap_err();
                    let why = "has converted the rows to other columns (id: Int, city: Text), and this one has old ones and no `city`";
                    assert!(refused.contains(why), "{refused}");
                    assert_eq!(refused.contains("was made before that"), clause.is_some(), "{refused}");
                }
            }
            // Another name is new.
            let town = Version { columns: "town: Text", migration: Some(("city: Text", |old| old.to_vec())) };
            assert_eq!(start(&town, None), Ok("1 London".to_owned()));
            for version in [&city, &place, &city_again] {
                assert!(start(version, None).unwrap_err().contains("no `town`"));
            }
        }
    }
}

/// The column that it adds has the name of one from which the version before has converted.
#[test]
fn an_old_version_with_its_clause_is_refused_behind_a_migration_that_adds_a_column() {
    let first = Version { columns: "m: Int", migration: None };
    let second = Version { columns: "n: Int", migration: Some(("m: Int", |old| old.to_vec())) };
    for (at, added) in ["cur: Text", "m: Text"].into_iter().enumerate() {
        let columns: &str = ["n: Int, cur: Text", "n: Int, m: Text"][at];
        let third = Version { columns, migration: Some(("n: Int", in_cents)) };
        for database in TestDatabase::each(&format!("added_again_{at}")) {
            let start = |version: &Version, row| version.start(&database, false, row);
            assert_eq!(start(&first, row(1, 2, None)), Ok("1 2".to_owned()));
            assert_eq!(start(&second, None), Ok("1 2".to_owned()));
            assert_eq!(start(&third, None), Ok("1 200 EUR".to_owned()));
            for clause in [second.migration, None] {
                let refused = start(&Version { migration: clause, ..second }, None).unwrap_err();
                assert!(refused.contains(&format!("no `{}`", &added[..added.len() - 6])), "{refused}");
            }
            assert_eq!(start(&third, None), Ok("1 200 EUR".to_owned()));
        }
    }
}

/// Such notes have no order: each has the columns behind all later migrations.
#[test]
fn the_notes_of_an_earlier_weir_are_read_and_get_an_order() {
    let second = Version { columns: "place: Text", migration: Some(("city: Text", |old| old.to_vec())) };
    let third = Version { columns: "town: Text", migration: Some(("place: Text", |old| old.to_vec())) };
    let fourth = Version { columns: "city: Text", migration: Some(("town: Text", |old| old.to_vec())) };
    for database in TestDatabase::each("notes_without_order") {
        let start = |version: &Version, row| version.start(&database, false, row);
        start(&Version { migration: None, ..third }, Some(vec![Value::Int(1), Value::text("Ulm")])).unwrap();
        database.execute(
            "DROP TABLE IF EXISTS weir_migrations;
             CREATE TABLE weir_migrations (\"table\" TEXT NOT NULL, \"old\" TEXT NOT NULL, \"new\" TEXT NOT NULL, \"last\" TEXT,
                                           \"done\" INTEGER NOT NULL, PRIMARY KEY (\"table\", \"old\"));
             INSERT INTO weir_migrations VALUES ('items', 'id: Int, city: Text', 'id: Int, town: Text', NULL, 1);
             INSERT INTO weir_migrations VALUES ('items', 'id: Int, place: Text', 'id: Int, town: Text', NULL, 1)",
        );
        let refused = |columns: &'static str| {
            let refused = start(&Version { columns, migration: None }, None).unwrap_err();
            assert!(refused.contains("has converted the rows to other columns (id: Int, "), "{refused}");
        };
        for round in 0..2 {
            assert_eq!(start(&third, None), Ok("1 Ulm".to_owned()), "{round}");
            refused("city: Text");
            refused("place: Text");
            assert!(start(&second, None).is_err());
        }
        assert_eq!(start(&fourth, None), Ok("1 Ulm".to_owned()));
        refused("town: Text");
        refused("place: Text");
        assert!(start(&third, None).unwrap_err().contains("no `city`"));
        assert_eq!(start(&fourth, None), Ok("1 Ulm".to_owned()));
    }
}
