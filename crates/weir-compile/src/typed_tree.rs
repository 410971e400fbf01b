//! What the checker found out about a tree, by the numbers of its expressions and patterns.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_host::{Text, Type, Value};
use weir_syntax::Span;
use weir_syntax::ast::{ExprId, ItemKind, PatternId, Tree};

use crate::declare::Declarations;
use crate::effects::EffectSummary;
use crate::types::Ty;

/// The types and resolutions of a tree.
pub struct TypedTree {
    pub(crate) declarations: Declarations,
    pub(crate) expr_types: Vec<Ty>,
    pub(crate) expr_spans: Vec<Span>,
    pub(crate) pattern_types: Vec<Ty>,
    pub(crate) resolutions: BTreeMap<ExprId, Resolution>,
    pub(crate) calls: BTreeMap<ExprId, ResolvedCall>,
    pub(crate) tries: BTreeMap<ExprId, ResolvedTry>,
    /// By the place where a handler begins.
    pub(crate) handlers: BTreeMap<u32, ResolvedHandler>,
    pub(crate) locals: Vec<Local>,
    pub(crate) pattern_locals: BTreeMap<PatternId, LocalId>,
    pub(crate) pattern_tags: BTreeMap<PatternId, u32>,
    /// What a failure is called, by the expression that handles it.
    pub(crate) failure_locals: BTreeMap<ExprId, LocalId>,
    pub(crate) at_most: BTreeMap<ExprId, u64>,
    /// What each `with` replaces.
    pub(crate) replacements: BTreeMap<ExprId, Vec<Option<CallTarget>>>,
    /// The locals of the parameters of each `fn`, by its index.
    pub(crate) fn_locals: Vec<Vec<LocalId>>,
    /// What each `fn` touches, by its index.
    pub(crate) fn_effects: Vec<EffectSummary>,
    pub(crate) entries: Vec<EntryInfo>,
    /// The `fn`s that a `fn` calls, by its index.
    pub(crate) fn_callees: Vec<BTreeSet<usize>>,
    /// The `fn`s that flows call.
    pub(crate) flow_callees: BTreeSet<usize>,
    /// The shared values and constraints that steps hold per session.
    pub(crate) per_session: BTreeSet<Arc<str>>,
    /// Where blocks begin whose last expression counts only for its effects.
    pub(crate) unit_blocks: BTreeSet<u32>,
}

/// The number of a local name in its file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct LocalId(pub(crate) u32);

/// A name that a body binds.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    pub(crate) name: Arc<str>,
    pub(crate) span: Span,
    pub(crate) ty: Ty,
    /// From where on it can be named: behind the value of its `let`.
    pub(crate) from: u32,
}

/// What a name means.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Resolution {
    Local(LocalId),
    /// A shared value, by its index, lent to a function.
    Shared(usize),
    /// What a shared value is at this moment, by its index.
    SharedNow(usize),
    /// A `fn` of the program, by its index.
    Function(usize),
    /// A host function, by its path.
    Host(Text),
    /// A variant, by its tag.
    Variant(u32),
    /// A field of a record or tuple, by its index.
    Field(u32),
}

/// What is called, and where each of its parameters gets its argument.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ResolvedCall {
    pub(crate) target: CallTarget,
    pub(crate) supplied: Vec<ArgumentSource>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum CallTarget {
    Host(Text),
    Function(usize),
    Variant(u32),
    /// A closure or function that a local name holds.
    Local(LocalId),
    /// `xs.length()`.
    Length,
    /// `Failure(message)`.
    Failure,
    /// `fail(why)`, or where `says`, `fail(Failure(why))`.
    Fail {
        says: bool,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ArgumentSource {
    /// What stands before the dot.
    Object,
    /// What stands before `|>`.
    Piped,
    /// The argument of this index in the text.
    Argument(usize),
    /// Nothing: the parameter's default.
    Default,
}

/// A `?`: where it goes with a failure, and whose failure it is, where that is known.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ResolvedTry {
    pub(crate) to: FailureTarget,
    pub(crate) of: Option<CallTarget>,
}

/// A failure handler: whose failures it handles.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ResolvedHandler {
    pub(crate) target: CallTarget,
    /// What the failure is called in it.
    pub(crate) local: Option<LocalId>,
    pub(crate) failure: Ty,
}

/// Where a `?` goes with a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FailureTarget {
    /// The flow ends.
    Flow,
    /// The `fn` gives `Err`.
    Caller,
    /// The try of the innermost `retry` has failed.
    Retry,
}

/// An entry point as it was checked.
#[derive(Clone, Debug)]
pub(crate) struct EntryInfo {
    /// The index of its item in the tree.
    pub(crate) item: usize,
    /// The path of its source.
    pub(crate) source: Text,
    pub(crate) ordered: bool,
    pub(crate) answer: Type,
    pub(crate) element: Option<Type>,
    /// Where each of the source's parameters gets its argument.
    pub(crate) supplied: Vec<ArgumentSource>,
    /// Of a service, in the order of its routes.
    pub(crate) routes: Vec<RouteInfo>,
    /// What the session of a service is told by: parameters that all its routes have.
    pub(crate) session_locals: Vec<LocalId>,
}

#[derive(Clone, Debug)]
pub(crate) struct RouteInfo {
    pub(crate) locals: Vec<LocalId>,
    pub(crate) defaults: Vec<Option<Value>>,
}

impl TypedTree {
    /// The `fn`s that no flow reaches, from the last of each chain of calls on: those that no other of them calls.
    pub(crate) fn unreached_fns(&self) -> Vec<usize> {
        let mut reached = self.flow_callees.clone();
        let mut open: Vec<usize> = reached.iter().copied().collect();
        while let Some(at) = open.pop() {
            let callees = self.fn_callees.get(at).into_iter().flatten();
            open.extend(callees.copied().filter(|callee| reached.insert(*callee)));
        }
        let called: BTreeSet<usize> = self.fn_callees.iter().flatten().copied().collect();
        (0..self.fn_callees.len()).filter(|at| !reached.contains(at) && !called.contains(at)).collect()
    }

    /// What the `fn` of this name touches, its calls of other `fn`s counted in.
    #[must_use]
    pub fn effects_of(&self, name: &str) -> Option<&EffectSummary> {
        let at = self.declarations.functions.get_index_of(name)?;
        self.fn_effects.get(at)
    }

    /// The locals that a place may use: those bound before it in the same item, the innermost of each name. What happens at
    /// the end of a source is as an item of its own.
    pub(crate) fn locals_at(&self, tree: &Tree, offset: u32) -> Vec<&Local> {
        let Some(item) = tree.items.iter().find(|item| item.span.touches(offset)) else { return Vec::new() };
        let end = match &item.kind {
            ItemKind::Entry(entry) => entry.end.as_ref().filter(|end| end.span.touches(offset)),
            _ => None,
        };
        let whole = end.map_or(item.span, |end| end.span);
        let mut found: Vec<&Local> = Vec::new();
        for local in self.locals.iter().rev() {
            let before = whole.contains(local.span) && local.from <= offset;
            if before && !found.iter().any(|known| known.name == local.name) {
                found.push(local);
            }
        }
        found
    }

    pub(crate) fn expr_type(&self, id: ExprId) -> &Ty {
        self.expr_types.get(id.0 as usize).unwrap_or(&Ty::Error)
    }

    pub(crate) fn pattern_type(&self, id: PatternId) -> &Ty {
        self.pattern_types.get(id.0 as usize).unwrap_or(&Ty::Error)
    }

    pub(crate) fn local(&self, id: LocalId) -> &Local {
        &self.locals[id.0 as usize]
    }
}
