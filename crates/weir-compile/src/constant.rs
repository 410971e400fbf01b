//! Constant expressions: values that are known without running anything.

use weir_host::{Value, Values};
use weir_syntax::ast::{Expr, ExprKind, Literal, LiteralValue, TextLiteral, TextPart, UnaryOperator};

/// Returns the value of a constant expression; `None` if the expression is not constant.
pub(crate) fn constant(expr: &Expr) -> Option<Value> {
    match &expr.kind {
        ExprKind::Literal(literal) => Some(literal_value(literal)),
        ExprKind::Text(text) => text_value(text),
        ExprKind::Name(name) if name.as_str() == "None" => Some(Value::none()),
        ExprKind::Call { function, arguments } => match (&function.kind, &arguments[..]) {
            (ExprKind::Name(name), [argument]) if name.as_str() == "Some" => constant(&argument.value).map(Value::some),
            _ => None,
        },
        ExprKind::Unary { operator: UnaryOperator::Negate, operand } => negated(&constant(operand)?),
        ExprKind::List(elements) => elements.iter().map(constant).collect::<Option<Vec<_>>>().map(Value::list),
        ExprKind::Tuple(elements) if elements.is_empty() => Some(Value::Unit),
        ExprKind::Tuple(elements) => elements.iter().map(constant).collect::<Option<Values>>().map(Value::Record),
        _ => None,
    }
}

fn negated(value: &Value) -> Option<Value> {
    match value {
        Value::Int(value) => value.checked_neg().map(Value::Int),
        Value::Float(value) => Some(Value::Float(-value)),
        Value::Duration(value) => value.checked_neg().map(Value::Duration),
        _ => None,
    }
}

/// Returns the value of a literal.
pub(crate) fn literal_value(literal: &Literal) -> Value {
    match literal.value {
        LiteralValue::Int(value) => Value::Int(value),
        LiteralValue::Float(value) => Value::Float(value),
        LiteralValue::Bool(value) => Value::Bool(value),
        LiteralValue::Size(value) => Value::Size(value),
        LiteralValue::Duration(value) => Value::Duration(i64::try_from(value).unwrap_or(i64::MAX)),
    }
}

fn text_value(text: &TextLiteral) -> Option<Value> {
    let mut whole = String::new();
    for part in &text.parts {
        match part {
            TextPart::Literal { value, .. } => whole.push_str(value),
            TextPart::Expr(_) => return None,
        }
    }
    Some(Value::Text(whole.into()))
}
