//! Faults of the original Flux compiler and its programs, each shown to be absent here (Flux §§2.5, 3.1.1).
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

mod running;

use running::compiled;
use test_support::fixture;

const HEAD: &str = "use http, accounts\nshared x = accounts.new()\nshared y = accounts.new()\n";

/// Returns the steps of a program, in source order, and its diagnostics.
fn steps(body: &str) -> (Vec<String>, String) {
    let (steps, said) = marked_steps(body);
    (steps.into_iter().map(|step| step.trim_start_matches("cancellable ").to_owned()).collect(), said)
}

/// Returns the steps of a program with the marks of those in which a flow may be cancelled, and its diagnostics.
fn marked_steps(body: &str) -> (Vec<String>, String) {
    let (program, _, said, _) = compiled(&format!("{HEAD}{body}"));
    let printed = weir_ir::print::expr(&program.unwrap_or_else(|| panic!("{said}")));
    let lines = printed.lines().filter_map(|line| line.split_once("= atomic ").map(|(_, step)| step));
    (lines.map(|step| step.split(" @").next().unwrap().to_owned()).collect(), said)
}

fn routes(bodies: &[&str]) -> String {
    let routes = bodies.iter().enumerate();
    let routes = routes.map(|(at, body)| format!("  get \"/{at}\" {{\n    {body}\n    http.text(\"done\")\n  }}\n"));
    format!("service s on http(port: 1) {{\n{}}}\n", routes.collect::<String>())
}

#[test]
fn an_inversion_through_a_fn_without_constraints_is_hoisted() {
    // Fault 1: C takes y and, through a node without a constraint of its own, x.
    let fns = "fn a() { atomic x { through_b() } }\nfn through_b() { b() }\nfn b() { atomic y { y.set(\"a\", 1) } }\n\
               fn c() { atomic y { through_d() } }\nfn through_d() { if y.balance(\"a\") > 0 { d() } else { d() } }\n\
               fn d() { atomic x { x.set(\"a\", 1) } }\n";
    let (steps, said) = steps(&format!("{fns}{}", routes(&["a()", "c()"])));
    assert_eq!(
        steps,
        [
            "(write shared x)",
            "(write shared y)",
            "(write shared x, read shared y)",
            "(write shared x)",
            "(write shared x)"
        ]
    );
    assert!(said.contains("W0705"), "{said}");
}

#[test]
fn a_call_alone_counts_as_what_it_takes() {
    let (steps, said) = steps(&routes(&["atomic y { x.set(\"a\", y.balance(\"a\")) }"]));
    assert_eq!(steps, ["(write shared x, read shared y)"]);
    assert!(said.contains("W0705"), "{said}");
}

#[test]
fn steps_in_steps_are_no_loop() {
    // Fault 2: an abstract node inside an abstract node was rejected.
    let fns =
        "fn outer() { atomic x { middle() } }\nfn middle() { inner() }\nfn inner() { atomic y { y.set(\"a\", 1) } }\n";
    let (steps, said) = steps(&format!("{fns}{}", routes(&["outer()"])));
    assert_eq!(steps, ["(write shared x)", "(write shared y)"]);
    assert_eq!(said, "");
}

#[test]
fn a_reader_that_must_write_is_a_writer_from_the_start() {
    // Fault 3: a read lock, followed by a write lock on the same resource, which waits for itself.
    let (steps, said) = steps(&routes(&["atomic x {\n if x.balance(\"a\") == 0 { atomic x { x.set(\"a\", 1) } }\n }"]));
    assert_eq!(steps, ["(write shared x)", "(write shared x)"]);
    assert_eq!(said, "");
}

#[test]
fn what_is_held_is_not_taken_again() {
    // Fault 4: locks that are documented as re-entrant and are not. In the graph, only the outer step takes anything.
    let text = format!("{HEAD}{}", routes(&["atomic x, y { atomic y { y.set(\"a\", x.balance(\"a\")) } }"]));
    let library = fixture::library();
    let file = weir_syntax::SourceFile::new("case.weir", text);
    let graph = weir_compile::compile(weir_syntax::SourceId(0), &file, &library).graph.unwrap();
    let nodes = &graph.entries[0].flows[0].body.nodes;
    let taken: Vec<usize> = nodes
        .iter()
        .filter_map(|node| match &node.kind {
            weir_ir::graph::NodeKind::Acquire { constraints, .. } => Some(constraints.len()),
            _ => None,
        })
        .collect();
    assert_eq!(taken.iter().sum::<usize>(), 2, "{taken:?}");
    let mut shared = nodes.iter().flat_map(|node| &node.uses);
    let all_held = shared.all(|usage| usage.held || !matches!(usage.resource, weir::Resource::Shared(_)));
    assert!(all_held, "only the outer step takes anything");
}

