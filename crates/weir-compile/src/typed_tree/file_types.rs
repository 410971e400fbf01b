//! The checker's results for one file, by the ids of expressions and patterns.
//!
//! They name declarations and never contain their indices or positions in other files, so that they stay valid while the
//! file and the interfaces of the modules that it uses stay the same (`check_cache`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_host::Text;
use weir_syntax::ast::{ExprId, FileIndex, NodeCounts, PatternId};
use weir_syntax::{Diagnostic, Span};

use super::{
    CallTarget, FileSummary, InsertedRow, Local, LocalId, Resolution, ResolvedCall, ResolvedHandler, ResolvedTry,
    UnreachableCode,
};
use crate::html_template::HoleContext;
use crate::symbol::Reference;
use crate::types::{Inference, Substitution, Ty, names_in};

/// The resolved names and types of a file.
pub(crate) struct FileTypes {
    pub(crate) expr_types: Vec<Ty>,
    pub(crate) expr_spans: Vec<Span>,
    pub(crate) pattern_types: Vec<Ty>,
    pub(crate) resolutions: BTreeMap<ExprId, Resolution>,
    pub(crate) calls: BTreeMap<ExprId, ResolvedCall>,
    /// The types that stand for the type parameters of a generic `fn`, by the call or the name of the `fn`.
    pub(crate) instances: BTreeMap<ExprId, Substitution>,
    pub(crate) tries: BTreeMap<ExprId, ResolvedTry>,
    /// By the offset of each handler.
    pub(crate) handlers: BTreeMap<u32, ResolvedHandler>,
    pub(crate) locals: Vec<Local>,
    /// The named types in all types of the file, each where it is last.
    pub(crate) named_types: Vec<Text>,
    /// The types of the values that functions such as `json.decode` create.
    pub(crate) created: Vec<Ty>,
    pub(crate) pattern_locals: BTreeMap<PatternId, LocalId>,
    /// The local that the name of a pattern hides, by the pattern.
    pub(crate) hidden_locals: BTreeMap<PatternId, LocalId>,
    pub(crate) pattern_tags: BTreeMap<PatternId, u32>,
    /// The local that holds the failure, by the expression that handles it.
    pub(crate) failure_locals: BTreeMap<ExprId, LocalId>,
    pub(crate) at_most: BTreeMap<ExprId, u64>,
    /// The tables that record literals are inserted into, by their indices: the literals may leave out columns.
    pub(crate) inserted_rows: BTreeMap<ExprId, InsertedRow>,
    /// The context of each interpolation of a template, by the interpolated expression.
    pub(crate) html_holes: BTreeMap<ExprId, HoleContext>,
    /// The functions that each `with` replaces.
    pub(crate) replacements: BTreeMap<ExprId, Vec<Option<CallTarget>>>,
    /// The locals of each `fn`'s parameters, by the name of the `fn` in the program.
    pub(crate) fn_locals: BTreeMap<Arc<str>, Vec<LocalId>>,
    /// The names in the program of the resources that steps of modules hold, by the offset of the written name.
    pub(crate) held_names: BTreeMap<u32, Arc<str>>,
    /// The unreachable statements, at most once for each block.
    pub(crate) unreachable: Vec<UnreachableCode>,
    /// The offsets of blocks whose last expression is evaluated only for its effects.
    pub(crate) unit_blocks: BTreeSet<u32>,
    /// Every place in the bodies of the file that names a symbol.
    pub(crate) references: Vec<Reference>,
    pub(crate) summary: FileSummary,
    /// The warnings of comments that hide a division.
    pub(crate) hidden_divisions: Vec<Diagnostic>,
    /// True if checking the file by itself reported nothing.
    pub(crate) is_clean: bool,
}

impl FileTypes {
    /// Creates the results of a file whose expressions are still to be checked.
    pub(crate) fn new(counts: NodeCounts) -> Self {
        let (exprs, patterns) = (counts.exprs as usize, counts.patterns as usize);
        FileTypes {
            expr_types: vec![Ty::Error; exprs],
            expr_spans: vec![Span::default(); exprs],
            pattern_types: vec![Ty::Error; patterns],
            resolutions: BTreeMap::new(),
            calls: BTreeMap::new(),
            instances: BTreeMap::new(),
            tries: BTreeMap::new(),
            handlers: BTreeMap::new(),
            locals: Vec::new(),
            named_types: Vec::new(),
            created: Vec::new(),
            pattern_locals: BTreeMap::new(),
            hidden_locals: BTreeMap::new(),
            pattern_tags: BTreeMap::new(),
            failure_locals: BTreeMap::new(),
            at_most: BTreeMap::new(),
            inserted_rows: BTreeMap::new(),
            html_holes: BTreeMap::new(),
            replacements: BTreeMap::new(),
            fn_locals: BTreeMap::new(),
            held_names: BTreeMap::new(),
            unreachable: Vec::new(),
            unit_blocks: BTreeSet::new(),
            references: Vec::new(),
            summary: FileSummary::default(),
            hidden_divisions: Vec::new(),
            is_clean: true,
        }
    }

    /// Replaces the unknowns in all types by their solutions.
    pub(crate) fn resolve_types(&mut self, inference: &Inference) {
        let types = self.expr_types.iter_mut().chain(&mut self.pattern_types);
        let types = types.chain(self.locals.iter_mut().map(|local| &mut local.ty));
        let used = self.summary.generic_uses.iter_mut().map(|found| &mut found.types);
        for ty in types.chain(self.instances.values_mut().chain(used).flat_map(|types| types.values_mut())) {
            *ty = inference.resolve(ty);
        }
        self.named_types = self.names_in_types();
    }

    fn names_in_types(&self) -> Vec<Text> {
        let types = self.expr_types.iter().chain(&self.pattern_types).chain(self.locals.iter().map(|local| &local.ty));
        let mut names = Vec::new();
        for ty in types {
            names_in(&ty.to_type(), &mut names);
        }
        let mut seen = BTreeSet::new();
        let mut last: Vec<Text> = names.into_iter().rev().filter(|name| seen.insert(name.clone())).collect();
        last.reverse();
        last
    }

    /// Records the type of an expression.
    pub(crate) fn set_type(&mut self, id: ExprId, ty: Ty) {
        if let Some(slot) = self.expr_types.get_mut(id.index as usize) {
            *slot = ty;
        }
    }

    /// Records the type and the span of an expression.
    pub(crate) fn set_expr(&mut self, id: ExprId, ty: Ty, span: Span) {
        if let Some(slot) = self.expr_spans.get_mut(id.index as usize) {
            *slot = span;
        }
        self.set_type(id, ty);
    }
}

/// The id of a node or a local, which tells its file.
pub(crate) trait InFile {
    fn file(self) -> FileIndex;
}

impl InFile for ExprId {
    fn file(self) -> FileIndex {
        self.file
    }
}

impl InFile for PatternId {
    fn file(self) -> FileIndex {
        self.file
    }
}

impl InFile for LocalId {
    fn file(self) -> FileIndex {
        self.file
    }
}
