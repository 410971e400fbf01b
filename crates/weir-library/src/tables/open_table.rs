//! A table that is open: its description, and the store of its rows.

use super::rows::TableRows;
use super::schema::Schema;

/// A table that is open.
#[derive(Debug)]
pub(super) struct OpenTable {
    pub(super) schema: Schema,
    pub(super) rows: Box<dyn TableRows>,
}