#[test]
fn a_constraint_without_a_scope_holds_for_all_flows() {
    // Fault 5: a constraint without its scope was dropped, with a message and success.
    let (steps, _) = steps(&format!("constraint ledger\n{}", routes(&["atomic ledger { x.set(\"a\", 1) }"])));
    assert_eq!(steps, ["(write shared x, write constraint ledger)"]);
}

#[test]
fn a_constraint_is_held_as_a_reader_or_a_writer() {
    // `ledger?` and `ledger!` in the paper.
    let (steps, said) = steps(&format!(
        "constraint ledger\n{}",
        routes(&[
            "atomic read ledger { 1 }\n",
            "atomic ledger { 1 }\n",
            "atomic read ledger { atomic ledger { 1 } }\n"
        ])
    ));
    let (reader, writer) = ("(read constraint ledger)", "(write constraint ledger)");
    // Fault 3 again: a reader around a writer is a writer from the start.
    assert_eq!(steps, [reader, writer, writer, writer]);
    assert_eq!(said.matches("W0718").count(), 1, "{said}");
    assert_eq!(said.matches("warning").count(), said.matches("W0710").count() + 1, "{said}");
}

#[test]
fn a_constraint_is_bound_once_to_functions_and_modules() {
    let head =
        "use files\nconstraint disk on files.write, read files\nconstraint accounts_held per session on accounts.set\n";
    let service = "service s on http(port: 1) {\n  get \"/{name}\" (name: Text) {\n    session = name\n\
                   \x20   x.set(name, 1)\n    let known = files.exists(name)\n    let balance = x.balance(name)\n\
                   \x20   let kept = files.write(name, files.read(name)?)\n\
                   \x20   http.text(\"{known} {balance} {kept == Ok(())}\")\n  }\n}\n";
    let (steps, said) = steps(&format!("{head}{service}"));
    assert_eq!(
        steps,
        [
            "(write shared x, write per session constraint accounts_held) session %0",
            "(read constraint disk)",
            "(read constraint disk)",
            "(write constraint disk)"
        ]
    );
    assert!(said.contains("W0703") && said.contains("atomic disk"), "{said}");
}

#[test]
fn a_bound_call_is_part_of_the_step_around_it() {
    let head = "use files\nconstraint disk on files.write, read files\n";
    let body = "atomic y {\n  y.set(\"a\", 1)\n  if files.exists(\"a\") { x.set(\"a\", 2) }\n }\n\
                atomic disk {\n  files.write(\"b\", files.read(\"a\")?)?\n  y.set(\"a\", 3)\n }";
    let (steps, said) = steps(&format!("{head}{}", routes(&[body])));
    assert_eq!(
        steps,
        [
            "(write shared x, write shared y)",
            "(read constraint disk)",
            "(write shared y, write constraint disk)",
            "(read constraint disk)",
            "(write constraint disk)"
        ]
    );
    assert_eq!(said.matches("W0705").count(), 2, "{said}");
}

#[test]
fn the_advice_to_hold_a_constraint_keeps_its_mode() {
    let head = "constraint earlier\nconstraint later\n";
    let body = "atomic read later {\n  y.set(\"a\", 1)\n  atomic read earlier { x.set(\"a\", 1) }\n }";
    let (_, said) = steps(&format!("{head}{}", routes(&[body])));
    assert!(said.contains("`atomic read earlier, read later { … }`"), "{said}");
}

#[test]
fn only_a_call_that_is_a_step_by_itself_may_be_cancelled() {
    let head = "use files\nconstraint disk on files.exists\n";
    let bodies = ["files.exists(\"a\")", "atomic disk { files.exists(\"a\") }"];
    let (steps, said) = marked_steps(&format!(
        "{head}{}",
        routes(&bodies.map(|body| format!("let _ = {body}")).each_ref().map(String::as_str))
    ));
    assert_eq!(steps[..2], ["cancellable (write constraint disk)", "(write constraint disk)"], "{said}");
}

#[test]
fn sessions_reach_the_program() {
    // Fault 6: constraints per session were ignored by the code generator.
    let service = "service s on http(port: 1) {\n  session = name\n  get \"/{name}\" (name: Text) {\n\
                   \x20   atomic x per session { x.set(name, 1) }\n    http.text(name)\n  }\n}\n";
    let (steps, said) = steps(service);
    assert_eq!(steps.len(), 1);
    assert!(steps[0].contains("session"), "{steps:?}");
    assert_eq!(said, "");
}

