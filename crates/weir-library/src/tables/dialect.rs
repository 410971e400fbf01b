//! The dialects of SQL: how each database spells parameters, types and values.

use super::schema::{ColumnSchema, IndexSchema, Schema};
use super::sql::{list, quoted};

/// A dialect of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
}

/// Maximum length of a name in PostgreSQL, in bytes: it cuts longer ones.
const POSTGRES_NAME_MAX: usize = 63;
/// Maximum number of columns of an index in PostgreSQL.
const POSTGRES_INDEX_COLUMNS_MAX: usize = 32;
/// The beginning of the names of all indexes that programs of Weir make.
pub(super) const OWN_INDEXES: &str = "weir ";

impl Dialect {
    /// Returns what stands before the columns of a table. SQLite takes a name in double quotes for a text if there is no such column,
    /// such as when another program has renamed it; behind the name of the table, the statement fails.
    pub(super) fn prefix(self, schema: &Schema) -> String {
        match self {
            Dialect::Sqlite => format!("{}.", quoted(&schema.name)),
            Dialect::Postgres => String::new(),
        }
    }

    /// Returns the parameter with this number, from 1.
    pub(super) fn parameter(self, number: usize) -> String {
        match self {
            Dialect::Sqlite => format!("?{number}"),
            Dialect::Postgres => format!("${number}"),
        }
    }

    /// Returns the parameters from 1 to this number, separated by commas.
    pub(super) fn parameters(self, number: usize) -> String {
        list((1..=number).map(|number| self.parameter(number)), ", ")
    }

    /// Returns the maximum number of columns of a table.
    pub(super) fn columns_max(self) -> usize {
        match self {
            Dialect::Sqlite => 2_000,
            Dialect::Postgres => 1_600,
        }
    }

    /// Returns the parameter with this number, from 1, which is a list of values of a column in PostgreSQL.
    pub(super) fn list_parameter(column: &ColumnSchema, number: usize) -> String {
        format!("CAST(${number} AS {}[])", Dialect::Postgres.column_type(column))
    }

