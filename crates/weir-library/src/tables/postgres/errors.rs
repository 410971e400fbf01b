//! Failures of PostgreSQL, with advice.

use std::error::Error as _;

use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};
use weir::{Failure, FailureKind};

use super::address::PostgresAddress;
use super::commit_marks::CommitMark;
use super::rights;
use crate::tables::transaction_number::refused;

/// Tells why a transaction was taken back that may succeed later.
const WHY_LOST: &str = "the transaction was rolled back, because its connection to the database was lost: nothing of it was written; try it again";
/// The class of the codes of rules that a row breaks, such as a `CHECK` of another program, and the codes of values that a
/// column of another program cannot have: a text that is too long or has a NUL, a number out of range.
const RULES_BROKEN: [&str; 4] = ["23", "22001", "22021", "22003"];

/// The advice for a server that has too many connections.
const TOO_MANY_CONNECTIONS: &str = "end some programs, give their plans a smaller `table_connections`, or raise the limit: a program \
    needs two connections, or one to an existing database";
/// The advice for a lost connection, while the program runs.
const CONNECTS_AGAIN: &str = "the next statement connects again";

/// The advice for a table with rules (`CREATE RULE`).
const NO_RULES: &str = "a rule rewrites statements on this table, and PostgreSQL does not execute this one then: write a trigger instead of \
                        the rule";

/// The advice for errors that a server itself never gives: the program prepares statements, and holds locks as long as it is connected.
const OF_POOLER: &str = "a connection pooler stands before the server that changes connections between transactions: use the address of the \
    server itself, or a pool of sessions";

/// An error of a statement.
#[derive(Debug)]
pub(super) enum StatementError {
    /// The database has refused it, or the connection has failed. With the place of the statement among those that were
    /// executed together.
    Database(Error, usize),
    /// No connection could be made.
    Unreachable(Error),
    /// The server has no further connection, and the program has none that can execute the statement.
    NoConnection,
    /// The connection was lost when nobody knows whether the statement has taken effect.
    Unknown,
    /// The connection was lost before the answer to the commit with this mark: the next join tells whether it has taken effect.
    Unanswered(CommitMark),
    /// The connection was lost before the answer to a commit that has not taken effect.
    NotCommitted,
    /// There was no answer within the time limit.
    NoAnswer,
    /// The transaction of the statement was taken back before.
    TakenBack(Failure),
}

impl From<Error> for StatementError {
    fn from(error: Error) -> StatementError {
        StatementError::Database(error, 0)
    }
}

impl StatementError {
    /// Returns whether a transaction that begins anew may succeed.
    pub(super) fn is_conflict(&self) -> bool {
        match self {
            StatementError::Database(error, _) => is_conflict(error),
            StatementError::TakenBack(failure) => failure.kind == FailureKind::Conflict,
            _ => false,
        }
    }

    /// Returns what hinders the transaction, if something does.
    pub(super) fn conflict(&self) -> Option<&'static str> {
        match self {
            StatementError::Database(error, _) => conflict(error),
            _ => None,
        }
    }

    /// Returns whether nothing of the transaction of the statement takes effect, for a reason that lies outside of the program. The
    /// statement is no commit.
    pub(super) fn is_refusal(&self) -> bool {
        self.is_conflict() || self.is_lost()
    }

    /// Returns whether another program has a lock that the statement needs, and the time to wait for it is over.
    pub(super) fn is_lock_missing(&self) -> bool {
        matches!(self, StatementError::Database(error, _) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE))
    }

    /// Returns whether another program changes the same table, index or column at the same time, such as by `CREATE INDEX CONCURRENTLY`.
    pub(super) fn is_change_beside_another(&self) -> bool {
        matches!(self, StatementError::Database(error, _) if is_change_beside_another(error))
    }

    /// Returns whether the server has as many connections as it allows.
    pub(super) fn has_no_connection_left(&self) -> bool {
        match self {
            StatementError::Database(error, _) => has_too_many_connections(error),
            StatementError::NoConnection => true,
            _ => false,
        }
    }

    /// Returns whether the connection has failed, other than at a commit that may have taken effect.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            StatementError::Database(error, _) => is_lost(error),
            StatementError::NotCommitted | StatementError::NoConnection => true,
            _ => false,
        }
    }

    /// Returns whether the transaction has executed nothing for too long.
    pub(super) fn has_been_idle(&self) -> bool {
        matches!(self, StatementError::Database(error, _) if has_been_idle(error))
    }

    /// Returns whether the statement has to be prepared anew.
    pub(super) fn is_outdated(&self) -> bool {
        matches!(self, StatementError::Database(error, _) if is_outdated(error))
    }

    /// Returns the name of the unique index that a row breaks, if that is why a statement was refused, and the place of the
    /// statement.
    pub(super) fn broken_index(&self) -> Option<(&str, usize)> {
        match self {
            StatementError::Database(error, at) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
                let index = error.as_db_error().and_then(|error| error.constraint());
                Some((index.unwrap_or_default(), *at))
            }
            _ => None,
        }
    }

    /// Returns whether a row of the table with this name is the reason.
    pub(super) fn is_of_table(&self, name: &str) -> bool {
        match self {
            StatementError::Database(error, _) => error.as_db_error().and_then(|error| error.table()) == Some(name),
            _ => false,
        }
    }

    /// Returns the place of the statement that was refused among those that were executed together.
    pub(super) fn place(&self) -> usize {
        if let StatementError::Database(_, at) = self { *at } else { usize::MAX }
    }

    /// Returns the names of the columns of the unique index that a row breaks, as far as the database tells them, and their values
    /// as a text.
    pub(super) fn broken_key(&self) -> Option<(Vec<&str>, &str)> {
        match self {
            StatementError::Database(error, _) => key_of_detail(error.as_db_error()?.detail()?),
            _ => None,
        }
    }
}

