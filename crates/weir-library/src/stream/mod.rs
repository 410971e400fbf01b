//! Streams that are made and not read: whole numbers in their order.

use std::sync::Arc;

use weir::{
    Failure, Flows, LocalFuture, Opened, Parameter, Passing, Route, Source, SourceSignature, Stop, Type, Value,
};

use crate::feed::feed;

/// The module `stream`.
pub(crate) fn stream() -> weir::Module {
    weir::Module::new("stream", "Streams that are made and not read.").source(signature(), Arc::new(Range))
}

fn signature() -> SourceSignature {
    let bound = |name: &str| Parameter { name: name.into(), ty: Type::Int, passing: Passing::Value, default: None };
    SourceSignature {
        module: "stream".into(),
        name: "range".into(),
        doc: "Begins a flow for each whole number from `from` up to and without `to`, in their order.".into(),
        parameters: vec![bound("from"), bound("to")],
        element: Some(Type::Int),
        answer: None,
        ordered: true,
    }
}

/// `stream.range(0, 10)`.
struct Range;

impl Source for Range {
    fn open(&self, arguments: Vec<Value>, _routes: Arc<[Route]>) -> Result<Arc<dyn Opened>, Failure> {
        match arguments[..] {
            [Value::Int(from), Value::Int(to)] => Ok(Arc::new(Numbers { from, to })),
            _ => Err(Failure::argument("`from` and `to` must be whole numbers")),
        }
    }
}

struct Numbers {
    from: i64,
    to: i64,
}

impl Opened for Numbers {
    fn describe(&self) -> String {
        format!("the numbers from {} up to {}", self.from, self.to)
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, stop: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            let mut numbers = self.from..self.to;
            feed(flows, stop, async || numbers.next().map(Value::Int)).await;
            Ok(())
        })
    }
}
