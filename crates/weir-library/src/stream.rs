//! Generated streams: ranges of whole numbers.

use weir::{Failure, Module, Type, Value};

use crate::stream_source::{Emitter, Stream, StreamDefinition, parameter};

/// Builds the module `stream`.
pub(crate) fn stream() -> Module {
    let range = StreamDefinition {
        name: "range",
        doc: "Begins a flow for each whole number from `from` (inclusive) to `to` (exclusive), in order.",
        parameters: vec![parameter("from", Type::Int), parameter("to", Type::Int)],
        element: Type::Int,
        ordered: true,
        open: |arguments| Ok(Range { from: arguments.int(0)?, to: arguments.int(1)? }),
    };
    range.within(Module::new("stream", "Generated streams."))
}

/// The source `stream.range(0, 10)`.
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
