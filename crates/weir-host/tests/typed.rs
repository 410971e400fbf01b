//! Values with their types: the text of a type, and the pair that a function receives.

#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

use weir::{Field, HostType, Text, Type, TypeDefinition, TypeOf, TypeShape, Typed, Value, Variant};

fn field(name: &str, ty: Type) -> Field {
    Field::new(name, ty)
}

fn defined(name: &str, shape: TypeShape) -> TypeDefinition {
    TypeDefinition { name: name.into(), doc: Text::default(), shape }
}

/// Returns fields with a default of every kind.
fn defaults() -> Vec<Field> {
    let text = Value::text("a \\ and a \", é");
    let defaults = [
        ("unit", Type::Unit, Value::Unit),
        ("yes", Type::Bool, Value::Bool(true)),
        ("least", Type::Int, Value::Int(i64::MIN)),
        ("zero", Type::Float, Value::Float(-0.0)),
        ("wait", Type::Duration, Value::Duration(-5)),
        ("size", Type::Size, Value::Size(u64::MAX)),
        ("some", Type::option(Type::Text), Value::some(text.clone())),
        ("none", Type::option(Type::Text), Value::none()),
        ("list", Type::list(Type::Int), Value::list(vec![Value::Int(1), Value::Int(2)])),
        ("map", Type::map(Type::Text, Type::Int), Value::Map([(text, Value::Int(1))].into_iter().collect())),
        ("pair", Type::tuple(vec![Type::Int, Type::Bool]), Value::Record([Value::Int(1), Value::Bool(false)].into())),
    ];
    let with = |(name, ty, default)| Field {
        default: Some(default),
        external: Some(format!("the {name}").into()),
        ..Field::new(name, ty)
    };
    defaults.map(with).into()
}

/// Returns a type that contains every kind of type.
fn everything() -> TypeOf {
    let pair = Type::tuple(vec![Type::option(Type::Time), Type::result(Type::Unit, Type::Failure)]);
    let by_name = Type::map(Type::Text, Type::list(Type::named("blog.Post")));
    let fields = vec![field("size", Type::Size), field("kind", Type::named("Kind")), field("pair", pair)];
    let plain = Variant { external: Some("a \"plain\" one".into()), ..Variant::new("Plain", Vec::new()) };
    let tagged = Variant::new("Tagged", vec![field("0", Type::Float), field("1", Type::Bool)]);
    let named = Variant::new("Named", vec![field("since", Type::Duration)]);
    let definitions = vec![
        defined("blog.Post", TypeShape::Record(fields)),
        defined("Kind", TypeShape::Enum(vec![plain, tagged, named])),
        defined("Nothing", TypeShape::Record(Vec::new())),
        defined("Defaults", TypeShape::Record(defaults())),
    ];
    TypeOf { ty: by_name, definitions }
}

#[test]
fn the_text_of_a_type_is_read_back() {
    let of = everything();
    let text = of.to_string();
    assert_eq!(TypeOf::read(&text).unwrap(), of);
    assert_eq!(
        text.split_once("; record Defaults").unwrap().0,
        "Map(Text, List(blog.Post)); record blog.Post {size: Size, kind: Kind, \
         pair: (Option(Time), Result((), Failure))}; enum Kind {Plain() as \"a \\\"plain\\\" one\", Tagged(0: Float, 1: Bool), \
         Named(since: Duration)}; record Nothing {}"
    );
}

#[test]
fn malformed_type_text_is_refused_with_its_position() {
    for text in [
        "",
        "List(",
        "List()",
        "List(Int",
        "Int Int",
        "Int; thing A {}",
        "Int; record A {x}",
        "Int; enum A {B}",
        "Int; record A {x: Int = }",
        "Int; record A {x: Int = [1}",
        "Int; record A {x: Int as }",
        "Int; record A {x: Int as \"}",
    ] {
        let failure = TypeOf::read(text).unwrap_err();
        assert!(failure.message.contains("expected"), "{text}: {failure}");
    }
    assert!(TypeOf::read(&"List(".repeat(100_000)).is_err());
    assert!(TypeOf::read(&format!("Int; record A {{x: Int = {}", "[".repeat(100_000))).is_err());
}

#[test]
fn a_function_gets_the_value_and_its_type() {
    let typed: Typed<'a'> = Typed { value: Value::Int(7), of: everything().into() };
    let again = Typed::<'T'>::from_value(typed.clone().into_value().unwrap()).unwrap();
    assert_eq!((again.value, again.of), (typed.value, typed.of));
    assert!(Typed::<'T'>::from_value(Value::Int(7)).is_err());
}
