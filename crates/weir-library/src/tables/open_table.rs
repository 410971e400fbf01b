//! A table that is open: its description, and the store of its rows.

use std::sync::Arc;

use super::database_steps::DatabaseSteps;
use super::rows::TableRows;
use super::schema::Schema;

/// A table that is open.
#[derive(Debug)]
pub(super) struct OpenTable {
    pub(super) schema: Schema,
    pub(super) rows: Box<dyn TableRows>,
    /// The steps that write the database of the table.
    pub(super) steps: Arc<DatabaseSteps>,
}
