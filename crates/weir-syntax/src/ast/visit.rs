//! Traversal of a tree: a [`Visitor`] sees every node in source order, parents before children.
//!
//! An overridden method sees its node, and visits the children by calling the `walk_` function of the same name.

use super::{
    Argument, Block, Expr, ExprKind, FailureHandler, Item, ItemKind, Parameter, Pattern, PatternKind, ServiceMember,
    ServiceMemberKind, Statement, StatementKind, TableClauseKind, TableDeclaration, TextPart, Tree, Type, TypeKind,
};

/// A traversal with one method for each kind of node. The default methods visit the children.
pub trait Visitor<'a> {
    /// Visits an item.
    fn item(&mut self, item: &'a Item) {
        walk_item(self, item);
    }
    /// Visits a block.
    fn block(&mut self, block: &'a Block) {
        walk_block(self, block);
    }
    /// Visits a statement.
    fn statement(&mut self, statement: &'a Statement) {
        walk_statement(self, statement);
    }
    /// An expression.
    fn expr(&mut self, expr: &'a Expr) {
        walk_expr(self, expr);
    }
    /// A pattern.
    fn pattern(&mut self, pattern: &'a Pattern) {
        walk_pattern(self, pattern);
    }
    /// A type expression.
    fn ty(&mut self, ty: &'a Type) {
        walk_type(self, ty);
    }
    /// Visits a parameter of a `fn` or a route.
    fn parameter(&mut self, parameter: &'a Parameter) {
        walk_parameter(self, parameter);
    }
    /// Visits a failure handler.
    fn failure_handler(&mut self, handler: &'a FailureHandler) {
        walk_failure_handler(self, handler);
    }
}

/// Visits the patterns and the body of a failure handler.
pub fn walk_failure_handler<'a, V: Visitor<'a> + ?Sized>(visitor: &mut V, handler: &'a FailureHandler) {
    handler.arguments.iter().for_each(|argument| visitor.pattern(argument));
    visitor.block(&handler.body);
}

/// Visits all items of a file.
pub fn walk_tree<'a, V: Visitor<'a> + ?Sized>(visitor: &mut V, tree: &'a Tree) {
    tree.items.iter().for_each(|item| visitor.item(item));
}

/// Visits the children of an item.
pub fn walk_item<'a, V: Visitor<'a> + ?Sized>(visitor: &mut V, item: &'a Item) {
    match &item.kind {
        ItemKind::Use(_) | ItemKind::Library(_) | ItemKind::Constraint(_) => {}
        ItemKind::Shared(shared) => {
            shared.ty.iter().for_each(|ty| visitor.ty(ty));
            visitor.expr(&shared.value);
        }
        ItemKind::Table(table) => walk_table(visitor, table),
        ItemKind::Config(config) => {
            visitor.ty(&config.ty);
            config.default.iter().for_each(|default| visitor.expr(default));
        }
        ItemKind::Constant(constant) => {
            constant.ty.iter().for_each(|ty| visitor.ty(ty));
            visitor.expr(&constant.value);
        }
        ItemKind::Alias(alias) => visitor.ty(&alias.ty),
        ItemKind::Record(record) => record.fields.iter().for_each(|field| {
            visitor.ty(&field.ty);
            field.default.iter().for_each(|default| visitor.expr(default));
        }),
        ItemKind::Enum(declaration) => {
            let payloads = declaration.variants.iter().flat_map(|variant| &variant.payload);
            payloads.for_each(|field| visitor.ty(&field.ty));
        }
        ItemKind::Function(function) => {
            function.parameters.iter().for_each(|parameter| visitor.parameter(parameter));
            function.returns.iter().for_each(|ty| visitor.ty(ty));
            visitor.block(&function.body);
        }
        ItemKind::Service(service) => {
            walk_arguments(visitor, &service.arguments);
            service.members.iter().for_each(|member| walk_member(visitor, member));
        }
        ItemKind::Entry(entry) => {
            visitor.pattern(&entry.pattern);
            visitor.expr(&entry.source);
            entry.session.iter().for_each(|session| visitor.expr(&session.value));
            visitor.block(&entry.body);
            entry.end.iter().for_each(|end| visitor.block(end));
        }
        ItemKind::FailureHandler(handler) => visitor.failure_handler(handler),
        ItemKind::Test(test) => visitor.block(&test.body),
    }
}

