//! Outline of a tree: a compact text without source ranges and ids. Two trees mean the same if and only if their
//! outlines are equal.
//!
//! Each node is `(kind part…)`, and each item begins a line. Names are bare, text is quoted. Redundant parentheses and
//! the spelling of numbers and text are left out.

use super::{
    Argument, AtomicResource, Block, ConstraintBinding, Docs, Expr, ExprKind, FailureHandler, Item, ItemKind, Literal,
    LiteralValue, Name, Parameter, ParameterLocation, Path, PathPart, Pattern, PatternKind, QueryClauses, QueryOrder,
    Route, RouteParameter, Service, ServiceMember, ServiceMemberKind, Session, Statement, StatementKind, TableClause,
    TableClauseKind, TableDeclaration, TextLiteral, TextPart, Tree, Type, TypeKind, UsedModule,
};
use std::fmt::{Display, Write as _};

/// Returns the outline of a file.
#[must_use]
pub fn outline(tree: &Tree) -> String {
    let mut out = docs(&tree.docs);
    for each in &tree.items {
        _ = writeln!(out, "{}", item(each));
    }
    out
}

/// Returns the outline of an expression.
#[must_use]
pub fn outline_expr(value: &Expr) -> String {
    expr(value)
}

fn docs(docs: &Docs) -> String {
    docs.lines.iter().fold(String::new(), |out, line| format!("{out}(doc {:?})\n", line.text))
}

/// Writes `(kind part part…)`, leaving out empty parts.
fn node<P: AsRef<str>>(kind: impl Display, parts: impl IntoIterator<Item = P>) -> String {
    let mut out = format!("({kind}");
    for part in parts.into_iter().filter(|part| !part.as_ref().is_empty()) {
        out.push_str(if part.as_ref().starts_with('\n') { "" } else { " " });
        out.push_str(part.as_ref());
    }
    out.push(')');
    out
}

fn each<T>(items: &[T], outline: impl Fn(&T) -> String) -> String {
    let outlines: Vec<String> = items.iter().map(outline).collect();
    outlines.join(" ")
}

/// Like [`each`], but puts each of several outlines on a line of its own.
fn lines<T>(items: &[T], outline: impl Fn(&T) -> String) -> String {
    if items.len() < 2 {
        return each(items, outline);
    }
    items.iter().map(|item| format!("\n  {}", outline(item).replace('\n', "\n  "))).collect()
}

fn maybe<T>(item: Option<&T>, outline: impl Fn(&T) -> String) -> String {
    item.map(outline).unwrap_or_default()
}

fn word(name: &Name) -> String {
    if name.is_missing() { "<missing>".to_owned() } else { name.to_string() }
}

fn module_path(module: &UsedModule) -> String {
    module.folders.iter().chain([&module.name]).map(word).collect::<Vec<_>>().join(".")
}

fn names(path: &Path) -> String {
    path.names.iter().map(word).collect::<Vec<_>>().join(".")
}

fn labelled(name: Option<&Name>, value: String) -> String {
    match name {
        Some(name) => format!("{}: {value}", word(name)),
        None => value,
    }
}

fn item(item: &Item) -> String {
    let public = if item.public.is_some() { "pub " } else { "" };
    let body = match &item.kind {
        ItemKind::Use(used) => node(
            "use",
            used.modules.iter().map(|module| match &module.alias {
                Some(alias) => format!("{}=>{}", module_path(module), word(alias)),
                None => module_path(module),
            }),
        ),
        ItemKind::Library(library) => node("library", [word(&library.name), format!("{:?}", library.path)]),
        ItemKind::Shared(shared) => {
            let scope = if shared.per_session { "/session" } else { "" };
            node("shared", [word(&shared.name) + scope, maybe(shared.ty.as_ref(), ty), expr(&shared.value)])
        }
        ItemKind::Constraint(constraint) => {
            let scope = if constraint.per_session { "/session" } else { "" };
            let binding = |it: &ConstraintBinding| names(&it.path) + if it.read { "/read" } else { "" };
            node("constraint", [word(&constraint.name) + scope, each(&constraint.bindings, binding)])
        }
        ItemKind::Table(it) => table(it),
        ItemKind::Config(config) => {
            let word_of = if config.secret { "secret" } else { "config" };
            node(word_of, [word(&config.name), ty(&config.ty), maybe(config.default.as_ref(), expr)])
        }
        ItemKind::Constant(it) => node("const", [word(&it.name), maybe(it.ty.as_ref(), ty), expr(&it.value)]),
        ItemKind::Alias(alias) => node("type", [word(&alias.name), ty(&alias.ty)]),
        ItemKind::Record(record) => {
            let field = |field: &super::FieldDeclaration| {
                let typed = labelled(Some(&field.name), ty(&field.ty)) + &external(field.external.as_ref());
                docs(&field.docs)
                    + &typed
                    + &field.default.as_ref().map_or(String::new(), |it| format!("={}", expr(it)))
            };
            node("record", [word(&record.name), lines(&record.fields, field)])
        }
        ItemKind::Enum(declaration) => node("enum", [word(&declaration.name), lines(&declaration.variants, variant)]),
        ItemKind::Function(function) => {
            let returns = maybe(function.returns.as_ref(), |returns| format!("-> {}", ty(returns)));
            let parameters = each(&function.parameters, parameter);
            node("fn", [word(&function.name), parameters, returns, block(&function.body)])
        }
        ItemKind::Service(it) => service(it),
        ItemKind::Entry(entry) => {
            let session = maybe(entry.session.as_ref(), session_outline);
            let end = maybe(entry.end.as_ref(), |end| node("at end", [block(end)]));
            node("entry", [pattern(&entry.pattern), expr(&entry.source), session, block(&entry.body), end])
        }
        ItemKind::FailureHandler(it) => handler(it),
        ItemKind::Test(test) => node("test", [format!("{:?}", test.name), block(&test.body)]),
    };
    docs(&item.docs) + public + &body
}