/// Returns the names and the values in the detail of a broken unique index, `Key (name, "Size")=(ada, 4) already exists.` in any
/// language. An expression is no name.
fn key_of_detail(detail: &str) -> Option<(Vec<&str>, &str)> {
    let (columns, values) = detail.split_once('(')?.1.split_once(")=(")?;
    let (values, _) = values.rsplit_once(')')?;
    Some((columns.split(", ").map(|name| name.trim_matches('"')).collect(), values))
}

/// Returns whether the transaction has to be tried again.
pub(super) fn is_conflict(error: &Error) -> bool {
    conflict(error).is_some()
}

/// Returns what hinders the transaction, if something does.
fn conflict(error: &Error) -> Option<&'static str> {
    let code = error.code()?;
    if *code == SqlState::T_R_DEADLOCK_DETECTED {
        return Some("another program waits for rows of this one, which waits for its rows");
    }
    // A refusal has a detail if it is for rows that a `SERIALIZABLE` transaction has read, which may be long ago, and of other tables.
    let is_for_reads = error.as_db_error().is_some_and(|error| error.detail().is_some());
    (*code == SqlState::T_R_SERIALIZATION_FAILURE).then_some(match is_for_reads {
        true => "transactions of other programs that read and write were open at the same time",
        false => "another program has written the same rows at the same time",
    })
}

/// Returns whether the connection has failed, cannot be made at the moment, or needs the statement prepared anew.
pub(super) fn is_lost(error: &Error) -> bool {
    let Some(code) = error.code() else {
        let io = |error: &Error| error.source().is_some_and(|source| source.is::<std::io::Error>());
        return error.is_closed() || io(error);
    };
    // The database ends, has crashed, starts, or has ended an idle transaction.
    ["57P01", "57P02", "57P03", "25P03", "08006", "08003"].contains(&code.code())
        || has_too_many_connections(error)
        || is_outdated(error)
}

/// Returns whether the statement was prepared before another program has changed the types of the columns that it returns. It was not
/// executed, and is prepared anew (`PostgresConnection::forget_outdated`).
pub(super) fn is_outdated(error: &Error) -> bool {
    let revalidates = |error: &DbError| error.routine() == Some("RevalidateCachedQuery");
    error.code() == Some(&SqlState::FEATURE_NOT_SUPPORTED) && error.as_db_error().is_some_and(revalidates)
}

/// Returns whether the database could not note a change of a table, because another program had just noted one. Its message is English.
fn is_change_beside_another(error: &Error) -> bool {
    let says_so = |error: &DbError| error.message().starts_with("tuple concurrently");
    error.code() == Some(&SqlState::INTERNAL_ERROR) && error.as_db_error().is_some_and(says_so)
}

/// Returns whether a server, a role or a database has as many connections as it allows, or a connection pooler before them, which says
/// that by the class of connections.
fn has_too_many_connections(error: &Error) -> bool {
    let Some(error) = error.as_db_error() else { return false };
    let says = |words: &[&str]| words.iter().any(|words| error.message().contains(words));
    *error.code() == SqlState::TOO_MANY_CONNECTIONS
        || (error.code().code().starts_with("08") && says(&["too many", "no more connections"]))
}

/// Returns whether the database itself has answered by this error: it names the place in its source, as a proxy between does not.
pub(super) fn is_answer(error: &Error) -> bool {
    error.as_db_error().is_some_and(|error| error.routine().is_some())
}

