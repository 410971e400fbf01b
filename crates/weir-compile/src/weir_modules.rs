//! The parts of library modules that are written in Weir.
//!
//! A module of the library may have functions in Weir beside those in Rust, such as `list.sort_by`. Its text is a program
//! of `fn`s, which is parsed and checked by itself when a program first uses one of them; the lowering inlines them into
//! the flows like the `fn`s of the program. Spans in such a text mean nothing to the author of the program: a diagnostic or
//! a failure is shown at the call instead.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use weir_host::{Library, Text};
use weir_syntax::{Parsed, SourceId, parse};

use crate::declarations::DeclaredFn;
use crate::typed_tree::TypedTree;

/// The number of the text of a module, which no file of a program has.
pub(crate) const MODULE_SOURCE: SourceId = SourceId(u32::MAX);

/// The parts in Weir of the modules of one library.
#[derive(Default)]
pub struct WeirModules {
    modules: OnceLock<BTreeMap<Text, OnceLock<WeirModule>>>,
}

/// The part of a module that is written in Weir.
pub(crate) struct WeirModule {
    pub(crate) name: Text,
    pub(crate) parsed: Parsed,
    pub(crate) typed: TypedTree,
}

/// A function of a module that is written in Weir.
#[derive(Clone, Copy)]
pub(crate) struct WeirFunction<'a> {
    pub(crate) module: &'a WeirModule,
    /// Its index in the module.
    pub(crate) at: usize,
}

/// Parses and checks the text of a module under a library.
pub(crate) type CheckModule = fn(&Parsed, &str, &Library) -> TypedTree;

impl WeirModules {
    /// Returns no modules. The text of a module sees no functions that are written in Weir but its own, so that there are
    /// no circles.
    pub(crate) fn none() -> Self {
        WeirModules { modules: OnceLock::from(BTreeMap::new()) }
    }

    /// Returns the part of the module that is written in Weir. Checks it on first use.
    pub(crate) fn module(&self, name: &str, library: &Library, check: CheckModule) -> Option<&WeirModule> {
        let modules = self.modules.get_or_init(|| {
            let written = library.modules.values().filter(|module| !module.weir.is_empty());
            written.map(|module| (module.name.clone(), OnceLock::new())).collect()
        });
        let module = modules.get(name)?.get_or_init(|| {
            let text = library.modules.get(name).map_or("", |module| &module.weir);
            let parsed = parse(MODULE_SOURCE, text);
            let typed = check(&parsed, text, library);
            WeirModule { name: name.into(), parsed, typed }
        });
        Some(module)
    }

    /// Returns the function with this path, such as `list.sort_by`.
    pub(crate) fn function(&self, path: &str, library: &Library, check: CheckModule) -> Option<WeirFunction<'_>> {
        let (module, name) = path.rsplit_once('.')?;
        self.module(module, library, check)?.function(name)
    }
}

impl WeirModule {
    /// Returns the function with this name.
    pub(crate) fn function(&self, name: &str) -> Option<WeirFunction<'_>> {
        let at = self.typed.declarations.functions.get_index_of(name)?;
        Some(WeirFunction { module: self, at })
    }

    /// Returns the functions, in source order.
    pub(crate) fn functions(&self) -> impl Iterator<Item = WeirFunction<'_>> {
        (0..self.typed.declarations.functions.len()).map(|at| WeirFunction { module: self, at })
    }
}

impl<'a> WeirFunction<'a> {
    pub(crate) fn declared(self) -> &'a DeclaredFn {
        &self.module.typed.declarations.functions[self.at]
    }

    pub(crate) fn name(self) -> &'a str {
        self.module.typed.declarations.functions.get_index(self.at).map_or("", |(name, _)| name)
    }

    /// Returns the name with that of the module: `list.sort_by`.
    pub(crate) fn path(self) -> Text {
        format!("{}.{}", self.module.name, self.name()).into()
    }

    pub(crate) fn doc(self) -> String {
        self.module.parsed.tree.items.get(self.declared().item).map(|item| item.docs.text()).unwrap_or_default()
    }
}
