//! Round trips: a value written as JSON is read back as the same value.

use proptest::prelude::*;
use weir::{Field, Text, Type, TypeDefinition, TypeOf, TypeShape, Value, Variant};

use super::parse;
use crate::input::NamedTypes;
use crate::json::encode::written;

fn field(name: &str, ty: Type) -> Field {
    Field::new(name, ty)
}

fn definitions() -> Vec<TypeDefinition> {
    let post = vec![field("id", Type::Int), field("note", Type::option(Type::Text))];
    let variant = |name: &str, fields| Variant::new(name, fields);
    let kinds = vec![
        variant("Plain", Vec::new()),
        variant("Tagged", vec![field("0", Type::Text)]),
        variant("Pair", vec![field("0", Type::Int), field("1", Type::list(Type::Bool))]),
        variant("Timed", vec![field("from", Type::Duration), field("size", Type::Size)]),
    ];
    let defined = |name: &str, shape| TypeDefinition { name: name.into(), doc: Text::default(), shape };
    vec![defined("Post", TypeShape::Record(post)), defined("Kind", TypeShape::Enum(kinds))]
}

/// Returns a strategy for values of a type.
fn value_of(ty: Type) -> BoxedStrategy<Value> {
    match ty {
        Type::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        Type::Int => any::<i64>().prop_map(Value::Int).boxed(),
        Type::Float => proptest::num::f64::NORMAL.prop_map(Value::Float).boxed(),
        Type::Text => ".{0,8}".prop_map(|text| Value::text(&text)).boxed(),
        Type::Size => (0..u64::MAX / 4).prop_map(Value::Size).boxed(),
        Type::Duration => any::<i64>().prop_map(Value::Duration).boxed(),
        Type::List(element) => {
            prop::collection::vec(value_of((*element).clone()), 0..4).prop_map(|all| Value::List(all.into())).boxed()
        }
        Type::Tuple(types) => {
            let parts: Vec<_> = types.iter().cloned().map(value_of).collect();
            parts.prop_map(|all| Value::Record(all.into())).boxed()
        }
        Type::Map(pair) => prop::collection::vec((".{0,4}", value_of(pair.1.clone())), 0..4)
            .prop_map(|all| Value::Map(all.into_iter().map(|(key, value)| (Value::text(&key), value)).collect()))
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

/// Returns a strategy for types that JSON can express. An `Option` in an `Option` is left out: `Some(None)` and `None`
/// are both `null`.
fn types() -> impl Strategy<Value = Type> {
    let leaf = prop::sample::select(vec![
        Type::Unit,
        Type::Bool,
        Type::Int,
        Type::Float,
        Type::Text,
        Type::Size,
        Type::Duration,
        Type::named("Post"),
        Type::named("Kind"),
    ]);
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(Type::list),
            inner.clone().prop_map(|value| Type::map(Type::Text, value)),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Type::tuple),
            inner.prop_map(|some| if matches!(some, Type::Option(_) | Type::Unit) { some } else { Type::option(some) }),
        ]
    })
}

proptest! {
    #[test]
    fn json_round_trips((ty, value) in types().prop_flat_map(|ty| (Just(ty.clone()), value_of(ty)))) {
        let of = TypeOf { ty, definitions: definitions() };
        let text = written(&value, &of).expect("all of it can be said");
        let again = parse(&text, "body", &of.ty, NamedTypes(&of.definitions));
        prop_assert_eq!(again, Ok(value), "{}", String::from_utf8_lossy(&text));
    }
}

