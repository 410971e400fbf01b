//! Random sequences of programs whose table changes, with rows and with migrations that are killed, against a model.
//!
//! `WEIR_MIGRATIONS` sets the number of sequences in SQLite; PostgreSQL gets one of four.

use std::collections::BTreeMap;

use test_support::random::Random;
use weir::{Failure, Value};

use super::test_database::TestDatabase;
use super::{everything, schema};
use crate::tables::row::fields;
use crate::tables::schema::{ColumnSchema, Schema, TableMigration};
use crate::tables::storage::TableStorage;

/// Number of programs of a sequence.
const PROGRAMS: usize = 14;

/// A value of a column in the database; `None` if it is absent.
type Stored = Option<Value>;

/// A column of the database.
#[derive(Clone, Debug)]
struct ModelColumn {
    kind: String,
    /// The default with which it was created: the database accepts no row without a value.
    default: Option<Value>,
}

/// The database as it has to be.
#[derive(Clone, Debug, Default)]
struct Model {
    columns: BTreeMap<String, ModelColumn>,
    rows: BTreeMap<i64, BTreeMap<String, Stored>>,
    /// The columns of the last program that was started, behind the key.
    declared: Vec<ColumnSchema>,
    /// The columns before each migration, and those behind it and all later ones, with their types.
    migrations: Vec<[Vec<String>; 2]>,
    /// The column that each migration has replaced, if it has, and the one that it has added, with their types.
    made: Vec<[Option<String>; 2]>,
}

fn column(name: &str, kind: &str, optional: bool, default: Option<&str>) -> ColumnSchema {
    ColumnSchema { default: default.map(str::to_owned), ..super::column(name, kind, optional) }
}

fn table(columns: &[ColumnSchema], migration: Option<TableMigration>) -> Schema {
    let columns = std::iter::once(super::column("id", "Int", false)).chain(columns.iter().cloned()).collect();
    Schema { name: "things".to_owned(), columns, key: vec![0], indexes: Vec::new(), migration, ..schema() }
}

/// Returns a value of a kind that a default or a migration has written.
fn value(kind: &str, text: &str) -> Value {
    if kind == "Int" { Value::Int(text.parse().unwrap_or(0)) } else { Value::text(text) }
}

/// Returns true if a program has an old column of a migration, and lacks a new one, which it does not convert either.
fn is_superseded(declared: &[ColumnSchema], converts: &[ColumnSchema], [old, new]: &[Vec<String>; 2]) -> bool {
    let name = |column: &str| column.split(": ").next().unwrap().to_owned();
    let has_name = |columns: &[String], wanted: &str| columns.iter().any(|column| name(column) == name(wanted));
    let is_replaced = |column: &String| {
        has_name(old, column) && !has_name(new, column) || old.contains(column) && !new.contains(column)
    };
    let declared = shown(declared);
    let only_adds = old.iter().all(|column| new.contains(column));
    let is_old = |column: &String| if only_adds { has_name(old, column) } else { is_replaced(column) };
    let known = declared.iter().cloned().chain(shown(converts));
    let kept: Vec<String> = known.filter(|column| !is_replaced(column)).collect();
    let mut added = new.iter().filter(|column| !old.contains(column));
    let lacks = |column: &String| !has_name(&kept, column);
    let lacks_new = if only_adds { added.all(lacks) } else { added.any(lacks) };
    (declared.iter().any(is_old) || old.is_empty()) && lacks_new
}

/// Returns the columns with their types.
fn shown(columns: &[ColumnSchema]) -> Vec<String> {
    columns.iter().map(|column| format!("{}: {}", column.name, column.shown_type())).collect()
}

impl Model {
    /// Starts a program with these columns. Returns whether it may.
    fn start(&mut self, declared: &[ColumnSchema]) -> bool {
        if self.migrations.iter().any(|migration| is_superseded(declared, &[], migration)) {
            return false;
        }
        let mut next = self.clone();
        for column in declared {
            let default = column.default.as_ref().filter(|_| !column.optional).map(|text| value(&column.kind, text));
            if let Some(known) = next.columns.get(&column.name) {
                let lacks = next.rows.values().any(|row| row.get(&column.name).cloned().flatten().is_none());
                if known.kind != column.kind || column.optional && known.default.is_some() {
                    return false;
                }
                if !column.optional && lacks {
                    let Some(default) = default else { return false };
                    for row in next.rows.values_mut() {
                        row.entry(column.name.clone()).or_default().get_or_insert_with(|| default.clone());
                    }
                }
                continue;
            }
            if !column.optional && default.is_none() && !next.rows.is_empty() {
                return false;
            }
            next.rows.values_mut().for_each(|row| _ = row.insert(column.name.clone(), default.clone()));
            next.columns.insert(column.name.clone(), ModelColumn { kind: column.kind.clone(), default });
        }
        next.declared = declared.to_vec();
        *self = next;
        true
    }

