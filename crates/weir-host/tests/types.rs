//! `#[derive(weir::Type)]`: conversion of Rust types to Weir and back.

#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

use weir::{HostType, Type, TypeDefinition, TypeShape, Value};

/// A post.
#[derive(weir::Type, Debug, PartialEq, Clone)]
struct Post {
    id: PostId,
    title: String,
    replies: Vec<Post>,
    state: State,
}

#[derive(weir::Type, Debug, PartialEq, Clone, Copy)]
struct PostId(i64);

#[derive(weir::Type, Debug, PartialEq, Clone)]
struct Point(f64, f64);

#[derive(weir::Type, Debug, PartialEq, Clone)]
struct Nothing;

#[derive(weir::Type, Debug, PartialEq, Clone)]
#[weir(name = "blog.State")]
enum State {
    Draft,
    Due(i64, String),
    Out { at: Point },
}

#[derive(weir::Type, Debug, PartialEq, Clone)]
#[weir(opaque, name = "image.Ppm")]
struct Ppm(Vec<u8>);

#[derive(weir::Type, Debug, PartialEq)]
#[weir(opaque, unique)]
struct Connection {
    id: u32,
}

#[track_caller]
fn there_and_back<T: HostType + Clone + PartialEq + std::fmt::Debug>(rust: &T, shown: &str) {
    let value = rust.clone().into_value().unwrap();
    assert_eq!(value.to_string(), shown);
    assert_eq!(&T::from_value(value.clone()).unwrap(), rust, "shared");
    let copy = rust.clone().into_value().unwrap();
    assert_eq!(&T::from_value(copy).unwrap(), rust, "moved");
}

fn post(replies: Vec<Post>) -> Post {
    Post { id: PostId(7), title: "Water".into(), replies, state: State::Due(3, "May".into()) }
}

#[test]
fn a_struct_is_a_record() {
    there_and_back(&post(vec![]), r#"(7, "Water", [], #1(3, "May"))"#);
    let nested = post(vec![post(vec![])]);
    there_and_back(&nested, r#"(7, "Water", [(7, "Water", [], #1(3, "May"))], #1(3, "May"))"#);
}

#[test]
fn an_enum_has_its_variants_by_their_place() {
    there_and_back(&State::Draft, "#0");
    there_and_back(&State::Out { at: Point(1.0, 2.5) }, "#2((1.0, 2.5))");
}

#[test]
fn a_tuple_struct_becomes_its_contents() {
    assert_eq!(PostId::ty(), Type::Int);
    assert_eq!(Point::ty().to_string(), "(Float, Float)");
    there_and_back(&PostId(4), "4");
    there_and_back(&Point(0.5, 1.0), "(0.5, 1.0)");
    there_and_back(&Nothing, "()");
}

fn definitions<T: HostType>() -> String {
    let mut definitions = Vec::new();
    T::define(&mut definitions);
    definitions.iter().map(describe).collect::<Vec<_>>().join("\n")
}

fn describe(definition: &TypeDefinition) -> String {
    let fields = |fields: &[weir::Field]| {
        fields.iter().map(|field| format!("{}: {}", field.name, field.ty)).collect::<Vec<_>>().join(", ")
    };
    let shape = match &definition.shape {
        TypeShape::Record(parts) => format!("{{ {} }}", fields(parts)),
        TypeShape::Enum(variants) => {
            variants.iter().map(|v| format!("{}({})", v.name, fields(&v.fields))).collect::<Vec<_>>().join(" | ")
        }
        TypeShape::Opaque { shareable } => format!("opaque, shareable: {shareable}"),
    };
    format!("{} = {shape} // {}", definition.name, definition.doc)
}

#[test]
fn a_type_defines_all_that_it_mentions_once() {
    assert_eq!(
        definitions::<Post>(),
        "Post = { id: Int, title: Text, replies: List(Post), state: blog.State } // A post.\n\
         blog.State = Draft() | Due(0: Int, 1: Text) | Out(at: (Float, Float)) // "
    );
    assert_eq!(definitions::<Vec<Option<Ppm>>>(), "image.Ppm = opaque, shareable: true // ");
    assert_eq!(definitions::<Connection>(), "Connection = opaque, shareable: false // ");
}

#[test]
fn an_opaque_value_is_cloned_only_if_it_is_shared() {
    let mut value = Ppm(vec![1]).into_value().unwrap();
    let other = value.clone();
    Ppm::in_place_mut(&mut value).unwrap().0.push(2);
    assert_eq!(Ppm::in_place(&value).unwrap().0, [1, 2]);
    assert_eq!(Ppm::in_place(&other).unwrap().0, [1]);
    let place = Ppm::in_place(&value).unwrap().0.as_ptr();
    assert_eq!(Ppm::from_value(value).unwrap().0.as_ptr(), place, "the last holder gets the value itself");
}

#[test]
fn a_unique_value_is_moved() {
    let value = Connection { id: 3 }.into_value().unwrap();
    let failure = Connection::from_value(value.clone()).unwrap_err();
    assert_eq!(failure.to_string(), "must be Connection, but was moved: it cannot be shared");
    assert_eq!(Connection::from_value(value).unwrap().id, 3);
}

#[derive(weir::Type, Debug, PartialEq, Clone)]
enum Chain {
    End,
    Link { next: Box<Chain> },
}

#[test]
fn a_value_deeper_than_json_may_be_is_no_value_of_rust() {
    let chain = |links: usize| (0..links).fold(Value::Variant(0, None), |next, _| Value::variant(1, [next]));
    for _ in 0..2 {
        assert!(Chain::from_value(chain(127)).is_ok());
        let failure = Chain::from_value(chain(100_000)).unwrap_err();
        assert_eq!(failure.to_string(), "the value nests more than 127 deep, which is too deep for this function");
    }
    there_and_back(&Chain::Link { next: Box::new(Chain::End) }, "#1(#0)");
}

#[test]
fn a_value_of_another_type_is_refused_with_both() {
    let failure = Post::from_value(Value::text("Water")).unwrap_err();
    assert_eq!(failure.to_string(), "must be Post, not Water");
    let record = Value::Record([Value::Int(1), Value::Int(2)].into());
    assert_eq!(Post::from_value(record).unwrap_err().to_string(), "`title`: must be Text, not 2");
}