fn walk_table<'a, V: Visitor<'a> + ?Sized>(visitor: &mut V, table: &'a TableDeclaration) {
    visitor.ty(&table.row);
    for clause in &table.clauses {
        if let TableClauseKind::Default(arguments)
        | TableClauseKind::Soft(arguments)
        | TableClauseKind::Existing(arguments) = &clause.kind
        {
            walk_arguments(visitor, arguments);
        }
        if let TableClauseKind::Migrate { old, .. } = &clause.kind {
            visitor.ty(old);
        }
    }
}

fn walk_member<'a, V: Visitor<'a> + ?Sized>(visitor: &mut V, member: &'a ServiceMember) {
    match &member.kind {
        ServiceMemberKind::Session(session) => visitor.expr(&session.value),
        ServiceMemberKind::FailureHandler(handler) => visitor.failure_handler(handler),
        ServiceMemberKind::Before(before) => {
            before.parameters.iter().for_each(|parameter| visitor.parameter(&parameter.parameter));
            visitor.block(&before.body);
        }
        ServiceMemberKind::Route(route) => {
            route.parameters.iter().for_each(|parameter| visitor.parameter(&parameter.parameter));
            route.session.iter().for_each(|session| visitor.expr(&session.value));
            visitor.block(&route.body);
        }
    }
}

fn walk_arguments<'a, V: Visitor<'a> + ?Sized>(visitor: &mut V, arguments: &'a [Argument]) {
    arguments.iter().for_each(|argument| visitor.expr(&argument.value));
}

/// Visits the type and the default of a parameter.
pub fn walk_parameter<'a, V: Visitor<'a> + ?Sized>(visitor: &mut V, parameter: &'a Parameter) {
    visitor.ty(&parameter.ty);
    parameter.default.iter().for_each(|default| visitor.expr(default));
}

/// Visits the statements of a block.
pub fn walk_block<'a, V: Visitor<'a> + ?Sized>(visitor: &mut V, block: &'a Block) {
    block.statements.iter().for_each(|statement| visitor.statement(statement));
}

/// Visits the children of a statement.
pub fn walk_statement<'a, V: Visitor<'a> + ?Sized>(visitor: &mut V, statement: &'a Statement) {
    match &statement.kind {
        StatementKind::Let(binding) => {
            visitor.pattern(&binding.pattern);
            binding.ty.iter().for_each(|ty| visitor.ty(ty));
            visitor.expr(&binding.value);
            binding.otherwise.iter().for_each(|otherwise| visitor.expr(&otherwise.body));
        }
        StatementKind::Expr(expr) | StatementKind::Expect(expr) => visitor.expr(expr),
        StatementKind::FailureHandler(handler) => visitor.failure_handler(handler),
    }
}

/// Visits the children of an expression.
pub fn walk_expr<'a, V: Visitor<'a> + ?Sized>(visitor: &mut V, expr: &'a Expr) {
    match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Name(_) | ExprKind::Error => {}
        ExprKind::Text(text) | ExprKind::Html(text) => text.parts.iter().for_each(|part| match part {
            TextPart::Literal { .. } => {}
            TextPart::Expr(expr) => visitor.expr(expr),
        }),
        ExprKind::Field { object, .. } | ExprKind::TupleIndex { object, .. } => visitor.expr(object),
        ExprKind::Index { object, index } => {
            visitor.expr(object);
            visitor.expr(index);
        }
        ExprKind::Call { function, arguments } => {
            visitor.expr(function);
            walk_arguments(visitor, arguments);
        }
        ExprKind::Pipe { value, function, arguments } => {
            visitor.expr(value);
            visitor.expr(function);
            walk_arguments(visitor, arguments);
        }
        ExprKind::Unary { operand, .. } => visitor.expr(operand),
        ExprKind::Binary { left, right, .. } => {
            visitor.expr(left);
            visitor.expr(right);
        }
        ExprKind::Formatted { value, .. } => visitor.expr(value),
        ExprKind::Try(value) => visitor.expr(value),
        ExprKind::Else { value, otherwise, .. } => {
            visitor.expr(value);
            visitor.expr(otherwise);
        }
        ExprKind::Within { value, limit } => {
            visitor.expr(value);
            visitor.expr(limit);
        }
        ExprKind::Return(value) => value.iter().for_each(|value| visitor.expr(value)),
        ExprKind::Tuple(values) | ExprKind::List(values) | ExprKind::Race(values) => {
            values.iter().for_each(|value| visitor.expr(value));
        }
        ExprKind::Map(entries) => entries.iter().for_each(|entry| {
            visitor.expr(&entry.key);
            visitor.expr(&entry.value);
        }),
        ExprKind::Record { base, fields, .. } => {
            base.iter().for_each(|base| visitor.expr(base));
            fields.iter().for_each(|field| visitor.expr(&field.value));
        }
        _ => walk_control(visitor, expr),
    }
}