    /// Writes a row of the program: columns that it does not declare keep their values, or get those of the database.
    fn upsert(&mut self, id: i64, values: &[Stored]) {
        let fresh = || self.columns.iter().map(|(name, of)| (name.clone(), of.default.clone())).collect();
        let row = self.rows.entry(id).or_insert_with(fresh);
        for (column, value) in self.declared.iter().zip(values) {
            row.insert(column.name.clone(), value.clone());
        }
    }

    /// Converts a column into a new one, which stands beside it or instead of it. One that has its name keeps its values under the name
    /// `replaced`.
    fn converted(&mut self, (old, new, kind): (&str, &str, &str), change: ColumnChange, replaced: &str) {
        let moved = self.columns.remove(new);
        let is_moved = moved.is_some();
        self.columns.extend(moved.map(|moved| (replaced.to_owned(), moved)));
        self.columns.insert(new.to_owned(), ModelColumn { kind: kind.to_owned(), default: None });
        for row in self.rows.values_mut() {
            let before = row.get(old).cloned().flatten();
            if is_moved {
                let kept = row.remove(new).flatten();
                row.insert(replaced.to_owned(), kept);
            }
            if change == ColumnChange::Meaning {
                row.insert(old.to_owned(), before.as_ref().map(longer));
            }
            row.insert(new.to_owned(), before.map(|value| converted(&value)));
        }
    }

    /// Notes a migration that has replaced one column, or none, by another one.
    fn migrated(&mut self, old: &[ColumnSchema], new: &[ColumnSchema]) {
        let (old, new) = (shown(old), shown(new));
        let gone = old.iter().find(|column| !new.contains(column));
        let added = new.iter().find(|column| !old.contains(column)).expect("there is a new column");
        self.migrations.retain_mut(|[before, behind]| {
            if !gone.is_some_and(|gone| behind.contains(gone)) && !before.contains(added) {
                return true;
            }
            behind.retain(|column| Some(column) != gone);
            behind.push(added.clone());
            behind.iter().any(|column| !before.contains(column))
        });
        self.migrations.push([old, new]);
    }

    /// Returns the column that a migration replaces, if it does, and the one that it adds.
    fn changes(old: &[ColumnSchema], new: &[ColumnSchema]) -> [Option<String>; 2] {
        let (old, new) = (shown(old), shown(new));
        let first = |of: &[String], others: &[String]| of.iter().find(|column| !others.contains(column)).cloned();
        [first(&old, &new), first(&new, &old)]
    }

    /// Returns the rows as the program reads them.
    fn read(&self) -> Vec<Value> {
        let of = |column: &ColumnSchema, row: &BTreeMap<String, Stored>| {
            let stored = row.get(&column.name).cloned().flatten();
            if column.optional { stored.map_or_else(Value::none, Value::some) } else { stored.unwrap_or(Value::Absent) }
        };
        let row = |(id, row): (&i64, &BTreeMap<String, Stored>)| {
            let values = self.declared.iter().map(|column| of(column, row));
            Value::Record(std::iter::once(Value::Int(*id)).chain(values).collect())
        };
        self.rows.iter().map(row).collect()
    }
}

/// Returns the columns of another program.
fn changed(random: &mut Random, declared: &[ColumnSchema]) -> Vec<ColumnSchema> {
    let mut columns = declared.to_vec();
    for _ in 0..=random.below(2) {
        let name = format!("c{}", random.below(6));
        let kind = if random.below(2) == 0 { "Int" } else { "Text" };
        let default = ["7", "-3"][random.below(2) as usize];
        let new = match random.below(3) {
            0 => column(&name, kind, true, None),
            1 => column(&name, kind, false, Some(default)),
            _ => column(&name, kind, false, None),
        };
        match columns.iter().position(|known| known.name == name) {
            Some(at) if random.below(2) == 0 => _ = columns.remove(at),
            // Other values are a matter of migrations.
            Some(at) => columns[at] = ColumnSchema { kind: columns[at].kind.clone(), ..new },
            None => columns.push(new),
        }
    }
    columns
}

