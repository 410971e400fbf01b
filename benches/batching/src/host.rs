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

/// Returns a library of the source `test.feed`, and for each function a module of this name, to which functions of the same
/// name are added.
///
/// # Errors
/// Fails if two modules or functions have one name.
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
    let mut modules: Vec<(String, Module)> = Vec::new();
    for (name, function) in functions {
        let known = modules.iter().position(|(known, _)| *known == name);
        let (_, module) = known.map_or_else(|| (name.clone(), Module::new(&name, "")), |at| modules.swap_remove(at));
        modules.push((name, module.function(function)));
    }
    for (_, module) in modules {
        library.add(module).map_err(|error| error.to_string())?;
    }
    Ok(library)
}

/// Returns the batched function `list` of an `Int` and the length of the list that it returns, which reads.
pub(crate) fn batched_list(
    limits: Batch,
    code: impl Fn(Vec<Value>, &[Value]) -> PendingBatch + Send + Sync + 'static,
) -> Function {
    let mut list = batched(limits, |_| Box::pin(async { unreachable!("the code is replaced") }));
    list.signature.name = "list".into();
    list.signature.parameters.push(parameter("count"));
    list.signature.result = Type::list(Type::Int);
    list.batch =
        Some(Arc::new(move |arguments: Vec<Value>, others: &[Value], _: &Environment| Ok(code(arguments, others))));
    list
}

/// Returns the function `keep` of an `Int`, which has an effect and returns at once.
pub(crate) fn keep() -> Function {
    let mut keep = batched(Batch::new(1, None, 0), |_| Box::pin(async { unreachable!("nothing is gathered") }));
    keep.signature.name = "keep".into();
    keep.signature.effects = Effects { world: World::Writes, ..Effects::default() };
    (keep.signature.batch, keep.batch) = (None, None);
    keep.code = FunctionCode::Immediate(Arc::new(|call| Outcome::Value(call.value(0))));
    keep
}

/// Returns the function `same` of an `Int`, which returns at once.
pub(crate) fn same() -> Function {
    let mut same = keep();
    same.signature.name = "same".into();
    same.signature.effects = Effects::default();
    same
}

/// Returns the function `wait` of an `Int`, which returns it after the other tasks of the event loop have had their turn.
pub(crate) fn wait() -> Function {
    let mut wait = same();
    wait.signature.name = "wait".into();
    wait.signature.effects.waits = true;
    wait.code = FunctionCode::Waiting(Arc::new(|call| {
        let outcome = Outcome::Value(call.value(0));
        Ok(Box::pin(async {
            tokio::task::yield_now().await;
            Settled { outcome, restored: Vec::new() }
        }))
    }));
    wait
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
        internal: false,
    };
    Function { signature, code: alone, words: None, batch: Some(Arc::new(code)), types: Vec::new(), location: None }
}