/// Returns whether the database has ended the connection because its transaction has executed nothing for too long.
pub(super) fn has_been_idle(error: &Error) -> bool {
    error.code() == Some(&SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT)
}

/// Returns the error of a commit. Nobody knows what it has done if the connection was lost, whatever the database has said last: it may
/// end a connection between a commit and the answer.
pub(super) fn unknown_if_lost(error: Error) -> StatementError {
    if is_lost(&error) { StatementError::Unknown } else { StatementError::Database(error, 0) }
}

/// Returns the error of a statement behind which the commit of its transaction was sent. If the database has answered the statement
/// by an error, it does not execute that commit: it has ended the connection before it read it, or takes the transaction back
/// instead. If there is no answer, it may have executed both.
pub(super) fn unknown_unless_answered(error: Error, at: usize) -> StatementError {
    let is_unknown = is_lost(&error) && !is_answer(&error);
    if is_unknown { StatementError::Unknown } else { StatementError::Database(error, at) }
}

/// Returns whether the database refuses the statement itself, whatever its values are: its syntax, its types, or what it names.
pub(super) fn is_invalid_statement(error: &Error) -> bool {
    error.code().is_some_and(|code| code.code().starts_with("42"))
}

/// Returns the failure of a transaction that has executed nothing for too long. It would be as idle if it were executed again.
pub(super) fn why_idle() -> Failure {
    Failure::function(
        "the transaction was rolled back, because it has executed nothing for longer than `idle_in_transaction_session_timeout`, \
         after which PostgreSQL lets others go on; nothing of it was written: compute before or behind it, or set a longer limit by \
         `?options=-cidle_in_transaction_session_timeout%3D60s` behind the address",
    )
}

/// Returns the failure of a transaction that has written nothing, because its connection was lost.
pub(super) fn why_lost(transaction: i64) -> Failure {
    refused(transaction, Failure::function(WHY_LOST))
}

/// Returns the failure for an error of a statement.
pub(super) fn failure(address: &PostgresAddress, error: &StatementError) -> Failure {
    match error {
        StatementError::Database(error, _) | StatementError::Unreachable(error) => explain(address, error),
        StatementError::NotCommitted => Failure::function(WHY_LOST),
        StatementError::NoConnection => Failure::function(format!(
            "the database {address} has no further connection, and the program has none that is free: {TOO_MANY_CONNECTIONS}"
        )),
        StatementError::Unknown | StatementError::Unanswered(_) => {
            let why =
                "the connection was lost while a statement was executed; nobody knows whether it has taken effect";
            Failure::new(FailureKind::Uncertain, format!("the database {address}: {why}"))
        }
        StatementError::NoAnswer => {
            let limit = address.time_limit.as_secs();
            let why = format!("has not answered within {limit} s; it may carry out the statement later");
            Failure::new(FailureKind::Uncertain, format!("the database {address} {why}"))
        }
        StatementError::TakenBack(failure) => failure.clone(),
    }
}

/// Returns the failure of a start, whose program ends: no statement follows.
pub(super) fn of_start(failure: Failure) -> Failure {
    let advice = "start the program again; a `batched` migration goes on behind the rows that are converted";
    Failure::new(failure.kind, failure.message.replace(CONNECTS_AGAIN, advice))
}

/// Returns whether a policy keeps out a row. The code is that of a right which the user lacks.
fn is_kept_out(error: &Error) -> bool {
    let checks_policies = |error: &DbError| error.routine() == Some("ExecWithCheckOptions");
    error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) && error.as_db_error().is_some_and(checks_policies)
}

/// Returns whether the database executes no such statement on a table with rules.
fn is_for_rules(error: &Error) -> bool {
    let rewrites = |error: &DbError| error.routine() == Some("RewriteQuery");
    error.code() == Some(&SqlState::FEATURE_NOT_SUPPORTED) && error.as_db_error().is_some_and(rewrites)
}

