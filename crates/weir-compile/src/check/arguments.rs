//! Matches the arguments of a call to the callee's parameters, and checks their types.

use std::sync::Arc;

use weir_host::{Passing, TypeShape};
use weir_syntax::ast::{Argument, Expr, ExprKind, Name};
use weir_syntax::{Code, Diagnostic, Span};

use super::names::table_as_value;
use super::{Expected, TypeChecker};
use crate::lang_items::{SHARED_READ, TABLE};
use crate::suggest::{listed, nearest};
use crate::typed_tree::{ArgumentSource, CallTarget, Resolution, ResolvedCall};
use crate::types::Ty;

/// The written arguments of a call.
pub(super) struct CallArguments<'a> {
    /// The call expression; `None` for the arguments of a source.
    pub(super) call: Option<&'a Expr>,
    /// The span of the callee.
    pub(super) callee: Span,
    /// The receiver before the dot, and its type.
    pub(super) object: Option<(&'a Expr, Ty)>,
    /// The value before `|>`.
    pub(super) piped: Option<&'a Expr>,
    pub(super) arguments: &'a [Argument],
}

/// A parameter of the callee.
pub(super) struct CalleeParameter {
    /// `None` for a positional parameter.
    pub(super) name: Option<Arc<str>>,
    pub(super) ty: Ty,
    /// `None` unless the callee is a host function.
    pub(super) passing: Option<Passing>,
    pub(super) has_default: bool,
    /// The span of its declaration, if that is in this file.
    pub(super) place: Option<Span>,
}

impl CalleeParameter {
    pub(super) fn positional(ty: Ty) -> CalleeParameter {
        CalleeParameter { name: None, ty, passing: None, has_default: false, place: None }
    }

    fn shown(&self) -> String {
        match &self.name {
            Some(name) => format!("`{name}`"),
            None => format!("of the type `{}`", self.ty),
        }
    }
}

