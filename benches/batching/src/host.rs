//! The library of a benchmark's program: a source that is opened as it is, and batched functions.

use std::sync::Arc;

use weir_host::{
    Batch, Effects, Environment, Failure, Function, FunctionCode, Library, Module, Opened, Outcome, Parameter, Passing,
    PendingBatch, Route, Settled, Signature, Source, SourceSignature, Type, Value, World,
};

/// A source that is opened as it is.
struct Once(Arc<dyn Opened>);

impl Source for Once {
    fn open(
        &self,
        _arguments: Vec<Value>,
        _routes: Arc<[Route]>,
        _environment: &Environment,
    ) -> Result<Arc<dyn Opened>, Failure> {
        Ok(Arc::clone(&self.0))
    }
}

/// Returns a source that opens as this.
pub(crate) fn once(opened: Arc<dyn Opened>) -> Arc<dyn Source> {
    Arc::new(Once(opened))
}

fn parameter(name: &str) -> Parameter {
    Parameter { name: name.into(), ty: Type::Int, passing: Passing::Value, default: None }
}

/// Returns a library of the source `test.feed`, and for each function a module of this name.
///
/// # Errors
/// Fails if two modules have one name.
pub(crate) fn library(
    element: Type,
    source: Arc<dyn Source>,
    functions: impl IntoIterator<Item = (String, Function)>,
) -> Result<Library, String> {
    let mut library = Library::default();
    let signature = SourceSignature {
        module: "test".into(),
        name: "feed".into(),
        doc: "".into(),
        parameters: vec![parameter("first")],
        element: Some(element),
        answer: None,
        ordered: true,
    };
    let feed = Module::new("test", "").source(signature, source);
    library.add(feed).map_err(|error| error.to_string())?;
    for (name, function) in functions {
        library.add(Module::new(&name, "").function(function)).map_err(|error| error.to_string())?;
    }
    Ok(library)
}

/// Returns the batched function `get` of an `Int`, which reads.
pub(crate) fn batched(limits: Batch, code: impl Fn(Vec<Value>) -> PendingBatch + Send + Sync + 'static) -> Function {
    let code = move |arguments: Vec<Value>, _: &[Value], _: &Environment| Ok(code(arguments));
    let alone = FunctionCode::Waiting(Arc::new(|call| {
        let outcome = Outcome::Value(call.value(0));
        Ok(Box::pin(async { Settled { outcome, restored: Vec::new() } }))
    }));
    let signature = Signature {
        module: "".into(),
        name: "get".into(),
        doc: "".into(),
        parameters: vec![parameter("x")],
        result: Type::Int,
        failure: None,
        effects: Effects { world: World::Reads, waits: true, ..Effects::default() },
        state: None,
        batch: Some(limits),
    };
    Function { signature, code: alone, words: None, batch: Some(Arc::new(code)), types: Vec::new(), location: None }
}
