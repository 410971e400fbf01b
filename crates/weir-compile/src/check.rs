//! The type checker: resolves every name, gives every expression its type, and reports errors.
//!
//! Bidirectional checking within a body (Pierce and Turner, "Local type inference", 2000): an expression is checked
//! against the type that its place expects, if the place expects one, and returns the type that it has. An expected
//! type carries its reason, so that a diagnostic can show both places. Signatures of `fn`s are written out, so that
//! each body is checked on its own.
//!
//! The checker always finishes: an expression that makes no sense has the type [`Ty::Error`], which causes no further
//! diagnostics.

mod arguments;
mod block;
mod call;
mod config;
mod constant_patterns;
mod constants;
mod constraints;
mod control;
mod entry;
mod expr;
mod failures;
mod formatted;
mod generics;
mod handlers;
mod html;
mod method;
mod names;
mod operators;
mod pattern;
mod record;
mod recursion;
mod service_call;
mod tables;
mod test_items;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_host::Library;
use weir_syntax::ast::{self, Expr, ItemKind};
use weir_syntax::{Code, Diagnostic, Parsed, Span};

use crate::context::CheckContext;
use crate::declarations::Declarations;
use crate::declare::{self, TypeParameters};
use crate::effects::{self, BodyEffects};
use crate::exhaustiveness;
use crate::program_files::FileModules;
use crate::symbol::{Reference, Symbol};
use crate::typed_tree::{CallTarget, Local, LocalId, TypedTree};
use crate::types::{Inference, Ty};
use crate::weir_modules::{MODULE_SOURCE, WeirModules};

/// Checks the tree of a file.
pub(crate) fn check(context: &mut CheckContext<'_>) -> TypedTree {
    let declarations = declare::declare(context);
    let mut checker = TypeChecker::new(context, declarations);
    checker.items();
    checker.finish()
}

/// Checks the part of a module that is written in Weir. It has no diagnostics, because it is tested with its library.
pub(crate) fn check_module(parsed: &Parsed, text: &str, library: &Library) -> TypedTree {
    let (files, modules) = (FileModules::default(), WeirModules::none());
    check(&mut CheckContext::new((MODULE_SOURCE, text, parsed), &files, library, &modules))
}

pub(crate) use test_items::tests;

/// A type that a place expects, and the reason.
#[derive(Clone)]
pub(crate) struct Expected {
    pub(crate) ty: Ty,
    pub(crate) why: Option<(Span, String)>,
}

impl Expected {
    fn new(ty: Ty, span: Span, why: impl Into<String>) -> Self {
        Expected { ty, why: Some((span, why.into())) }
    }

    fn plain(ty: Ty) -> Self {
        Expected { ty, why: None }
    }
}

/// The exits of the body being checked: the targets of `return` and `?`.
#[derive(Clone)]
enum Exits {
    /// In the body of a flow, both end the flow with this answer.
    Flow(Expected),
    /// In the body of a `fn`, both return from it with this result.
    Function(Expected),
    /// A closure has no exit other than its value.
    Closure,
    /// The code runs when the program starts; a failure ends the start.
    Start,
}

struct TypeChecker<'a, 'c> {
    context: &'c mut CheckContext<'a>,
    /// The results so far.
    typed: TypedTree,
    /// The number of references that the declarations contain. Those behind them are of the current file.
    declared_references: usize,
    inference: Inference,
    /// The end of the expression that was checked last.
    reached: u32,
    /// The callee of the call whose result a local holds, so that a `?` on the local names the right function.
    local_calls: BTreeMap<LocalId, CallTarget>,
    in_test: bool,
    /// The templates that are inserted into SVG or MathML of another one.
    foreign_templates: BTreeSet<ast::ExprId>,
    /// The failure type of the innermost `retry` around the current expression, the target of a `?`.
    retried: Option<Ty>,
    scope: names::LocalScope,
    exits: Exits,
    /// The effects of the current body so far.
    seen: BodyEffects,
    /// The effects of the bodies of `fn`s.
    fn_seen: Vec<BodyEffects>,
    /// For each resource, whether it is held per session, and the first step that says so.
    scopes_of: BTreeMap<Arc<str>, (bool, Span)>,
    /// The calls between `fn`s: caller, callee and the span of the call.
    fn_calls: Vec<(usize, usize, Span)>,
    /// The `fn` being checked.
    current_fn: Option<usize>,
    /// The uses of generic `fn`s, and the demands that bodies make on their type parameters.
    generics: generics::Generics,
    /// The types of empty literals, such as `[]` and `None`, and those that functions such as `json.decode` create values
    /// of. An error if they are still unknown at the end.
    open: Vec<OpenType>,
    /// The matches and patterns to check for exhaustiveness, once all types are known.
    matches: Vec<ExhaustivenessCheck<'a>>,
}