fn external(name: Option<&super::ExternalName>) -> String {
    name.map_or(String::new(), |name| format!(" as {:?}", name.text))
}

fn table(table: &TableDeclaration) -> String {
    let clause = |clause: &TableClause| {
        let parts = match &clause.kind {
            TableClauseKind::Key { columns, auto } => each(columns, word) + if auto.is_some() { " auto" } else { "" },
            TableClauseKind::Index(columns) | TableClauseKind::Unique(columns) => each(columns, word),
            TableClauseKind::References { columns, table, cascade } => {
                each(columns, word) + " : " + &table.to_string() + if cascade.is_some() { " cascade" } else { "" }
            }
            TableClauseKind::Default(arguments)
            | TableClauseKind::Soft(arguments)
            | TableClauseKind::Existing(arguments) => each(arguments, argument),
            TableClauseKind::Migrate { old, change, batched } => {
                ty(old) + " : " + &word(change) + if batched.is_some() { " batched" } else { "" }
            }
        };
        node(clause.kind.word(), [parts])
    };
    node("table", [word(&table.name), ty(&table.row), each(&table.clauses, clause)])
}

/// Outlines the clauses of a query; an empty text if there is none.
fn query(query: &QueryClauses) -> String {
    if query.is_empty() {
        return String::new();
    }
    let key = |key: &QueryOrder| expr(&key.value) + if key.descending { " desc" } else { "" };
    let order = if query.order.is_empty() { String::new() } else { node("order", [each(&query.order, key)]) };
    let condition = maybe(query.condition.as_ref(), |condition| node("if", [expr(condition)]));
    let limit = maybe(query.limit.as_ref(), |limit| node("limit", [expr(limit)]));
    node("query", [condition, order, limit, maybe(query.after.as_ref(), |after| node("after", [expr(after)]))])
}

fn variant(variant: &super::Variant) -> String {
    let field = |field: &super::PayloadField| labelled(field.name.as_ref(), ty(&field.ty));
    let name = word(&variant.name) + &external(variant.external.as_ref());
    docs(&variant.docs) + &node(name, [each(&variant.payload, field)])
}

fn parameter(parameter: &Parameter) -> String {
    let default = maybe(parameter.default.as_ref(), |default| format!("= {}", expr(default)));
    node(word(&parameter.name), [ty(&parameter.ty), default])
}

fn service(service: &Service) -> String {
    let arguments = each(&service.arguments, argument);
    let members = lines(&service.members, member_outline);
    node("service", [word(&service.name), node(word(&service.transport), [arguments]), members])
}

fn member_outline(member: &ServiceMember) -> String {
    let body = match &member.kind {
        ServiceMemberKind::Session(session) => session_outline(session),
        ServiceMemberKind::FailureHandler(it) => handler(it),
        ServiceMemberKind::Before(it) => node("before", [route_parameters(&it.parameters), block(&it.body)]),
        ServiceMemberKind::Route(it) => route(it),
    };
    docs(&member.docs) + &body
}

fn session_outline(session: &Session) -> String {
    node("session", [expr(&session.value)])
}

