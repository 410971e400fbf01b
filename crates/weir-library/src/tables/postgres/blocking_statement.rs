//! The statement of the writer for whose answer a thread waits, so that the end of a program can say what it does not wait for.

use parking_lot::Mutex;
use weir::Failure;

use super::address::PostgresAddress;
use super::connection::SqlStatement;

/// Maximum length of a statement that a message shows, in characters: its table is at its beginning.
const SHOWN_MAX: usize = 120;

/// The statement for whose answer a thread waits, if one does.
#[derive(Default)]
pub(super) struct BlockingStatement(Mutex<Option<String>>);

/// The time for which a thread waits.
pub(super) struct BlockingWait<'b>(&'b BlockingStatement);

impl BlockingStatement {
    /// Notes that a thread waits for the answer of statements until the result is dropped.
    pub(super) fn wait(&self, statements: &[SqlStatement<'_>]) -> BlockingWait<'_> {
        *self.0.lock() = statements.first().map(|first| first.sql.to_owned());
        BlockingWait(self)
    }

    /// Returns the failure of a program that ends without the answer of the statement.
    pub(super) fn left(&self, address: &PostgresAddress) -> Failure {
        let shown = self.0.lock().as_ref().map_or_else(String::new, |sql| {
            let cut = if sql.chars().count() > SHOWN_MAX { " …" } else { "" };
            format!(": {}{cut}", sql.chars().take(SHOWN_MAX).collect::<String>())
        });
        Failure::function(format!(
            "the database {address} has not answered a statement before the program ended, and nobody knows whether it takes \
             effect{shown}; perhaps it waits for a lock: `SELECT pid, pg_blocking_pids(pid), query FROM pg_stat_activity` shows who has \
             it; `drain_timeout` of the plan is how long the program waits"
        ))
    }
}

impl Drop for BlockingWait<'_> {
    fn drop(&mut self) {
        *self.0.0.lock() = None;
    }
}
