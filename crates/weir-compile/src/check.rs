//! The type checker: resolves every name, gives every expression its type, and reports errors.
//!
//! Bidirectional checking within a body (Pierce and Turner, "Local type inference", 2000): an expression is checked
//! against the type that its place expects, if the place expects one, and returns the type that it has. An expected
//! type carries its reason, so that a diagnostic can show both places. Signatures of `fn`s are written out, so that
//! each body is checked on its own.
//!
//! The checker always finishes: an expression that makes no sense has the type [`Ty::Error`], which causes no further
//! diagnostics.

mod alternatives;
mod arguments;
mod block;
mod call;
mod config;
mod constant_patterns;
mod constants;
mod constraints;
mod control;
mod default_arguments;
mod entry;
mod expr;
mod failures;
mod formatted;
mod generics;
mod handlers;
mod html;
mod method;
mod mismatches;
mod names;
mod operators;
mod parallel_bodies;
mod pattern;
mod record;
mod recursion;
mod route_parameters;
mod service_call;
mod shown_text;
mod tables;
mod test_items;
mod waiting;
mod whole_program;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_host::Library;
use weir_syntax::ast::{self, Expr, ItemKind};
use weir_syntax::{Code, Diagnostic, Parsed, Span};

use self::default_arguments::DefaultOfParameter;
use crate::context::CheckContext;
use crate::declarations::Declarations;
use crate::declare::{self, KeptDeclarations, TypeParameters};
use crate::effects::BodyEffects;
use crate::program_files::FileModules;
use crate::symbol::{Reference, Symbol};
use crate::typed_tree::{CallTarget, KeptFiles, Local, LocalId, TypedTree};
use crate::types::{Inference, Ty};
use crate::weir_modules::{MODULE_SOURCE, WeirModules};

/// Checks the tree of a program, except for what `kept` finds when it is known which modules each file uses: the declarations
/// of files, and the results of their bodies.
pub(crate) fn check(
    context: &mut CheckContext<'_>,
    kept: impl FnOnce(&CheckContext<'_>, &Declarations) -> (KeptDeclarations, KeptFiles),
) -> TypedTree {
    let mut kept_files = KeptFiles::new();
    let declarations = declare::declare(context, |context, declarations| {
        let (declarations, files) = kept(context, declarations);
        kept_files = files;
        declarations
    });
    let kept = kept_files.keys().copied().collect();
    let typed = TypedTree::new(context.tree(), declarations, kept_files);
    let mut checker = TypeChecker::new(context, typed, kept);
    checker.restore_declarations();
    checker.initial_values();
    checker.bodies_of_files();
    checker.test_names();
    checker.finish()
}

/// Checks the part of a module that is written in Weir. It has no diagnostics, because it is tested with its library.
pub(crate) fn check_module(parsed: &Parsed, text: &str, library: &Library) -> TypedTree {
    let (files, modules) = (FileModules::default(), WeirModules::none());
    check(&mut CheckContext::new((MODULE_SOURCE, text, parsed), &files, library, &modules), |_, _| {
        (None, KeptFiles::new())
    })
}

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
    /// In the default of a parameter, there is nothing to leave: its `fn` begins with all arguments.
    Default(DefaultOfParameter),
    /// The code runs when the program starts; a failure ends the start.
    Start,
}

struct TypeChecker<'a, 'c> {
    context: &'c mut CheckContext<'a>,
    /// The results so far.
    typed: TypedTree,
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
    /// True in a closure: a `?` leaves what its text stands in, a `return` nothing.
    in_closure: bool,
    /// The effects of the current body so far.
    seen: BodyEffects,
    /// True if it is the only checker of the program, which finds the types of shared values, too.
    declares: bool,
    /// The files whose results an earlier check has left, or that another checker checks.
    kept: BTreeSet<usize>,
    /// The number of diagnostics that were reported before the current file was entered.
    reported_before: usize,
    /// The `fn` being checked.
    current_fn: Option<usize>,
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
    fn new(context: &'c mut CheckContext<'a>, typed: TypedTree, kept: BTreeSet<usize>) -> Self {
        TypeChecker {
            declares: true,
            kept,
            reported_before: context.reported(),
            typed,
            context,
            inference: Inference::default(),
            reached: 0,
            local_calls: BTreeMap::new(),
            in_test: false,
            foreign_templates: BTreeSet::new(),
            retried: None,
            scope: names::LocalScope::default(),
            exits: Exits::Start,
            in_closure: false,
            seen: BodyEffects::default(),
            current_fn: None,
            open: Vec::new(),
            matches: Vec::new(),
        }
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.context.report(diagnostic);
    }

