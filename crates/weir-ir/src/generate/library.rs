//! The library of generated programs: functions that record their effects, and a source that tests replace.

use std::sync::Arc;

use weir_host::{
    Environment, Failure, Library, Opened, Parameter, Passing, Route, Source, SourceSignature, Type, Value,
};

use super::batched::add_batched;
use super::functions;
use super::recording::Recording;
use super::typed_calls::add_typed;

impl Recording {
    /// Returns the library.
    #[must_use]
    pub fn library(&self) -> Library {
        let mut library = Library::default();
        for module in functions::modules(self) {
            let source = SourceSignature {
                module: module.name.clone(),
                name: "elements".into(),
                doc: "Flows that a test begins by itself.".into(),
                parameters: vec![Parameter {
                    name: "first".into(),
                    ty: Type::Int,
                    passing: Passing::Value,
                    default: None,
                }],
                element: Some(Type::Int),
                answer: None,
                ordered: true,
            };
            let module = if &*module.name == "data" { add_typed(module) } else { module };
            let module = add_batched(module, self).source(source, Arc::new(NoSource));
            library.add(module).expect("the modules' names differ");
        }
        library
    }
}

/// The source of a generated program, which cannot be opened: tests begin the flows themselves.
struct NoSource;

impl Source for NoSource {
    fn open(
        &self,
        _arguments: Vec<Value>,
        _routes: Arc<[Route]>,
        _environment: &Environment,
    ) -> Result<Arc<dyn Opened>, Failure> {
        Err(Failure::function("the flows of a generated program are begun by its test"))
    }
}
