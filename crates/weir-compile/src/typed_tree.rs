//! The typed tree: the checker's results, by the numbers of expressions and patterns.

mod file_summary;
mod file_types;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_host::{Text, Type, Value};
use weir_syntax::Span;
use weir_syntax::ast::{AtomicResource, Block, ExprId, FailureHandler, ItemKind, PatternId, Tree};

use crate::bound_constraints::BoundConstraints;
use crate::declarations::Declarations;
use crate::effects::EffectSummary;
pub(crate) use crate::symbol::LocalId;
use crate::symbol::Reference;
use crate::types::Ty;
pub(crate) use file_summary::{BoundFunction, FileSummary, FnCall, GenericCallee, GenericUse, HeldScope};
pub(crate) use file_types::{FileTypes, InFile};

/// The resolved names and types of a tree.
pub struct TypedTree {
    pub(crate) declarations: Declarations,
    /// The results of each file.
    pub(crate) files: Vec<Arc<FileTypes>>,
    /// The demands of the body of each generic `fn` on its type parameters, by the name of the `fn`.
    pub(crate) fn_demands: BTreeMap<Arc<str>, Demands>,
    /// The effects of each `fn`, by its index.
    pub(crate) fn_effects: Vec<EffectSummary>,
    /// The callees of each `fn`, by its index.
    pub(crate) fn_callees: Vec<BTreeSet<usize>>,
    /// The `fn`s that flows call directly.
    pub(crate) flow_callees: BTreeSet<usize>,
    /// The shared values and constraints that steps hold per session.
    pub(crate) per_session: BTreeSet<Arc<str>>,
    /// The constraints that host functions are bound to.
    pub(crate) bound_constraints: BoundConstraints,
}

/// The results of files that an earlier check has left, by the index of the file.
pub(crate) type KeptFiles = BTreeMap<usize, Arc<FileTypes>>;

/// Statements of a block behind one that leaves it.
pub(crate) struct UnreachableCode {
    /// The statement that leaves the block.
    pub(crate) leaves: Span,
    /// The first statement behind it.
    pub(crate) first: Span,
    /// The end of the last one; `None` if a handler, which applies to the whole body, is among them.
    pub(crate) end: Option<u32>,
}

/// A local name.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    pub(crate) name: Arc<str>,
    pub(crate) span: Span,
    pub(crate) ty: Ty,
    /// The offset from which it is visible: the end of its `let`'s value.
    pub(crate) from: u32,
}

/// The meaning of a name.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Resolution {
    Local(LocalId),
    /// A shared value, by its name, passed to a function by reference.
    Shared(Arc<str>),
    /// The current value of a shared value, by its name.
    SharedNow(Arc<str>),
    /// A `config` or `secret`, by its name.
    Config(Arc<str>),
    /// A `const`, by its name.
    Constant(Arc<str>),
    /// A `fn` of the program, by its name.
    Function(Arc<str>),
    /// A host function, by its path.
    Host(Text),
    /// A function of a module that is written in Weir, by its path.
    Weir(Text),
    /// A variant, by its tag.
    Variant(u32),
    /// A field of a record or tuple, by its index.
    Field(u32),
}

/// A call: its callee, and the argument of each parameter.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ResolvedCall {
    pub(crate) target: CallTarget,
    pub(crate) supplied: Vec<ArgumentSource>,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum CallTarget {
    Host(Text),
    /// A `fn` of the program, by its name.
    Function(Arc<str>),
    /// A function of a module that is written in Weir, by its path.
    Weir(Text),
    Variant(u32),
    /// A closure or function that a local holds.
    Local(LocalId),
    /// A request of a service in a test.
    Service {
        /// The name of the service.
        name: Text,
        /// The path of the function that makes the request.
        function: Text,
    },
    /// `xs.length()`.
    Length,
    /// `Failure(message)`.
    Failure,
    /// A statement on a table that takes a function.
    Table(TableStatement),
    /// `fail(why)`, or if `says`, `fail(Failure(why))`.
    Fail {
        says: bool,
    },
}

/// A record literal that is a new row of a table.
#[derive(Clone, Debug)]
pub(crate) struct InsertedRow {
    /// The name of the table in the program.
    pub(crate) table: Arc<str>,
    /// True if the table gives the row a number as its key.
    pub(crate) is_numbered: bool,
}