#[test]
fn values_that_bodies_cannot_express_are_still_encoded() {
    let written = |value: Value, ty: Type| {
        let of = TypeOf { ty, definitions: definitions() };
        String::from_utf8(written(&value, &of).expect("all of it can be said")).expect("JSON is text")
    };
    assert_eq!(written(Value::Float(f64::NAN), Type::Float), "null");
    assert_eq!(written(Value::Time(0), Type::Time), "\"1970-01-01T00:00:00Z\"");
    let result = Type::result(Type::Int, Type::Failure);
    assert_eq!(written(Value::ok(Value::Int(3)), result), "{\"Ok\":3}");
    let by_kind = Type::map(Type::named("Kind"), Type::Int);
    let entries = [(Value::Variant(0, None), Value::Int(1)), (Value::variant(1, [Value::text("a")]), Value::Int(2))];
    let map = Value::Map(entries.into_iter().collect());
    assert_eq!(written(map, by_kind), r#"{"Plain":1,"{\"Tagged\":\"a\"}":2}"#);
}

/// Returns the definition of a recursive list type.
fn chain() -> TypeDefinition {
    let link = Variant::new("Link", vec![field("0", Type::named("Chain"))]);
    let end = Variant::new("End", Vec::new());
    TypeDefinition { name: "Chain".into(), doc: Text::default(), shape: TypeShape::Enum(vec![end, link]) }
}

#[test]
fn encoding_and_decoding_have_the_same_depth_limit() {
    let of = TypeOf { ty: Type::named("Chain"), definitions: vec![chain()] };
    let chain = |links: usize| (0..links).fold(Value::Variant(0, None), |rest, _| Value::variant(1, [rest]));
    let deepest = chain(127);
    let text = written(&deepest, &of).expect("as deep as may be");
    assert_eq!(parse(&text, "body", &of.ty, NamedTypes(&of.definitions)), Ok(deepest));
    for links in [128, 1_000] {
        let failure = written(&chain(links), &of).expect_err("deeper");
        assert_eq!(failure.message.as_str(), "JSON nests at most 127 deep");
    }
}

#[test]
fn exponentially_shared_values_are_limited() {
    let pair = vec![field("0", Type::named("Tree")), field("1", Type::named("Tree"))];
    let variant = |name: &str, fields| Variant::new(name, fields);
    let shape = TypeShape::Enum(vec![variant("Leaf", Vec::new()), variant("Node", pair)]);
    let tree = TypeDefinition { name: "Tree".into(), doc: Text::default(), shape };
    let of = TypeOf { ty: Type::named("Tree"), definitions: vec![tree] };
    let value = (0..50).fold(Value::Variant(0, None), |half, _| Value::variant(1, [half.clone(), half]));
    let failure = written(&value, &of).expect_err("2^50 leaves");
    assert_eq!(failure.message.as_str(), "JSON longer than 67108864 bytes");
}

#[test]
fn an_invalid_body_is_refused_with_its_position() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    let said = |body: &[u8], ty: Type| {
        parse(body, "body", &ty, NamedTypes(&definitions())).map_err(|problem| problem.to_string())
    };
    let refused = |body: &str, ty: Type| said(body.as_bytes(), ty).expect_err("it is no such body");
    let post = || Type::named("Post");
    assert_eq!(refused(&nested(100_000), post()), "body: not JSON: nests more than 127 deep at line 1 column 128");
    assert_eq!(refused("{\"id\": 1} x", post()), "body: not JSON: trailing characters at line 1 column 11");
    assert_eq!(
        refused("{\n  \"id\": 1,\n  \"id\": 2\n}", post()),
        "body: the key \"id\" is repeated at line 3 column 6"
    );
    assert_eq!(
        refused("{\"id\": 1, \"x\": [{\"a\": 1, \"a\": 2}]}", post()),
        "body: the key \"a\" is repeated at line 1 column 28"
    );
    assert_eq!(refused("1e999", Type::Float), "body: not JSON: number out of range at line 1 column 5");
    let range = "a whole number from -9223372036854775808 to 9223372036854775807";
    for large in ["9223372036854775808", "18446744073709551616", "-9223372036854775809"] {
        assert_eq!(refused(large, Type::Int), format!("body: expected {range}, found `{large}`"));
    }
    let long = "9".repeat(300);
    assert_eq!(refused(&long, Type::Int), format!("body: expected {range}, found `{}…`", &long[..40]));
    assert_eq!(refused("1.5", Type::Int), "body: expected a whole number, found `1.5`");
    assert_eq!(refused("", post()), "body: not JSON: EOF while parsing a value at line 1 column 0");
    assert_eq!(refused("{\"id\": NaN}", post()), "body: not JSON: expected value at line 1 column 8");
    let no_text = said(b"\"\xff\"", Type::Text).expect_err("no text");
    assert_eq!(no_text, "body: not JSON: invalid unicode code point at line 1 column 2");
    assert_eq!(
        said(b"{\"id\": 1, \"more\": [[[]]]}", post()),
        Ok(Value::Record([Value::Int(1), Value::none()].into()))
    );
}