#[test]
fn a_route_can_have_a_session_of_its_own() {
    // The original has one session function for each source.
    let service = "service s on http(port: 1) {\n  session = name\n\
                   \x20 get \"/{name}\" (name: Text) {\n    atomic x per session { x.set(name, 1) }\n    http.text(name)\n  }\n\
                   \x20 get \"/of/{id}\" (id: Int, other: Text) {\n    session = (id, other)\n\
                   \x20   atomic x per session { x.set(other, 1) }\n    http.text(\"done\")\n  }\n}\n";
    let (steps, said) = steps(service);
    assert_eq!(steps, ["(write per session shared x) session %0", "(write per session shared x) session %2"]);
    assert_eq!(said, "");
}

#[test]
fn a_session_of_the_service_may_be_that_of_no_route() {
    let service = "service s on http(port: 1) {\n  session = name\n\
                   \x20 get \"/{name}\" (name: Text) {\n    session = (name, 1)\n\
                   \x20   atomic x per session { x.set(name, 1) }\n    http.text(name)\n  }\n}\n";
    let (steps, said) = steps(service);
    assert_eq!((steps.len(), said.as_str()), (1, ""));
}

#[test]
fn a_call_outside_of_the_steps_of_its_session_is_one_of_them() {
    let fns = "fn add(name: Text) {\n  atomic x per session { x.set(name, x.balance(name) + 1) }\n}\n";
    let service = "service s on http(port: 1) {\n  session = name\n  get \"/{name}\" (name: Text) {\n    add(name)\n\
                   \x20   atomic y { y.set(name, 1) }\n    http.text(\"{x.balance(name)}\")\n  }\n\
                   \x20 delete \"/{name}\" (name: Text) {\n    atomic y { x.set(name, 0) }\n    http.text(name)\n  }\n}\n";
    let (steps, said) = steps(&format!("{fns}{service}"));
    assert_eq!(
        steps,
        [
            "(write per session shared x) session %0",
            "(write shared y)",
            "(read per session shared x) session %0",
            "(write per session shared x, write shared y) session %0",
            "(write per session shared x) session %0"
        ]
    );
    // The step of `y` is no longer than its use of `x`.
    assert!(!said.contains("W0705"), "{said}");
}

#[test]
fn a_flow_without_a_session_cannot_use_what_is_held_per_session() {
    let text = "service s on http(port: 1) {\n  session = name\n  get \"/{name}\" (name: Text) {\n\
                \x20   atomic x per session { x.set(name, x.balance(name) + 1) }\n    http.text(name)\n  }\n}\n\
                service t on http(port: 2) {\n  get \"/\" { http.text(\"{x.balance(\"all\")}\") }\n}\n";
    let (_, _, said, wrong) = compiled(&format!("{HEAD}{text}"));
    assert!(wrong && said.contains("E0505") && said.contains("x.balance(\"all\")"), "{said}");
}

#[test]
fn of_what_each_session_has_every_use_is_a_step_of_the_session() {
    let text = "shared own = accounts.new() per session\n\
                service s on http(port: 1) {\n  session = name\n  get \"/{name}\" (name: Text) {\n\
                \x20   atomic own, x { own.set(name, x.balance(name)) }\n    own.set(name, own.balance(name) + 1)\n\
                \x20   http.text(name)\n  }\n}\n";
    let (steps, _) = steps(text);
    assert_eq!(
        steps,
        [
            "(write per session shared own, read shared x) session %0",
            "(read per session shared own) session %0",
            "(write per session shared own) session %0"
        ]
    );
}

#[test]
fn every_way_out_of_a_match_has_a_value() {
    // The original fell through with an uninitialised output if no predicate matched.
    let (program, _, said, wrong) =
        compiled("fn word(n: Int) -> Text {\n  match n {\n    0 => \"none\"\n    1 if n > 2 => \"one\"\n  }\n}\n");
    assert!(wrong && program.is_none() && said.contains("E0401"), "{said}");
}

#[test]
fn a_handler_holds_for_what_a_fn_calls() {
    // The original silently dropped a handler of an abstract node.
    let text = format!(
        "{HEAD}fn pay() {{ x.deposit(\"a\", -1)? }}\n{}",
        routes(&["on failure of pay { http.text(\"refused\") }\n    pay()"])
    );
    assert_eq!(running::answer(&text, Vec::new()).unwrap(), "refused");
}