/// A statement on a table that takes a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TableStatement {
    /// `table.update(key, |row| …)`.
    Update,
    /// `table.update_all(|row| …, |row| …)`.
    UpdateAll,
    /// `table.count(|row| …)`.
    Count,
    /// `table.exists(|row| …)`.
    Exists,
    /// `table.delete_all(|row| …)`.
    DeleteAll,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ArgumentSource {
    /// The receiver before the dot.
    Object,
    /// The value before `|>`.
    Piped,
    /// The written argument with this index.
    Argument(usize),
    /// The parameter's default.
    Default,
}

/// A property that a body demands of a type parameter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Demand {
    /// `==` and `!=`.
    Equality,
    /// `<`, `<=`, `>` and `>=`.
    Order,
    /// `order by`.
    OrderBy,
    /// `"{value}"`.
    Text,
    /// A sum that a shared value can hold.
    Sum,
}

/// The demands of a `fn` on its type parameters, each with the place that makes it.
pub(crate) type Demands = BTreeMap<(Text, Demand), Span>;

/// A `?`: the target of its failure, and the function that fails, if known.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ResolvedTry {
    pub(crate) to: FailureTarget,
    pub(crate) of: Option<CallTarget>,
}

/// A failure handler: the function whose failures it handles.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ResolvedHandler {
    pub(crate) target: CallTarget,
    /// The local that holds the failure.
    pub(crate) local: Option<LocalId>,
    pub(crate) failure: Ty,
    /// True if it uses the arguments of the call that failed.
    pub(crate) uses_arguments: bool,
}

/// The target of a `?`'s failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FailureTarget {
    /// The failure ends the flow.
    Flow,
    /// The `fn` returns `Err`.
    Caller,
    /// The current try of the innermost `retry` fails.
    Retry,
}

/// A checked entry point.
#[derive(Clone, Debug)]
pub(crate) struct EntryInfo {
    /// The index of its item in the tree.
    pub(crate) item: usize,
    /// The path of its source.
    pub(crate) source: Text,
    pub(crate) ordered: bool,
    pub(crate) answer: Type,
    pub(crate) element: Option<Type>,
    /// The argument of each of the source's parameters.
    pub(crate) supplied: Vec<ArgumentSource>,
    /// The routes of a service, in source order.
    pub(crate) routes: Vec<RouteInfo>,
    /// The parameters that all routes without a session key of their own share, from which the session key is computed.
    pub(crate) session_locals: Vec<LocalId>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct RouteInfo {
    pub(crate) locals: Vec<LocalId>,
    pub(crate) defaults: Vec<Option<Value>>,
}

impl TypedTree {
    /// Creates the typed tree of a program whose files are still to be checked, except for those of `kept`.
    pub(crate) fn new(tree: &Tree, declarations: Declarations, mut kept: KeptFiles) -> Self {
        let files = tree.node_counts.iter().enumerate();
        let files = files.map(|(file, counts)| kept.remove(&file).unwrap_or_else(|| FileTypes::new(*counts).into()));
        Self::of_files(declarations, files.collect())
    }

    /// Creates the typed tree of a program with these results of its files.
    pub(crate) fn of_files(declarations: Declarations, files: Vec<Arc<FileTypes>>) -> Self {
        TypedTree {
            declarations,
            files,
            fn_demands: BTreeMap::new(),
            fn_effects: Vec::new(),
            fn_callees: Vec::new(),
            flow_callees: BTreeSet::new(),
            per_session: BTreeSet::new(),
            bound_constraints: BoundConstraints::default(),
        }
    }

    /// Returns the `fn`s that no flow reaches and no other `fn` calls.
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

    /// Returns the effects of the `fn` with this name, including those of its callees.
    #[must_use]
    pub fn effects_of(&self, name: &str) -> Option<&EffectSummary> {
        let at = self.declarations.functions.get_index_of(name)?;
        self.fn_effects.get(at)
    }

    /// Returns the locals that are visible at an offset; inner names shadow outer ones. An `at end` block sees only its
    /// own names.
    pub(crate) fn locals_at(&self, tree: &Tree, offset: u32) -> Vec<&Local> {
        let Some(item) = tree.items.iter().find(|item| item.span.touches(offset)) else { return Vec::new() };
        let end = match &item.kind {
            ItemKind::Entry(entry) => entry.end.as_ref().filter(|end| end.span.touches(offset)),
            _ => None,
        };
        let whole = end.map_or(item.span, |end| end.span);
        let mut found: Vec<&Local> = Vec::new();
        for local in self.file_at(item.span.start).locals.iter().rev() {
            let before = whole.contains(local.span) && local.from <= offset;
            if before && !found.iter().any(|known| known.name == local.name) {
                found.push(local);
            }
        }
        found
    }

