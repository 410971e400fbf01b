//! Items, services and routes.

use super::comments::{comma_lines, lines, range};
use super::doc::Doc;
use super::statements::BlockLayout;
use super::{SourcePrinter, joined};
use crate::Span;
use crate::ast::{
    Before, Config, Constraint, Docs, Entry, Enum, ExternalName, FailureHandler, FieldDeclaration, Function, Item,
    ItemKind, Parameter, PathPart, PayloadField, Record, Route, RouteParameter, Service, ServiceMember,
    ServiceMemberKind, Session, Shared, Tree, UsedModule, Variant,
};
use crate::parser::escape;
use std::ops::Range;

impl SourcePrinter<'_> {
    /// Prints the `//!` lines, then the items.
    pub(super) fn file(&mut self, tree: &Tree) -> Doc {
        let head = docs(&tree.docs, "//!");
        let region = 0..self.text.len() as u32;
        let mut sequence = self.attach_comments(
            &tree.items,
            region,
            |item| place(&item.docs, item.span),
            |printer, item| printer.item(item),
        );
        for (index, pair) in tree.items.windows(2).enumerate() {
            if is_large(&pair[0]) || is_large(&pair[1]) {
                let next = &mut sequence.elements[index + 1];
                match next.before.first_mut() {
                    Some(comment) => comment.blank_before = true,
                    None => next.blank_before = true,
                }
            }
        }
        let is_alone = sequence.elements.is_empty() && sequence.tail.is_empty();
        let gap = if tree.docs.is_empty() || is_alone { Doc::nothing() } else { Doc::hard_line() };
        Doc::concat([head, gap, lines(sequence, &Doc::hard_line())])
    }

    fn item(&mut self, item: &Item) -> Doc {
        let body = match &item.kind {
            ItemKind::Use(used) => {
                let modules = used.modules.iter().map(used_module).map(Doc::text);
                Doc::text("use ").then(joined(modules, &Doc::text(", ")))
            }
            ItemKind::Library(library) => {
                Doc::text(format!("library {} = \"{}\"", library.name, escape(&library.path)))
            }
            ItemKind::Shared(shared) => self.shared(shared),
            ItemKind::Constraint(declared) => constraint(declared),
            ItemKind::Table(table) => self.table(table),
            ItemKind::Config(config) => self.config(config),
            ItemKind::Constant(constant) => {
                let ty = constant.ty.as_ref().map_or(Doc::nothing(), |ty| Doc::text(": ").then(self.ty(ty)));
                let value = self.expression(&constant.value);
                Doc::concat([Doc::text(format!("const {}", constant.name)), ty, Doc::text(" = "), value])
            }
            ItemKind::Alias(alias) => Doc::text(format!("type {} = ", alias.name)).then(self.ty(&alias.ty)),
            ItemKind::Record(record) => self.record(record, item.span),
            ItemKind::Enum(declaration) => self.enumeration(declaration, item.span),
            ItemKind::Function(function) => self.function(function),
            ItemKind::Service(service) => self.service(service),
            ItemKind::Entry(entry) => self.entry(entry),
            ItemKind::FailureHandler(handler) => self.failure_handler(handler),
            ItemKind::Test(test) => {
                let head = Doc::text(format!("test \"{}\" ", escape(&test.name)));
                head.then(self.block(&test.body))
            }
        };
        let public = if item.public.is_some() { "pub " } else { "" };
        docs(&item.docs, "///").then_text(public).then(body)
    }

    fn shared(&mut self, shared: &Shared) -> Doc {
        let ty = shared.ty.as_ref().map_or(Doc::nothing(), |ty| Doc::text(": ").then(self.ty(ty)));
        Doc::concat([
            Doc::text(format!("shared {}", shared.name)),
            ty,
            Doc::text(" = "),
            self.expression(&shared.value),
            Doc::text(if shared.per_session { " per session" } else { "" }),
        ])
    }

    fn config(&mut self, config: &Config) -> Doc {
        let word = if config.secret { "secret" } else { "config" };
        let default = config.default.as_ref();
        let default = default.map_or(Doc::nothing(), |value| Doc::text(" = ").then(self.expression(value)));
        Doc::concat([Doc::text(format!("{word} {}: ", config.name)), self.ty(&config.ty), default])
    }

    fn record(&mut self, record: &Record, span: Span) -> Doc {
        let region = record.name.span.end..span.end.saturating_sub(1);
        let sequence = self.attach_comments(
            &record.fields,
            region,
            |field| place(&field.docs, field.span),
            Self::field_declaration,
        );
        let layout = BlockLayout::AsWritten(record.name.span.end);
        Doc::text(format!("record {} ", record.name)).then(self.in_braces(sequence, layout))
    }

    fn field_declaration(&mut self, field: &FieldDeclaration) -> Doc {
        let typed = docs(&field.docs, "///").then_text(format!("{}: ", field.name)).then(self.ty(&field.ty));
        let default = field.default.as_ref();
        let default = default.map_or(Doc::nothing(), |value| Doc::text(" = ").then(self.expression(value)));
        Doc::concat([typed, external_name(field.external.as_ref()), default])
    }

    fn enumeration(&mut self, declaration: &Enum, span: Span) -> Doc {
        let region = declaration.name.span.end..span.end.saturating_sub(1);
        let place = |variant: &Variant| place(&variant.docs, variant.span);
        let sequence = self.attach_comments(&declaration.variants, region, place, Self::variant);
        let layout = BlockLayout::AsWritten(declaration.name.span.end);
        Doc::text(format!("enum {} ", declaration.name)).then(self.in_braces(sequence, layout))
    }

    fn variant(&mut self, variant: &Variant) -> Doc {
        let name = docs(&variant.docs, "///").then_text(&*variant.name.text);
        let external = external_name(variant.external.as_ref());
        if variant.payload.is_empty() {
            return name.then(external);
        }
        let behind = variant.external.as_ref().map_or(variant.span.end, |external| external.span.start);
        let region = variant.name.span.end..behind.saturating_sub(1);
        let sequence = self.attach_comments(&variant.payload, region, |field| range(field.span), Self::payload_field);
        Doc::concat([name, in_brackets("(", comma_lines(sequence), ")"), external])
    }

    fn payload_field(&mut self, field: &PayloadField) -> Doc {
        let label = field.name.as_ref().map_or(Doc::nothing(), |name| Doc::text(format!("{name}: ")));
        label.then(self.ty(&field.ty))
    }

    fn function(&mut self, function: &Function) -> Doc {
        let region = function.name.span.end..function.returns.as_ref().map_or(function.body.span, |ty| ty.span).start;
        let sequence =
            self.attach_comments(&function.parameters, region, |parameter| range(parameter.span), Self::parameter);
        let parameters = in_brackets("(", comma_lines(sequence), ")");
        let returns = function.returns.as_ref().map_or(Doc::nothing(), |ty| Doc::text(" -> ").then(self.ty(ty)));
        let head = Doc::text(format!("fn {}", function.name)).then(parameters);
        Doc::concat([head, returns, Doc::text(" "), self.block(&function.body)])
    }

    fn parameter(&mut self, parameter: &Parameter) -> Doc {
        let typed = Doc::text(format!("{}: ", parameter.name)).then(self.ty(&parameter.ty));
        match &parameter.default {
            Some(default) => typed.then_text(" = ").then(self.expression(default)),
            None => typed,
        }
    }

    fn service(&mut self, service: &Service) -> Doc {
        let arguments = match service.arguments.is_empty() {
            true => Doc::nothing(),
            false => self.arguments(&service.arguments, service.transport.span.end..service.braces.start),
        };
        let region = service.braces.start..service.braces.end.saturating_sub(1);
        let place = |member: &ServiceMember| place(&member.docs, member.span);
        let sequence = self.attach_comments(&service.members, region, place, Self::member);
        let body = self.in_braces(sequence, BlockLayout::Broken);
        let head = Doc::text(format!("service {} on {}", service.name, service.transport));
        Doc::concat([head, arguments, Doc::text(" "), body])
    }

    fn member(&mut self, member: &ServiceMember) -> Doc {
        let body = match &member.kind {
            ServiceMemberKind::Session(session) => self.session(session),
            ServiceMemberKind::FailureHandler(handler) => self.failure_handler(handler),
            ServiceMemberKind::Before(before) => self.before(before),
            ServiceMemberKind::Route(route) => self.route(route),
        };
        docs(&member.docs, "///").then(body)
    }

    pub(super) fn session(&mut self, session: &Session) -> Doc {
        Doc::text("session = ").then(self.expression(&session.value))
    }

    fn route(&mut self, route: &Route) -> Doc {
        let path: String = route.path.parts.iter().map(path_part).collect();
        let parameters = self.route_parameters(&route.parameters, route.path.span.end..route.body.span.start);
        let head = Doc::text(format!("{} \"{path}\" ", route.method.word()));
        Doc::concat([head, parameters, self.flow_body(route.session.as_ref(), &route.body)])
    }

    fn before(&mut self, before: &Before) -> Doc {
        let parameters = self.route_parameters(&before.parameters, before.span.start..before.body.span.start);
        Doc::concat([Doc::text("before "), parameters, self.block(&before.body)])
    }

    /// Prints parameters in parentheses, with a space behind them, unless there are none.
    fn route_parameters(&mut self, parameters: &[RouteParameter], region: Range<u32>) -> Doc {
        let place = |each: &RouteParameter| range(each.parameter.span);
        let sequence = self.attach_comments(parameters, region, place, |printer, each| {
            let mark = each.place.mark().map_or_else(String::new, |mark| format!("{mark} "));
            Doc::text(mark).then(printer.parameter(&each.parameter))
        });
        match sequence.elements.is_empty() && sequence.tail.is_empty() {
            true => Doc::nothing(),
            false => in_brackets("(", comma_lines(sequence), ")").then_text(" "),
        }
    }

    fn entry(&mut self, entry: &Entry) -> Doc {
        let pattern = self.pattern(&entry.pattern);
        let head =
            Doc::concat([Doc::text("for "), pattern, Doc::text(" in "), self.head(&entry.source), Doc::text(" ")]);
        let end = entry.end.as_ref().map_or(Doc::nothing(), |end| Doc::text(" at end ").then(self.block(end)));
        Doc::concat([head, self.flow_body(entry.session.as_ref(), &entry.body), end])
    }

    pub(super) fn failure_handler(&mut self, handler: &FailureHandler) -> Doc {
        let failure = handler.failure.as_ref().map_or(String::new(), |name| format!(" as {name}"));
        let mut head = Doc::text(format!("on failure of {}", handler.function));
        for (index, argument) in handler.arguments.iter().enumerate() {
            let before = if index == 0 { "(" } else { ", " };
            head = Doc::concat([head, Doc::text(before), self.pattern(argument)]);
        }
        let close = if handler.arguments.is_empty() { "" } else { ")" };
        Doc::concat([head, Doc::text(format!("{close}{failure} ")), self.block(&handler.body)])
    }
}