impl<'a> TypeChecker<'a, '_> {
    /// Checks the arguments of a call and records where each parameter gets its own.
    pub(super) fn arguments(
        &mut self,
        callee: &str,
        target: CallTarget,
        taken: Vec<CalleeParameter>,
        given: CallArguments<'a>,
    ) {
        let call = given.call;
        let supplied = self.supplied(callee, taken, given);
        if let Some(call) = call {
            self.typed.of_mut(call.id).calls.insert(call.id, ResolvedCall { target, supplied });
        }
    }

    /// Checks the arguments and returns, for each parameter, where its argument comes from.
    pub(super) fn supplied(
        &mut self,
        callee: &str,
        taken: Vec<CalleeParameter>,
        given: CallArguments<'a>,
    ) -> Vec<ArgumentSource> {
        // The arguments that name no parameter need none.
        let takes_further = taken.last().is_some_and(|last| last.passing == Some(Passing::Named));
        let mut further: Vec<&Name> = Vec::new();
        let mut supplied: Vec<Option<(ArgumentSource, Span)>> = vec![None; taken.len() - usize::from(takes_further)];
        let implicit = given.object.as_ref().map(|(object, _)| (ArgumentSource::Object, object.span));
        let implicit = implicit.into_iter().chain(given.piped.map(|piped| (ArgumentSource::Piped, piped.span)));
        let (mut position, mut refused) = (0, 0);
        for (how, span) in implicit {
            self.place(callee, &mut supplied, position, (how, span));
            position += 1;
        }
        for (at, argument) in given.arguments.iter().enumerate() {
            let index = match &argument.name {
                Some(name) if takes_further && !names_one(&taken[..supplied.len()], name) => {
                    self.further_argument(&mut further, name, argument);
                    continue;
                }
                Some(_) => self.named_parameter(callee, &taken, argument),
                None if takes_further && position >= supplied.len() => {
                    refused += 1;
                    self.unnamed_argument(callee, argument);
                    continue;
                }
                None => {
                    position += 1;
                    Some(position - 1)
                }
            };
            match index {
                Some(index) => self.place(callee, &mut supplied, index, (ArgumentSource::Argument(at), argument.span)),
                None => {
                    refused += 1;
                    self.expr(&argument.value, Some(&Expected::plain(Ty::Error)));
                }
            }
            if index.is_some_and(|index| index >= supplied.len()) {
                self.expr(&argument.value, None);
            }
        }
        // A closure is checked last, because the other arguments may determine the types of its parameters.
        let pairs = || taken.iter().zip(&supplied);
        for (parameter, supplied) in pairs().filter(|(_, supplied)| !is_closure(**supplied, &given)) {
            self.argument(callee, parameter, *supplied, &given);
        }
        for (parameter, supplied) in pairs().filter(|(_, supplied)| is_closure(**supplied, &given)) {
            // Its parameters are visible from where they stand, whatever was checked before.
            self.reached = supplied.map_or(self.reached, |(_, span)| span.start);
            self.argument(callee, parameter, *supplied, &given);
        }
        self.missing(callee, &taken, (&supplied, refused), &given);
        supplied.resize(taken.len(), None);
        supplied.iter().map(|supplied| supplied.map_or(ArgumentSource::Default, |(how, _)| how)).collect()
    }

    /// Checks an argument that names no parameter, of a function that takes such arguments.
    fn further_argument(&mut self, further: &mut Vec<&'a Name>, name: &'a Name, argument: &'a Argument) {
        if let Some(first) = further.iter().find(|other| other.as_str() == name.as_str()) {
            let diagnostic = Diagnostic::new(Code::UnknownArgument, format!("the name `{name}` is given twice"))
                .at(name.span, "also given here")
                .because(first.span, "first given here")
                .hint("choose another name");
            self.report(diagnostic);
        }
        further.push(name);
        self.expr(&argument.value, None);
    }

    /// Reports an argument without a name, of a function that takes further arguments by their names.
    fn unnamed_argument(&mut self, callee: &str, argument: &'a Argument) {
        let diagnostic = Diagnostic::new(Code::UnknownArgument, format!("a further argument of `{callee}` has a name"))
            .at(argument.span, "has none");
        self.report(match &argument.value.kind {
            ExprKind::Name(name) => {
                diagnostic.suggest(format!("name it: `{name}: {name}`"), argument.span.at_start(), format!("{name}: "))
            }
            _ => diagnostic.hint("name it: `name: value`"),
        });
        self.expr(&argument.value, None);
    }

    fn named_parameter(&mut self, callee: &str, taken: &[CalleeParameter], argument: &Argument) -> Option<usize> {
        let name = argument.name.as_ref()?;
        let found = taken.iter().position(|parameter| parameter.name.as_deref() == Some(name.as_str()));
        if found.is_none() && !name.is_missing() {
            let known = taken.iter().filter_map(|parameter| parameter.name.as_deref());
            let mut diagnostic =
                Diagnostic::new(Code::UnknownArgument, format!("`{callee}` has no parameter `{name}`"))
                    .at(name.span, "no such parameter");
            if let Some(near) = nearest(name.as_str(), known.clone()) {
                diagnostic = diagnostic.suggest(format!("did you mean `{near}`?"), name.span, near);
            } else {
                let known: Vec<String> = known.map(str::to_owned).collect();
                diagnostic = match known.is_empty() && !taken.is_empty() {
                    true => {
                        let label = Span { end: argument.value.span.start, ..name.span };
                        diagnostic.fix("its fields have no names: write the value alone", label, "")
                    }
                    false if known.is_empty() => diagnostic,
                    false => diagnostic.hint(format!("it takes {}", listed(&known))),
                };
            }
            self.report(diagnostic);
        }
        found
    }

    fn place(
        &mut self,
        callee: &str,
        supplied: &mut [Option<(ArgumentSource, Span)>],
        index: usize,
        (how, span): (ArgumentSource, Span),
    ) {
        let count = supplied.len();
        match supplied.get_mut(index) {
            Some(slot @ None) => *slot = Some((how, span)),
            Some(Some((_, first))) => {
                let first = *first;
                let diagnostic = Diagnostic::new(Code::UnknownArgument, "one parameter has two arguments")
                    .at(span, "also given here")
                    .because(first, "first given here")
                    .hint("remove one of them");
                self.report(diagnostic);
            }
            None => {
                let takes = match count {
                    0 => "no arguments".to_owned(),
                    1 => "1 argument".to_owned(),
                    _ => format!("{count} arguments"),
                };
                let diagnostic = Diagnostic::new(Code::UnknownArgument, format!("`{callee}` takes {takes}"))
                    .at(span, "one too many")
                    .hint(too_many_hint(callee, count));
                self.report(diagnostic);
            }
        }
    }

    /// Reports parameters without an argument, except for as many as the call has arguments whose names were `refused`: these
    /// were meant.
    fn missing(
        &mut self,
        callee: &str,
        taken: &[CalleeParameter],
        (supplied, refused): (&[Option<(ArgumentSource, Span)>], usize),
        given: &CallArguments<'a>,
    ) {
        let lacks =
            taken.iter().zip(supplied).filter(|(parameter, supplied)| supplied.is_none() && !parameter.has_default);
        let lacks: Vec<&CalleeParameter> = lacks.map(|(parameter, _)| parameter).collect();
        let [first, others @ ..] = lacks.get(refused..).unwrap_or_default() else { return };
        let what = match (&first.name, others) {
            (Some(name), []) => format!("the argument `{name}`"),
            (Some(name), [other]) => format!("the arguments `{name}` and {}", other.shown()),
            (Some(name), more) => format!("the argument `{name}` and {} more", more.len()),
            (None, []) => format!("an argument of the type `{}`", self.inference.resolve(&first.ty)),
            (None, more) => format!("{} arguments", more.len() + 1),
        };
        let ty = self.inference.resolve(&first.ty);
        let mut diagnostic = Diagnostic::new(Code::MissingArgument, format!("the call of `{callee}` lacks {what}"))
            .at(given.callee, "a parameter has no argument");
        if let Some(place) = first.place {
            diagnostic = diagnostic.because(place, "declared here, without a default");
        }
        let diagnostic = match &first.name {
            Some(name) => diagnostic.hint(format!("add `{name}: …` of the type `{ty}`")),
            None => diagnostic.hint(format!("add a value of the type `{ty}`")),
        };
        self.report(diagnostic);
    }

    fn argument(
        &mut self,
        callee: &str,
        parameter: &CalleeParameter,
        supplied: Option<(ArgumentSource, Span)>,
        given: &CallArguments<'a>,
    ) {
        let expr: &'a Expr = match supplied {
            Some((ArgumentSource::Object, _)) => match &given.object {
                Some((object, _)) => object,
                None => return,
            },
            Some((ArgumentSource::Piped, _)) => match given.piped {
                Some(piped) => piped,
                None => return,
            },
            Some((ArgumentSource::Argument(at), _)) => &given.arguments[at].value,
            _ => return,
        };
        let expected = self.argument_expected(callee, parameter, given);
        if let Some(at) = self.shared_named(expr) {
            return self.shared_argument(callee, parameter, expr, at, &expected);
        }
        match (&given.object, supplied) {
            (Some((_, ty)), Some((ArgumentSource::Object, _))) => _ = self.agree(expr.span, ty.clone(), &expected),
            _ => _ = self.expr(expr, Some(&expected)),
        }
        if parameter.passing == Some(Passing::Change) {
            self.not_changed(callee, parameter, expr);
        }
    }

    fn argument_expected(&mut self, callee: &str, parameter: &CalleeParameter, given: &CallArguments<'a>) -> Expected {
        let ty = self.inference.resolve(&parameter.ty);
        let why = match &parameter.name {
            Some(name) => format!("the parameter `{name}` of `{callee}` is `{ty}`"),
            None => format!("`{callee}` takes a `{ty}`"),
        };
        Expected::new(parameter.ty.clone(), parameter.place.unwrap_or(given.callee), why)
    }

    /// Checks a shared value as an argument. A host function may borrow or change it in place; everything else gets its
    /// current value.
    fn shared_argument(
        &mut self,
        callee: &str,
        parameter: &CalleeParameter,
        expr: &'a Expr,
        at: usize,
        expected: &Expected,
    ) {
        self.refer_shared(expr, at);
        let (name, declared) = self.typed.declarations.shared.get_index(at).expect("its index was just found");
        let (name, ty, place) = (name.clone(), declared.ty.clone(), declared.span);
        // Only its statements take a table.
        if ty == Ty::named(TABLE) && self.inference.shallow(&parameter.ty) != ty {
            self.table_of_module(expr);
            self.typed.resolve(expr.id, Resolution::Shared(name.clone()));
            let table = self.context.text_at(expr.span);
            let hint = format!("pass its rows: `{callee}(for row in {table} {{ row }})`");
            return self.report(table_as_value(&table, expr.span, place).hint(hint));
        }
        match parameter.passing {
            // `state.read` returns a copy, however it takes its argument.
            Some(passing @ (Passing::Borrow | Passing::Change)) if callee != SHARED_READ => {
                self.typed.resolve(expr.id, Resolution::Shared(name.clone()));
                self.touches_shared(&name, passing);
            }
            _ if self.shared_now(expr, at).is_some() => {}
            _ => {
                self.typed.resolve(expr.id, Resolution::Shared(name.clone()));
                let diagnostic =
                    Diagnostic::new(Code::SharedAsValue, format!("`{callee}` would keep the shared value `{name}`"))
                        .at(expr.span, "taken by value")
                        .because(place, format!("declared here as a shared `{ty}`"))
                        .hint("pass it to a host function that takes it by reference");
                self.report(diagnostic);
            }
        }
        self.agree(expr.span, ty, expected);
    }

    /// Reports a change of an immutable value: only shared values and opaque types of a library can be changed.
    fn not_changed(&mut self, callee: &str, parameter: &CalleeParameter, expr: &'a Expr) {
        let ty = self.inference.resolve(&parameter.ty);
        let opaque = |name: &weir_host::Text| {
            let definition = self.typed.declarations.definition(self.context.library, name);
            definition.is_some_and(|definition| matches!(definition.shape, TypeShape::Opaque { .. }))
        };
        if ty == Ty::Error || ty.name().is_some_and(opaque) {
            return;
        }
        let mut diagnostic = Diagnostic::new(Code::ChangedValue, format!("`{callee}` would change a value"))
            .at(expr.span, format!("this `{ty}` is immutable"))
            .note("values are immutable; mutable state is declared with `shared` at the top of the file");
        if let ExprKind::Name(name) = &expr.kind {
            diagnostic =
                diagnostic.hint(format!("replace the `let` by `shared {name}: {ty} = …` at the top of the file"));
        }
        self.report(diagnostic);
    }
}

/// Returns whether a parameter has this name.
fn names_one(parameters: &[CalleeParameter], name: &Name) -> bool {
    parameters.iter().any(|parameter| parameter.name.as_deref() == Some(name.as_str()))
}

/// Returns whether a parameter gets a closure.
fn is_closure(supplied: Option<(ArgumentSource, Span)>, given: &CallArguments<'_>) -> bool {
    match supplied {
        Some((ArgumentSource::Argument(at), _)) => {
            given.arguments.get(at).is_some_and(|argument| matches!(argument.value.kind, ExprKind::Closure { .. }))
        }
        _ => false,
    }
}

/// Returns what to do about an argument of a callee that takes so many others. Without any, a variant with the name of one of the prelude is
/// that of an enum of the program.
fn too_many_hint(callee: &str, takes: usize) -> String {
    let meant = match (callee, takes) {
        ("Some", 0) => "Option(Int)",
        ("Ok" | "Err", 0) => "Result(Int)",
        _ => return "remove it".to_owned(),
    };
    format!(
        "this is the variant of an enum of the program: leave out the argument, or write the type for a `{callee}` of another one, as in \
         `let x: {meant} = {callee}(…)`"
    )
}
