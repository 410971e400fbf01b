//! The statements of an open group, from which those are executed again that have to stay when a member is taken back.
//!
//! A savepoint for each member would do the same, but SQLite copies every page that is written behind one, which takes a small
//! transaction longer than what it does, and members are rarely taken back.

use std::fmt;

use rusqlite::Connection;
use weir::memory;

use super::database_error::refused;
use super::row_statement::{RowChanged, RowStatement};

/// A statement that has succeeded, to be executed again.
pub(in crate::tables) enum Redo {
    /// A change of one row, and its effect.
    Row(RowStatement, RowChanged),
    Other(OtherStatement),
}

/// A statement of another kind.
type OtherStatement = Box<dyn Fn(&Connection) -> rusqlite::Result<()> + Send>;

impl Redo {
    /// Executes the statement again. Fails if the result is another one, because a program that takes no turns has written
    /// meanwhile.
    fn execute(&self, connection: &Connection) -> rusqlite::Result<()> {
        match self {
            Redo::Row(statement, before) if statement.execute(connection)? == *before => Ok(()),
            Redo::Row(..) => Err(refused("another program has written it at the same time")),
            Redo::Other(statement) => statement(connection),
        }
    }
}

/// The statements of the open group, in their order. Those of its open member are the last ones.
#[derive(Default)]
pub(super) struct GroupLog {
    statements: Vec<Redo>,
    /// About the bytes of their rows.
    bytes: usize,
    /// The number of statements before those of the open member.
    before_member: usize,
}

impl GroupLog {
    pub(super) fn len(&self) -> usize {
        self.statements.len()
    }

    /// Returns about the bytes of the rows that the statements write.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps a statement. It may be released behind the end of its flow, and belongs to the memory of the program.
    pub(super) fn push(&mut self, statement: impl FnOnce() -> Redo) {
        memory::of_program(|| self.statements.push(statement()));
        if let Some(Redo::Row(statement, _)) = self.statements.last() {
            self.bytes += statement.change.text_bytes();
        }
    }

    /// Notes that the next statements are those of a member.
    pub(super) fn begin_member(&mut self) {
        self.before_member = self.statements.len();
    }

    /// Returns whether the open member has statements.
    pub(super) fn has_member_statements(&self) -> bool {
        self.before_member < self.statements.len()
    }

    /// Returns whether there are statements before those of the open member.
    pub(super) fn has_statements_before(&self) -> bool {
        self.before_member > 0
    }

    /// Executes the statements before those of the open member.
    pub(super) fn repeat_before(&self, connection: &Connection) -> rusqlite::Result<()> {
        self.statements[..self.before_member].iter().try_for_each(|statement| statement.execute(connection))
    }

    /// Executes the statements of the open member.
    pub(super) fn repeat_member(&self, connection: &Connection) -> rusqlite::Result<()> {
        self.statements[self.before_member..].iter().try_for_each(|statement| statement.execute(connection))
    }

    /// Executes all statements.
    pub(super) fn repeat(&self, connection: &Connection) -> rusqlite::Result<()> {
        self.statements.iter().try_for_each(|statement| statement.execute(connection))
    }

    /// Forgets the statements of the open member.
    pub(super) fn forget_member(&mut self) {
        memory::of_program(|| self.statements.truncate(self.before_member));
    }

    pub(super) fn clear(&mut self) {
        memory::of_program(|| self.statements.clear());
        (self.before_member, self.bytes) = (0, 0);
    }
}

impl fmt::Debug for GroupLog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [all, before] = [self.statements.len(), self.before_member];
        formatter.debug_struct("GroupLog").field("statements", &all).field("before_member", &before).finish()
    }
}
