//! Tables that other programs have declared: a start compares them with the declaration, and changes nothing.
//!
//! The types of the columns have the values of the fields, the key identifies a row, and the indexes are there, or the start
//! fails. A view can show a column under another type or name.

use weir::Failure;

use crate::tables::catalog::{Catalog, CatalogColumn, KeyCollation, Read, StartCheck};
use crate::tables::dialect::Dialect;
use crate::tables::schema::{ColumnSchema, ExistingTable, Schema};

/// Fails if the table of the database is not as the program declares it.
pub(in crate::tables) fn check(schema: &Schema, catalog: &dyn Catalog) -> StartCheck<()> {
    let Some(existing) = &schema.existing else { return Ok(Ok(())) };
    let refused = |why: String| {
        let table = &schema.name;
        Ok(Err(Failure::function(format!("the table `{table}` of the existing database {}: {why}", shown(existing)))))
    };
    let known = catalog.columns_of_existing(&schema.name)?;
    if known.is_empty() {
        return refused("there is no such table or view; its name is that of the declaration".to_owned());
    }
    let (dialect, is_view) = (catalog.dialect(), catalog.is_view(&schema.name)?);
    for column in &schema.columns {
        let Some(known) = known.iter().find(|known| dialect.same_name(&known.name, &column.name)) else {
            let names: Vec<String> = known.iter().map(|known| format!("`{}`", known.name)).collect();
            return refused(format!("it has no column `{}`, but {}", column.name, names.join(", ")));
        };
        if let Err(why) = fits(column, known, (dialect, is_view)).and_then(|()| may_be_written(known, existing)) {
            return refused(why);
        }
    }
    if let Some(why) = key_refused(schema, existing, catalog)? {
        return refused(why);
    }
    if is_view && existing.writable {
        return refused("it is a view, which is only read: leave out `writable: true`".to_owned());
    }
    if is_view {
        return Ok(Ok(()));
    }
    let indexes = catalog.indexed_columns(&schema.name)?;
    let names = |columns: &[usize]| columns.iter().map(|at| schema.columns[*at].name.as_str()).collect::<Vec<_>>();
    let same = |known: &[String], names: &[&str]| {
        known.len() == names.len() && names.iter().all(|name| known.iter().any(|known| dialect.same_name(known, name)))
    };
    let is_unique = |columns: &[usize]| indexes.iter().any(|(known, unique)| *unique && same(known, &names(columns)));
    if !is_unique(&schema.key) {
        let key = names(&schema.key).join(", ");
        return refused(format!("({key}) is no primary key and no unique index, so it does not identify a row"));
    }
    if schema.auto && !catalog.numbers_column(&schema.name, &schema.columns[schema.key[0]].name)? {
        return refused(format!(
            "the database does not number the rows by `{}`: leave out `auto`",
            schema.columns[schema.key[0]].name
        ));
    }
    for index in &schema.indexes {
        let columns = names(&index.columns);
        let begins = |known: &Vec<String>| known.len() >= columns.len() && same(&known[..columns.len()], &columns);
        let found =
            if index.unique { is_unique(&index.columns) } else { indexes.iter().any(|(known, _)| begins(known)) };
        if !found {
            let word = if index.unique { "unique" } else { "index" };
            let columns = columns.join(", ");
            return refused(format!(
                "it has no index for `{word} ({columns})`: leave out the clause, or create the index"
            ));
        }
    }
    Ok(Ok(()))
}

/// Returns the table with what the database knows of its columns.
pub(in crate::tables) fn as_indexed(schema: &Schema, catalog: &dyn Catalog) -> Read<Schema> {
    let nocase = catalog.nocase_columns(&schema.name)?;
    let mut schema = schema.clone();
    for column in schema.columns.iter_mut().filter(|column| matches!(&*column.kind, "Text" | "Enum")) {
        column.in_nocase_index = nocase.iter().any(|known| catalog.dialect().same_name(known, &column.name));
    }
    Ok(schema)
}

/// Returns why the key is refused, whatever its columns are.
fn key_refused(schema: &Schema, existing: &ExistingTable, catalog: &dyn Catalog) -> Read<Option<String>> {
    let key: Vec<&str> = schema.key.iter().map(|at| schema.columns[*at].name.as_str()).collect();
    if existing.writable && catalog.defers_key(&schema.name, &key)? {
        return Ok(Some(format!(
            "its key ({}) is `DEFERRABLE`, by which PostgreSQL finds no row that an `upsert` replaces: declare it without that in the \
             database, or leave out `writable: true`",
            key.join(", ")
        )));
    }
    folds_key(schema, existing, catalog)
}