fn route(route: &Route) -> String {
    let part = |part: &PathPart| match part {
        PathPart::Literal(text) => format!("{text:?}"),
        PathPart::Parameter(name) => format!("{{{name}}}"),
        PathPart::Rest(name) => format!("{{{name}..}}"),
    };
    let path = node("path", [each(&route.path.parts, part)]);
    let parameters = route_parameters(&route.parameters);
    let session = maybe(route.session.as_ref(), session_outline);
    node(route.method.word(), [path, parameters, session, block(&route.body)])
}

fn route_parameters(parameters: &[RouteParameter]) -> String {
    each(parameters, |each| {
        let place = match each.place {
            ParameterLocation::Path => "path",
            ParameterLocation::Query => "query",
            ParameterLocation::Body => "body",
            ParameterLocation::Header => "header",
            ParameterLocation::Cookie => "cookie",
            ParameterLocation::UnprefixedCookie => "unprefixed-cookie",
            ParameterLocation::EncryptedCookie => "encrypted-cookie",
            ParameterLocation::Form => "form",
        };
        format!("{place}:{}", parameter(&each.parameter))
    })
}

fn handler(handler: &FailureHandler) -> String {
    let failure = maybe(handler.failure.as_ref(), |name| format!("as {}", word(name)));
    let arguments = each(&handler.arguments, pattern);
    node("on-failure", [names(&handler.function), arguments, failure, block(&handler.body)])
}

fn ty(ty_: &Type) -> String {
    match &ty_.kind {
        TypeKind::Named { path, arguments } if arguments.is_empty() => names(path),
        TypeKind::Named { path, arguments } => format!("{}({})", names(path), each(arguments, ty)),
        TypeKind::Tuple(types) => node("tuple", [each(types, ty)]),
        TypeKind::Function { parameters, returns } => {
            let returns = maybe(returns.as_deref(), |returns| format!("-> {}", ty(returns)));
            node("fn", [each(parameters, ty), returns])
        }
        TypeKind::Error => "<error>".to_owned(),
    }
}

fn pattern(it: &Pattern) -> String {
    match &it.kind {
        PatternKind::Wildcard => "_".to_owned(),
        PatternKind::Bind(name) => word(name),
        PatternKind::Literal(it) => literal(it),
        PatternKind::Text { value, .. } => format!("{value:?}"),
        PatternKind::Range { low, high, inclusive } => {
            let dots = if *inclusive { "..=" } else { ".." };
            format!("{}{dots}{}", maybe(low.as_ref(), literal), maybe(high.as_ref(), literal))
        }
        PatternKind::Variant { path, arguments } => {
            let argument = |it: &super::PatternArgument| labelled(it.name.as_ref(), pattern(&it.pattern));
            node(names(path), [each(arguments, argument)])
        }
        PatternKind::Record { path, fields, rest } => {
            let field = |it: &super::FieldPattern| labelled(Some(&it.name), pattern(&it.pattern));
            let rest = maybe(rest.as_ref(), |_| "..".to_owned());
            node(format!("record {}", names(path)), [each(fields, field), rest])
        }
        PatternKind::Tuple(patterns) => node("tuple", [each(patterns, pattern)]),
        PatternKind::List { before, rest, after } => {
            let rest = maybe(rest.as_ref(), |rest| format!("..{}", maybe(rest.binding.as_deref(), pattern)));
            node("list", [each(before, pattern), rest, each(after, pattern)])
        }
        PatternKind::Or(patterns) => node("or", [each(patterns, pattern)]),
        PatternKind::Error => "<error>".to_owned(),
    }
}

fn literal(literal: &Literal) -> String {
    match literal.value {
        LiteralValue::Int(value) => value.to_string(),
        LiteralValue::Float(value) => format!("{value:?}"),
        LiteralValue::Bool(value) => value.to_string(),
        LiteralValue::Size(value) => format!("{value}B"),
        LiteralValue::Duration(value) => format!("{value}ns"),
    }
}

fn block(block: &Block) -> String {
    node("do", [lines(&block.statements, statement)])
}

fn statement(statement: &Statement) -> String {
    match &statement.kind {
        StatementKind::Let(it) => {
            let otherwise = maybe(it.otherwise.as_ref(), |it| otherwise(it.failure.as_ref(), &it.body));
            node("let", [pattern(&it.pattern), maybe(it.ty.as_ref(), ty), expr(&it.value), otherwise])
        }
        StatementKind::Expr(it) => expr(it),
        StatementKind::Expect(it) => node("expect", [expr(it)]),
        StatementKind::FailureHandler(it) => handler(it),
    }
}

fn otherwise(failure: Option<&Name>, body: &Expr) -> String {
    node("else", [maybe(failure, |name| format!("as {}", word(name))), expr(body)])
}

