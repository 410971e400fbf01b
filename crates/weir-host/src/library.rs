//! Libraries: modules of functions, sources and types that a program may `use`.

use std::fmt;

use indexmap::IndexMap;

use crate::call::{Environment, FunctionCode, WordCode};
use crate::location::Location;
use crate::source::{Source, SourceSignature};
use crate::{BatchCode, Signature, Text, TypeDefinition, Value};
use std::sync::Arc;

/// A host function: its signature for the compiler and its code for an engine.
#[derive(Clone)]
pub struct Function {
    /// The signature, for the compiler.
    pub signature: Signature,
    /// The code, for an engine.
    pub code: FunctionCode,
    /// The typed entry point, if all parameters and the result are scalars.
    pub words: Option<WordCode>,
    /// The code for a batch of calls, if the signature has a batch.
    pub batch: Option<Arc<BatchCode>>,
    /// The definitions of the named types that its signature mentions.
    pub types: Vec<TypeDefinition>,
    /// Location of the Rust source, if known.
    pub location: Option<Location>,
}

/// A module: functions, sources and types under one name.
#[derive(Clone, Default)]
pub struct Module {
    /// The name that a program writes after `use`.
    pub name: Text,
    /// The documentation.
    pub doc: Text,
    /// The functions, by name.
    pub functions: IndexMap<Text, Function>,
    /// The sources, by name; the source of a `service … on http(…)` has the module's own name.
    pub sources: IndexMap<Text, (SourceSignature, Arc<dyn Source>)>,
    /// The named types, by their qualified names.
    pub types: IndexMap<Text, TypeDefinition>,
    /// The text of its functions that are written in Weir: documented `fn`s, with the modules that they use; may be empty.
    pub weir: Text,
}

/// A library: everything that programs may use.
#[derive(Clone, Default)]
pub struct Library {
    /// The modules, by name.
    pub modules: IndexMap<Text, Module>,
    /// The values that the embedder provides to the functions.
    pub environment: Environment,
    /// The values of `config` declarations, by name; a declaration without one has its default.
    pub configuration: IndexMap<Text, Value>,
}

/// Error for two parts of a library that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryError(pub String);

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LibraryError {}

impl Module {
    /// Returns the functions in Rust that programs may call.
    pub fn public_functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.values().filter(|function| !function.signature.internal)
    }

    /// Returns true if programs use nothing of the module by name.
    #[must_use]
    pub fn is_internal(&self) -> bool {
        let has_functions = !self.functions.is_empty() || !self.weir.is_empty();
        has_functions && self.weir.is_empty() && self.sources.is_empty() && self.public_functions().next().is_none()
    }

    /// Creates a module without functions.
    #[must_use]
    pub fn new(name: &str, doc: &str) -> Self {
        Module { name: name.into(), doc: doc.into(), ..Module::default() }
    }

    /// Adds a function and the types that it mentions, and replaces a function of the same name.
    #[must_use]
    pub fn function(mut self, mut function: Function) -> Self {
        function.signature.module = self.name.clone();
        for definition in &function.types {
            self.types.insert(definition.name.clone(), definition.clone());
        }
        self.functions.insert(function.signature.name.clone(), function);
        self
    }

    /// Adds functions that are written in Weir, and replaces those that were added before.
    #[must_use]
    pub fn weir(mut self, text: &str) -> Self {
        self.weir = text.into();
        self
    }

    /// Adds a source, and replaces a source of the same name.
    #[must_use]
    pub fn source(mut self, mut signature: SourceSignature, source: Arc<dyn Source>) -> Self {
        signature.module = self.name.clone();
        self.sources.insert(signature.name.clone(), (signature, source));
        self
    }
}

impl Library {
    /// Adds a module.
    ///
    /// # Errors
    /// Fails if the library already has a module of this name, or a different type of the same name as one of the
    /// module's, or if a function of the module has two parameters of the same name.
    pub fn add(&mut self, module: Module) -> Result<(), LibraryError> {
        if self.modules.contains_key(&module.name) {
            return Err(LibraryError(format!("two modules are named `{}`", module.name)));
        }
        for function in module.functions.values() {
            check_parameters(&module.name, &function.signature)?;
        }
        for (name, definition) in &module.types {
            if self.definition(name).is_some_and(|other| other != definition) {
                return Err(LibraryError(format!("two types are named `{name}`, one of them in `{}`", module.name)));
            }
        }
        self.modules.insert(module.name.clone(), module);
        Ok(())
    }

    /// Returns the function with this path, such as `image.to_jpeg`.
    #[must_use]
    pub fn function(&self, path: &str) -> Option<&Function> {
        let (module, name) = path.rsplit_once('.')?;
        self.modules.get(module)?.functions.get(name)
    }

    /// Returns the definition of the named type `name`, such as `image.Ppm`.
    #[must_use]
    pub fn definition(&self, name: &str) -> Option<&TypeDefinition> {
        self.modules.values().find_map(|module| module.types.get(name))
    }
}

/// Checks that calls can pass each parameter by its name.
fn check_parameters(module: &str, signature: &Signature) -> Result<(), LibraryError> {
    for (parameter, index) in signature.parameters.iter().zip(0..) {
        if signature.parameters[..index].iter().any(|before| before.name == parameter.name) {
            let (function, name) = (&signature.name, &parameter.name);
            return Err(LibraryError(format!("`{module}.{function}` has two parameters named `{name}`")));
        }
    }
    Ok(())
}
