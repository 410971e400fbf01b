//! The database of a program's stored tables in SQLite: one file, with one writer and a pool of readers (`database`).

pub(super) mod backup;
pub(super) mod broken_rule;
pub(super) mod catalog;
pub(super) mod checkpoint;
pub(super) mod connection;
pub(super) mod counted_memory;
pub(super) mod database;
pub(super) mod database_error;
pub(super) mod database_files;
pub(super) mod database_format;
pub(super) mod disk_waits;
#[cfg(test)]
pub(super) mod durable_files;
pub(super) mod existing_files;
pub(super) mod file_contents;
pub(super) mod file_stamp;
pub(super) mod group_log;
pub(super) mod held_read;
pub(super) mod log;
pub(super) mod log_error;
pub(super) mod log_index;
pub(super) mod log_note;
pub(super) mod lost_transaction;
pub(super) mod missing_pages;
pub(super) mod open_files;
pub(super) mod partial_failures;
pub(super) mod row_replacement;
pub(super) mod row_statement;
pub(super) mod shared_writer;
pub(super) mod sql_table;
pub(super) mod start_access;
pub(super) mod stored;
pub(super) mod stored_reads;
pub(super) mod value;
pub(super) mod writer;