fn argument(argument: &Argument) -> String {
    labelled(argument.name.as_ref(), expr(&argument.value))
}

fn text_literal(name: &str, text: &TextLiteral) -> String {
    node(
        name,
        text.parts.iter().map(|part| match part {
            TextPart::Literal { value, .. } => format!("{value:?}"),
            TextPart::Expr(it) => expr(it),
        }),
    )
}

fn expr(it: &Expr) -> String {
    match &it.kind {
        ExprKind::Literal(it) => literal(it),
        ExprKind::Text(text) => text_literal("text", text),
        ExprKind::Html(text) => text_literal("html", text),
        ExprKind::Name(name) => word(name),
        ExprKind::Field { object, name } => node(".", [expr(object), word(name)]),
        ExprKind::TupleIndex { object, index, .. } => node(".", [expr(object), index.to_string()]),
        ExprKind::Index { object, index } => node("index", [expr(object), expr(index)]),
        ExprKind::Call { function, arguments } => node("call", [expr(function), each(arguments, argument)]),
        ExprKind::Pipe { value, function, arguments } => {
            node("|>", [expr(value), expr(function), each(arguments, argument)])
        }
        ExprKind::Unary { operator, operand } => node(operator.symbol(), [expr(operand)]),
        ExprKind::Binary { operator, left, right, .. } => node(operator.symbol(), [expr(left), expr(right)]),
        ExprKind::Formatted { value, format, .. } => node("format", [expr(value), format.to_string()]),
        ExprKind::Try(value) => node("?", [expr(value)]),
        ExprKind::Else { value, failure, otherwise: body } => {
            node("or-else", [expr(value), otherwise(failure.as_ref(), body)])
        }
        ExprKind::Within { value, limit } => node("within", [expr(value), expr(limit)]),
        ExprKind::Return(value) => node("return", [maybe(value.as_deref(), expr)]),
        ExprKind::Tuple(values) => node("tuple", [each(values, expr)]),
        ExprKind::List(values) => node("list", [each(values, expr)]),
        ExprKind::Map(entries) => {
            node("map", [each(entries, |entry| format!("{} => {}", expr(&entry.key), expr(&entry.value)))])
        }
        ExprKind::Record { path, base, fields } => {
            let base = maybe(base.as_deref(), |base| format!("..{}", expr(base)));
            let field = |field: &super::FieldValue| labelled(Some(&field.name), expr(&field.value));
            node(format!("record {}", names(path)), [base, each(fields, field)])
        }
        ExprKind::Error => "<error>".to_owned(),
        _ => control(it),
    }
}

fn control(it: &Expr) -> String {
    match &it.kind {
        ExprKind::If { condition, then, otherwise } => {
            node("if", [expr(condition), block(then), maybe(otherwise.as_deref(), expr)])
        }
        ExprKind::Match { value, arms } => {
            let arm = |arm: &super::Arm| {
                let guard = maybe(arm.guard.as_ref(), |guard| format!("if {}", expr(guard)));
                node("case", [pattern(&arm.pattern), guard, expr(&arm.body)])
            };
            node("match", [expr(value), lines(arms, arm)])
        }
        ExprKind::For { pattern: bound, items, query: clauses, body } => {
            node("for", [pattern(bound), expr(items), query(clauses), block(body)])
        }
        ExprKind::Fold { accumulator, initial, pattern: bound, items, body } => {
            node("fold", [pattern(accumulator), expr(initial), pattern(bound), expr(items), block(body)])
        }
        ExprKind::Loop { state, initial, body, until, at_most } => {
            node("loop", [pattern(state), expr(initial), block(body), expr(until), expr(at_most)])
        }
        ExprKind::Block(body) => block(body),
        ExprKind::Atomic { resources, body } => {
            let resource = |it: &AtomicResource| {
                let scope = if it.per_session { "/session" } else { "" };
                it.path.to_string() + if it.read.is_some() { "/read" } else { "" } + scope
            };
            node("atomic", [each(resources, resource), block(body)])
        }
        ExprKind::Race(values) => node("race", [each(values, expr)]),
        ExprKind::Retry { arguments, body } => node("retry", [each(arguments, argument), block(body)]),
        ExprKind::Closure { parameters, body } => {
            let parameter = |it: &super::ClosureParameter| node("", [pattern(&it.pattern), maybe(it.ty.as_ref(), ty)]);
            node("closure", [each(parameters, parameter), expr(body)])
        }
        ExprKind::With { replacements, body } => {
            let replacement = |it: &super::Replacement| node(names(&it.function), [expr(&it.value)]);
            node("with", [each(replacements, replacement), block(body)])
        }
        _ => String::new(),
    }
}