/// Returns why a key of texts is refused: the database would take different texts for the same key.
fn folds_key(schema: &Schema, existing: &ExistingTable, catalog: &dyn Catalog) -> Read<Option<String>> {
    // In SQLite, reads compare texts by their bytes in any case.
    if !existing.writable && catalog.dialect() == Dialect::Sqlite {
        return Ok(None);
    }
    for column in schema.key.iter().map(|at| &schema.columns[*at]) {
        if let Some(KeyCollation { name, index }) = catalog.key_collation(&schema.name, &column.name)? {
            let (place, change) = match index {
                Some(index) => (format!(" in the unique index `{index}`"), "make that without it"),
                None => (String::new(), "change the collation of the column"),
            };
            return Ok(Some(format!(
                "its key `{}` has the collation `{name}`{place}, by which different texts are the same key, and a program compares \
                 them by their bytes: {change}, or declare another key",
                column.name
            )));
        }
    }
    Ok(None)
}

/// Returns the address of the database without a password.
pub(in crate::tables) fn shown(existing: &ExistingTable) -> String {
    let address = &existing.database;
    let parsed =
        crate::tables::PostgresAddress::is_meant(address).then(|| crate::tables::PostgresAddress::parse(address, None));
    match parsed {
        Some(Ok(address)) => address.to_string(),
        Some(Err(_)) => "at an invalid address".to_owned(),
        None => address.clone(),
    }
}

/// Fails if a column of the database has values that the field does not have.
fn fits(column: &ColumnSchema, known: &CatalogColumn, (dialect, is_view): (Dialect, bool)) -> Result<(), String> {
    let CatalogColumn { name, sql_type, .. } = known;
    if !dialect.holds(sql_type, &column.kind) {
        let shown = if sql_type.is_empty() { "without a type" } else { sql_type };
        return Err(format!(
            "the column `{name}` is {shown}, and the field is `{}`; change the field, or declare a view that has such a column",
            column.shown_type()
        ));
    }
    if known.nullable && !known.key && !column.optional && !is_view {
        let (name, ty) = (&column.name, column.shown_type());
        return Err(format!("the column `{name}` may be NULL: the field is an `Option`, as in `{name}: Option({ty})`"));
    }
    Ok(())
}

/// Fails if rows are written with a column that the database computes.
fn may_be_written(known: &CatalogColumn, existing: &ExistingTable) -> Result<(), String> {
    if existing.writable && known.generated {
        return Err(format!(
            "the database computes its column `{}`, and no row is written with it: leave out the field, and read it in a view, \
             or leave out `writable: true`",
            known.name
        ));
    }
    Ok(())
}

impl Dialect {
    pub(super) fn same_name(self, one: &str, other: &str) -> bool {
        if self.ignores_case() { one.eq_ignore_ascii_case(other) } else { one == other }
    }

    /// Returns whether a column of another program can have the values of a kind, and usually has no others.
    fn holds(self, sql_type: &str, kind: &str) -> bool {
        match self {
            Dialect::Sqlite => sqlite_holds(sql_type, kind),
            Dialect::Postgres => postgres_holds(sql_type, kind),
        }
    }
}

/// By the affinity of the type (SQLite, "Datatypes In SQLite", §3.1). A row with another value is noticed when it is read.
fn sqlite_holds(sql_type: &str, kind: &str) -> bool {
    let sql_type = sql_type.to_ascii_uppercase();
    let has = |parts: &[&str]| parts.iter().any(|part| sql_type.contains(part));
    let held: &[&str] = if has(&["INT"]) {
        &["Int", "Bool", "Time", "Duration", "Size"]
    } else if has(&["CHAR", "CLOB", "TEXT"]) {
        &["Text", "Enum"]
    } else if sql_type.is_empty() || has(&["BLOB", "ANY"]) {
        &["Int", "Bool", "Time", "Duration", "Size", "Text", "Enum", "Float", "Bytes"]
    } else if has(&["REAL", "FLOA", "DOUB"]) {
        &["Float"]
    } else {
        &["Int", "Bool", "Time", "Duration", "Size"]
    };
    held.contains(&kind)
}

fn postgres_holds(sql_type: &str, kind: &str) -> bool {
    let is_varying = sql_type.starts_with("character varying");
    let held: &[&str] = match sql_type {
        "smallint" | "integer" => &["Int"],
        "bigint" => &["Int", "Time", "Duration", "Size"],
        "real" | "double precision" => &["Float"],
        "boolean" => &["Bool"],
        "bytea" => &["Bytes"],
        "text" => &["Text", "Enum"],
        _ if is_varying => &["Text", "Enum"],
        _ => &[],
    };
    held.contains(&kind)
}
