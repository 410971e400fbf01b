//! Unused names: warns of locals and parameters that nothing reads.

use std::collections::BTreeSet;

use weir_syntax::ast::{
    Expr, ExprKind, FailureHandler, Item, ItemKind, Name, Parameter, ParameterLocation, Pattern, PatternKind, Route,
    Service, Statement, StatementKind, Visitor, walk_expr, walk_failure_handler, walk_item, walk_pattern,
    walk_statement, walk_tree,
};
use weir_syntax::{Code, Diagnostic, Span};

use super::{is_ignored, used_locals};
use crate::context::CheckContext;
use crate::typed_tree::TypedTree;
use crate::types::Ty;

/// Warns of every local and every parameter that is never read.
pub(super) fn check(context: &mut CheckContext<'_>, typed: &TypedTree) {
    let results = typed.locals.iter().filter(|local| matches!(local.ty, Ty::Result(_)));
    let results = results.map(|local| local.span.start).collect();
    let mut search = UnusedNames { used: used_locals(typed), results, found: Vec::new() };
    walk_tree(&mut search, context.tree());
    context.report_all(search.found);
}

struct UnusedNames {
    /// The starts of the locals that something reads.
    used: BTreeSet<u32>,
    /// The starts of the locals that may hold a failure.
    results: BTreeSet<u32>,
    found: Vec<Diagnostic>,
}

impl UnusedNames {
    fn is_unused(&self, name: &Name) -> bool {
        !is_ignored(name.as_str()) && !self.used.contains(&name.span.start)
    }

    /// Reports a local, which an underscore marks as deliberately unused.
    fn local(&mut self, name: &Name) {
        if self.is_unused(name) && self.results.contains(&name.span.start) {
            let message = format!("a failure in `{name}` is not handled");
            let diagnostic = Diagnostic::new(Code::UnhandledFailure, message)
                .at(name.span, "holds a `Result` that nothing reads")
                .hint("end the value with `?` or handle it with `else { … }`; to ignore a failure, name it `_`");
            self.found.push(diagnostic);
        } else if self.is_unused(name) {
            let hint = format!("if it is not needed, name it `_{name}`");
            self.found.push(unused(name, "local name").suggest(hint, name.span, format!("_{name}")));
        }
    }

    /// Reports `Post { title }` in a pattern. The field keeps its name.
    fn shorthand(&mut self, name: &Name, span: Span) {
        if self.is_unused(name) {
            let hint = "if the field is not needed, match it with `_`";
            self.found.push(unused(name, "local name").suggest(hint, span, format!("{name}: _")));
        }
    }

    /// Reports a parameter of a `fn`. Its name belongs to the signature: calls may name it.
    fn parameter_of_fn(&mut self, parameter: &Parameter) {
        let name = &parameter.name;
        if self.is_unused(name) {
            self.found.push(unused(name, "parameter").hint(format!("remove it, or name it `_{name}`")));
        }
    }

    /// Reports the parameters of a route. Those in the path are part of the address, and `session_names` are read by the
    /// session key of the service.
    fn route(&mut self, route: &Route, session_names: &BTreeSet<&str>) {
        let others = route.parameters.iter().filter(|parameter| parameter.place != ParameterLocation::Path);
        for parameter in others {
            let name = &parameter.parameter.name;
            if self.is_unused(name) && !session_names.contains(name.as_str()) {
                self.found.push(unused(name, "parameter").hint("remove it: the route then ignores this part"));
            }
        }
    }

    fn service(&mut self, service: &Service) {
        let mut names = NamesIn::default();
        service.session().iter().for_each(|session| names.expr(&session.value));
        service.routes().for_each(|route| self.route(route, &names.0));
    }
}

impl<'a> Visitor<'a> for UnusedNames {
    fn item(&mut self, item: &'a Item) {
        match &item.kind {
            ItemKind::Function(function) => function.parameters.iter().for_each(|taken| self.parameter_of_fn(taken)),
            ItemKind::Service(service) => self.service(service),
            _ => {}
        }
        walk_item(self, item);
    }

    fn statement(&mut self, statement: &'a Statement) {
        if let StatementKind::Let(binding) = &statement.kind
            && let Some(failure) = binding.otherwise.as_ref().and_then(|otherwise| otherwise.failure.as_ref())
        {
            self.local(failure);
        }
        walk_statement(self, statement);
    }

    fn expr(&mut self, expr: &'a Expr) {
        if let ExprKind::Else { failure: Some(failure), .. } = &expr.kind {
            self.local(failure);
        }
        walk_expr(self, expr);
    }

    fn failure_handler(&mut self, handler: &'a FailureHandler) {
        handler.failure.iter().for_each(|failure| self.local(failure));
        walk_failure_handler(self, handler);
    }

    fn pattern(&mut self, pattern: &'a Pattern) {
        match &pattern.kind {
            PatternKind::Bind(name) => self.local(name),
            PatternKind::Record { fields, .. } => fields.iter().for_each(|field| match field.shorthand {
                true => self.shorthand(&field.name, field.span),
                false => self.pattern(&field.pattern),
            }),
            // The names of the first alternative stand for those of all.
            PatternKind::Or(alternatives) => alternatives.iter().take(1).for_each(|first| self.pattern(first)),
            _ => walk_pattern(self, pattern),
        }
    }
}

/// The names that an expression contains.
#[derive(Default)]
struct NamesIn<'a>(BTreeSet<&'a str>);

impl<'a> Visitor<'a> for NamesIn<'a> {
    fn expr(&mut self, expr: &'a Expr) {
        if let ExprKind::Name(name) = &expr.kind {
            self.0.insert(name.as_str());
        }
        walk_expr(self, expr);
    }
}

fn unused(name: &Name, kind: &str) -> Diagnostic {
    Diagnostic::new(Code::UnusedName, format!("the {kind} `{name}` is never used")).at(name.span, "never read")
}
