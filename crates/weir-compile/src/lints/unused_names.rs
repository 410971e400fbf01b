//! Unused names: warns of locals and parameters that nothing reads.

use std::collections::BTreeSet;
use std::sync::Arc;

use weir_syntax::ast::{
    Expr, ExprKind, FailureHandler, Item, ItemKind, Name, ParameterLocation, Pattern, PatternKind, RouteParameter,
    Service, Statement, StatementKind, TypeKind, Visitor, walk_expr, walk_pattern,
};
use weir_syntax::{Code, Diagnostic, Span};

use super::{is_ignored, used_locals};
use crate::context::CheckContext;
use crate::file_lints::{FileLints, UnusedParameter};
use crate::typed_tree::FileTypes;
use crate::types::Ty;

/// Returns whether a request may leave out the part of a parameter. A required one is a condition, such as that of being logged
/// in, and does its work without being read.
fn is_optional(RouteParameter { place, parameter }: &RouteParameter) -> bool {
    let of_type = |name| matches!(&parameter.ty.kind, TypeKind::Named { path, .. } if path.last().as_str() == name);
    parameter.default.is_some() || of_type("Option") || (*place == ParameterLocation::Query && of_type("List"))
}

/// Returns the warnings of the parameters of `fn`s that nothing reads. The name of a parameter belongs to the signature: one
/// that some call may name cannot be renamed alone. That of a public `fn` may be named by calls in files that are not loaded,
/// if the `fn` is in the first file of the program or in a library.
pub(super) fn unused_parameters(files: &[Arc<FileLints>], context: &CheckContext<'_>) -> Vec<Diagnostic> {
    let is_named = |name: &Name| files.iter().any(|file| file.argument_names.contains(&name.text));
    let has_other_callers = |place: Span| {
        let file = context.files.index_at(place.start);
        file == 0 || context.files.is_of_library(file)
    };
    let warning = |UnusedParameter { name, is_public }: &UnusedParameter| {
        let hint = format!("remove it, or name it `_{name}`");
        match is_named(name) || (*is_public && has_other_callers(name.span)) {
            true => unused(name, "parameter").hint(hint),
            false => unused(name, "parameter").suggest(hint, name.span, format!("_{name}")),
        }
    };
    files.iter().flat_map(|file| &file.unused_parameters).map(warning).collect()
}

/// The warnings of every local and every parameter that is never read.
pub(super) struct UnusedNames<'t> {
    text: &'t str,
    /// The starts of the locals that something reads.
    used: BTreeSet<u32>,
    /// The starts of the locals that may hold a failure.
    results: BTreeSet<u32>,
    /// The names of the arguments of all calls seen so far.
    pub(super) argument_names: BTreeSet<&'t str>,
    /// The parameters of `fn`s that nothing reads.
    pub(super) parameters: Vec<UnusedParameter>,
    /// True in a pattern with alternatives, each of which binds the same names.
    in_alternatives: bool,
    pub(super) found: Vec<Diagnostic>,
}

impl<'t> UnusedNames<'t> {
    pub(super) fn new(text: &'t str, types: &FileTypes) -> Self {
        let results = types.locals.iter().filter(|local| matches!(local.ty, Ty::Result(_)));
        UnusedNames {
            text,
            used: used_locals(types),
            results: results.map(|local| local.span.start).collect(),
            argument_names: BTreeSet::new(),
            parameters: Vec::new(),
            in_alternatives: false,
            found: Vec::new(),
        }
    }

    /// Looks at an item, without its children.
    pub(super) fn parameters_of(&mut self, item: &'t Item) {
        match &item.kind {
            ItemKind::Function(function) => {
                let names = function.parameters.iter().map(|parameter| &parameter.name);
                let unused = names.filter(|name| is_unused(name, &self.used)).cloned();
                let is_public = item.public.is_some();
                self.parameters.extend(unused.map(|name| UnusedParameter { name, is_public }));
            }
            ItemKind::Service(service) => self.service(service),
            _ => {}
        }
    }

    /// Looks at the name of the failure in a statement.
    pub(super) fn failure_of_statement(&mut self, statement: &Statement) {
        if let StatementKind::Let(binding) = &statement.kind
            && let Some(failure) = binding.otherwise.as_ref().and_then(|otherwise| otherwise.failure.as_ref())
        {
            self.local(failure);
        }
    }

    /// Looks at an expression, without its children: the name of a failure, and the names of arguments.
    pub(super) fn names_of_expr(&mut self, expr: &'t Expr) {
        match &expr.kind {
            ExprKind::Else { failure: Some(failure), .. } => self.local(failure),
            ExprKind::Call { arguments, .. } | ExprKind::Pipe { arguments, .. } => {
                let names = arguments.iter().filter_map(|argument| Some(argument.name.as_ref()?.as_str()));
                self.argument_names.extend(names);
            }
            _ => {}
        }
    }

    /// Looks at the name of the failure that a handler handles.
    pub(super) fn failure_of_handler(&mut self, handler: &FailureHandler) {
        handler.failure.iter().for_each(|failure| self.local(failure));
    }

    fn is_unused(&self, name: &Name) -> bool {
        is_unused(name, &self.used)
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

    /// Reports the parameters of a route, or of all routes, that requests may leave out. `session_names` are read by the session
    /// key of the service.
    fn route_parameters(&mut self, parameters: &[RouteParameter], session_names: &BTreeSet<&str>) {
        for (at, parameter) in parameters.iter().enumerate() {
            let name = &parameter.parameter.name;
            let in_session = session_names.contains(name.as_str());
            if is_optional(parameter) && !in_session && self.is_unused(name) {
                let before = at.checked_sub(1).map(|before| parameters[before].parameter.span);
                let removed = with_separator(self.text, parameter.parameter.span, before);
                let hint = "remove it: the route then ignores this part";
                self.found.push(unused(name, "parameter").suggest(hint, removed, ""));
            }
        }
    }

    fn service(&mut self, service: &Service) {
        let mut names = NamesIn::default();
        service.session().iter().for_each(|session| names.expr(&session.value));
        service.befores().for_each(|before| self.route_parameters(&before.parameters, &names.0));
        for route in service.routes() {
            let session_names = if route.session.is_none() { &names.0 } else { &BTreeSet::new() };
            self.route_parameters(&route.parameters, session_names);
        }
    }
}

impl<'a> Visitor<'a> for UnusedNames<'_> {
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

/// Returns whether none of the locals that something reads begins at the name.
fn is_unused(name: &Name, used: &BTreeSet<u32>) -> bool {
    !is_ignored(name.as_str()) && !used.contains(&name.span.start)
}

fn unused(name: &Name, kind: &str) -> Diagnostic {
    Diagnostic::new(Code::UnusedName, format!("the {kind} `{name}` is never used")).at(name.span, "never read")
}