/// Returns the failure for an error of the database. That of a broken rule is often answered to a client, so it does not tell the
/// address, nor the columns of the row that another program has added to the table, as the database would.
pub(super) fn explain(address: &PostgresAddress, error: &Error) -> Failure {
    let code = error.code();
    let detail = error.as_db_error().and_then(|error| error.detail()).map(|detail| format!(" ({detail})"));
    if is_kept_out(error) || code.is_some_and(|code| RULES_BROKEN.iter().any(|broken| code.code().starts_with(broken)))
    {
        let tells_the_row = [&SqlState::CHECK_VIOLATION, &SqlState::NOT_NULL_VIOLATION].map(Some).contains(&code);
        let detail = if tells_the_row { None } else { detail };
        let why = error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
        let message = format!("the database refuses the write: {why}{}", detail.unwrap_or_default());
        return Failure::new(FailureKind::Constraint, message);
    }
    let why = match error.as_db_error() {
        Some(error) => format!("{}{}", error.message(), detail.unwrap_or_default()),
        None => error.source().map_or_else(|| error.to_string(), ToString::to_string),
    };
    let again = conflict(error).map(|cause| format!("; {cause}: try it again"));
    let is_denied = code == Some(&SqlState::INSUFFICIENT_PRIVILEGE);
    let advice = match error.as_db_error() {
        Some(_) if is_for_rules(error) => Some(NO_RULES.to_owned()),
        Some(error) if is_denied => {
            Some(format!("give the user the right: `{}", rights::missing(address, error.message())))
        }
        _ => advice(error).map(str::to_owned),
    };
    let advice = again.or_else(|| Some(format!("; {}", advice?))).unwrap_or_default();
    let kind = match code {
        Some(code) if is_conflict(error) || *code == SqlState::LOCK_NOT_AVAILABLE => FailureKind::Conflict,
        _ => FailureKind::Function,
    };
    Failure::new(kind, format!("the database {address}: {why}{advice}"))
}

fn advice(error: &Error) -> Option<&'static str> {
    let Some(code) = error.code() else {
        if error.to_string().contains("TLS") {
            return Some(
                "`?sslrootcert=FILE` names the authority of its certificate; `?sslmode=disable` does not encrypt",
            );
        }
        if error.source().is_some_and(|why| why.to_string() == "password missing") {
            return Some(
                "the server asks for one: set `PGPASSWORD`, or give it in the address: `postgres://USER:PASSWORD@…`",
            );
        }
        if error.to_string().starts_with("error connecting") {
            return Some("start PostgreSQL, or correct its address");
        }
        return is_lost(error).then_some(CONNECTS_AGAIN);
    };
    Some(match code.code() {
        "55P03" => "another program that shares the tables has not ended its transaction: try it again",
        "57014" => {
            "the statement takes longer than its time limit: `?statement_timeout=60s` of the address sets another one"
        }
        "53100" => "its disk is full: free some space; nothing of the statement was written",
        _ if has_too_many_connections(error) => TOO_MANY_CONNECTIONS,
        _ if is_change_beside_another(error) => {
            "another program changes the same table or its indexes, such as by `CREATE INDEX CONCURRENTLY`: start again when that has ended"
        }
        "25006" => {
            "it is read-only, such as a standby, or for the user: use the address of the primary, or another user"
        }
        "28P01" => "correct the user or the password in its address, or set `PGPASSWORD`",
        "28000" => {
            "correct the user in its address, or have the server let that user in (`CREATE ROLE … LOGIN`, `pg_hba.conf`)"
        }
        "26000" | "42P05" => OF_POOLER,
        "08P01" if error.to_string().contains("startup parameter") => OF_POOLER,
        "3D000" => "create it with `createdb`, or correct its address",
        "54011" => "a key or an index has at most 32 columns",
        "54000" => return error.as_db_error().and_then(size_advice),
        "57P01" | "57P02" | "57P03" | "08006" | "08003" => CONNECTS_AGAIN,
        "25P03" => "the transaction has executed nothing for too long",
        _ => return None,
    })
}

/// Returns the advice for a size that is beyond a limit of the database, by the place in its source: the code is that of all such limits.
fn size_advice(error: &DbError) -> Option<&'static str> {
    match error.routine()? {
        "_bt_check_third_page" | "index_form_tuple" | "index_form_tuple_context" => {
            Some("a key or an indexed value has at most 2,700 bytes")
        }
        "RelationGetBufferForTuple" => Some(
            "a row has at most 8,160 bytes beside long texts and bytes, which it keeps elsewhere, such as those of 1,000 numbers: move columns to \
             another table",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::key_of_detail;

    #[test]
    fn the_detail_of_a_broken_index_tells_its_columns_and_their_values() {
        let key = key_of_detail("Key (name, \"Size\")=(a)=(b, 4) already exists.");
        assert_eq!(key, Some((vec!["name", "Size"], "a)=(b, 4")));
        assert_eq!(key_of_detail("Schlüssel »(id)=(1)« existiert bereits."), Some((vec!["id"], "1")));
        assert_eq!(key_of_detail("Key (lower(name))=(ada) already exists."), Some((vec!["lower(name)"], "ada")));
        assert_eq!(key_of_detail("no key"), None);
    }
}
