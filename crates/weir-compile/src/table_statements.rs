//! The statements on a table: their parameters and results, and how editors describe them.

use weir_host::Type;

use crate::declarations::DeclaredTable;
use crate::lang_items::TABLES;
use crate::typed_tree::{CallTarget, TableStatement};
use crate::types::Ty;

/// The statements on a table, each with its documentation.
pub(crate) const STATEMENTS: [(&str, &str); 8] = [
    (
        "insert",
        "Adds a row, and returns its key. Fails if a row with the key, or with a `unique` value, exists already.",
    ),
    ("upsert", "Adds a row, or replaces the one with its key. Returns the key."),
    (
        "update",
        "Replaces the row with the key by what the function returns, in one step. Returns the new row, or `None`.",
    ),
    (
        "update_all",
        "Replaces the rows that fulfil the condition by what the second function returns, all or none. Returns their number.",
    ),
    ("delete", "Deletes the row with the key. Returns true if there was one."),
    ("delete_all", "Deletes the rows that fulfil the condition, in one step. Returns their number."),
    ("count", "Counts the rows, or those that fulfil the condition."),
    ("exists", "Returns true if a row fulfils the condition."),
];

/// Statements of other languages, and the advice on each, in which `{}` stands for the table.
const OTHER_STATEMENTS: &[(&[&str], &str)] = &[
    (&["get", "find", "find_one", "fetch", "lookup", "by_key"], "`{}[key]` is the row with the key, or `None`"),
    (&["length", "len", "size"], "write `{}.count()`"),
    (&["is_empty", "empty"], "write `!{}.exists(|_| true)`"),
    (
        &["contains", "contains_key", "has", "includes"],
        "ask for a row by its key, `{}[key] != None`, or by a condition, `{}.exists(|row| …)`",
    ),
    (&["any"], "write `{}.exists(|row| …)`"),
    (
        &["filter", "where", "select", "query", "all", "rows", "each", "to_list", "values"],
        "write a query, which returns a list: `for row in {} if … { row }`",
    ),
    (&["map"], "write a query, which returns a list: `for row in {} { … }`"),
    (
        &["first", "last", "limit", "take", "page"],
        "write a query: `for row in {} order by row.column limit 10 { row }`, with `desc` for the last rows",
    ),
    (&["sort", "sort_by", "order_by", "order"], "write a query: `for row in {} order by row.column { row }`"),
    (
        &["sum", "max", "min", "unique", "distinct"],
        "call it on the values of a query: `(for row in {} { row.column }).sum()`",
    ),
    (&["average", "avg", "mean"], "divide the sum of a query, `(for row in {} { row.column }).sum()`, by `{}.count()`"),
    (&["group_by", "group"], "group the rows of a query: `(for row in {} { row }).group_by(|row| row.column)`"),
    (&["clear", "truncate", "remove_all"], "write `{}.delete_all(|_| true)`"),
    (&["remove", "destroy", "discard"], "write `{}.delete(key)`"),
    (&["push", "add", "append", "create"], "write `{}.insert(row)`"),
    (
        &["save", "set", "put", "store", "write", "replace"],
        "write `{}.insert(row)` for a new row, and `{}.upsert(row)` for one that may be there",
    ),
    (&["change", "modify", "edit", "patch"], "write `{}.update(key, |row| …)`"),
    (
        &["insert_all", "insert_many", "bulk_insert", "add_all"],
        "insert the rows in one transaction: `atomic {} { for row in rows { {}.insert(row)? } }`",
    ),
];

/// Returns the advice on a statement of another language on a table.
pub(crate) fn advice_on(name: &str, table: &str) -> Option<String> {
    let (_, advice) = OTHER_STATEMENTS.iter().find(|(names, _)| names.contains(&name))?;
    Some(advice.replace("{}", table))
}

impl DeclaredTable {
    /// Returns the type of the rows.
    pub(crate) fn row(&self) -> Ty {
        self.row.as_ref().map_or(Ty::Error, |name| Ty::named(name))
    }

    /// Returns the type of the key: that of its column, or a tuple of the types of its columns.
    pub(crate) fn key_type(&self) -> Type {
        match &self.key[..] {
            [] => Type::Unit,
            [only] => self.columns[*only].ty.clone(),
            several => Type::Tuple(several.iter().map(|at| self.columns[*at].ty.clone()).collect()),
        }
    }

    pub(crate) fn key_ty(&self) -> Ty {
        if self.key.is_empty() || self.row.is_none() { Ty::Error } else { Ty::fixed(&self.key_type()) }
    }

    /// Returns whether a new row may leave the column out; `is_numbered` if the table gives it its number.
    pub(crate) fn may_omit(&self, column: usize, is_numbered: bool) -> bool {
        self.columns[column].default.is_some() || is_numbered && self.key == [column]
    }
}

/// The parameters of a statement behind the table: their names, their types, and true for each that may be left out.
pub(crate) type StatementParameters = Vec<(&'static str, Ty, bool)>;

/// Returns the target, the parameters and the result of a statement on a table.
pub(crate) fn statement(name: &str, table: &DeclaredTable) -> Option<(CallTarget, StatementParameters, Ty)> {
    let (row, key) = (table.row(), table.key_ty());
    let condition = || Ty::function(vec![row.clone()], Ty::BOOL);
    let change = || Ty::function(vec![row.clone()], row.clone());
    let fallible = |ty: Ty| Ty::result(ty, Ty::FAILURE);
    let host = || CallTarget::Host(format!("{TABLES}.{name}").into());
    let own = CallTarget::Table;
    Some(match name {
        "insert" | "upsert" => (host(), vec![("row", row, false)], fallible(key)),
        "delete" => (host(), vec![("key", key, false)], fallible(Ty::BOOL)),
        "update" => {
            let parameters = vec![("key", key, false), ("change", change(), false)];
            (own(TableStatement::Update), parameters, fallible(Ty::option(row)))
        }
        "update_all" => {
            let parameters = vec![("condition", condition(), false), ("change", change(), false)];
            (own(TableStatement::UpdateAll), parameters, fallible(Ty::INT))
        }
        "delete_all" => (own(TableStatement::DeleteAll), vec![("condition", condition(), false)], fallible(Ty::INT)),
        "count" => (own(TableStatement::Count), vec![("condition", condition(), true)], Ty::INT),
        "exists" => (own(TableStatement::Exists), vec![("condition", condition(), false)], Ty::BOOL),
        _ => return None,
    })
}

/// Returns the name, the signature and the documentation of each statement on a table.
pub(crate) fn described(table: &DeclaredTable) -> Vec<(&'static str, String, &'static str)> {
    let describe = |(name, doc): (&'static str, &'static str)| {
        let (_, parameters, result) = statement(name, table)?;
        let parameter = |(name, ty, may_lack): (&str, Ty, bool)| {
            format!("{name}: {ty}{}", if may_lack { " = |_| true" } else { "" })
        };
        let parameters: Vec<String> = parameters.into_iter().map(parameter).collect();
        Some((name, format!("fn {name}({}) -> {result}", parameters.join(", ")), doc))
    };
    STATEMENTS.into_iter().filter_map(describe).collect()
}