fn external_name(name: Option<&ExternalName>) -> Doc {
    name.map_or(Doc::nothing(), |name| Doc::text(format!(" as \"{}\"", escape(&name.text))))
}

/// Returns true if empty lines separate an item from its neighbours.
fn is_large(item: &Item) -> bool {
    use ItemKind as K;
    matches!(item.kind, K::Function(_) | K::Service(_) | K::Entry(_) | K::FailureHandler(_) | K::Test(_))
}

/// Returns the range from the documentation to the end.
pub(super) fn place(docs: &Docs, span: Span) -> Range<u32> {
    docs.lines.first().map_or(span.start, |line| line.span.start)..span.end
}

fn docs(docs: &Docs, marker: &str) -> Doc {
    let lines = docs.lines.iter().map(|line| {
        let space = if line.text.is_empty() { "" } else { " " };
        Doc::text(format!("{marker}{space}{}", line.text)).then(Doc::hard_line())
    });
    Doc::concat(lines)
}

fn constraint(constraint: &Constraint) -> Doc {
    let scope = if constraint.per_session { " per session" } else { "" };
    let head = Doc::text(format!("constraint {}{scope}", constraint.name));
    if constraint.bindings.is_empty() {
        return head;
    }
    let bindings = constraint.bindings.iter().map(|binding| {
        let read = if binding.read { "read " } else { "" };
        Doc::text(format!("{read}{}", binding.path))
    });
    let bindings = joined(bindings, &Doc::text(",").then(Doc::line(" ")));
    head.then_text(" on").then(Doc::line(" ").then(bindings).nest()).group()
}

fn used_module(module: &UsedModule) -> String {
    match &module.alias {
        Some(alias) => format!("{} as {alias}", module.path()),
        None => module.path().to_string(),
    }
}

fn path_part(part: &PathPart) -> String {
    match part {
        PathPart::Literal(text) => escape(text),
        PathPart::Parameter(name) => format!("{{{name}}}"),
        PathPart::Rest(name) => format!("{{{name}..}}"),
    }
}

/// Prints `open`, the indented elements, and `close`; on one line if they fit.
pub(super) fn in_brackets(open: &'static str, elements: Doc, close: &'static str) -> Doc {
    let inner = Doc::line("").then(elements).nest();
    Doc::concat([Doc::text(open), inner, Doc::line(""), Doc::text(close)]).group()
}