/// Writes random rows.
fn write(random: &mut Random, model: &mut Model, storage: &TableStorage) {
    let open = storage.table("things").unwrap();
    for _ in 0..random.below(6) {
        let id = random.below(12) as i64;
        if random.below(5) == 0 {
            assert_eq!(open.rows.delete(0, &Value::Int(id)).unwrap(), model.rows.remove(&id).is_some());
            continue;
        }
        let stored: Vec<Stored> = model
            .declared
            .iter()
            .map(|column| {
                let absent = column.optional && random.below(3) == 0;
                (!absent).then(|| value(&column.kind, &random.below(100).to_string()))
            })
            .collect();
        let of = |(column, stored): (&ColumnSchema, &Stored)| match (column.optional, stored.clone()) {
            (true, stored) => stored.map_or_else(Value::none, Value::some),
            (false, stored) => stored.unwrap_or(Value::Absent),
        };
        let values = model.declared.iter().zip(&stored).map(of);
        let row = Value::Record(std::iter::once(Value::Int(id)).chain(values).collect());
        open.rows.upsert(0, row).unwrap();
        model.upsert(id, &stored);
    }
}

/// The change that a migration makes to a column.
#[derive(Clone, Copy, PartialEq)]
enum ColumnChange {
    Name,
    Type,
    /// It keeps its name and its type, and gets a new column beside it.
    Meaning,
}

/// Returns another value of the same type, which differs from all before.
fn longer(value: &Value) -> Value {
    match value {
        Value::Int(number) => Value::Int(number * 3 + 1),
        Value::Text(text) => Value::text(&format!("{}1", text.as_str())),
        other => other.clone(),
    }
}

/// Returns the text or the number of a value with the other type.
fn converted(value: &Value) -> Value {
    match value {
        Value::Int(number) => Value::text(&number.to_string()),
        Value::Text(text) => Value::Int(text.as_str().parse().unwrap_or(0)),
        other => other.clone(),
    }
}

/// Returns the new row of an old one.
fn converted_row(row: &Value, at: usize, change: ColumnChange) -> Value {
    let mut values = fields(row).to_vec();
    let before = values[at].clone();
    if change == ColumnChange::Meaning {
        values[at] = longer(&before);
        values.push(converted(&before));
    } else {
        values[at] = converted(&before);
    }
    Value::Record(values.into())
}

/// Returns the name of a column that an earlier program has declared, and the last one has not; `None` if there is none, or at random.
fn given_up(random: &mut Random, model: &Model) -> Option<String> {
    let is_declared = |name: &String| model.declared.iter().any(|column| column.name == *name);
    let names: Vec<&String> = model.columns.keys().filter(|name| !name.contains(' ') && !is_declared(name)).collect();
    if names.is_empty() || random.below(2) == 0 {
        return None;
    }
    Some(names[random.below(names.len() as u64) as usize].clone())
}

/// Converts the rows as starts do that are killed between some steps, and returns the storage of the last one. Until all rows of a batched
/// migration are converted, the old program does not start.
fn convert(
    random: &mut Random,
    database: &TestDatabase,
    (schema, old): (&Schema, &[ColumnSchema]),
    converted: impl Fn(&Value) -> Value,
) -> Result<TableStorage, Failure> {
    let mut storage = database.storage();
    loop {
        let rows = storage.old_rows(schema)?;
        let into = rows.iter().map(&converted).collect();
        if random.below(4) == 0 {
            // Killed while it converts: the rows are read again.
            drop(storage);
            storage = database.storage();
            continue;
        }
        let more = storage.store_converted(schema, &rows, into)?;
        if random.below(3) == 0 {
            drop(storage);
            if more {
                let before = database.storage().open(table(old, None));
                assert!(before.is_err(), "the old program starts: {schema:?}");
            }
            storage = database.storage();
            continue;
        }
        if !more {
            return Ok(storage);
        }
    }
}

