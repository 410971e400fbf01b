//! Constant expressions: values that are known without running anything.
//!
//! They are literals, operators on constants, lists, tuples, maps, variants, records, and the names of constants.
//! [`constant`] evaluates an expression that is not checked yet, and knows literals, operators, lists, tuples and maps;
//! [`TypedTree::constant`] evaluates a checked one, and knows all of them.

use weir_host::{TypeShape, Value, Values};
use weir_ir::prim::Prim;
use weir_syntax::Span;
use weir_syntax::ast::{
    BinaryOperator, Expr, ExprKind, FieldValue, Literal, LiteralValue, MapEntry, TextLiteral, TextPart, UnaryOperator,
};

use crate::typed_tree::{ArgumentSource, CallTarget, Resolution, TypedTree};

/// The maximum number of parts of a constant: characters, bytes, elements and fields, at any depth.
pub(crate) const PARTS_MAX: usize = 10_000;

/// The deepest nesting of a constant, more than source text can write. It becomes a constant of the graph, which is verified
/// and printed by recursion.
pub(crate) const NESTED_MAX: usize = 256;

/// A part of an expression that is not constant, and the reason.
pub(crate) struct NotConstant {
    pub(crate) span: Span,
    /// Empty if the reason has been reported.
    pub(crate) why: String,
}

type ConstantResult = Result<Value, NotConstant>;

/// Returns the value of a constant expression without names; `None` if it is another expression.
pub(crate) fn constant(expr: &Expr) -> Option<Value> {
    value_of(expr, &|_| None).ok()
}

impl TypedTree {
    /// Returns the value of a checked constant expression.
    ///
    /// # Errors
    /// Fails if the expression is not constant, or fails itself.
    pub(crate) fn constant(&self, expr: &Expr) -> ConstantResult {
        value_of(expr, &|part| self.named(part))
    }

    /// Returns the value of an expression whose meaning the checker has resolved; `None` for all others.
    fn named(&self, expr: &Expr) -> Option<ConstantResult> {
        match &expr.kind {
            ExprKind::Name(_) | ExprKind::Field { .. } => match self.resolution(expr.id)? {
                Resolution::Variant(tag) => Some(Ok(Value::Variant(*tag, None))),
                Resolution::Constant(name) => {
                    let value = self.declarations.constants[name].value.clone();
                    Some(value.ok_or_else(|| not_constant(expr, "")))
                }
                _ => None,
            },
            ExprKind::Call { arguments, .. } => {
                let call = self.call(expr.id)?;
                let CallTarget::Variant(tag) = call.target else { return None };
                let payload = call.supplied.iter().map(|supplied| match supplied {
                    ArgumentSource::Argument(at) => self.constant(&arguments[*at].value),
                    _ => Err(not_constant(expr, "not a constant")),
                });
                let payload = payload.collect::<Result<Values, _>>();
                Some(payload.map(|payload| Value::Variant(tag, Some(payload))))
            }
            ExprKind::Record { base: None, fields, .. } => Some(self.record(expr, fields)),
            _ => None,
        }
    }

    fn record(&self, expr: &Expr, given: &[FieldValue]) -> ConstantResult {
        let unknown = || not_constant(expr, "not a constant");
        let name = self.expr_type(expr.id).name().ok_or_else(unknown)?;
        let declared = self.declarations.types.get(name).ok_or_else(unknown)?;
        let TypeShape::Record(fields) = &declared.definition.shape else { return Err(unknown()) };
        let values = fields.iter().map(|field| {
            let given = given.iter().find(|given| given.name.as_str() == field.name.as_str());
            match (given, &field.default) {
                (Some(given), _) => self.constant(&given.value),
                (None, Some(default)) if *default != Value::Absent => Ok(default.clone()),
                (None, _) => Err(not_constant(expr, &format!("the default of `{}` is not known here", field.name))),
            }
        });
        values.collect::<Result<Values, _>>().map(Value::Record)
    }
}

/// Evaluates an expression. `named` returns the values of names and of what contains them.
fn value_of(expr: &Expr, named: &dyn Fn(&Expr) -> Option<ConstantResult>) -> ConstantResult {
    if let Some(value) = named(expr) {
        return value;
    }
    let all = |parts: &[Expr]| parts.iter().map(|part| value_of(part, named)).collect::<Result<Vec<_>, _>>();
    match &expr.kind {
        ExprKind::Literal(literal) => Ok(literal_value(literal)),
        ExprKind::Text(text) => text_value(text).ok_or_else(|| not_constant(expr, "contains a value")),
        ExprKind::Name(name) if name.as_str() == "None" => Ok(Value::none()),
        ExprKind::Call { function, arguments } => match (&function.kind, &arguments[..]) {
            (ExprKind::Name(name), [argument]) if name.as_str() == "Some" => {
                value_of(&argument.value, named).map(Value::some)
            }
            _ => Err(not_constant(expr, "a call is not a constant")),
        },
        ExprKind::Unary { operator, operand } => {
            let prim = if *operator == UnaryOperator::Negate { Prim::Negate } else { Prim::Not };
            applied(expr, prim, &[&value_of(operand, named)?])
        }
        ExprKind::Binary { operator, left, right, .. } => match (operator, value_of(left, named)?) {
            (BinaryOperator::And, Value::Bool(false)) => Ok(Value::Bool(false)),
            (BinaryOperator::Or, Value::Bool(true)) => Ok(Value::Bool(true)),
            (BinaryOperator::And | BinaryOperator::Or, _) => value_of(right, named),
            (_, left) => applied(expr, prim_of(*operator), &[&left, &value_of(right, named)?]),
        },
        ExprKind::List(elements) => all(elements).map(Value::list),
        ExprKind::Map(entries) => {
            let entry = |entry: &MapEntry| Ok((value_of(&entry.key, named)?, value_of(&entry.value, named)?));
            Ok(Value::Map(entries.iter().map(entry).collect::<Result<_, _>>()?))
        }
        ExprKind::Tuple(elements) if elements.is_empty() => Ok(Value::Unit),
        ExprKind::Tuple(elements) => Ok(Value::Record(all(elements)?.into())),
        _ => Err(not_constant(expr, "not a constant")),
    }
}