    /// Returns the type of a column.
    pub(super) fn column_type(self, column: &ColumnSchema) -> &'static str {
        match (self, &*column.kind) {
            (Dialect::Sqlite, "Float") => "REAL",
            (Dialect::Sqlite, "Text" | "Enum") => "TEXT",
            (Dialect::Sqlite, "Bytes") => "BLOB",
            (Dialect::Sqlite, _) => "INTEGER",
            (Dialect::Postgres, "Float") => "double precision",
            (Dialect::Postgres, "Text" | "Enum") => "text",
            (Dialect::Postgres, "Bytes") => "bytea",
            (Dialect::Postgres, "Bool") => "boolean",
            (Dialect::Postgres, _) => "bigint",
        }
    }

    /// Returns the order of a column's values: texts are compared by their bytes, whatever the order of the database is.
    pub(super) fn collation(self, column: &ColumnSchema) -> &'static str {
        match (self, &*column.kind) {
            (Dialect::Postgres, "Text" | "Enum") => " COLLATE \"C\"",
            _ => "",
        }
    }

    /// Returns the names of the columns that the database adds to every table.
    pub(super) fn own_columns(self) -> &'static [&'static str] {
        match self {
            Dialect::Sqlite => &[],
            Dialect::Postgres => &["tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"],
        }
    }

    /// Returns the default of a column.
    pub(super) fn default(self, column: &ColumnSchema) -> Option<String> {
        let text = column.default.as_ref()?;
        Some(match (self, &*column.kind) {
            (_, "Text" | "Enum") => self.text(text),
            (Dialect::Postgres, "Bool") => (if text == "1" { "true" } else { "false" }).to_owned(),
            (Dialect::Postgres, "Float") => format!("('{text}'::double precision)"),
            (Dialect::Postgres, _) => format!("('{text}'::bigint)"),
            // A number that is too large for a `Float` is infinite.
            (Dialect::Sqlite, "Float") => format!("({})", text.replace("inf", "9e999")),
            (Dialect::Sqlite, _) => format!("({text})"),
        })
    }

    /// Returns a text as a literal.
    pub(super) fn text(self, text: &str) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        match self {
            // A statement ends at its first NUL.
            Dialect::Sqlite if text.contains('\0') => {
                let bytes = list(text.bytes().map(|byte| format!("{byte:02X}")), "");
                format!("(CAST(X'{bytes}' AS TEXT))")
            }
            Dialect::Sqlite => quoted(text),
            Dialect::Postgres => quoted(&super::escaped_text::escaped(text)),
        }
    }

    /// Returns the expression of a value of this column as people read it: texts in quotation marks.
    pub(super) fn shown(self, value: &str, column: &ColumnSchema) -> String {
        match (self, &*column.kind) {
            (Dialect::Sqlite, _) => format!("quote({value})"),
            (Dialect::Postgres, "Text" | "Enum" | "Bytes") => format!("quote_literal({value})"),
            (Dialect::Postgres, _) => format!("({value})::text"),
        }
    }

    /// Returns the sum of a column of whole numbers as two numbers, the first of which counts 2^32. They are `NULL` if a value of a table
    /// that other programs have made is no whole number: the operators of SQLite would take another one for it.
    pub(super) fn sum_in_halves(self, value: &str, column: &ColumnSchema) -> String {
        // SQLite fails if a sum overflows on its way; the sums of the halves of the numbers cannot.
        let as_integer = if self == Dialect::Postgres { "::bigint" } else { "" };
        let half = |of: String| match column.existing && self == Dialect::Sqlite {
            true => format!("CASE WHEN total(typeof({value}) <> 'integer') = 0 THEN coalesce(sum({of}), 0) END"),
            false => format!("coalesce(sum({of}), 0){as_integer}"),
        };
        format!("{}, {}", half(format!("{value} >> 32")), half(format!("{value} & 4294967295")))
    }

    /// Returns the options of a new table; `numbered` if its key is one whole number.
    pub(super) fn table_options(self, numbered: bool) -> &'static str {
        match (self, numbered) {
            (Dialect::Sqlite, true) => " STRICT",
            (Dialect::Sqlite, false) => " STRICT, WITHOUT ROWID",
            (Dialect::Postgres, _) => "",
        }
    }

    /// Returns the name of an index: `weir unique users (owner, title)`. Neither names nor spaces can make two of them equal.
    /// A name that is too long ends with its hash instead.
    pub(super) fn index_name(self, schema: &Schema, index: &IndexSchema) -> String {
        let kind = if index.unique { "unique" } else { "index" };
        let columns = list(index.columns.iter().map(|at| schema.columns[*at].name.clone()), ", ");
        let name = format!("{OWN_INDEXES}{kind} {} ({columns})", schema.name);
        match self.longest_name() {
            Some(longest) if name.len() > longest => {
                let hash = format!(" {:016x}", stable_hash(&name));
                let mut end = longest - hash.len();
                while !name.is_char_boundary(end) {
                    end -= 1;
                }
                format!("{}{hash}", &name[..end])
            }
            _ => name,
        }
    }

    /// Returns the maximum length of a name, in bytes, if there is one.
    pub(super) fn longest_name(self) -> Option<usize> {
        (self == Dialect::Postgres).then_some(POSTGRES_NAME_MAX)
    }

    /// Returns the maximum number of columns of a key or an index, if a program can reach it.
    pub(super) fn most_indexed_columns(self) -> Option<usize> {
        (self == Dialect::Postgres).then_some(POSTGRES_INDEX_COLUMNS_MAX)
    }

    /// Returns whether names are equal without regard to case.
    pub(super) fn ignores_case(self) -> bool {
        self == Dialect::Sqlite
    }

    /// Returns the program in which people correct rows.
    pub(super) fn shell(self) -> &'static str {
        match self {
            Dialect::Sqlite => "sqlite3",
            Dialect::Postgres => "psql",
        }
    }
}

fn stable_hash(text: &str) -> u64 {
    stable_hash_of(text.as_bytes())
}

/// Returns a hash that is the same in every process: FNV-1a of 64 bits.
pub(super) fn stable_hash_of(bytes: &[u8]) -> u64 {
    let next = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, next)
}
