//! Every rule of the verifier, with programs that break it and what is said of them.

use std::collections::BTreeSet;
use std::fmt::Write;

use weir_ir::generate::Recording;
use weir_ir::verify::{self, Rule, Violation};
use weir_ir::{graph, lower, parse};

/// A program around the body of its one flow.
fn program(body: &str, constants: &str) -> String {
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    format!(
        "type Pair record\n  field left: Int\n  field right: Text\n\
         type Shape enum\n  variant Point()\n  variant Circle(radius: Int)\n\
         shared hits: count.Counter\n{constants}\
         shared misses: count.Counter\n{constants}\
         shared own: count.Counter per session\n{constants}\
         entry test from a.elements ordered\n  arguments\n    yield {}\n\
         \x20 flow elements (%0 x: Int, %1 xs: List(Int), %2 shape: Shape) -> Int\n{body}",
        if constants.contains("constant") { "never" } else { "(0,)" },
    )
}

fn expression(body: &str) -> Vec<Violation> {
    let text = program(body, "  %0: count.Counter = call count.new at count.new (1000)\n  yield %0\n");
    let program = parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify::expr(&program, &Recording::new(0).library())
}

fn graph(body: &str) -> Vec<Violation> {
    let made = "  constant 1000\n  %0 count.new: count.Counter = call count.new(k0)\n  yield %0.0\n";
    let text = program(&format!("parameters Int, List(Int), Shape\n{body}"), made);
    let program = parse::graph(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify::graph(&program, &Recording::new(0).library())
}

/// Returns programs that each break one rule, each with the messages of the verifier.
fn broken(texts: &[(Rule, &str)], verify: fn(&str) -> Vec<Violation>) -> String {
    let mut said = String::new();
    for (rule, text) in texts {
        let violations = verify(text);
        assert!(violations.iter().any(|violation| violation.rule == *rule), "{rule:?}: {violations:?}\n{text}");
        let messages: String = violations.iter().map(|violation| format!("=> {violation}\n")).collect();
        writeln!(said, "{text}\n{messages}").expect("a string takes all");
    }
    said
}

const EXPRESSIONS: &[(Rule, &str)] = &[
    (Rule::Once, "%3: Int = copy(1)\n%3: Int = copy(2)\nyield %3"),
    (Rule::Once, "%3: Int = call a.mix at a.mix (1)\n%4: Int = call a.mix at a.mix (2)\nyield %4"),
    (Rule::Scope, "%3: Int = copy(%4)\n%4: Int = copy(1)\nyield %3"),
    (Rule::Scope, "%3: List(Int) = for %4: Int in %1\n  %5: Int = copy(%4)\n  yield %5\nyield %5"),
    (Rule::Known, "%3: Int = call a.absent at a.absent (1)\nyield %3"),
    (Rule::Known, "%3: Int = call count.value at count.value (shared absent, 1)\nyield %3"),
    (Rule::Types, "%3: Int = add(1, \"a\")\nyield %3"),
    (Rule::Types, "%3: Int = add(1)\nyield %3"),
    (Rule::Types, "%3: Text = field.0(%0)\nyield 1"),
    (Rule::Types, "%3: Pair = record(1)\nyield 1"),
    (Rule::Types, "%3: Shape = variant.2()\nyield 1"),
    (Rule::Types, "%3: Bool = less(1, \"a\")\nyield 1"),
    (Rule::Types, "%3: Int = call a.half at a.half (1)\nyield %3"),
    (Rule::Types, "%3: Int = call a.mix at a.mix (true)\nyield %3"),
    (Rule::Types, "%3: Int = call a.mix at a.mix (1, 2)\nyield %3"),
    (Rule::Types, "%3: Int = call count.add at count.add (%1, 2)\nyield %3"),
    (Rule::Types, "yield \"a\""),
    (Rule::Types, "%3: Never = return \"a\"\nyield ()"),
    (Rule::Types, "%3: Int = return 1\nyield %3"),
    (Rule::Types, "%3: Int = loop 0 at most 0 as %4: Int\n  yield (1, true)\nyield %3"),
    (Rule::Types, "%3: Int = loop 0 at most 9 as %4: Int\n  yield %4\nyield %3"),
    (Rule::Types, "%3: Int = for %4: Int in %1\n  yield %4\nyield %3"),
    (Rule::Types, "%3: Int = fold %1 from \"a\" as %4: Int, %5: Int\n  yield %4\nyield %3"),
    (Rule::Types, "%3: Int = atomic (write shared hits)\n  %4: Never = return 1\n  yield ()\nyield %3"),
    (Rule::Types, "%3: Option(Int) = within 5\n  yield 1\nyield 1"),
    (Rule::Types, "%3: Int = within 5ms\n  yield 1\nyield %3"),
    (Rule::Types, "%3: Int = race\n  branch\n    yield 1\n  branch\n    yield \"a\"\nyield %3"),
    (Rule::Types, "%3: Int = race\nyield 1"),
    (Rule::Types, "%3: Result(Int, Failure) = catch\n  yield 1\nyield 1"),
    (Rule::Types, "%3: Result(Int, (Failure, Int)) = catch\n  yield \"a\"\nyield 1"),
    (
        Rule::Scope,
        "%3: count.Counter = call count.new at count.new (1)\n%4: Option(Int) = within 5ms\n  \
         %5: Int = call count.add at count.add (%3, 1)\n  yield %5\n\
         %6: Int = call count.finish at count.finish (%3)\nyield %6",
    ),
    (Rule::Cover, "%3: Int = switch %2\n  tag 0\n    yield 1\nyield %3"),
    (Rule::Cover, "%3: Int = switch %0\n  value 5\n    yield 1\nyield %3"),
    (Rule::Cover, "%3: Int = switch %2\n  tag 7\n    yield 1\n  otherwise\n    yield 2\nyield %3"),
    (Rule::Payload, "%3: Int = switch %2\n  tag 1 (%4: Int, %5: Int)\n    yield 1\n  otherwise\n    yield 2\nyield %3"),
    (Rule::Payload, "%3: Int = switch %2\n  tag 1 (%4: Text)\n    yield 1\n  otherwise\n    yield 2\nyield %3"),
    (Rule::Payload, "%3: Int = switch %2\n  otherwise (%4: Int)\n    yield 2\nyield %3"),
    (Rule::Reach, "%3: Never = return 1\n%4: Int = copy(1)\nyield %4"),
    (Rule::Constraints, "%3: Int = atomic (write shared misses, read shared hits)\n  yield 1\nyield %3"),
    (Rule::Constraints, "%3: Int = atomic (write shared hits, read shared hits)\n  yield 1\nyield %3"),
    (Rule::Constraints, "%3: Int = atomic (write per session shared hits)\n  yield 1\nyield %3"),
    (Rule::Constraints, "%3: Int = atomic (write shared hits) session %0\n  yield 1\nyield %3"),
    (Rule::Constraints, "%3: Int = atomic (write shared absent)\n  yield 1\nyield %3"),
    (Rule::Constraints, "%3: Int = atomic (write shared own)\n  yield 1\nyield %3"),
    (Rule::Steps, "%3: Int = call count.value at count.value (shared own, 1)\nyield %3"),
];

const GRAPHS: &[(Rule, &str)] = &[
    (Rule::Once, "%0 a: Int = copy(p0)\n%1 a: Int = copy(p0)\nyield p0"),
    (
        Rule::Once,
        "%0 a: Int = call step.next(p0) uses write state s\n%1 b: Int = call step.next(p0) after %0 uses write state s\n\
         yield p0",
    ),
    (Rule::Scope, "%0 a: Int = copy(k0)\nyield p0"),
    (Rule::Scope, "%0 a: Int = copy(p7)\nyield %0.1"),
    (Rule::Known, "%0 a: Int = call a.absent(p0)\nyield p0"),
    (Rule::Types, "%0 a: Text = copy(p0)\nyield p0"),
    (Rule::Types, "%0 a: Int = call a.mix(p1)\nyield p1"),
    (Rule::Types, "%0 a: List(Int) = for(p1)\n  parameters Text\n  yield p0\nyield p0"),
    (Rule::Types, "%0 a: Int = for(p1)\n  parameters Int\n  yield p0\nyield p0"),
    (Rule::Types, "%0 a: Int = fold(p1)\n  parameters Int, Int\n  yield p0\nyield p0"),
    (Rule::Types, "%0 a = return(p1)\nyield never"),
    (Rule::Types, "%0 a: Option(Int) = within(p0)\n  constant 1\n  yield k0\nyield p0"),
    (Rule::Types, "%0 a: Int = race(p0)\n  branch\n    constant 1\n    yield k0\nyield p0"),
    (
        Rule::Types,
        "%0 a = acquire (write shared hits) ()\n\
         %1 b: Int = race(p0, p0) after %0 uses write held shared hits within %0\n\
         \x20 branch\n    parameters Int\n\
         \x20   %0 c: Int = call count.add(shared hits, p0) uses write held shared hits\n    yield %0.0\n\
         \x20 branch\n    parameters Int\n\
         \x20   %0 d: Int = call count.value(shared hits, p0) uses read held shared hits\n    yield %0.0\n\
         %2 e = release %0 () after %1\nyield p0",
    ),
    (
        Rule::Order,
        "constant 1ms\n%0 a: Option(Int) = within(k0, p0) uses write shared hits\n  parameters Int\n\
         \x20 %0 b: Int = call a.mix(p0)\n  %1 c: Int = call count.add(shared hits, p0) uses write shared hits\n\
         \x20 yield %1.0\nyield p0",
    ),
    (Rule::Cover, "%0 a = switch(p2)\n  tag 0\nyield p0"),
    (Rule::Payload, "%0 a: Text = switch(p2)\n  tag 1 payload 1\n  otherwise\nyield p0"),
    (Rule::Constraints, "%0 a = acquire (read shared misses, read shared hits) ()\n%1 b = release %0 ()\nyield p0"),
    (
        Rule::Constraints,
        "%0 a = acquire (write shared misses) ()\n%1 b = acquire (write shared hits) () after %0 within %0\n\
         %2 c = release %1 () after %1 within %0\n%3 d = release %0 () after %2\nyield p0",
    ),
    (
        Rule::Constraints,
        "%0 a = acquire (read shared hits) ()\n\
         %1 b: Int = call count.add(shared hits, p0) after %0 uses write shared hits within %0\n\
         %2 c = release %0 () after %1\nyield p0",
    ),
    (Rule::Edges, "%0 a: Int = copy(%1.0)\n%1 b: Int = copy(p0)\nyield p0"),
    (Rule::Edges, "%0 a: Int = copy(p0) after %1\n%1 b: Int = copy(p0)\nyield p0"),
    (Rule::Edges, "%0 a: Int = copy(p0) if %1 arm 0\n%1 b = switch(p2)\n  otherwise\nyield p0"),
    (Rule::Control, "%0 a = switch(p2)\n  otherwise\n%1 b: Int = copy(p0) if %0 arm 3\nyield p0"),
    (Rule::Control, "%0 a = switch(p2)\n  otherwise\n%1 b: Int = copy(p0) if %0 arm 0\nyield %1.0"),
    (
        Rule::Control,
        "%0 a: Int = switch(p2)\n  tag 1 payload 1\n  otherwise\n%1 b: Int = copy(%0.0) if %0 arm 1\nyield p0",
    ),
    (Rule::Control, "%0 a = switch(p2)\n  tag 1\n  otherwise\n%1 b: Int = select %0 (p0)\nyield %1.0"),
    (Rule::Control, "%0 a: Int = copy(p0)\n%1 b: Int = select %0 (p0)\nyield %1.0"),
    (
        Rule::Order,
        "%0 a: Int = call a.change(p0) uses write world a\n%1 b: Int = call a.look(p0) uses read world a\nyield p0",
    ),
    (Rule::Order, "%0 a: Int = add(p0, p0)\n%1 b: Int = call a.change(p0) uses write world a\nyield p0"),
    (
        Rule::Order,
        "constant 0\n%0 a: count.Counter = call count.new(k0)\n%1 b: Int = call count.add(%0.0, p0)\n\
         %2 c: Int = call count.value(%0.0, p0)\nyield p0",
    ),
    (
        Rule::Order,
        "constant 0\n%0 a: count.Counter = call count.new(k0)\n%1 b: Int = call count.value(%0.0, p0)\n\
         %2 c: Int = call count.finish(%0.0)\nyield p0",
    ),
    (Rule::Uses, "%0 a: Int = call a.change(p0)\nyield p0"),
    (Rule::Uses, "%0 a: Int = call a.look(p0) uses write world a\nyield p0"),
    (Rule::Uses, "%0 a: Int = call count.value(shared hits, p0) uses read held shared hits\nyield p0"),
    (Rule::Uses, "%0 a: Int = call step.next(p0)\nyield p0"),
    (
        Rule::Uses,
        "%0 a: List(Int) = for(p1)\n  parameters Int\n  %0 b: Int = call a.look(p0) uses read world a\n  yield p0\n\
         yield p0",
    ),
    (Rule::Steps, "%0 a = acquire (write shared hits) ()\nyield p0"),
    (Rule::Steps, "%0 a: Int = copy(p0)\n%1 b = release %0 ()\nyield p0"),
    (Rule::Steps, "%0 a: Int = copy(p0)\n%1 b: Int = copy(p0) within %0\nyield p0"),
    (
        Rule::Steps,
        "%0 a = acquire (write shared hits) ()\n%1 b: Int = call a.mix(p0) within %0\n%2 c = release %0 () after %1\n\
         yield p0",
    ),
    (
        Rule::Steps,
        "%0 a = acquire (write shared hits) ()\n%1 b: Int = call a.mix(p0) after %0 within %0\n%2 c = release %0 ()\n\
         yield p0",
    ),
    (Rule::Steps, "%0 a: Int = call count.value(shared own, p0) uses read shared own\nyield p0"),
    (Rule::Conditions, "%0 a: Bool = less(p0, p0) condition of %1\n%1 b: Int = copy(p0)\nyield p0"),
    (Rule::Conditions, "%0 a: Int = copy(p0) condition of %1\n%1 b = switch(%0.0)\n  otherwise\nyield p0"),
    (
        Rule::Conditions,
        "%0 a: Bool = less(p0, p0) condition of %2\n%1 c: Bool = copy(%0.0)\n%2 b = switch(%0.0)\n  otherwise\nyield p0",
    ),
    (
        Rule::Conditions,
        "%0 a: Bool = less(p0, p0) condition of %2\n%1 c: Bool = not(%0.0)\n%2 b = switch(%1.0)\n  otherwise\nyield p0",
    ),
    (
        Rule::Conditions,
        "%0 n: Int = copy(p0)\n%1 a: Bool = less(%0.0, p0) condition of %3\n\
         %2 c: Int = call data.raise(%0.0, p0) after %1\n%3 b = switch(%1.0)\n  otherwise\nyield p0",
    ),
    (
        Rule::Conditions,
        "%0 n: Int = copy(p0)\n%1 a: Bool = less(%0.0, p0) condition of %3\n\
         %2 c: List(Int) = for(p1, %0.0) after %1\n  parameters Int, Int\n  %0 d: Int = call data.raise(p1, p0)\n  yield p0\n\
         %3 b = switch(%1.0)\n  otherwise\nyield p0",
    ),
    (
        Rule::Steps,
        "%0 z: Int = call a.mix(p0)\n%1 a = acquire (write shared hits) ()\n%2 c = release %1 () after %1\nyield p0",
    ),
];

#[test]
fn expressions_that_break_a_rule() {
    insta::assert_snapshot!(broken(EXPRESSIONS, expression));
}

#[test]
fn graphs_that_break_a_rule() {
    insta::assert_snapshot!(broken(GRAPHS, graph));
}

#[test]
fn every_rule_has_a_program_that_breaks_it() {
    use Rule::{
        Conditions, Constraints, Control, Cover, Edges, Known, Nesting, Once, Order, Payload, Reach, Scope, Steps,
        Types, Uses,
    };
    // Nesting has a test of its own.
    let shown: BTreeSet<Rule> = EXPRESSIONS.iter().chain(GRAPHS).map(|(rule, _)| *rule).chain([Nesting]).collect();
    let all = [
        Once,
        Scope,
        Known,
        Types,
        Cover,
        Payload,
        Reach,
        Constraints,
        Nesting,
        Edges,
        Control,
        Order,
        Uses,
        Steps,
        Conditions,
    ];
    assert_eq!(shown, all.into_iter().collect());
}

#[test]
fn the_end_of_a_stream_takes_nothing_and_is_one() {
    let ends = |behind: &str| {
        let text = format!(
            "{}{behind}",
            program("yield %0", "  %0: count.Counter = call count.new at count.new (1)\n  yield %0\n")
        );
        let program = parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let found = verify::expr(&program, &Recording::new(0).library());
        found.into_iter().map(|violation| violation.rule).collect::<Vec<_>>()
    };
    let end = |name: &str, takes: &str| format!("  flow {name} ({takes}) -> ()\n    yield ()\n");
    assert_eq!(ends(""), []);
    assert_eq!(ends(&end("end", "")), []);
    assert_eq!(ends(&end("end", "%0: Int")), [Rule::Types]);
    assert_eq!(ends(&(end("end", "") + &end("more", ""))), [Rule::Once]);
    assert_eq!(ends("  flow end () -> Int\n    yield 1\n"), [Rule::Types]);
}

#[test]
fn a_body_that_nests_too_deep_is_refused() {
    let mut program = parse::expr(&program("yield %0", "  yield ()\n")).expect("it parses");
    let flow = &mut program.entries[0].flows[0];
    let mut next = 10;
    for _ in 0..parse::NESTING_MAX {
        let bound = integer(&mut next);
        let inner = std::mem::replace(&mut flow.body, empty());
        let op = weir_ir::expr::Op::Atomic {
            constraints: Vec::new(),
            restores: Vec::new(),
            session: None,
            cancellable: false,
            body: inner,
        };
        let result = weir_ir::expr::Atom::Var(bound.var);
        flow.body = weir_ir::expr::Block {
            lets: vec![weir_ir::expr::Let { bound, op, origin: weir_ir::program::Origin::default() }],
            result,
        };
    }
    let violations = verify::expr(&program, &Recording::new(0).library());
    assert!(violations.iter().any(|violation| violation.rule == Rule::Nesting), "{violations:?}");
}

fn integer(next: &mut u32) -> weir_ir::expr::Variable {
    *next += 1;
    weir_ir::expr::Variable { var: weir_ir::expr::Var(*next), name: "".into(), ty: weir_host::Type::Int }
}

fn empty() -> weir_ir::expr::Block {
    weir_ir::expr::Block { lets: Vec::new(), result: weir_ir::expr::Atom::Value(weir_host::Value::Unit) }
}

#[test]
fn a_source_that_is_not_there_is_refused() {
    let text = "entry test from a.absent ordered\n  arguments\n    yield ()\n";
    let program = parse::expr(text).expect("it parses");
    let violations = verify::expr(&program, &Recording::new(0).library());
    assert_eq!(
        violations.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["test: there is no source `a.absent` (Known)"]
    );
}

#[test]
fn a_graph_that_lost_an_edge_is_refused() {
    let text = program(
        "%3: Int = call a.change at a.change (%0)\n%4: Int = call a.look at a.look (1)\nyield %4",
        "  %0: count.Counter = call count.new at count.new (1000)\n  yield %0\n",
    );
    let library = Recording::new(0).library();
    let mut graph: graph::Program = lower(&parse::expr(&text).expect("it parses"), &library);
    assert_eq!(verify::graph(&graph, &library), []);
    graph.entries[0].flows[0].body.nodes[1].after.clear();
    assert_eq!(verify::graph(&graph, &library)[0].rule, Rule::Order);
}

#[test]
fn a_part_that_moves_out_while_something_may_still_read_it_is_refused() {
    let cases = [
        // Read afterwards, read beside it, and read as a part of the result of the graph.
        ("%0 r: Pair = record(p0, k0)\n%1 a: Text = detach_field.1(%0.0)\n%2 b: Text = field.1(%0.0)\nyield p0", true),
        ("%0 r: Pair = record(p0, k0)\n%1 b: Text = field.1(%0.0)\n%2 a: Text = detach_field.1(%0.0)\nyield p0", true),
        (
            "%0 l: List(Text) = list(k0)\n%1 a: Text = detach_element(%0.0, p0)\n%2 b: Text = index(%0.0, k1)\nyield p0",
            true,
        ),
        (
            "%0 l: List(Text) = list(k0)\n%1 a: Text = detach_element(%0.0, p0)\n%2 b: List(Text) = call data.replace(%0.0, k1, k0)\nyield p0",
            true,
        ),
        // Read before, not read, and replaced.
        (
            "%0 r: Pair = record(p0, k0)\n%1 b: Text = field.1(%0.0)\n%2 a: Text = detach_field.1(%0.0) after %1\nyield p0",
            false,
        ),
        (
            "%0 r: Pair = record(p0, k0)\n%1 a: Text = detach_field.1(%0.0)\n%2 b: Int = field.0(%0.0)\nyield %2.0",
            false,
        ),
        (
            "%0 l: List(Text) = list(k0)\n%1 a: Text = detach_element(%0.0, p0)\n%2 b: List(Text) = call data.replace(%0.0, p0, k0)\nyield p0",
            false,
        ),
    ];
    for (body, is_refused) in cases {
        let violations = graph(&format!("constant \"\"\nconstant 0\n{body}"));
        let rules: Vec<Rule> = violations.iter().map(|violation| violation.rule).collect();
        assert_eq!(rules, if is_refused { vec![Rule::Order] } else { vec![] }, "{body}\n{violations:?}");
    }
}

#[test]
fn a_part_of_a_captured_value_does_not_move_out() {
    let body = "constant \"\"\n%0 r: Pair = record(p0, k0)\n%1 each: List(Int) = for(p1, %0.0)\n  parameters Int, Pair\n  \
                %0 a: Text = detach_field.1(p1)\n  yield p0\nyield p0";
    assert_eq!(graph(body).iter().map(|violation| violation.rule).collect::<Vec<_>>(), [Rule::Order]);
}
