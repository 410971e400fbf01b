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
    let mut named = ArgumentNames::default();
    walk_tree(&mut named, context.tree());
    let mut search = UnusedNames {
        text: context.text,
        used: used_locals(typed),
        results,
        argument_names: named.0,
        in_alternatives: false,
        found: Vec::new(),
    };
    walk_tree(&mut search, context.tree());
    context.report_all(search.found);
}

struct UnusedNames<'t> {
    text: &'t str,
    /// The starts of the locals that something reads.
    used: BTreeSet<u32>,
    /// The starts of the locals that may hold a failure.
    results: BTreeSet<u32>,
    /// The names of all arguments: a parameter with one of these cannot be renamed alone.
    argument_names: BTreeSet<&'t str>,
    /// True in a pattern with alternatives, each of which binds the same names.
    in_alternatives: bool,
    found: Vec<Diagnostic>,
}

impl UnusedNames<'_> {
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
            self.suggest(unused(name, "local name"), hint, name.span, format!("_{name}"));
        }
    }

    /// Reports `Post { title }` in a pattern. The field keeps its name.
    fn shorthand(&mut self, name: &Name, span: Span) {
        if self.is_unused(name) {
            let hint = "if the field is not needed, match it with `_`".to_owned();
            self.suggest(unused(name, "local name"), hint, span, format!("{name}: _"));
        }
    }

    /// Reports a diagnostic with an edit, unless the other alternatives of the pattern would have to change with it.
    fn suggest(&mut self, diagnostic: Diagnostic, hint: String, span: Span, replacement: String) {
        self.found.push(match self.in_alternatives {
            true => diagnostic.hint(hint),
            false => diagnostic.suggest(hint, span, replacement),
        });
    }

    /// Reports a parameter of a `fn`. Its name belongs to the signature: calls may name it.
    fn parameter_of_fn(&mut self, parameter: &Parameter) {
        let name = &parameter.name;
        if self.is_unused(name) {
            let hint = format!("remove it, or name it `_{name}`");
            self.found.push(match self.argument_names.contains(name.as_str()) {
                true => unused(name, "parameter").hint(hint),
                false => unused(name, "parameter").suggest(hint, name.span, format!("_{name}")),
            });
        }
    }

    /// Reports the parameters of a route. Those in the path are part of the address, and `session_names` are read by the
    /// session key of the service.
    fn route(&mut self, route: &Route, session_names: &BTreeSet<&str>) {
        for (at, parameter) in route.parameters.iter().enumerate() {
            let name = &parameter.parameter.name;
            let is_optional = parameter.place != ParameterLocation::Path && !session_names.contains(name.as_str());
            if is_optional && self.is_unused(name) {
                let before = at.checked_sub(1).map(|before| route.parameters[before].parameter.span);
                let removed = with_separator(self.text, parameter.parameter.span, before);
                let hint = "remove it: the route then ignores this part";
                self.found.push(unused(name, "parameter").suggest(hint, removed, ""));
            }
        }
    }

    fn service(&mut self, service: &Service) {
        let mut names = NamesIn::default();
        service.session().iter().for_each(|session| names.expr(&session.value));
        service.routes().for_each(|route| self.route(route, &names.0));
    }
}

impl<'a> Visitor<'a> for UnusedNames<'_> {
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
            PatternKind::Or(alternatives) => {
                let outer = std::mem::replace(&mut self.in_alternatives, true);
                alternatives.iter().take(1).for_each(|first| self.pattern(first));
                self.in_alternatives = outer;
            }
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

/// The names of the arguments of all calls.
#[derive(Default)]
struct ArgumentNames<'a>(BTreeSet<&'a str>);

impl<'a> Visitor<'a> for ArgumentNames<'a> {
    fn expr(&mut self, expr: &'a Expr) {
        if let ExprKind::Call { arguments, .. } | ExprKind::Pipe { arguments, .. } = &expr.kind {
            self.0.extend(arguments.iter().filter_map(|argument| Some(argument.name.as_ref()?.as_str())));
        }
        walk_expr(self, expr);
    }
}

/// Returns the span of a parameter in parentheses, behind the one `before`, with its keyword and one of its commas.
fn with_separator(text: &str, parameter: Span, before: Option<Span>) -> Span {
    if let Some(before) = before {
        return Span { start: before.end, ..parameter };
    }
    let (head, tail) = (&text[..parameter.start as usize], &text[parameter.end as usize..]);
    let start = head.rfind('(').map_or(parameter.start, |open| open as u32 + 1);
    let behind = tail.trim_start().strip_prefix(',').map_or(tail, str::trim_start);
    Span { start, end: (text.len() - behind.len()) as u32, ..parameter }
}

fn unused(name: &Name, kind: &str) -> Diagnostic {
    Diagnostic::new(Code::UnusedName, format!("the {kind} `{name}` is never used")).at(name.span, "never read")
}