    /// Checks what all bodies may depend on: constants, shared values, configuration and bindings of constraints.
    fn initial_values(&mut self) {
        let tree = self.context.tree();
        self.constants();
        for item in &tree.items {
            if let ItemKind::Shared(shared) = &item.kind
                && self.enter_file(item)
            {
                self.shared(shared);
            }
        }
        self.config_items();
        self.constraint_bindings();
    }

    /// Checks the bodies of the files that are not kept, which depend only on declarations.
    fn bodies(&mut self) {
        let tree = self.context.tree();
        for at in 0..self.typed.declarations.functions.len() {
            self.function(at);
        }
        for (at, item) in tree.items.iter().enumerate() {
            if !self.enter_file(item) {
                continue;
            }
            match &item.kind {
                ItemKind::Service(_) | ItemKind::Entry(_) if self.typed.declarations.file > 0 => {}
                ItemKind::Service(service) => self.service(at, service),
                ItemKind::Entry(entry) => self.entry(at, entry),
                ItemKind::Test(test) => self.test(test),
                _ => {}
            }
        }
        if self.enter(0) {
            self.file_handlers();
        }
        self.leave_file();
    }

    /// Makes the file of an item the current one. Returns false if it is not checked again.
    fn enter_file(&mut self, item: &ast::Item) -> bool {
        self.enter(item.file.into())
    }

    /// Makes the file with this index the current one, unless it is not checked again; then returns false.
    fn enter(&mut self, file: usize) -> bool {
        if self.is_kept(file) {
            return false;
        }
        self.leave_file();
        self.typed.declarations.file = file;
        true
    }

    /// Adds to the results of the current file what was found since it was entered.
    fn leave_file(&mut self) {
        if self.is_kept(self.typed.declarations.file) {
            return;
        }
        let mut references = std::mem::take(&mut self.typed.declarations.references);
        let reported = self.context.reported() > self.reported_before;
        self.reported_before = self.context.reported();
        let here = self.typed.here();
        here.references.append(&mut references);
        here.is_clean &= !reported;
        here.summary.flow_callees.append(&mut self.seen.callees);
    }

    /// Returns whether the results of a file are those of an earlier check.
    fn is_kept(&self, file: usize) -> bool {
        self.kept.contains(&file)
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
        let callees = std::mem::take(&mut self.seen).callees;
        if !callees.is_empty() {
            self.typed.here().summary.flow_callees.extend(callees);
        }
        self.current_fn = None;
    }

    fn function(&mut self, at: usize) {
        let tree = self.context.tree();
        let declared = &self.typed.declarations.functions[at];
        let item = &tree.items[declared.item];
        let ItemKind::Function(function) = &item.kind else { return };
        if self.is_kept(declared.file) {
            return;
        }
        let taken: Vec<_> = declared.parameters.iter().map(|p| p.ty.clone()).collect();
        let result = Expected::new(declared.result.clone(), declared.result_span, result_reason(function));
        if !self.enter_file(item) {
            return;
        }
        self.begin_body(Exits::Function(result.clone()));
        self.current_fn = Some(at);
        let mut locals = Vec::new();
        for (ty, parameter) in taken.into_iter().zip(&function.parameters) {
            if let Some(default) = &parameter.default {
                self.default_of(parameter, default, (&function.name, &ty));
            }
            let local = self.bind(parameter.name.text.clone(), parameter.name.span, ty);
            locals.push(local);
        }
        let name = self.typed.declarations.fn_name(at);
        self.typed.here().fn_locals.insert(name.clone(), locals);
        self.handlers_of_block(&function.body);
        self.block(&function.body, Some(&result));
        let seen = std::mem::take(&mut self.seen);
        self.typed.here().summary.fn_effects.insert(name, seen);
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

    /// Reports expressions whose type is still unknown.
    fn unknown_types(&mut self) {
        for OpenType { span, ty, function } in std::mem::take(&mut self.open) {
            if function.is_some() {
                let created = self.inference.resolve(&ty);
                let file = self.typed.declarations.file_at(span.start);
                self.typed.file_mut(file).created.push(created);
            }
            if let Ty::Unknown(_) = self.inference.shallow(&ty) {
                // One report is enough for everything that depends on the same unknown.
                self.inference.unify(&ty, &Ty::Error);
                let file = self.typed.declarations.file_at(span.start);
                self.typed.file_mut(file).is_clean = false;
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