/// Starts a program that gives a required column another type, another name or another meaning, and is killed between some of its steps.
fn migrate(random: &mut Random, model: &mut Model, database: &TestDatabase, number: usize) -> Result<(), Failure> {
    let required: Vec<usize> = (0..model.declared.len())
        .filter(|at| !model.declared[*at].optional && model.columns[&model.declared[*at].name].default.is_none())
        .collect();
    if required.is_empty() {
        return Ok(());
    }
    let (at, batched) = (required[random.below(required.len() as u64) as usize], random.below(2) == 0);
    let old = model.declared.clone();
    // A program that declares some of the columns, and only reads, may be the last one before.
    let reads = random.below(3) == 0;
    if reads {
        let some: Vec<ColumnSchema> = old.iter().filter(|_| random.below(2) == 0).cloned().collect();
        let started = database.storage().open(table(&some, None));
        assert_eq!(started.is_ok(), model.start(&some));
    }
    let kind = if old[at].kind == "Int" { "Text" } else { "Int" };
    let change = [ColumnChange::Name, ColumnChange::Type, ColumnChange::Meaning][random.below(3) as usize];
    let name = match change {
        ColumnChange::Type => old[at].name.clone(),
        _ => (!reads).then(|| given_up(random, model)).flatten().unwrap_or_else(|| format!("m{number}")),
    };
    let replaced = model.columns.get(&name).map_or_else(String::new, |known| format!("{name} as {}", known.kind));
    if model.columns.contains_key(&replaced) {
        return Ok(());
    }
    let mut new = old.clone();
    let added = column(&name, kind, false, None);
    if change == ColumnChange::Meaning {
        new.push(added)
    } else {
        new[at] = added
    }
    if model.migrations.iter().any(|migration| is_superseded(&new, &old, migration)) {
        return Ok(());
    }
    let of_old = std::iter::once(super::column("id", "Int", false)).chain(old.iter().cloned()).collect();
    let schema = table(&new, Some(TableMigration { columns: of_old, batched }));
    let change_made = Model::changes(&old, &new);
    if model.made.contains(&change_made) {
        // An old version has the same text.
        let again = database.storage().old_rows(&schema);
        assert!(again.is_err() || again.is_ok_and(|rows| rows.is_empty()), "converted again: {schema:?}");
        return Ok(());
    }
    model.made.push(change_made);
    convert(random, database, (&schema, &old), |row| converted_row(row, 1 + at, change))?.open(schema)?;
    model.converted((&old[at].name, &name, kind), change, &replaced);
    model.migrated(&old, &new);
    model.declared = new;
    Ok(())
}

fn evolves_as_the_model(database: &TestDatabase, seed: u64) {
    let (mut random, mut model) = (Random::new(seed), Model::default());
    for number in 0..PROGRAMS {
        if number > 0 && random.below(3) == 0 {
            migrate(&mut random, &mut model, database, number)
                .unwrap_or_else(|failure| panic!("seed {seed}: {failure}"));
        } else {
            let declared = changed(&mut random, &model.declared);
            let started = database.storage().open(table(&declared, None)).map(|_| ());
            let may = model.start(&declared);
            let why = started.as_ref().err().map(ToString::to_string);
            assert_eq!(
                started.is_ok(),
                may,
                "seed {seed}, program {number}, {database:?}: {why:?}, {declared:?}\n{model:?}"
            );
        }
        let storage = database.storage();
        let open = storage.open(table(&model.declared, None)).unwrap();
        assert_eq!(
            open.rows.select(0, &everything()).unwrap(),
            model.read(),
            "seed {seed}, {database:?}, program {number}"
        );
        write(&mut random, &mut model, &storage);
        assert_eq!(
            open.rows.select(0, &everything()).unwrap(),
            model.read(),
            "seed {seed}, {database:?}, program {number}"
        );
        weir::Closing::close(&storage).unwrap();
    }
}

#[test]
fn random_programs_change_a_table_as_the_model_does() {
    let sequences = std::env::var("WEIR_MIGRATIONS").ok().and_then(|number| number.parse().ok()).unwrap_or(24);
    for seed in 0..sequences {
        for database in TestDatabase::each(&format!("random_evolution_{seed}")) {
            if matches!(database, TestDatabase::Sqlite(_)) || seed % 4 == 0 {
                evolves_as_the_model(&database, seed);
            }
        }
    }
}
