//! Round trips: a value written as JSON is read back as the same value.

use proptest::prelude::*;
use weir::{Text, Type, TypeDefinition, TypeOf, TypeShape, Value, Variant};

use super::parse;
use crate::generated_values::{definitions, field, types, value_of};
use crate::input::NamedTypes;
use crate::json::encode::written;

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

/// Returns the definition of a recursive list type, whose links have this field.
fn chain(link: &str) -> TypeDefinition {
    let link = Variant::new("Link", vec![field(link, Type::named("Chain"))]);
    let end = Variant::new("End", Vec::new());
    TypeDefinition { name: "Chain".into(), doc: Text::default(), shape: TypeShape::Enum(vec![end, link]) }
}

#[test]
fn encoding_and_decoding_have_the_same_depth_limit() {
    // A named field is a member of an object of its own.
    for (link, most) in [("0", 127), ("rest", 63)] {
        let of = TypeOf { ty: Type::named("Chain"), definitions: vec![chain(link)] };
        let chain = |links: usize| (0..links).fold(Value::Variant(0, None), |rest, _| Value::variant(1, [rest]));
        let deepest = chain(most);
        let text = written(&deepest, &of).expect("as deep as may be");
        assert_eq!(parse(&text, "body", &of.ty, NamedTypes(&of.definitions)), Ok(deepest));
        for links in [most + 1, 1_000] {
            let failure = written(&chain(links), &of).expect_err("deeper");
            assert_eq!(failure.message.as_str(), "JSON nests at most 127 deep");
        }
        let text = match link {
            "0" => format!("{}\"End\"{}", "{\"Link\":".repeat(most + 1), "}".repeat(most + 1)),
            _ => format!("{}\"End\"{}", "{\"Link\":{\"rest\":".repeat(most + 1), "}}".repeat(most + 1)),
        };
        let refused = parse(text.as_bytes(), "body", &of.ty, NamedTypes(&of.definitions)).expect_err("deeper");
        assert!(refused.what.starts_with("JSON nests more than 127 deep at line 1"), "{refused}");
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
    assert_eq!(refused(&nested(100_000), post()), "body: JSON nests more than 127 deep at line 1 column 128");
    assert_eq!(refused("{\"id\": 1} x", post()), "body: not JSON: expected the end, found more at line 1 column 11");
    assert_eq!(
        refused("{\n  \"id\": 1,\n  \"id\": 2\n}", post()),
        "body: the key \"id\" is repeated at line 3 column 6"
    );
    assert_eq!(
        refused("{\"id\": 1, \"x\": [{\"a\": 1, \"a\": 2}]}", post()),
        "body: the key \"a\" is repeated at line 1 column 28"
    );
    assert_eq!(refused("1e999", Type::Float), "body: not JSON: the number is beyond ±1.8·10³⁰⁸ at line 1 column 5");
    let range = "a whole number from -9223372036854775808 to 9223372036854775807";
    for large in ["9223372036854775808", "18446744073709551616", "-9223372036854775809"] {
        assert_eq!(refused(large, Type::Int), format!("body: expected {range}, found `{large}`"));
    }
    let late = "\"9999-12-31T00:00:00Z\"";
    let years = "a time between the years 1677 and 2262";
    assert_eq!(refused(late, Type::Time), format!("body: expected {years}, found {late}"));
    let long = "9".repeat(300);
    assert_eq!(refused(&long, Type::Int), format!("body: expected {range}, found `{}…`", &long[..40]));
    assert_eq!(refused("1.5", Type::Int), "body: expected a whole number, found `1.5`");
    assert_eq!(refused("", post()), "body: not JSON: expected a value, found the end at line 1 column 0");
    assert_eq!(
        refused("{\"id\": NaN}", post()),
        "body: not JSON: expected a value: an object, list, text or number, or `true`, `false` or `null` at line 1 column 8"
    );
    for (text, said) in [
        ("[tru]", "expected `true`, `false` or `null` at line 1 column 5"),
        ("[1,]", "expected a further element behind the comma at line 1 column 4"),
        ("{'id': 1}", "expected a key in double quotation marks at line 1 column 2"),
        ("[1", "expected `,` or `]`, found the end at line 1 column 2"),
        ("[1 2]", "expected `,` or `]` at line 1 column 4"),
        ("[01]", "this is no number at line 1 column 3"),
        ("[\"a\nb\"]", "a control character in a text is written as an escape, such as `\\n` at line 2 column 0"),
        ("[\"\\x\"]", "`\\` begins none of the escapes `\\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u0000` at line 1 column 4"),
        ("[\"\\ud800\"]", "`\\ud800` to `\\udfff` stand for a character only in pairs at line 1 column 9"),
    ] {
        assert_eq!(refused(text, post()), format!("body: not JSON: {said}"));
    }
    let no_text = said(b"\"\xff\"", Type::Text).expect_err("no text");
    assert_eq!(no_text, "body: not JSON: the text is not UTF-8 at line 1 column 2");
    assert_eq!(
        said(b"{\"id\": 1, \"more\": [[[]]]}", post()),
        Ok(Value::Record([Value::Int(1), Value::none()].into()))
    );
}

#[test]
fn durations_and_sizes_are_written_as_in_programs() {
    let said = |text: &[u8], ty: Type| parse(text, "body", &ty, NamedTypes(&[])).ok();
    let duration = |text: &str| said(format!("\"{text}\"").as_bytes(), Type::Duration);
    assert_eq!(duration("1.5s"), Some(Value::Duration(1_500_000_000)));
    assert_eq!(duration("-0.250ms"), Some(Value::Duration(-250_000)));
    assert_eq!(said(b"\"0.5kb\"", Type::Size), Some(Value::Size(512)));
    for wrong in ["1.5ns", ".5s", "1.s", "1.5.5s", "1,5s", "1e3s", "+1s", "."] {
        assert_eq!(duration(wrong), None, "{wrong}");
    }
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

#[test]
fn a_long_key_is_shortened_in_messages() {
    let json = format!("{{\"{}\": \"x\"}}", "k".repeat(10_000));
    let map = Type::map(Type::Text, Type::Int);
    let error = parse(json.as_bytes(), "body", &map, NamedTypes(&[])).expect_err("a text is no number");
    assert!(error.to_string().starts_with("body.kkkk") && error.to_string().len() < 200, "{error}");
}
