//! Streams that are made and not read: whole numbers in their order.

use weir::{Failure, Module, Type, Value};

use crate::stream_source::{Emitter, Stream, StreamDefinition, parameter};

/// The module `stream`.
pub(crate) fn stream() -> Module {
    let range = StreamDefinition {
        name: "range",
        doc: "Begins a flow for each whole number from `from` up to and without `to`, in their order.",
        parameters: vec![parameter("from", Type::Int), parameter("to", Type::Int)],
        element: Type::Int,
        ordered: true,
        open: |given| Ok(Range { from: given.int(0)?, to: given.int(1)? }),
    };
    range.within(Module::new("stream", "Streams that are made and not read."))
}

/// `stream.range(0, 10)`.
struct Range {
    from: i64,
    to: i64,
}

impl Stream for Range {
    fn describe(&self) -> String {
        format!("the numbers from {} up to {}", self.from, self.to)
    }

    fn extent(&self, elements: u64) -> Option<(u64, u64)> {
        Some((elements, self.from.abs_diff(self.to.max(self.from))))
    }

    async fn run(&self, emitter: Emitter) -> Result<(), Failure> {
        for number in self.from..self.to {
            emitter.emit(Value::Int(number)).await;
        }
        Ok(())
    }
}
