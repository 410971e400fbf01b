//! Rows of PostgreSQL that were received, and count for their flow until they are released.

use std::future::poll_fn;
use std::ops::{Deref, Range};
use std::pin::Pin;

use futures_core::Stream;
use tokio_postgres::{Error, Row, RowStream};
use weir::memory;

/// A row, whose memory belongs to the program: the driver of the connection may keep the message of the row, which others share, and
/// releases it then. So the flow is charged for the row itself, as long as that is there.
#[derive(Debug)]
pub(super) struct ReceivedRow {
    /// The row; `None` while it is dropped.
    row: Option<Row>,
    bytes: i64,
}

impl ReceivedRow {
    /// Receives the next row of an answer, and charges the running flow for it.
    pub(super) async fn next(mut stream: Pin<&mut RowStream>) -> Option<Result<ReceivedRow, Error>> {
        let row = poll_fn(|context| memory::of_program(|| stream.as_mut().poll_next(context))).await?;
        Some(row.map(ReceivedRow::charged))
    }

    fn charged(row: Row) -> ReceivedRow {
        let bytes = row.raw_size_bytes() + size_of::<Row>() + row.len() * size_of::<Option<Range<usize>>>();
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        memory::take_over(bytes);
        ReceivedRow { row: Some(row), bytes }
    }

    /// Returns about the bytes of the row.
    pub(super) fn bytes(&self) -> usize {
        usize::try_from(self.bytes).unwrap_or(usize::MAX)
    }
}

impl Deref for ReceivedRow {
    type Target = Row;

    fn deref(&self) -> &Row {
        self.row.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for ReceivedRow {
    fn drop(&mut self) {
        memory::of_program(|| self.row = None);
        memory::take_over(-self.bytes);
    }
}
