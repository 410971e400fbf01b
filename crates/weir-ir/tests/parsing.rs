//! The textual form: what it looks like, and what is said of texts that are not of it.

use std::sync::Arc;

use weir_host::{Failure, FailureKind, Type, Value};
use weir_ir::expr::{Atom, Block};
use weir_ir::generate::Recording;
use weir_ir::parse::{self, ParseError};
use weir_ir::program::{Program, SharedValue};
use weir_ir::{lower, print};

fn sharing(ty: Type, value: Value) -> Program<Block> {
    let init = Block { lets: Vec::new(), result: Atom::Value(value) };
    Program { shared: vec![SharedValue { name: "x".into(), ty, per_session: false, init }], ..Program::default() }
}

fn constants() -> Vec<Value> {
    let record = |fields: &[Value]| Value::Record(fields.into());
    let int = Value::Int;
    vec![
        Value::Unit,
        Value::Bool(true),
        int(i64::MIN),
        int(i64::MAX),
        Value::Float(-0.0),
        Value::Float(1e300),
        Value::Float(5e-324),
        Value::Float(f64::INFINITY),
        Value::Float(f64::from_bits(0xfff8_0000_0000_1234)),
        Value::Time(-5),
        Value::Duration(90_000_000_000),
        Value::Duration(i64::MIN),
        Value::Size(u64::MAX),
        Value::Size(64 << 20),
        Value::text("a \"quoted\"\n\t\\ line, \u{7f} ü→\r"),
        Value::bytes(vec![0, 15, 255]),
        Value::bytes(Vec::new()),
        Value::list(vec![]),
        Value::list(vec![int(1), int(-1)]),
        Value::Map([(Value::text("a"), int(1)), (Value::text("b"), int(2))].into_iter().collect()),
        Value::Map(weir_host::Entries::default()),
        record(&[]),
        record(&[int(1)]),
        record(&[Value::Unit, record(&[int(1), Value::Bool(false)])]),
        Value::none(),
        Value::some(Value::some(Value::none())),
        Value::Variant(7, Some([].into())),
        Value::Failure(Box::new(Failure::new(FailureKind::Timeout, "too \"late\""))),
        Value::Absent,
    ]
}

/// The places of an operation and of the calls around it lead from the inside out.
#[test]
fn inlined_calls_print_and_parse_back() {
    let text = "inlined 0 outer @10..18\ninlined 1 inner @30..38 in call 0\nshared x: Int\n  \
                %0: Int = add(1, 2) @50..55 in call 1\n  yield %0\n";
    let program = parse::expr(text).expect("the text is a program");
    assert_eq!(print::expr(&program), text);
    let around = program.inlined_calls_around(program.shared[0].init.lets[0].origin);
    let around: Vec<_> = around.map(|(_, call)| (call.function.as_str(), call.called_at.start)).collect();
    assert_eq!(around, [("inner", 30), ("outer", 10)]);
}

#[test]
fn a_call_that_keeps_its_failure_prints_and_parses_back() {
    let text = "shared x: Int\n  %0: Result(Int, Failure) = call a.look at a.look (1) keeps failure\n  \
                %1: Int = unwrap(%0)\n  yield %1\n";
    let program = parse::expr(text).expect("the text is a program");
    assert_eq!(print::expr(&program), text);
    let graph = print::graph(&lower(&program, &Recording::new(0).library()));
    assert!(graph.contains("call a.look keeps failure"), "{graph}");
    assert_eq!(parse::graph(&graph).map(|parsed| print::graph(&parsed)), Ok(graph));
}

#[test]
fn every_sort_of_constant_prints_and_parses_back() {
    for value in constants().into_iter().filter(|value| !value.is_absent()) {
        let program = sharing(Type::Int, value);
        let text = print::expr(&program);
        assert_eq!(parse::expr(&text), Ok(program), "{text}");
    }
}

#[test]
fn every_sort_of_type_prints_and_parses_back() {
    let named = |name: &str| Type::Named(name.into());
    let types = [
        Type::Never,
        Type::Tuple([].into()),
        Type::Tuple([Type::Int].into()),
        Type::Tuple([Type::Int, Type::Unit].into()),
        Type::map(Type::Text, Type::list(Type::option(named("http.Response")))),
        Type::result(Type::Parameter("T".into()), Type::Failure),
        named("Int"),
        named("two words"),
        Type::Function(Arc::new((vec![Type::Int, Type::Size], Type::Duration))),
    ];
    for ty in types {
        let program = sharing(ty, Value::Unit);
        let text = print::expr(&program);
        assert_eq!(parse::expr(&text), Ok(program), "{text}");
    }
}

