//! The types that generated programs use, and values of them.

use weir_host::{Entries, Failure, FailureKind, Field, Type, TypeDefinition, TypeShape, Value, Variant};

use super::Random;

/// Returns the named types of every generated program.
pub(super) fn definitions() -> Vec<TypeDefinition> {
    let field = |name: &str, ty| Field::new(name, ty);
    let variant = |name: &str, fields| Variant::new(name, fields);
    let shapes = vec![
        variant("Point", vec![]),
        Variant { external: Some("a \"circle\"".into()), ..variant("Circle", vec![field("0", Type::Int)]) },
        variant("Box", vec![field("0", Type::Int), field("1", Type::Text)]),
    ];
    vec![
        TypeDefinition {
            name: "Pair".into(),
            doc: "".into(),
            shape: TypeShape::Record(vec![
                Field { default: Some(Value::Int(-7)), ..field("left", Type::Int) },
                Field { external: Some("right-hand".into()), ..field("right", Type::Text) },
            ]),
        },
        TypeDefinition { name: "Shape".into(), doc: "One of three.".into(), shape: TypeShape::Enum(shapes) },
    ]
}

pub(super) fn pair() -> Type {
    Type::Named("Pair".into())
}

pub(super) fn shape() -> Type {
    Type::Named("Shape".into())
}

pub(super) fn fallible() -> Type {
    Type::result(Type::Int, Type::Failure)
}

pub(super) fn refusable() -> Type {
    Type::result(Type::Int, Type::Text)
}

/// Returns the type of maps whose values own memory.
pub(super) fn texts() -> Type {
    Type::map(Type::Text, Type::Text)
}

/// Returns true if a part of values of this type owns memory, so that it can be updated in place.
pub(super) fn has_updates(ty: &Type) -> bool {
    *ty == pair() || *ty == texts() || *ty == Type::list(Type::Text)
}

/// Returns the type of an entry of the maps.
pub(super) fn entry() -> Type {
    Type::Tuple([Type::Text, Type::Int].into())
}

/// Returns the type of a result that is made of several values, one of them of this type.
pub(super) fn several(also: Type) -> Type {
    Type::Tuple([Type::Int, Type::Int, Type::Bool, Type::list(Type::Int), Type::Text, fallible(), also].into())
}

pub(super) fn flagged(ty: Type) -> Type {
    Type::Tuple([ty, Type::Bool].into())
}

/// Returns a type whose values can be used several times; most often an integer.
pub(super) fn data_type(random: &mut Random) -> Type {
    match random.below(23) {
        0 => Type::Unit,
        1 | 2 => Type::Bool,
        3 | 4 => Type::Text,
        5 => Type::Float,
        6 => Type::Duration,
        7 => Type::Size,
        8 | 9 => Type::list(Type::Int),
        10 => Type::option(Type::Int),
        11 => fallible(),
        12 => refusable(),
        13 => pair(),
        14 => shape(),
        15 => flagged(Type::Int),
        16 => Type::map(Type::Text, Type::Int),
        17 => Type::list(Type::Text),
        18 => Type::list(flagged(Type::Int)),
        20 => Type::list(entry()),
        21 => texts(),
        22 => flagged(pair()),
        _ => Type::Int,
    }
}

/// Returns a value of the type.
pub(super) fn value(random: &mut Random, ty: &Type) -> Value {
    let number = random.below(12);
    match ty {
        Type::Bool => Value::Bool(number.is_multiple_of(2)),
        Type::Int => Value::Int(int(random)),
        Type::Float => Value::Float(*random.pick(&[0.0, -0.0, 1.5, -2.25, 1e300, f64::NAN, f64::INFINITY])),
        Type::Text => Value::text(random.pick::<&str>(&["", "a", "b", "weir", "\"quoted\"\n", "ü→", "two words"])),
        Type::Bytes => Value::bytes(vec![0, 255, u8::try_from(number).unwrap_or(0)]),
        Type::Time => Value::Time(int(random)),
        Type::Duration => Value::Duration(int(random).wrapping_mul(1_000_000)),
        Type::Size => Value::Size(int(random).unsigned_abs()),
        Type::Failure => Value::Failure(Box::new(Failure::new(FailureKind::Program, "on purpose"))),
        Type::List(element) => Value::list((0..random.below(5)).map(|_| value(random, element)).collect()),
        Type::Map(pair) => {
            let entries = (0..random.below(4)).map(|_| (value(random, &pair.0), value(random, &pair.1)));
            Value::Map(entries.collect())
        }
        Type::Option(some) if number < 8 => Value::some(value(random, some)),
        Type::Option(_) => Value::none(),
        Type::Result(pair) if number < 8 => Value::ok(value(random, &pair.0)),
        Type::Result(pair) => Value::err(value(random, &pair.1)),
        Type::Tuple(parts) => Value::Record(parts.iter().map(|part| value(random, part)).collect()),
        Type::Named(name) if name.as_str() == "Pair" => {
            Value::Record([value(random, &Type::Int), value(random, &Type::Text)].into())
        }
        Type::Named(_) => match number % 3 {
            0 => Value::Variant(0, None),
            1 => Value::variant(1, [value(random, &Type::Int)]),
            _ => Value::variant(2, [value(random, &Type::Int), value(random, &Type::Text)]),
        },
        _ => Value::Unit,
    }
}

/// Returns a small number, occasionally one that overflows.
fn int(random: &mut Random) -> i64 {
    match random.below(25) {
        0 => i64::MAX,
        1 => i64::MIN,
        small => i64::try_from(small).unwrap_or(0) - 8,
    }
}

/// Returns the simplest value of the type; `None` for a type that only functions create.
pub(super) fn plainest(ty: &Type) -> Option<Value> {
    Some(match ty {
        Type::Unit => Value::Unit,
        Type::Bool => Value::Bool(false),
        Type::Int => Value::Int(0),
        Type::Float => Value::Float(0.0),
        Type::Text => Value::text(""),
        Type::Bytes => Value::bytes(Vec::new()),
        Type::Time => Value::Time(0),
        Type::Duration => Value::Duration(0),
        Type::Size => Value::Size(0),
        Type::Failure => Value::Failure(Box::new(Failure::new(FailureKind::Program, ""))),
        Type::List(_) => Value::list(Vec::new()),
        Type::Map(_) => Value::Map(Entries::default()),
        Type::Option(_) => Value::none(),
        Type::Result(pair) => Value::ok(plainest(&pair.0)?),
        Type::Tuple(parts) => Value::Record(parts.iter().map(plainest).collect::<Option<_>>()?),
        Type::Named(name) if name.as_str() == "Pair" => Value::Record([Value::Int(0), Value::text("")].into()),
        Type::Named(name) if name.as_str() == "Shape" => Value::Variant(0, None),
        _ => return None,
    })
}
