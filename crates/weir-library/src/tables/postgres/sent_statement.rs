//! Statements that own their parameters, so that they can be executed later or once more.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Error, Statement};

use super::connection::{PostgresConnection, SqlStatement};
use super::script::Script;
use crate::tables::program_owned::ProgramOwned;

/// A statement that was executed, with its parameters as they were sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SentStatement(ProgramOwned<Arc<KeptStatement>>);

/// A statement as it was sent. Another thread may release it, behind the end of its flow.
#[derive(Debug, PartialEq)]
struct KeptStatement {
    sql: String,
    parameters: Vec<SentParameter>,
}

/// A parameter as it was sent.
#[derive(Clone, Debug, PartialEq)]
enum SentParameter {
    Null,
    Value(Bytes),
    /// It has no form of the type that the database wants, for this reason, and is refused each time.
    Refused(String),
}

impl SentStatement {
    /// Returns a statement without parameters.
    #[cfg(test)]
    pub(super) fn of(sql: &str) -> SentStatement {
        SentStatement::new(|| KeptStatement { sql: sql.to_owned(), parameters: Vec::new() })
    }

    /// Keeps statements that were executed.
    pub(super) fn keep(statements: &[SqlStatement<'_>], prepared: &[Statement]) -> Vec<SentStatement> {
        let kept = |(statement, prepared): (&SqlStatement<'_>, &Statement)| {
            let sent = statement.parameters.iter().zip(prepared.params());
            let parameters = || sent.map(|(parameter, of)| SentParameter::new(*parameter, of)).collect();
            SentStatement::new(|| KeptStatement { sql: statement.sql.to_owned(), parameters: parameters() })
        };
        statements.iter().zip(prepared).map(kept).collect()
    }

    fn new(kept: impl FnOnce() -> KeptStatement) -> SentStatement {
        SentStatement(ProgramOwned::new(|| Arc::new(kept())))
    }

    pub(super) fn sql(&self) -> &str {
        &self.0.sql
    }

    /// Returns about the bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let of = |parameter: &SentParameter| parameter.bytes().map_or(0, <[u8]>::len);
        self.0.sql.len() + self.0.parameters.iter().map(of).sum::<usize>()
    }

    /// Returns the statement with its parameters.
    pub(super) fn again(&self) -> SqlStatement<'_> {
        SqlStatement::new(&self.0.sql, &self.0.parameters)
    }

    /// Appends the statement to a script, in which it has this name; `None` if that is not possible.
    pub(super) fn append_to(&self, script: &mut Script, name: &str, prepared: &Statement) -> Option<()> {
        self.is_accepted().then_some(())?;
        script.append(name, (0..self.0.parameters.len()).map(|at| self.value(at, prepared)))
    }

    /// Appends the statement for several rows, of which each is the same statement for one, to a script.
    pub(super) fn append_together(
        rows: &[(&SentStatement, &Statement)],
        script: &mut Script,
        name: &str,
    ) -> Option<()> {
        let (first, _) = rows.first()?;
        rows.iter().all(|(row, _)| row.is_accepted()).then_some(())?;
        let values = |at: usize| rows.iter().map(move |(row, prepared)| row.value(at, prepared));
        script.append_lists(name, (0..first.0.parameters.len()).map(values))
    }

    fn value<'s>(&'s self, at: usize, prepared: &'s Statement) -> (Option<&'s [u8]>, &'s Type) {
        let ty = prepared.params().get(at).unwrap_or(&Type::UNKNOWN);
        (self.0.parameters.get(at).and_then(SentParameter::bytes), ty)
    }

    /// Returns whether the database takes each parameter.
    fn is_accepted(&self) -> bool {
        !self.0.parameters.iter().any(|parameter| matches!(parameter, SentParameter::Refused(_)))
    }

    /// Executes statements once more.
    pub(super) async fn execute(statements: &[&SentStatement], connection: &PostgresConnection) -> Result<(), Error> {
        let statements: Vec<SqlStatement<'_>> = statements.iter().map(|kept| kept.again()).collect();
        let prepared = connection.prepare(&statements).await?;
        connection.execute(&statements, &prepared).await.map(|_| ()).map_err(|(_, error)| error)
    }
}

impl SentParameter {
    fn new(parameter: &(dyn ToSql + Sync), of: &Type) -> SentParameter {
        let mut bytes = BytesMut::new();
        match parameter.to_sql_checked(of, &mut bytes) {
            Ok(IsNull::No) => SentParameter::Value(bytes.freeze()),
            Ok(IsNull::Yes) => SentParameter::Null,
            Err(error) => SentParameter::Refused(error.to_string()),
        }
    }

    fn bytes(&self) -> Option<&[u8]> {
        if let SentParameter::Value(bytes) = self { Some(bytes) } else { None }
    }
}

impl ToSql for SentParameter {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            SentParameter::Null => Ok(IsNull::Yes),
            SentParameter::Value(bytes) => {
                out.extend_from_slice(bytes);
                Ok(IsNull::No)
            }
            SentParameter::Refused(why) => Err(why.as_str().into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
