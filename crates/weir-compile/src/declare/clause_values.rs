//! Values in the clauses of tables: defaults of columns, and the limits of a `soft` table.
//!
//! A value is written in its place, or as that of a `const` of the same file.

use weir_host::{Type, Value};
use weir_syntax::ast::{self, Argument, ExprKind, ItemKind, Name, TableClauseKind};

use super::Declarer;
use crate::constant::constant;
use crate::declarations::{DeclaredTable, SoftLimits, TableColumn};
use crate::symbol::Symbol;

impl<'c> Declarer<'_, 'c> {
    /// Returns the value of the `const` of this file that an expression names, and any other expression itself.
    pub(super) fn meant<'e>(&mut self, value: &'e ast::Expr) -> &'e ast::Expr
    where
        'c: 'e,
    {
        let ExprKind::Name(name) = &value.kind else { return value };
        let tree = self.context.tree();
        let constant = self.context.file_items(self.declarations.file).find_map(|at| match &tree.items[at].kind {
            ItemKind::Constant(constant) if constant.name.text == name.text => Some(constant),
            _ => None,
        });
        let Some(constant) = constant else { return value };
        let whole = self.declarations.own(name.as_str()).into();
        self.declarations.refer(name.span, Symbol::Constant(whole));
        &constant.value
    }

    pub(super) fn defaults(&mut self, arguments: &'c [Argument], declared: &mut DeclaredTable) {
        for (at, argument) in arguments.iter().enumerate() {
            let Some(name) = &argument.name else {
                self.table_fault(argument.span, "a default names its column".to_owned(), "write `column: value`");
                continue;
            };
            if arguments[..at].iter().any(|before| before.name.as_ref().is_some_and(|of| of.as_str() == name.as_str()))
            {
                self.table_fault(argument.span, format!("`{name}` has two defaults"), "remove one of them");
                continue;
            }
            let Some(at) = self.column(name, declared) else { continue };
            let meant = self.meant(&argument.value);
            let column = &declared.columns[at];
            let Some(value) = self.default_of(column, meant) else {
                let (message, hint) = no_default(name, column, constant(meant).as_ref());
                self.table_fault(argument.value.span, message, &hint);
                continue;
            };
            if let Some(what) = not_stored(&value) {
                let message = format!("the default of `{name}` is {what}, which no table stores");
                self.table_fault(argument.value.span, message, "choose another default");
                continue;
            }
            declared.columns[at].default = Some(value);
        }
    }

    /// Returns the constant if it is of the column's type.
    fn default_of(&self, column: &TableColumn, value: &ast::Expr) -> Option<Value> {
        let variant = match &value.kind {
            ExprKind::Name(name) => Some(name.as_str()),
            // `Kind.Small`
            ExprKind::Field { object, name } => match &object.kind {
                ExprKind::Name(of) if column.ty == Type::named(self.declarations.own(of.as_str())) => {
                    Some(name.as_str())
                }
                _ => None,
            },
            _ => None,
        };
        if let Some(tag) = column.variants.iter().position(|known| Some(known.as_str()) == variant)
            && !column.optional
        {
            return Some(Value::Variant(tag as u32, None));
        }
        let value = constant(value)?;
        let fits = match (&value, column.kind) {
            (Value::Variant(Value::NONE, None), _) => column.optional,
            _ if column.optional => false,
            (Value::Bool(_), "Bool") | (Value::Int(_), "Int") | (Value::Text(_), "Text") => true,
            (Value::Duration(_), "Duration") | (Value::Size(_), "Size") => true,
            (Value::Float(value), "Float") => !value.is_nan(),
            _ => false,
        };
        fits.then_some(value)
    }

    /// Reports a default of the number that the table gives to each row.
    pub(super) fn default_of_number(&mut self, table: &ast::TableDeclaration, declared: &mut DeclaredTable) {
        let Some(number) = declared.key.first().filter(|_| declared.auto).map(|at| &mut declared.columns[*at]) else {
            return;
        };
        if number.default.take().is_none() || number.ty != Type::Int {
            return;
        }
        let column = number.name.clone();
        let arguments = table.clauses.iter().filter_map(|clause| match &clause.kind {
            TableClauseKind::Default(arguments) => Some(arguments),
            _ => None,
        });
        let is_of_number = |of: &&Argument| of.name.as_ref().is_some_and(|name| name.as_str() == column.as_str());
        let Some(argument) = arguments.flatten().find(is_of_number) else { return };
        let message = format!("`{column}` is a number that the table gives to the row, and has no default");
        self.table_fault(argument.span, message, "leave it out: each `upsert` names the number of its row");
    }

    pub(super) fn soft(&mut self, arguments: &'c [Argument]) -> SoftLimits {
        let mut limits = SoftLimits::default();
        for (at, argument) in arguments.iter().enumerate() {
            let name = argument.name.as_ref().map_or("", Name::as_str);
            if arguments[..at].iter().any(|before| before.name.as_ref().is_some_and(|of| of.as_str() == name)) {
                let message = format!("`soft` has `{name}` twice");
                self.table_fault(argument.span, message, "remove one of them");
            }
            match (name, constant(self.meant(&argument.value))) {
                ("ttl", Some(Value::Duration(ttl))) if ttl > 0 => limits.ttl = Some(ttl),
                ("at_most", Some(Value::Int(rows))) if rows > 0 => limits.at_most = Some(rows),
                ("capacity", Some(Value::Size(bytes))) if bytes > 0 => limits.capacity = Some(bytes),
                _ => {
                    let message = "`soft` takes `ttl`, a duration, `at_most`, a number of rows, and `capacity`, a size";
                    let hint = "write literals above zero, or name a `const` of this file that is one: \
                                `soft(ttl: 30m, at_most: 100_000, capacity: 64mb)`";
                    self.table_fault(argument.span, message.to_owned(), hint);
                }
            }
        }
        limits
    }
}

/// Describes a value that no table stores.
fn not_stored(value: &Value) -> Option<&'static str> {
    match value {
        Value::Float(number) if number.is_nan() => Some("not a number"),
        Value::Size(size) if *size >= i64::MAX.cast_unsigned() => Some("a size of 2^63 - 1 bytes or more"),
        _ => None,
    }
}

/// Returns the message and the advice for a value that is no default of a column. `value` is that of a constant expression.
fn no_default(name: &Name, column: &TableColumn, value: Option<&Value>) -> (String, String) {
    if column.optional {
        return (
            format!("the only default of an `Option`, such as `{name}`, is `None`"),
            format!("write `{name}: None`"),
        );
    }
    let literal = format!("the default of `{name}` is a literal of the type `{}`", column.ty);
    match (column.variants.first(), column.kind, value) {
        (Some(variant), ..) => (
            format!("the default of `{name}` is a variant of `{}`", column.ty),
            format!("write a variant, such as `{variant}`, or leave the column out"),
        ),
        (None, "Time" | "Bytes", _) => {
            let now = if column.kind == "Time" { "time.now()" } else { "…" };
            let hint = format!(
                "give the value in each `insert`: `{name}: {now}`; for rows that are there, make the column an `Option`, or write a `migrate`"
            );
            (format!("a column of the type `{}` has no default", column.ty), hint)
        }
        (None, "Float", Some(Value::Int(number))) => (literal, format!("write `{number}.0`")),
        (None, ..) => {
            (literal, "write a literal, or name a `const` of this file that is one, or leave the column out".to_owned())
        }
    }
}
