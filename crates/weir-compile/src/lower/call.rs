//! Lowers calls: of host functions to call operations, of everything else by inlining.

use weir_host::{Passing, Text, Type, TypeOf, Value};
use weir_ir::expr::{Atom, Call, InlinedCall, InlinedCallId};
use weir_ir::prim::Prim;
use weir_syntax::Span;
use weir_syntax::ast::{Argument, ClosureParameter, Expr, ExprKind, ItemKind};

use super::block_builder::InlineFrameId;
use super::handled_calls::ArgumentAtoms;
use super::{Binding, Callable, CheckedCode, CodeScope, InlineFrame, InlineFrameKind, Lowering, Names};
use crate::lang_items::TABLES;
use crate::typed_tree::{ArgumentSource, CallTarget, ResolvedCall};

/// An evaluated argument.
type ArgumentBinding<'a> = Binding<'a>;

impl<'a> Lowering<'a, '_> {
    pub(super) fn call(
        &mut self,
        expr: &'a Expr,
        function: &'a Expr,
        piped: Option<&'a Expr>,
        arguments: &'a [Argument],
    ) -> Atom {
        let typed = self.typed;
        let Some(ResolvedCall { target, supplied }) = typed.call(expr.id) else {
            return Atom::Value(Value::Unit);
        };
        if arguments.is_empty()
            && let Some(value) = self.aggregate_of_group(expr).or_else(|| self.aggregate(expr))
        {
            return value;
        }
        // Arguments are evaluated in source order, which may differ from the order of the parameters.
        let object = object_of(function).filter(|_| supplied.contains(&ArgumentSource::Object));
        let object = object.map(|object| self.argument(object));
        let why = piped.or(arguments.first().map(|argument| &argument.value)).map(|why| self.ty(why));
        let piped_expr = piped;
        let piped = piped.map(|piped| self.argument(piped));
        let values: Vec<ArgumentBinding<'a>> =
            arguments.iter().map(|argument| self.argument(&argument.value)).collect();
        let given = supplied.iter().map(|supplied| match supplied {
            ArgumentSource::Object => object.clone(),
            ArgumentSource::Piped => piped.clone(),
            ArgumentSource::Argument(at) => values.get(*at).cloned(),
            ArgumentSource::Default => None,
        });
        let mut given: Vec<Option<ArgumentBinding<'a>>> = given.collect();
        if let (CallTarget::Host(path), Some(last)) = (target, given.last_mut()) {
            *last = self.named_arguments(path, arguments, &values, expr.span).or(last.take());
        }
        let ty = self.ty(expr);
        let written = supplied.iter().map(|supplied| match supplied {
            ArgumentSource::Object => object_of(function),
            ArgumentSource::Piped => piped_expr,
            ArgumentSource::Argument(at) => arguments.get(*at).map(|argument| &argument.value),
            ArgumentSource::Default => None,
        });
        let written: Vec<Option<&'a Expr>> = written.collect();
        let (given, kept) = self.kept_arguments(target, given);
        let value = match self.call_replaced(target, &given, &ty, (expr.span, &written)) {
            Some(value) => value,
            None => self.call_target(expr, target, (given, &written), why),
        };
        // The numbers of expressions and names are those of one text.
        if self.module.is_none() {
            self.handled_calls.called(expr.id, kept);
        }
        value
    }

    /// Returns the arguments of a call, and those that handlers may use: with the defaults of the callee.
    fn kept_arguments(
        &mut self,
        target: &CallTarget,
        given: Vec<Option<ArgumentBinding<'a>>>,
    ) -> (Vec<Option<ArgumentBinding<'a>>>, ArgumentAtoms) {
        if !self.handled_calls.are_wanted() {
            return (given, ArgumentAtoms::new());
        }
        // The types of a default of a generic `fn` are known only inside of it.
        if matches!(target, CallTarget::Function(name) if !self.typed.declarations.functions[name].type_parameters.is_empty())
        {
            let kept = self.argument_atoms(&given);
            return (given, kept);
        }
        let complete = self.with_defaults(target, given.clone());
        let kept = self.argument_atoms(&complete);
        // A default of a `fn` is an expression, which is evaluated once; that of a host function is passed as it is. A closure
        // is one of the `fn`, which its failures leave.
        let of_fn = matches!(target, CallTarget::Function(_));
        let passed = given.into_iter().zip(complete).map(|(given, complete)| match complete {
            Some(Binding::Atom(_)) if of_fn => complete,
            _ => given,
        });
        (passed.collect(), kept)
    }

    /// Returns the arguments that are values, if any handler uses arguments.
    fn argument_atoms(&self, given: &[Option<ArgumentBinding<'a>>]) -> ArgumentAtoms {
        let atom = |given: &Option<ArgumentBinding<'a>>| match given {
            Some(Binding::Atom(atom)) => Some(atom.clone()),
            _ => None,
        };
        if self.handled_calls.are_wanted() { given.iter().map(atom).collect() } else { ArgumentAtoms::new() }
    }

    /// Lowers the call of this callee. `why` is the type of the first argument.
    fn call_target(
        &mut self,
        expr: &'a Expr,
        target: &CallTarget,
        (given, written): (Vec<Option<ArgumentBinding<'a>>>, &[Option<&'a Expr>]),
        why: Option<Type>,
    ) -> Atom {
        let (ty, span) = (&self.ty(expr), expr.span);
        match target {
            CallTarget::Host(path) if path.starts_with("tables.") => self.write_row(path, given, ty, span),
            CallTarget::Host(path) => self.call_host(path, given, ty.clone(), (span, written)),
            CallTarget::Function(name) => {
                let scope = CodeScope { types: self.instance(expr), ..self.scope() };
                self.inline_fn((self.typed.declarations.fn_index(name), scope), given, ty, span)
            }
            CallTarget::Weir(path) => match self.weir_code(path) {
                Some((at, code)) => {
                    let scope = CodeScope { code, types: self.instance(expr) };
                    self.inline_fn((at, scope), given, ty, span)
                }
                None => Atom::Value(Value::Unit),
            },
            CallTarget::Service { name, function } => self.call_service(name, function, given, (span, written)),
            CallTarget::Variant(tag) => self.prim(Prim::Variant(*tag), atoms(given), ty.clone(), span),
            CallTarget::Length => self.prim(Prim::Length, atoms(given), ty.clone(), span),
            CallTarget::Failure => self.prim(Prim::Failure, atoms(given), ty.clone(), span),
            CallTarget::Local(local) => match self.names.get(local).cloned() {
                Some(Binding::Callable(callable)) => self.call_value(callable, given, ty, (span, written)),
                _ => Atom::Value(Value::Unit),
            },
            CallTarget::Table(statement) => self.table_statement(*statement, given, expr, written),
            CallTarget::Fail { says } => self.fail_with(expr, *says, atoms(given), why),
        }
    }

    fn argument(&mut self, expr: &'a Expr) -> ArgumentBinding<'a> {
        match self.callable(expr) {
            Some(callable) => Binding::Callable(callable),
            None => Binding::Atom(self.expr(expr)),
        }
    }

    /// Lowers the call of a host function. `written` holds the argument expressions by parameter, where they are known.
    pub(super) fn call_host(
        &mut self,
        path: &Text,
        given: Vec<Option<ArgumentBinding<'a>>>,
        ty: Type,
        (span, written): (Span, &[Option<&'a Expr>]),
    ) -> Atom {
        let Some(function) = self.context.library.function(path) else { return Atom::Value(Value::Unit) };
        let result = (&function.signature.call_type(), &ty);
        let given = given.into_iter().chain(std::iter::repeat(None));
        let parameters = given.zip(&function.signature.parameters).zip(0..);
        let arguments = parameters.map(|((given, parameter), index)| match given {
            Some(Binding::Atom(atom)) => {
                let written = written.get(index).copied().flatten();
                let place = written.map_or(span, |written| written.span);
                if parameter.passing.takes() || parameter.passing == Passing::Start {
                    self.no_shared(std::slice::from_ref(&atom), span)
                }
                match parameter.passing {
                    Passing::Start => self.constant_argument(atom, path, parameter, place),
                    Passing::Typed => self.with_type(atom, path, written, place),
                    Passing::Value | Passing::Borrow | Passing::Change | Passing::Named | Passing::TypeOf(_) => atom,
                }
            }
            _ if parameter.passing == Passing::Named => {
                self.typed_pair((Atom::Value(Value::Unit), Type::Unit), &TypeOf::default(), span)
            }
            None if let Passing::TypeOf(name) = parameter.passing => self.type_argument(name, result, path, span),
            _ => Atom::Value(parameter.default.clone().unwrap_or(Value::Unit)),
        });
        let arguments: Vec<Atom> = arguments.collect();
        self.state_is_made(&function.signature, &arguments, span);
        self.retried(&function.signature, span);
        let site = format!("{}{path}", self.frame().call_path);
        let site = self.unique(site).into();
        if function.signature.module.as_str() == TABLES {
            return self.table_call(Call::new(path.clone(), site, arguments), &function.signature, ty, span);
        }
        self.before_call(&function.signature, span);
        self.call_alone(Call::new(path.clone(), site, arguments), &function.signature, ty, span)
    }

    /// Returns the call path, with a number from its second use on.
    pub(super) fn unique(&mut self, site: String) -> String {
        super::numbered(&mut self.call_paths, site)
    }

    pub(super) fn call_value(
        &mut self,
        callable: Callable<'a>,
        given: Vec<Option<ArgumentBinding<'a>>>,
        ty: &Type,
        (span, written): (Span, &[Option<&'a Expr>]),
    ) -> Atom {
        match callable {
            Callable::Closure { parameters, body, names, scope, frame } => {
                self.frames.push(InlineFrame {
                    id: InlineFrameId(0),
                    call_path: self.frame().call_path.clone(),
                    result: Type::Never,
                    kind: InlineFrameKind::Closure,
                    outer: Some(frame),
                    function: None,
                    called_at: span,
                    inlined_call: self.frames[frame].inlined_call,
                    arguments: ArgumentAtoms::new(),
                    handlers: Vec::new(),
                    parameters: Names::new(),
                    scope: scope.clone(),
                });
                let inline = |lowering: &mut Self| lowering.inline_closure(parameters, body, &names, given);
                let value = self.in_scope(scope, span, inline);
                self.frames.pop();
                value
            }
            Callable::Function(at, scope) => self.inline_fn((at, scope), given, ty, span),
            Callable::Host(path) => self.call_host(&path, given, ty.clone(), (span, written)),
        }
    }

    fn inline_closure(
        &mut self,
        parameters: &'a [ClosureParameter],
        body: &'a Expr,
        names: &Names<'a>,
        given: Vec<Option<ArgumentBinding<'a>>>,
    ) -> Atom {
        let outer = std::mem::replace(&mut self.names, names.clone());
        for (parameter, given) in parameters.iter().zip(given) {
            match given {
                Some(Binding::Atom(atom)) => self.bind(&parameter.pattern, atom),
                Some(callable) => {
                    if let Some(local) = self.typed.pattern_local(parameter.pattern.id) {
                        self.names.insert(local, callable);
                    }
                }
                None => {}
            }
        }
        let value = self.expr(body);
        self.names = outer;
        value
    }

    /// Returns the index and the code of a function of a module that is written in Weir, by its path.
    pub(super) fn weir_code(&self, path: &str) -> Option<(usize, CheckedCode<'a>)> {
        let found = self.context.modules.function(path, self.context.library, crate::check::check_module)?;
        let module = found.module;
        Some((found.at, CheckedCode { tree: &module.parsed.tree, typed: &module.typed, module: Some(&module.name) }))
    }

    fn inline_fn(
        &mut self,
        (at, scope): (usize, CodeScope<'a>),
        given: Vec<Option<ArgumentBinding<'a>>>,
        ty: &Type,
        span: Span,
    ) -> Atom {
        let declared = &scope.code.typed.declarations.functions[at];
        let ItemKind::Function(function) = &scope.code.tree.items[declared.item].kind else {
            return Atom::Value(Value::Unit);
        };
        if self.too_large || self.builder().has_ended() {
            return Atom::Value(Value::Unit);
        }
        self.depth += 1;
        if self.depth > super::DEPTH_MAX {
            self.too_large(span);
        }
        let arguments = self.argument_atoms(&given);
        let id = self.begin_fn(at, &scope, (function, arguments), span);
        let outer = std::mem::take(&mut self.names);
        let mut open_block = self.in_scope(scope, span, |lowering| {
            lowering.build_block(|lowering| {
                lowering.bind_parameters(at, given, function);
                lowering.keep_parameters();
                lowering.block(&function.body)
            })
        });
        self.names = outer;
        open_block.resolve_exits(id);
        let result = self.frame().result.clone();
        let value = self.join(open_block, if result == Type::Never { ty } else { &result }, span);
        self.frames.pop();
        self.depth -= 1;
        value
    }

    /// Begins the frame of an inlined `fn`.
    fn begin_fn(
        &mut self,
        at: usize,
        scope: &CodeScope<'a>,
        (function, arguments): (&'a weir_syntax::ast::Function, ArgumentAtoms),
        span: Span,
    ) -> InlineFrameId {
        let module = scope.code.module.map_or_else(String::new, |module| format!("{module}."));
        let name = scope.code.typed.declarations.functions.get_index(at).map_or("", |(name, _)| name);
        let site = format!("{}{module}{name}", self.frame().call_path);
        let site = format!("{}/", self.unique(site));
        self.frame_count += 1;
        let id = InlineFrameId(self.frame_count);
        let handlers: Vec<_> = super::failures::handlers_of(&function.body).collect();
        self.see_handlers(&handlers);
        let declared = &scope.code.typed.declarations.functions[at];
        let is_of_program = scope.code.module.is_none();
        if is_of_program {
            self.inlined.insert(at);
        }
        let inlined_call = if is_of_program { self.inlined_call(name, span) } else { self.frame().inlined_call };
        self.frames.push(InlineFrame {
            id,
            call_path: site,
            result: declared.result.substituted(&scope.types).to_type(),
            kind: InlineFrameKind::Function,
            outer: self.frames.len().checked_sub(1),
            function: is_of_program.then(|| scope.code.typed.declarations.fn_name(at)),
            called_at: self.context.located(span),
            inlined_call,
            arguments,
            handlers,
            parameters: Names::new(),
            scope: scope.clone(),
        });
        id
    }

    /// Records an inlined call of the program, made from the current frame.
    pub(super) fn inlined_call(&mut self, function: &str, span: Span) -> Option<InlinedCallId> {
        let id = u32::try_from(self.context.inlined_calls.len()).ok().map(InlinedCallId);
        let called_at = self.origin(span);
        self.context.inlined_calls.push(InlinedCall { function: function.into(), called_at });
        id
    }

    /// Binds the parameters of a `fn` to the arguments, or to their defaults.
    pub(super) fn bind_parameters(
        &mut self,
        at: usize,
        given: Vec<Option<ArgumentBinding<'a>>>,
        function: &'a weir_syntax::ast::Function,
    ) {
        let locals = self.typed.fn_locals(at);
        for ((local, given), parameter) in locals.iter().zip(given).zip(&function.parameters) {
            let binding = match (given, &parameter.default) {
                (Some(binding), _) => binding,
                (None, Some(default)) => self.argument(default),
                (None, None) => continue,
            };
            self.names.insert(*local, binding);
        }
    }
}

fn atoms(given: Vec<Option<ArgumentBinding<'_>>>) -> Vec<Atom> {
    let atom = |given: Option<ArgumentBinding<'_>>| match given {
        Some(Binding::Atom(atom)) => atom,
        _ => Atom::Value(Value::Unit),
    };
    given.into_iter().map(atom).collect()
}

/// Returns the receiver before the dot.
fn object_of(function: &Expr) -> Option<&Expr> {
    if let ExprKind::Field { object, .. } = &function.kind { Some(object) } else { None }
}
