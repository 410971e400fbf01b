//! Tables, and the clauses by which a `for` queries one.

use super::{Argument, Expr, Name, Path, Type};
use crate::Span;

/// `table users: User key name unique (email)`: a collection of rows that all flows share.
#[derive(Clone, PartialEq, Debug)]
pub struct TableDeclaration {
    /// Name.
    pub name: Name,
    /// Type of the rows: a record.
    pub row: Type,
    /// Clauses in source order.
    pub clauses: Vec<TableClause>,
}

/// One clause of a table.
#[derive(Clone, PartialEq, Debug)]
pub struct TableClause {
    /// Form of the clause.
    pub kind: TableClauseKind,
    /// Source range.
    pub span: Span,
}

/// The forms of a clause.
#[derive(Clone, PartialEq, Debug)]
pub enum TableClauseKind {
    /// `key name`, `key (owner, name)`, `key id auto`: the columns that identify a row.
    Key {
        /// Columns.
        columns: Vec<Name>,
        /// Source range of `auto`: the table numbers its rows.
        auto: Option<Span>,
    },
    /// `index (to, sent)`: columns that queries search by.
    Index(Vec<Name>),
    /// `unique (email)`: columns in which no two rows agree.
    Unique(Vec<Name>),
    /// `references from: users`, `references (owner, name): book.contacts cascade`: columns whose values are the key of a row
    /// of another table, which another module may declare.
    References {
        /// Columns.
        columns: Vec<Name>,
        /// The other table.
        table: Path,
        /// Source range of `cascade`: a row is deleted with the row that it references.
        cascade: Option<Span>,
    },
    /// `default(read: false)`: values of columns that an `insert` leaves out.
    Default(Vec<Argument>),
    /// `soft(ttl: 30m, at_most: 1000)`: the rows are kept in memory only.
    Soft(Vec<Argument>),
    /// `existing(database: crm, writable: true)`: the table is one of another database, which other programs have declared.
    Existing(Vec<Argument>),
    /// `migrate OldUser: upgraded batched`: the rows were of another type before, and a `fn` converts them.
    Migrate {
        /// Type of the rows before: a record.
        old: Type,
        /// The `fn`.
        change: Name,
        /// Source range of `batched`: the rows are converted in several transactions.
        batched: Option<Span>,
    },
}

impl TableClauseKind {
    /// The words that begin a clause.
    pub const WORDS: [&'static str; 8] =
        ["key", "index", "unique", "references", "default", "soft", "existing", "migrate"];

    /// Returns the word that begins the clause.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Key { .. } => "key",
            Self::Index(_) => "index",
            Self::Unique(_) => "unique",
            Self::References { .. } => "references",
            Self::Default(_) => "default",
            Self::Soft(_) => "soft",
            Self::Existing(_) => "existing",
            Self::Migrate { .. } => "migrate",
        }
    }
}

/// `if m.to == me order by m.sent desc, m.id limit 50 after cursor`: the elements that a `for` visits, and their order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct QueryClauses {
    /// Condition that a row must fulfil.
    pub condition: Option<Expr>,
    /// The order of the rows; the first key counts most.
    pub order: Vec<QueryOrder>,
    /// Maximum number of rows.
    pub limit: Option<Expr>,
    /// The cursor of the page before, behind which this one begins.
    pub after: Option<Expr>,
}

impl QueryClauses {
    /// Returns true if there is no clause.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.condition.is_none() && self.order.is_empty() && self.limit.is_none() && self.after.is_none()
    }

    /// Returns the expressions of all clauses, in source order.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.condition.iter().chain(self.order.iter().map(|key| &key.value)).chain(&self.limit).chain(&self.after)
    }
}

/// `m.sent desc`: a value that rows are ordered by.
#[derive(Clone, PartialEq, Debug)]
pub struct QueryOrder {
    /// The value.
    pub value: Expr,
    /// True if `desc` follows: the largest value comes first.
    pub descending: bool,
}
