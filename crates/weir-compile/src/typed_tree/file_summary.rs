//! The contribution of one file to the checks of the whole program, which are made again after every edit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_host::{Mode, Text, Value};
use weir_syntax::Span;

use super::{Demands, EntryInfo};
use crate::effects::BodyEffects;
use crate::types::{Substitution, Ty};

/// The effects, calls, constraints and declared values of a file.
#[derive(Default)]
pub(crate) struct FileSummary {
    /// The direct effects of each `fn`, by its name in the program.
    pub(crate) fn_effects: BTreeMap<Arc<str>, BodyEffects>,
    /// The `fn`s that flows and initial values call directly.
    pub(crate) flow_callees: BTreeSet<Arc<str>>,
    /// The calls between `fn`s.
    pub(crate) fn_calls: Vec<FnCall>,
    /// The scopes in which bindings of constraints hold them.
    pub(crate) binding_scopes: Vec<HeldScope>,
    /// The scopes in which steps hold resources that are not declared `per session`.
    pub(crate) step_scopes: Vec<HeldScope>,
    /// The host functions that constraints of the file are bound to.
    pub(crate) bound: Vec<BoundFunction>,
    /// The uses of generic `fn`s.
    pub(crate) generic_uses: Vec<GenericUse>,
    /// The demands that the bodies of generic `fn`s make themselves, by the name of the `fn`.
    pub(crate) own_demands: BTreeMap<Arc<str>, Demands>,
    /// The entry points, which only the main file has.
    pub(crate) entries: Vec<EntryInfo>,
    /// The modules that the file names, by the names that they have in the file.
    pub(crate) used_modules: BTreeSet<Arc<str>>,
    /// The types and values of the `const`s, by their names in the program.
    pub(crate) constants: Vec<(Arc<str>, Ty, Option<Value>)>,
    /// The types of the shared values, by their names in the program.
    pub(crate) shared: Vec<(Arc<str>, Ty)>,
    /// The defaults of fields: the name of the record in the program, that of the field, and the value.
    pub(crate) defaults: Vec<(Text, Text, Value)>,
}

/// A call of a `fn` in another one.
pub(crate) struct FnCall {
    pub(crate) caller: Arc<str>,
    pub(crate) callee: Arc<str>,
    pub(crate) span: Span,
}

/// The scope in which a place holds a resource.
pub(crate) struct HeldScope {
    pub(crate) resource: Arc<str>,
    pub(crate) per_session: bool,
    pub(crate) span: Span,
}

/// A host function that a constraint is bound to.
pub(crate) struct BoundFunction {
    pub(crate) function: Text,
    pub(crate) constraint: Text,
    pub(crate) mode: Mode,
}

/// A call of a generic `fn`, or its name as an argument.
pub(crate) struct GenericUse {
    pub(crate) callee: GenericCallee,
    /// The `fn` whose body contains the use.
    pub(crate) user: Option<Arc<str>>,
    pub(crate) types: Substitution,
    pub(crate) span: Span,
}

/// The generic `fn` that is used.
pub(crate) enum GenericCallee {
    /// A `fn` of the program, by its name.
    Own(Arc<str>),
    /// A function of a module that is written in Weir, with its demands.
    Weir(Text, Demands),
    /// A function of the library that is written in Rust, with its demands.
    Host(Text, Demands),
}