#[test]
fn a_whole_program_reads_well() {
    let program = parse::expr(PROGRAM).expect("it parses");
    assert_eq!(print::expr(&program), PROGRAM);
}

const PROGRAM: &str = r#"type image.Ppm shareable
  doc "A picture."
type tcp.Connection moved
type Post record
  field title: Text
  field tags: List(Text)
type Shape enum
  variant Circle(radius: Float)
  variant Point()
shared hits: count.Counter
  %0: count.Counter = call count.new at count.new (0)
  yield %0
entry images from http.http unordered
  arguments
    yield (8080,)
  flow "get /{name}" (%0 name: Text, %1 scale: Int) -> Int
    route GET "/{name}"
      parameter name in path
      parameter scale in query = 8
    %2: Result(Text, Failure) = call files.read at files.read#2 ("a", shared hits) @12..20
    %3 text: Text = switch %2
      tag 0 (%4 text: Text)
        yield %4
      otherwise
        %5: Never = fail failure(program, "no")
        yield ()
    %6: List(Int) = for %7 x: Int in [1, 2]
      yield %7
    %8: Int = fold [1, 2] from 0 as %9: Int, %10: Int
      yield %9
    %18: Option(Int) = within 200ms
      yield 1
    %19: Int = race
      branch
        %20: Int = copy(1)
        yield %20
      branch
        yield 2
    %21: Result(Int, (Failure, Int)) = catch
      yield 1
    %11: Int = loop 0 at most 5 as %12: Int
      yield (1, true)
    %13: Int = atomic (write per session shared hits, read constraint db) restores (hits) session %3
      %14: Int = payload.0(#1(5))
      yield %14
    yield %13
"#;

fn error(text: &str) -> String {
    parse::expr(text).map(|program| format!("{program:?}")).unwrap_or_else(|error| error.to_string())
}

#[test]
fn errors_say_the_line_and_what_was_expected() {
    let texts = [
        "nonsense",
        "shared x",
        "shared x: Int",
        "shared x: Int\n  yield",
        "shared x: Int\n  yield 5furlongs",
        "shared x: Int\n  yield 99999999999999999999",
        "shared x: Int\n   yield 5",
        "shared x: Int\n    yield 5",
        "shared x: Int\n  %0 = copy(1)",
        "shared x: Int\n  %0: Int = leap(1)\n  yield %0",
        "shared x: Int\n  %0: Int = field(1)\n  yield %0",
        "shared x: Int\n  %0: Int = add(1 2)\n  yield %0",
        "shared x: Int\n  yield \"open",
        "shared x: Int\n  yield \"\\q\"",
        "shared x: Int\n  yield \"\\u{d800}\"",
        "shared x: Int\n  yield bytes(0)",
        "shared x: Int\n  yield <image.Ppm>",
        "shared x: Int\n  yield 5 5",
        "entry a from b",
        "entry a from b ordered\n  flow",
        "type A strange",
    ];
    let said: String = texts.iter().map(|text| format!("{text}\n=> {}\n\n", error(text))).collect();
    insta::assert_snapshot!(said);
}

#[test]
fn nodes_out_of_order_are_an_error() {
    let text = "shared x: Int\n  %1 a: Int = copy(p0)\n  yield p0";
    let error = parse::graph(text).expect_err("node 0 is missing").to_string();
    assert_eq!(
        error,
        "line 2, column 3: expected `%0`, for nodes are numbered in their order, or `yield`, found `%1 a: Int = copy(p0)`"
    );
}

#[test]
fn nesting_is_bounded() {
    let deep = |open: &str, close: &str| {
        let (open, close) = (open.repeat(100_000), close.repeat(100_000));
        error(&format!("shared x: Int\n  yield {open}{close}"))
    };
    assert!(deep("[", "]").contains("at most 256 levels of nesting"));
    assert!(deep("#1(", ")").contains("at most 256 levels of nesting"));
    let types = error(&format!("shared x: {}Int", "List(".repeat(100_000)));
    assert!(types.contains("at most 256 levels of nesting"));
    let indented = parse::expr(&format!("{}yield 5", " ".repeat(100_000)));
    assert!(matches!(indented, Err(ParseError { line: 1, .. })));
}

#[test]
fn no_damage_to_a_text_makes_the_parser_panic() {
    let text = PROGRAM;
    for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
        _ = parse::expr(&text[..at]);
        for mark in ["(", ")", "\"", "%", "#", "é", "\n", "-", "9"] {
            let damaged = format!("{}{mark}{}", &text[..at], &text[at..]);
            _ = parse::expr(&damaged);
            _ = parse::graph(&damaged);
        }
    }
}
