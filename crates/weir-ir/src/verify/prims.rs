//! Verification of primitives: the operand types that each accepts for its result type.

use weir_host::{Type, Value};

use super::operand::TypedOperand;
use super::types::TypeTable;
use crate::prim::{Prim, propagation_sites};
use crate::print::TypeText;

/// Checks the application of `prim` to the operands for a result of this type.
pub(super) fn check(
    prim: Prim,
    operands: &[TypedOperand<'_>],
    result: &Type,
    types: &TypeTable<'_>,
) -> Result<(), String> {
    if let Some(arity) = prim.arity().filter(|arity| *arity != operands.len()) {
        return Err(format!("`{}` takes {arity} operands, not {}", prim.name(), operands.len()));
    }
    if operands.iter().any(|operand| matches!(operand, TypedOperand::Shared(_))) {
        return Err(format!("`{}` takes no shared value", prim.name()));
    }
    match prim {
        Prim::Copy | Prim::Negate | Prim::Not | Prim::And | Prim::Or | Prim::Quote => {
            same_type(prim, operands, result, types)
        }
        Prim::Add | Prim::Subtract | Prim::Multiply | Prim::Divide | Prim::Remainder => {
            arithmetic(prim, operands, result, types)
        }
        Prim::Equal | Prim::NotEqual | Prim::Less | Prim::LessOrEqual | Prim::Greater | Prim::GreaterOrEqual => {
            comparison(prim, operands, result, types)
        }
        Prim::Interpolate => yields(result, &Type::Text),
        Prim::List | Prim::Map | Prim::Record | Prim::Variant(_) | Prim::Failure | Prim::Propagate => {
            construction(prim, operands, result, types)
        }
        Prim::Field(_)
        | Prim::DetachField(_)
        | Prim::WithField(_)
        | Prim::Payload(_)
        | Prim::IsVariant(_)
        | Prim::Unwrap => part(prim, operands, result, types),
        Prim::Length
        | Prim::Index
        | Prim::DetachElement
        | Prim::Rest
        | Prim::Middle
        | Prim::Pairs
        | Prim::Collect
        | Prim::Flatten => collection(prim, operands, result, types),
        Prim::Checked(fallible) => match result {
            Type::Result(pair) if pair.1 == Type::Failure => check(fallible.prim(), operands, &pair.0, types),
            _ => Err(format!("`{}` gives a result or a failure, not {}", prim.name(), TypeText(result))),
        },
    }
}

/// Checks a primitive whose operands have the type of its result.
fn same_type(prim: Prim, operands: &[TypedOperand<'_>], result: &Type, types: &TypeTable<'_>) -> Result<(), String> {
    match prim {
        Prim::Negate => one_of(prim, result, &[Type::Int, Type::Float, Type::Duration])?,
        Prim::Not | Prim::And | Prim::Or => yields(result, &Type::Bool)?,
        Prim::Quote => yields(result, &Type::Text)?,
        _ => {}
    }
    all(operands, std::iter::repeat(result), types)
}

/// Checks a primitive that makes a value of its operands.
fn construction(prim: Prim, operands: &[TypedOperand<'_>], result: &Type, types: &TypeTable<'_>) -> Result<(), String> {
    match (prim, operands) {
        (Prim::List, elements) => all(elements, std::iter::repeat(element(prim, result)?), types),
        (Prim::Map, entries) => match result {
            Type::Map(pair) if entries.len().is_multiple_of(2) => {
                all(entries, [&pair.0, &pair.1].into_iter().cycle(), types)
            }
            Type::Map(_) => Err("`map` takes keys and values in turn".into()),
            _ => Err(format!("`map` gives a map, not {}", TypeText(result))),
        },
        (Prim::Record, fields) => parts(fields, types.fields(result), "record", types),
        (Prim::Variant(tag), payload) => {
            let fields = types.variants(result).and_then(|variants| variants.into_iter().nth(tag as usize));
            parts(payload, fields, &format!("variant {tag}"), types)
        }
        (Prim::Failure, [message]) => {
            yields(result, &Type::Failure)?;
            message.must_be("the message", &Type::Text, types)
        }
        (Prim::Propagate, [failure, sites]) => {
            yields(result, &Type::Failure)?;
            failure.must_be("the failure", &Type::Failure, types)?;
            sites.must_be("the list of places", &propagation_sites(), types)
        }
        _ => inapplicable(prim),
    }
}

/// Checks a primitive that reads, replaces or tests a part of a record or variant.
fn part(prim: Prim, operands: &[TypedOperand<'_>], result: &Type, types: &TypeTable<'_>) -> Result<(), String> {
    match (prim, operands) {
        (Prim::Field(index) | Prim::DetachField(index), [record]) => field(*record, index, result, types),
        (Prim::WithField(index), [record, value]) => {
            record.must_be("the record", result, types)?;
            let fields = types.fields(result).and_then(|fields| fields.into_iter().nth(index as usize));
            let field = fields.ok_or_else(|| format!("{} has no field {index}", TypeText(result)))?;
            value.must_be("the field", &field, types)
        }
        (Prim::Payload(index), [variant]) => payload(*variant, index, result, types),
        (Prim::Unwrap, [kept]) => kept.must_be("the result", &Type::result(result.clone(), Type::Failure), types),
        (Prim::IsVariant(tag), [variant]) => {
            yields(result, &Type::Bool)?;
            let known = variant.ty().map(|ty| types.variants(ty).is_some_and(|all| all.len() > tag as usize));
            if known == Some(false) { Err(format!("{} has no variant {tag}", variant.describe())) } else { Ok(()) }
        }
        _ => inapplicable(prim),
    }
}

/// Checks a primitive on lists, maps, bytes or texts.
fn collection(prim: Prim, operands: &[TypedOperand<'_>], result: &Type, types: &TypeTable<'_>) -> Result<(), String> {
    match (prim, operands) {
        (Prim::Length, [measured]) => yields(result, &Type::Int).and_then(|()| has_length(*measured)),
        (Prim::Index | Prim::DetachElement, [collection, key]) => index(*collection, *key, result, types),
        (Prim::Rest, [list, from]) => {
            list.must_be("the list", result, types)?;
            from.must_be("the index", &Type::Int, types)
        }
        (Prim::Middle, [list, front, back]) => {
            list.must_be("the list", result, types)?;
            front.must_be("the front", &Type::Int, types)?;
            back.must_be("the back", &Type::Int, types)
        }
        (Prim::Pairs, [map]) => pairs(*map, result, types),
        (Prim::Collect, [lists, element]) => collect(*lists, *element, result, types),
        (Prim::Flatten, [lists]) => {
            element(prim, result)?;
            lists.must_be("the lists", &Type::list(result.clone()), types)
        }
        _ => inapplicable(prim),
    }
}

/// Refuses operands whose number no rule of the primitive accepts.
fn inapplicable(prim: Prim) -> Result<(), String> {
    Err(format!("`{}` cannot be applied so", prim.name()))
}

fn pairs(map: TypedOperand<'_>, result: &Type, types: &TypeTable<'_>) -> Result<(), String> {
    match element(Prim::Pairs, result)? {
        Type::Tuple(parts) if parts.len() == 2 => {
            map.must_be("the map", &Type::map(parts[0].clone(), parts[1].clone()), types)
        }
        other => Err(format!("`pairs` gives pairs, not {}", TypeText(other))),
    }
}

fn collect(
    lists: TypedOperand<'_>,
    collected: TypedOperand<'_>,
    result: &Type,
    types: &TypeTable<'_>,
) -> Result<(), String> {
    match element(Prim::Collect, result)? {
        Type::List(of) => {
            lists.must_be("the lists", result, types)?;
            collected.must_be("the element", of, types)
        }
        other => Err(format!("`collect` gives lists, not {}", TypeText(other))),
    }
}

/// Returns the element type of the list that it yields.
fn element(prim: Prim, result: &Type) -> Result<&Type, String> {
    match result {
        Type::List(element) => Ok(element),
        _ => Err(format!("`{}` gives a list, not {}", prim.name(), TypeText(result))),
    }
}

fn yields(result: &Type, ty: &Type) -> Result<(), String> {
    if result == ty { Ok(()) } else { Err(format!("it gives {}, not {}", TypeText(ty), TypeText(result))) }
}

fn one_of(prim: Prim, ty: &Type, types: &[Type]) -> Result<(), String> {
    if types.contains(ty) { Ok(()) } else { Err(format!("`{}` does not give {}", prim.name(), TypeText(ty))) }
}

fn all<'t>(
    operands: &[TypedOperand<'_>],
    expected: impl Iterator<Item = &'t Type>,
    types: &TypeTable<'_>,
) -> Result<(), String> {
    operands.iter().zip(expected).try_for_each(|(operand, ty)| operand.must_be("the operand", ty, types))
}

fn parts(
    operands: &[TypedOperand<'_>],
    fields: Option<Vec<Type>>,
    what: &str,
    types: &TypeTable<'_>,
) -> Result<(), String> {
    let fields = fields.ok_or_else(|| format!("the result has no {what}"))?;
    if fields.len() != operands.len() {
        return Err(format!("the {what} has {} fields, not {}", fields.len(), operands.len()));
    }
    all(operands, fields.iter(), types)
}

/// Checks the operand types of an arithmetic primitive.
fn arithmetic(prim: Prim, operands: &[TypedOperand<'_>], result: &Type, types: &TypeTable<'_>) -> Result<(), String> {
    let [a, b] = operands else { return inapplicable(prim) };
    use Type::{Duration, Float, Int, Size, Time};
    let pairs: &[(Type, Type)] = match (prim, result) {
        (Prim::Add, Type::Text | Type::List(_)) => &[(result.clone(), result.clone())],
        (Prim::Add, Time) => &[(Time, Duration), (Duration, Time)],
        (Prim::Subtract, Time) => &[(Time, Duration)],
        (Prim::Subtract, Duration) => &[(Duration, Duration), (Time, Time)],
        (Prim::Add | Prim::Subtract, Int | Float | Duration | Size) => &[(result.clone(), result.clone())],
        (_, Int | Float) if prim != Prim::Divide => &[(result.clone(), result.clone())],
        (Prim::Divide, Int) => &[(Int, Int), (Duration, Duration), (Size, Size)],
        (Prim::Divide, Float) => &[(Float, Float)],
        (Prim::Multiply, Duration | Size) => &[(result.clone(), Int), (Int, result.clone())],
        (Prim::Divide, Duration | Size) => &[(result.clone(), Int)],
        _ => &[],
    };
    if pairs.iter().any(|(x, y)| a.is(x, types) && b.is(y, types)) {
        return Ok(());
    }
    let (a, b) = (a.describe(), b.describe());
    Err(format!("`{}` of {a} and {b} does not give {}", prim.name(), TypeText(result)))
}

/// Checks that both operands of a comparison have the same type.
fn comparison(prim: Prim, operands: &[TypedOperand<'_>], result: &Type, types: &TypeTable<'_>) -> Result<(), String> {
    let [a, b] = operands else { return inapplicable(prim) };
    yields(result, &Type::Bool)?;
    let same = match (*a, *b) {
        (TypedOperand::Typed(ty), other) | (other, TypedOperand::Typed(ty)) => other.is(ty, types),
        (TypedOperand::Constant(a), TypedOperand::Constant(b)) => {
            std::mem::discriminant(a) == std::mem::discriminant(b)
        }
        _ => true,
    };
    if same { Ok(()) } else { Err(format!("`{}` of {} and {}", prim.name(), a.describe(), b.describe())) }
}

fn field(record: TypedOperand<'_>, index: u32, result: &Type, types: &TypeTable<'_>) -> Result<(), String> {
    let at = index as usize;
    let is = match record {
        TypedOperand::Constant(Value::Record(fields)) => fields.get(at).is_some_and(|value| types.holds(result, value)),
        TypedOperand::Unknown => true,
        other => other.ty().and_then(|ty| types.fields(ty)).is_some_and(|fields| fields.get(at) == Some(result)),
    };
    if is { Ok(()) } else { Err(no_part("field", index, record, result)) }
}

fn payload(variant: TypedOperand<'_>, index: u32, result: &Type, types: &TypeTable<'_>) -> Result<(), String> {
    let at = index as usize;
    let is = match variant {
        // Its arm may be one that is never chosen, and a constant does not say what its other payloads would be.
        TypedOperand::Constant(Value::Variant(..)) => true,
        TypedOperand::Unknown => true,
        other => other
            .ty()
            .and_then(|ty| types.variants(ty))
            .is_some_and(|all| all.iter().any(|fields| fields.get(at) == Some(result))),
    };
    if is { Ok(()) } else { Err(no_part("payload", index, variant, result)) }
}

fn no_part(what: &str, index: u32, of: TypedOperand<'_>, result: &Type) -> String {
    format!("{} has no {what} {index} of {}", of.describe(), TypeText(result))
}

fn has_length(operand: TypedOperand<'_>) -> Result<(), String> {
    let is = match operand {
        TypedOperand::Constant(value) => {
            matches!(value, Value::List(_) | Value::Map(_) | Value::Bytes(_) | Value::Text(_))
        }
        TypedOperand::Unknown => true,
        other => matches!(other.ty(), Some(Type::List(_) | Type::Map(_) | Type::Bytes | Type::Text)),
    };
    if is { Ok(()) } else { Err(format!("{} has no length", operand.describe())) }
}

fn index(
    collection: TypedOperand<'_>,
    key: TypedOperand<'_>,
    result: &Type,
    types: &TypeTable<'_>,
) -> Result<(), String> {
    if key.is(&Type::Int, types) && collection.is(&Type::list(result.clone()), types) {
        return Ok(());
    }
    if let (Type::Option(value), Some(Type::Map(pair))) = (result, collection.ty())
        && pair.1 == **value
    {
        return key.must_be("the key", &pair.0, types);
    }
    if let (TypedOperand::Constant(Value::Map(map)), Type::Option(value)) = (collection, result)
        && map.values().all(|entry| types.holds(value, entry))
    {
        return Ok(());
    }
    Err(format!("{} by {} does not give {}", collection.describe(), key.describe(), TypeText(result)))
}