fn not_constant(expr: &Expr, why: &str) -> NotConstant {
    NotConstant { span: expr.span, why: why.to_owned() }
}

/// Applies an operator to constants of the right types, and bounds the size of the result.
fn applied(expr: &Expr, prim: Prim, operands: &[&Value]) -> ConstantResult {
    if !are_fit(prim, operands) {
        return Err(not_constant(expr, "not a constant"));
    }
    let value = prim.apply(operands).map_err(|failure| not_constant(expr, &format!("fails: {failure}")))?;
    if is_small(&value) {
        return Ok(value);
    }
    Err(too_large(expr))
}

/// Returns the error for a constant that [`is_small`] refuses.
pub(crate) fn too_large(expr: &Expr) -> NotConstant {
    not_constant(expr, &format!("has more than {PARTS_MAX} characters or elements"))
}

/// Returns true if the operator works on values of these types, which `Prim::apply` relies on: the expression may have errors.
fn are_fit(prim: Prim, operands: &[&Value]) -> bool {
    use Value::{Bool, Bytes, Duration, Float, Int, List, Size, Text, Time};
    match operands {
        [Bool(_)] => prim == Prim::Not,
        [Int(_) | Float(_) | Duration(_)] => prim == Prim::Negate,
        [Int(_), Int(_)] | [Float(_), Float(_)] => !matches!(prim, Prim::Not | Prim::Negate),
        [Duration(_), Duration(_)] | [Size(_), Size(_)] => !matches!(prim, Prim::Multiply | Prim::Remainder),
        [Int(_), Duration(_) | Size(_)] => prim == Prim::Multiply,
        [Duration(_) | Size(_), Int(_)] => matches!(prim, Prim::Multiply | Prim::Divide),
        [Text(_), Text(_)] => !matches!(prim, Prim::Subtract | Prim::Multiply | Prim::Divide | Prim::Remainder),
        [List(_), List(_)] => matches!(prim, Prim::Add | Prim::Equal | Prim::NotEqual),
        [Bytes(_), Bytes(_)] | [Time(_), Time(_)] => false,
        [left, right] => {
            matches!(prim, Prim::Equal | Prim::NotEqual)
                && std::mem::discriminant(*left) == std::mem::discriminant(*right)
        }
        _ => false,
    }
}

/// Returns true if a value has at most [`PARTS_MAX`] parts, and nests at most [`NESTED_MAX`] deep.
pub(crate) fn is_small(value: &Value) -> bool {
    let mut left = PARTS_MAX;
    spend(value, &mut left, NESTED_MAX)
}

/// Returns whether the value has at most `left` parts and `room` levels, and subtracts its parts.
fn spend(value: &Value, left: &mut usize, room: usize) -> bool {
    let own = match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 1,
    };
    let (Some(rest), Some(room)) = (left.checked_sub(own), room.checked_sub(1)) else { return false };
    *left = rest;
    let mut spend = |part: &Value| spend(part, left, room);
    match value {
        Value::List(elements) => elements.iter().all(|element| spend(&element)),
        Value::Record(parts) | Value::Variant(_, Some(parts)) => parts.iter().all(spend),
        Value::Map(map) => map.iter().all(|(key, value)| spend(key) && spend(value)),
        _ => true,
    }
}

/// Returns the primitive of an operator other than `&&` and `||`.
pub(crate) fn prim_of(operator: BinaryOperator) -> Prim {
    match operator {
        BinaryOperator::Equal | BinaryOperator::And | BinaryOperator::Or => Prim::Equal,
        BinaryOperator::NotEqual => Prim::NotEqual,
        BinaryOperator::Less => Prim::Less,
        BinaryOperator::LessEqual => Prim::LessOrEqual,
        BinaryOperator::Greater => Prim::Greater,
        BinaryOperator::GreaterEqual => Prim::GreaterOrEqual,
        BinaryOperator::Add => Prim::Add,
        BinaryOperator::Subtract => Prim::Subtract,
        BinaryOperator::Multiply => Prim::Multiply,
        BinaryOperator::Divide => Prim::Divide,
        BinaryOperator::Remainder => Prim::Remainder,
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