#[test]
fn keys_that_are_equal_once_they_are_read_are_refused() {
    for (ty, one, other) in [(Type::Int, "7", "007"), (Type::Duration, "60s", "1m"), (Type::Size, "1kb", "1024b")] {
        let ty = Type::map(ty, Type::Int);
        let text = format!("{{\"{one}\":1,\"{other}\":2}}");
        let refused = parse(text.as_bytes(), "body", &ty, NamedTypes(&[])).expect_err("one key").to_string();
        assert!(refused.contains("is there twice, in another spelling"), "{refused}");
    }
    let of = TypeOf { ty: Type::map(Type::Float, Type::Int), definitions: Vec::new() };
    let written = |key: f64| written(&Value::Map([(Value::Float(key), Value::Int(1))].into_iter().collect()), &of);
    assert_eq!(written(1.5).as_deref(), Ok(&br#"{"1.5":1}"#[..]));
    for key in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(
            written(key).expect_err("no number").message.as_str(),
            format!("JSON cannot express the key `{}`", Value::Float(key))
        );
    }
}

#[test]
fn json_of_any_shape_is_read_and_written_as_it_is() {
    use crate::json;
    let shape = TypeShape::Record(vec![field("from", Type::Text), field("event", Type::named("json.Value"))]);
    let hook = TypeDefinition { name: "Hook".into(), doc: Text::default(), shape };
    let opaque = TypeShape::Opaque { shareable: true };
    let value = TypeDefinition { name: "json.Value".into(), doc: Text::default(), shape: opaque };
    let of = TypeOf { ty: Type::list(Type::named("Hook")), definitions: vec![hook, value] };
    let text = r#"[{"from":"a","event":{"z":[1,null,2.5,"x"],"a":{}}},{"from":"b","event":null},
{"from":"","event":[12345678901234567890123,-0.1234567890123456789012,18446744073709551615,"1\"1.0",1e-400]}]"#;
    let text = &text.replace('\n', "");
    let hooks = parse(text.as_bytes(), "body", &of.ty, NamedTypes(&of.definitions)).expect("it is such a body");
    assert_eq!(written(&hooks, &of).as_deref(), Ok(text.as_bytes()));
    let numbers = json::parse("[0.5,12345678901234567890123]").expect("JSON");
    let number = json::at(&numbers, 1).expect("a number");
    assert_eq!((json::int(&number), json::float(&number)), (None, Some(12_345_678_901_234_567_890_123_f64)));
    let whole = TypeOf { ty: Type::Int, definitions: Vec::new() };
    let refused = json::decode_value(&number, weir::TypeArgument(whole.into())).expect_err("it does not fit");
    let range = "from -9223372036854775808 to 9223372036854775807";
    assert_eq!(refused.message.as_str(), format!("expected a whole number {range}, found `12345678901234567890123`"));
    // The list and the record around the value take two levels.
    let nested = |depth: usize| json::parse(&format!("{}{}", "[".repeat(depth), "]".repeat(depth))).expect("JSON");
    let hook = |depth| {
        let event = weir::HostType::into_value(nested(depth)).expect("a value");
        Value::list(vec![Value::Record([Value::text("a"), event].into())])
    };
    let deepest = written(&hook(125), &of).expect("it fits");
    assert!(parse(&deepest, "body", &of.ty, NamedTypes(&of.definitions)).is_ok());
    assert!(written(&hook(126), &of).is_err());
}
