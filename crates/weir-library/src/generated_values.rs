//! Generated values for tests: random types that JSON can express, and values of them, with those at the borders of each type.

use proptest::prelude::*;
use weir::{Field, Text, Type, TypeDefinition, TypeShape, Value, Variant};

/// Returns a field without default.
pub(crate) fn field(name: &str, ty: Type) -> Field {
    Field::new(name, ty)
}

/// Returns the definitions of the named types in [`types`].
pub(crate) fn definitions() -> Vec<TypeDefinition> {
    let post = vec![field("id", Type::Int), field("note", Type::option(Type::Text))];
    let variant = |name: &str, fields| Variant::new(name, fields);
    let kinds = vec![
        variant("Plain", Vec::new()),
        variant("Tagged", vec![field("0", Type::Text)]),
        variant("Pair", vec![field("0", Type::Int), field("1", Type::list(Type::Bool))]),
        variant("Timed", vec![field("from", Type::Duration), field("size", Type::Size)]),
    ];
    let defined = |name: &str, shape| TypeDefinition { name: name.into(), doc: Text::default(), shape };
    let states = vec![variant("Open", Vec::new()), variant("Closed", Vec::new())];
    vec![
        defined("Post", TypeShape::Record(post)),
        defined("Kind", TypeShape::Enum(kinds)),
        defined("State", TypeShape::Enum(states)),
    ]
}

/// Returns a strategy for whole numbers, with the least and the greatest.
fn whole() -> impl Strategy<Value = i64> {
    prop_oneof![6 => any::<i64>(), 1 => Just(i64::MIN), 1 => Just(i64::MAX), 1 => -1_i64..=1]
}

/// Returns a strategy for values of a type.
pub(crate) fn value_of(ty: Type) -> BoxedStrategy<Value> {
    match ty {
        Type::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Type::Int => whole().prop_map(Value::Int).boxed(),
        Type::Float => {
            use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
            (POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO).prop_map(Value::Float).boxed()
        }
        Type::Text => prop_oneof!["(?s).{0,8}", "[\\x00\r\n\",;\\\\ \u{feff}]{0,4}", Just("null".to_owned())]
            .prop_map(|text| Value::text(&text))
            .boxed(),
        Type::Size => prop_oneof![any::<u64>(), Just(u64::MAX), Just(0)].prop_map(Value::Size).boxed(),
        Type::Duration => whole().prop_map(Value::Duration).boxed(),
        Type::Time => whole().prop_map(Value::Time).boxed(),
        Type::List(element) => {
            prop::collection::vec(value_of((*element).clone()), 0..4).prop_map(|all| Value::List(all.into())).boxed()
        }
        Type::Tuple(types) => {
            let parts: Vec<_> = types.iter().cloned().map(value_of).collect();
            parts.prop_map(|all| Value::Record(all.into())).boxed()
        }
        Type::Map(pair) => prop::collection::vec((value_of(pair.0.clone()), value_of(pair.1.clone())), 0..4)
            .prop_map(|all| Value::Map(all.into_iter().collect()))
            .boxed(),
        Type::Option(some) => prop_oneof![Just(Value::none()), value_of((*some).clone()).prop_map(Value::some)].boxed(),
        Type::Named(name) => named(&name),
        _ => Just(Value::Unit).boxed(),
    }
}

fn named(name: &str) -> BoxedStrategy<Value> {
    let found = definitions().into_iter().find(|known| &*known.name == name).expect("a type of ours");
    match found.shape {
        TypeShape::Record(fields) => fields_of(fields).prop_map(|all| Value::Record(all.into())).boxed(),
        TypeShape::Enum(variants) => (0..variants.len())
            .prop_flat_map(move |tag| {
                let number = u32::try_from(tag).expect("there are four");
                let payload = move |all: Vec<Value>| Value::Variant(number, (!all.is_empty()).then(|| all.into()));
                fields_of(variants[tag].fields.clone()).prop_map(payload)
            })
            .boxed(),
        TypeShape::Opaque { .. } => Just(Value::Unit).boxed(),
    }
}

fn fields_of(fields: Vec<Field>) -> BoxedStrategy<Vec<Value>> {
    fields.into_iter().map(|field| value_of(field.ty)).collect::<Vec<_>>().boxed()
}

/// Returns a strategy for types of keys.
fn keys() -> impl Strategy<Value = Type> {
    use Type::{Bool, Duration, Float, Int, Size, Text, Time};
    prop::sample::select(vec![Text, Text, Int, Float, Bool, Size, Duration, Time, Type::named("State")])
}

/// Returns a strategy for types that JSON can express. An `Option` in an `Option` is left out: `Some(None)` and `None`
/// are both `null`.
pub(crate) fn types() -> impl Strategy<Value = Type> {
    let leaf = prop::sample::select(vec![
        Type::Unit,
        Type::Bool,
        Type::Int,
        Type::Float,
        Type::Text,
        Type::Size,
        Type::Duration,
        Type::Time,
        Type::named("Post"),
        Type::named("Kind"),
    ]);
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(Type::list),
            (keys(), inner.clone()).prop_map(|(key, value)| Type::map(key, value)),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Type::tuple),
            inner.prop_map(|some| if matches!(some, Type::Option(_) | Type::Unit) { some } else { Type::option(some) }),
        ]
    })
}