/// A type that only the code around an expression determines.
struct OpenType {
    span: Span,
    ty: Ty,
    /// The function that creates values of the type; `None` for an empty literal.
    function: Option<String>,
}

/// A place whose patterns must cover every value.
enum ExhaustivenessCheck<'a> {
    Match(&'a Expr, &'a [ast::Arm]),
    /// A single pattern that must match every value.
    Irrefutable(&'a ast::Pattern),
}

impl<'a, 'c> TypeChecker<'a, 'c> {
    fn new(context: &'c mut CheckContext<'a>, declarations: Declarations) -> Self {
        TypeChecker {
            fn_seen: vec![BodyEffects::default(); declarations.functions.len()],
            declared_references: declarations.references.len(),
            typed: TypedTree::new(context.tree(), declarations),
            context,
            inference: Inference::default(),
            reached: 0,
            local_calls: BTreeMap::new(),
            in_test: false,
            foreign_templates: BTreeSet::new(),
            retried: None,
            scope: names::LocalScope::default(),
            exits: Exits::Start,
            seen: BodyEffects::default(),
            scopes_of: BTreeMap::new(),
            fn_calls: Vec::new(),
            current_fn: None,
            generics: generics::Generics::default(),
            open: Vec::new(),
            matches: Vec::new(),
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.context.report(diagnostic);
    }

    fn items(&mut self) {
        let tree = self.context.tree();
        self.constants();
        for item in &tree.items {
            if let ItemKind::Shared(shared) = &item.kind {
                self.enter_file(item);
                self.shared(shared);
            }
        }
        self.config_items();
        self.constraint_bindings();
        for at in 0..self.typed.declarations.functions.len() {
            self.function(at);
        }
        for (at, item) in tree.items.iter().enumerate() {
            self.enter_file(item);
            match &item.kind {
                ItemKind::Service(_) | ItemKind::Entry(_) if self.typed.declarations.file > 0 => {}
                ItemKind::Service(service) => self.service(at, service),
                ItemKind::Entry(entry) => self.entry(at, entry),
                ItemKind::Test(test) => self.test(test),
                _ => {}
            }
        }
        self.enter(0);
        self.file_handlers();
        self.test_names();
        self.enter(0);
    }

    /// Makes the file of an item the current one.
    fn enter_file(&mut self, item: &ast::Item) {
        self.enter(self.context.files.index_at(item.span.start));
    }

    /// Makes the file with this index the current one. The references found so far belong to the one before.
    fn enter(&mut self, file: usize) {
        let mut found = self.typed.declarations.references.split_off(self.declared_references);
        self.typed.here().references.append(&mut found);
        self.typed.declarations.file = file;
    }

    fn shared(&mut self, shared: &'a ast::Shared) {
        self.begin_body(Exits::Start);
        let expected = shared.ty.as_ref().map(|ty| {
            let written = self.resolve_type(ty);
            Expected::new(written, ty.span, "the declared type")
        });
        let ty = self.expr(&shared.value, expected.as_ref());
        let ty = expected.map_or(ty, |expected| expected.ty);
        if self.fallible(&ty) {
            let diagnostic = Diagnostic::new(Code::UnhandledFailure, "this failure is not handled")
                .at(shared.value.span, format!("has the type `{}`", self.inference.resolve(&ty)))
                .suggest("add `?`: a failure then keeps the program from starting", shared.value.span.at_end(), "?");
            self.report(diagnostic);
        }
        let whole = self.typed.declarations.own(&shared.name.text).to_owned();
        if let Some(declared) = self.typed.declarations.shared.get_mut(&*whole)
            && declared.span == shared.name.span
        {
            declared.ty = ty;
        }
    }

    fn begin_body(&mut self, exits: Exits) {
        self.scope = names::LocalScope::default();
        self.exits = exits;
        self.typed.flow_callees.append(&mut self.seen.callees);
        self.seen = BodyEffects::default();
        self.current_fn = None;
    }

    fn function(&mut self, at: usize) {
        let tree = self.context.tree();
        let declared = &self.typed.declarations.functions[at];
        let item = &tree.items[declared.item];
        let ItemKind::Function(function) = &item.kind else { return };
        let taken: Vec<_> = declared.parameters.iter().map(|p| p.ty.clone()).collect();
        let result = Expected::new(declared.result.clone(), declared.result_span, result_reason(function));
        self.enter_file(item);
        self.begin_body(Exits::Function(result.clone()));
        self.current_fn = Some(at);
        let mut locals = Vec::new();
        for (ty, parameter) in taken.into_iter().zip(&function.parameters) {
            if let Some(default) = &parameter.default {
                self.expr(default, Some(&Expected::new(ty.clone(), parameter.ty.span, "the parameter's type")));
            }
            let local = self.bind(parameter.name.text.clone(), parameter.name.span, ty);
            locals.push(local);
        }
        let name = self.typed.declarations.fn_name(at);
        self.typed.here().fn_locals.insert(name, locals);
        self.handlers_of_block(&function.body);
        self.block(&function.body, Some(&result));
        self.fn_seen[at] = std::mem::take(&mut self.seen);
    }

    fn resolve_type(&mut self, ty: &ast::Type) -> Ty {
        let known = self.current_fn.and_then(|at| self.typed.declarations.functions.get_index(at));
        let mut parameters = match known {
            Some((name, declared)) => TypeParameters::of(name, &declared.type_parameters),
            None => TypeParameters::none(),
        };
        declare::resolve_type(&mut self.typed.declarations, self.context, ty, &mut parameters)
    }

    /// Brings a local name into scope.
    fn bind(&mut self, name: Arc<str>, span: Span, ty: Ty) -> LocalId {
        let from = span.end.max(self.reached);
        let file = self.typed.declarations.file as ast::FileIndex;
        let here = self.typed.here();
        let id = LocalId { file, index: here.locals.len() as u32 };
        here.locals.push(Local { name: name.clone(), span, ty, from });
        self.scope.bind(name, id);
        let symbol = Symbol::Local(id);
        self.typed.declarations.references.push(Reference { span, symbol, defines: true });
        id
    }

    fn refer(&mut self, span: Span, symbol: Symbol) {
        self.typed.declarations.refer(span, symbol);
    }

    fn finish(mut self) -> TypedTree {
        self.begin_body(Exits::Start);
        self.resolve_all();
        self.unknown_types();
        self.generic_uses();
        recursion::report(&self.fn_calls, &self.typed.declarations, self.context);
        let TypeChecker { context, mut typed, fn_seen, scopes_of, matches, .. } = self;
        typed.fn_effects = effects::close(&fn_seen);
        typed.fn_callees = fn_seen.into_iter().map(|seen| seen.callees).collect();
        let declarations = &typed.declarations;
        let declared = declarations.shared.keys().chain(declarations.constraints.keys());
        typed.per_session = declared.filter(|name| declarations.is_of_sessions(name)).cloned().collect();
        typed.per_session.extend(scopes_of.into_iter().filter(|(_, scope)| scope.0).map(|(name, _)| name));
        for check in matches {
            match check {
                ExhaustivenessCheck::Match(value, arms) => exhaustiveness::check_match(context, &typed, value, arms),
                ExhaustivenessCheck::Irrefutable(pattern) => {
                    exhaustiveness::check_irrefutable(context, &typed, pattern);
                }
            }
        }
        typed
    }

    fn resolve_all(&mut self) {
        let inference = &self.inference;
        for file in &mut self.typed.files {
            file.resolve_types(inference);
        }
        for shared in self.typed.declarations.shared.values_mut() {
            shared.ty = inference.resolve(&shared.ty);
        }
    }

    /// Reports expressions whose type is still unknown.
    fn unknown_types(&mut self) {
        for OpenType { span, ty, function } in std::mem::take(&mut self.open) {
            if function.is_some() {
                let created = self.inference.resolve(&ty);
                let file = self.typed.declarations.file_at(span.start);
                self.typed.files[file].created.push(created);
            }
            if let Ty::Unknown(_) = self.inference.shallow(&ty) {
                // One report is enough for everything that depends on the same unknown.
                self.inference.unify(&ty, &Ty::Error);
                self.report(match function {
                    None => Diagnostic::new(Code::UnknownElementType, "the element type of this is unknown")
                        .at(span, "its elements could have any type")
                        .hint("declare its type: `let name: List(Int) = …` or `let name: Option(Int) = …`"),
                    Some(path) => Diagnostic::new(
                        Code::UnknownElementType,
                        format!("the type of the value that `{path}` creates is unknown"),
                    )
                    .at(span, "the value could have any type")
                    .hint("declare its type: `let name: Type = …`"),
                });
            }
        }
    }
}

fn result_reason(function: &ast::Function) -> String {
    match function.returns {
        Some(_) => format!("the result of `{}`", function.name),
        None => format!("`{}` declares no result, so it returns `()`", function.name),
    }
}