fn walk_control<'a, V: Visitor<'a> + ?Sized>(visitor: &mut V, expr: &'a Expr) {
    match &expr.kind {
        ExprKind::If { condition, then, otherwise } => {
            visitor.expr(condition);
            visitor.block(then);
            otherwise.iter().for_each(|otherwise| visitor.expr(otherwise));
        }
        ExprKind::Match { value, arms } => {
            visitor.expr(value);
            for arm in arms {
                visitor.pattern(&arm.pattern);
                arm.guard.iter().for_each(|guard| visitor.expr(guard));
                visitor.expr(&arm.body);
            }
        }
        ExprKind::For { pattern, items, query, body } => {
            visitor.pattern(pattern);
            visitor.expr(items);
            query.exprs().for_each(|expr| visitor.expr(expr));
            visitor.block(body);
        }
        ExprKind::Fold { accumulator, initial, pattern, items, body } => {
            visitor.pattern(accumulator);
            visitor.expr(initial);
            visitor.pattern(pattern);
            visitor.expr(items);
            visitor.block(body);
        }
        ExprKind::Loop { state, initial, body, until, at_most } => {
            visitor.pattern(state);
            visitor.expr(initial);
            visitor.block(body);
            visitor.expr(until);
            visitor.expr(at_most);
        }
        ExprKind::Block(body) | ExprKind::Atomic { body, .. } => visitor.block(body),
        ExprKind::Retry { arguments, body } => {
            walk_arguments(visitor, arguments);
            visitor.block(body);
        }
        ExprKind::Closure { parameters, body } => {
            for parameter in parameters {
                visitor.pattern(&parameter.pattern);
                parameter.ty.iter().for_each(|ty| visitor.ty(ty));
            }
            visitor.expr(body);
        }
        ExprKind::With { replacements, body } => {
            replacements.iter().for_each(|replacement| visitor.expr(&replacement.value));
            visitor.block(body);
        }
        _ => {}
    }
}

/// Visits the children of a pattern.
pub fn walk_pattern<'a, V: Visitor<'a> + ?Sized>(visitor: &mut V, pattern: &'a Pattern) {
    match &pattern.kind {
        PatternKind::Variant { arguments, .. } => {
            arguments.iter().for_each(|argument| visitor.pattern(&argument.pattern));
        }
        PatternKind::Record { fields, .. } => fields.iter().for_each(|field| visitor.pattern(&field.pattern)),
        PatternKind::Tuple(patterns) | PatternKind::Or(patterns) => {
            patterns.iter().for_each(|pattern| visitor.pattern(pattern));
        }
        PatternKind::List { before, rest, after } => {
            before.iter().for_each(|pattern| visitor.pattern(pattern));
            rest.iter().flat_map(|rest| &rest.binding).for_each(|binding| visitor.pattern(binding));
            after.iter().for_each(|pattern| visitor.pattern(pattern));
        }
        _ => {}
    }
}

/// Visits the children of a type expression.
pub fn walk_type<'a, V: Visitor<'a> + ?Sized>(visitor: &mut V, ty: &'a Type) {
    match &ty.kind {
        TypeKind::Named { arguments, .. } => arguments.iter().for_each(|argument| visitor.ty(argument)),
        TypeKind::Tuple(types) => types.iter().for_each(|ty| visitor.ty(ty)),
        TypeKind::Function { parameters, returns } => {
            parameters.iter().for_each(|parameter| visitor.ty(parameter));
            returns.iter().for_each(|ty| visitor.ty(ty));
        }
        TypeKind::Error => {}
    }
}