    pub(crate) fn expr_type(&self, id: ExprId) -> &Ty {
        self.of(id).expr_types.get(id.index as usize).unwrap_or(&Ty::Error)
    }

    pub(crate) fn pattern_type(&self, id: PatternId) -> &Ty {
        self.of(id).pattern_types.get(id.index as usize).unwrap_or(&Ty::Error)
    }

    pub(crate) fn local(&self, id: LocalId) -> &Local {
        &self.of(id).locals[id.index as usize]
    }

    /// Returns the meaning of a name.
    pub(crate) fn resolution(&self, id: ExprId) -> Option<&Resolution> {
        self.of(id).resolutions.get(&id)
    }

    /// Records the meaning of a name.
    pub(crate) fn resolve(&mut self, id: ExprId, meaning: Resolution) {
        self.of_mut(id).resolutions.insert(id, meaning);
    }

    pub(crate) fn call(&self, id: ExprId) -> Option<&ResolvedCall> {
        self.of(id).calls.get(&id)
    }

    /// Returns the local that a pattern binds.
    pub(crate) fn pattern_local(&self, id: PatternId) -> Option<LocalId> {
        self.of(id).pattern_locals.get(&id).copied()
    }

    /// Returns the tag of the variant that a pattern matches.
    pub(crate) fn pattern_tag(&self, id: PatternId) -> Option<u32> {
        self.of(id).pattern_tags.get(&id).copied()
    }

    /// Returns the results of the file that has a node or a local.
    pub(crate) fn of(&self, id: impl InFile) -> &FileTypes {
        &self.files[usize::from(id.file())]
    }

    pub(crate) fn of_mut(&mut self, id: impl InFile) -> &mut FileTypes {
        self.file_mut(usize::from(id.file()))
    }

    /// Returns whether the last expression of a block is evaluated only for its effects.
    pub(crate) fn is_unit_block(&self, block: &Block) -> bool {
        self.file_at(block.span.start).unit_blocks.contains(&block.span.start)
    }

    /// Returns the handler that begins at an offset.
    pub(crate) fn handler(&self, handler: &FailureHandler) -> Option<&ResolvedHandler> {
        self.file_at(handler.span.start).handlers.get(&handler.span.start)
    }

    /// Returns the name in the program of a resource that a step holds.
    pub(crate) fn held_name(&self, resource: &AtomicResource) -> Arc<str> {
        let start = resource.path.span.start;
        let whole = self.file_at(start).held_names.get(&start);
        whole.unwrap_or(&resource.path.last().text).clone()
    }

    /// Returns the locals of a `fn`'s parameters.
    pub(crate) fn fn_locals(&self, at: usize) -> &[LocalId] {
        let Some((name, declared)) = self.declarations.functions.get_index(at) else { return &[] };
        self.files[declared.file].fn_locals.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns every place in the program that names a symbol.
    pub(crate) fn references(&self) -> impl Iterator<Item = &Reference> {
        let declared = self.declarations.files.iter().flat_map(|file| file.references.iter());
        declared.chain(self.files.iter().flat_map(|file| &file.references))
    }

    /// Returns the results of the file that is being checked.
    pub(crate) fn here(&mut self) -> &mut FileTypes {
        self.file_mut(self.declarations.file)
    }

    /// Returns the results of a file, to be changed.
    ///
    /// # Panics
    /// Panics if the results are those of an earlier check, which never change.
    pub(crate) fn file_mut(&mut self, file: usize) -> &mut FileTypes {
        Arc::get_mut(&mut self.files[file]).expect("the file is being checked")
    }

    /// Returns the entry points.
    pub(crate) fn entries(&self) -> &[EntryInfo] {
        self.files.first().map_or(&[], |main| &main.summary.entries)
    }

    /// Returns the results of the file that has the byte at `offset`.
    pub(crate) fn file_at(&self, offset: u32) -> &FileTypes {
        &self.files[self.declarations.file_at(offset)]
    }
}
