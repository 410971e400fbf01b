//! Programs and their results under the reference evaluator.

use weir_host::{Effects, Failure, Function, FunctionCode, Module, Outcome, Signature, Type, Value, World};
use weir_ir::evaluate::Evaluator;
use weir_ir::generate::Recording;
use weir_ir::{parse, verify};

/// Runs the flow of this body once for each input, and says the answers, one a line, and the effects.
fn run(parameters: &str, result: &str, body: &str, inputs: &[Value]) -> String {
    let body: String = body.lines().map(|line| format!("    {line}\n")).collect();
    let text = format!(
        "type Shape enum\n  variant Point()\n  variant Circle(radius: Int)\n\
         shared hits: count.Counter\n  %0: count.Counter = call count.new at count.new (1000)\n  yield %0\n\
         entry test from a.elements ordered\n  arguments\n    yield (7,)\n  flow f ({parameters}) -> {result}\n{body}"
    );
    let program = parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let recording = Recording::new(1);
    let mut library = recording.library();
    library.add(faulty()).expect("a new module");
    assert_eq!(verify::expr(&program, &library), [], "{text}");
    let mut evaluator = Evaluator::new(&program, &library).expect("the counter is made");
    assert_eq!(evaluator.arguments(0), Ok(vec![Value::Int(7)]));
    let mut said = String::new();
    for input in inputs {
        said += &match evaluator.run(0, 0, vec![input.clone()]) {
            Ok(answer) => format!("{answer:?}\n"),
            Err(failure) => format!("{} failure: {failure}\n", failure.kind.name()),
        };
    }
    let effects = recording.effects().into_iter();
    said + &effects.map(|(resource, effects)| format!("{resource}: {}\n", effects.join(", "))).collect::<String>()
}

/// A function that panics, and one that refuses its argument.
fn faulty() -> Module {
    let function = |name: &str, code: fn() -> Outcome| Function {
        signature: Signature {
            module: "".into(),
            name: name.into(),
            doc: "".into(),
            parameters: Vec::new(),
            result: Type::Int,
            failure: None,
            effects: Effects { world: World::Pure, ..Effects::default() },
            state: None,
            batch: None,
            internal: false,
        },
        code: FunctionCode::Immediate(std::sync::Arc::new(move |_| code())),
        words: None,
        batch: None,
        types: Vec::new(),
        location: None,
    };
    Module::new("faulty", "")
        .function(function("panic", || panic!("out of ideas")))
        .function(function("refuse", || Outcome::Fault(Box::new(Failure::argument("300 is no u8")))))
}

fn ints(values: &[i64]) -> Vec<Value> {
    values.iter().copied().map(Value::Int).collect()
}

#[test]
fn arithmetic_that_overflows_ends_the_flow() {
    let said = run("%0: Int", "Int", "%1: Int = add(%0, 1)\nyield %1", &ints(&[41, i64::MAX]));
    assert_eq!(said, "42\narithmetic failure: 9223372036854775807 + 1 is out of range\n");
}

#[test]
fn the_first_arm_whose_test_holds_is_chosen() {
    let body = "%1: Text = switch %0\n  value 1\n    yield \"one\"\n  value 1\n    yield \"again\"\n  otherwise\n    yield \"many\"\nyield %1";
    assert_eq!(run("%0: Int", "Text", body, &ints(&[1, 2])), "one\nmany\n");
}

#[test]
fn a_payload_has_names_in_its_arm() {
    let body = "%1: Int = switch %0\n  tag 0\n    yield 0\n  tag 1 (%2: Int)\n    yield %2\nyield %1";
    let inputs = [Value::Variant(0, None), Value::variant(1, [Value::Int(9)])];
    assert_eq!(run("%0: Shape", "Int", body, &inputs), "0\n9\n");
}

#[test]
fn a_function_that_fails_gives_a_result() {
    let body = "%1: Result(Int, Failure) = call a.half at a.half (%0)\n%2: Int = switch %1\n  tag 0 (%3: Int)\n    yield %3\n  tag 1 (%4: Failure)\n    %5: Never = fail %4\n    yield ()\nyield %2";
    assert_eq!(run("%0: Int", "Int", body, &ints(&[8, 7])), "4\nfunction failure: 7 is odd\n");
}

#[test]
fn a_functions_own_error_type_ends_a_flow_with_what_it_says() {
    assert_eq!(
        run("%0: Int", "Int", "%1: Never = fail \"as text\"\nyield ()", &ints(&[0])),
        "program failure: as text\n"
    );
}

#[test]
fn return_leaves_from_the_depth_and_later_effects_do_not_happen() {
    let body = "%1: List(Int) = for %2: Int in [1, 2, 3]\n  %3: Int = call a.change at a.change (%2)\n  %4: () = switch %2\n    value 2\n      %5: Never = return %0\n      yield ()\n    otherwise\n      yield ()\n  yield %3\n%6: Int = call a.change at a.change#2 (9)\nyield %6";
    assert_eq!(run("%0: Int", "Int", body, &ints(&[5])), "5\na: change 1, change 2\n");
}

#[test]
fn a_failure_of_an_operation_can_be_caught_and_a_fail_cannot() {
    let caught = "%1: Result(Int, (Failure, Int)) = catch\n  %2: Int = divide(10, %0) @7..9\n  yield %2\n\
                  %3: Int = switch %1\n  tag 0 (%4: Int)\n    yield %4\n  tag 1 (%5: (Failure, Int))\n    \
                  %6: Int = field.1(%5)\n    yield %6\nyield %3";
    assert_eq!(run("%0: Int", "Int", caught, &ints(&[5, 0])), "2\n7\n");
    let failing = "%1: Result(Int, (Failure, Int)) = catch\n  %2: Never = fail failure(program, \"no\")\n  \
                   yield ()\nyield 1";
    assert_eq!(run("%0: Int", "Int", failing, &ints(&[5])), "program failure: no\n");
}

#[test]
fn folds_and_loops_hand_their_state_on() {
    let body = "%1: Int = fold %0 from 100 as %2: Int, %3: Int\n  %4: Int = subtract(%2, %3)\n  yield %4\n%5: Int = loop %1 at most 4 as %6: Int\n  %7: Int = subtract(%6, 1)\n  %8: Bool = less(%7, 90)\n  %9: (Int, Bool) = record(%7, %8)\n  yield %9\nyield %5";
    let inputs = [Value::list(ints(&[1, 9])), Value::list(ints(&[]))];
    assert_eq!(run("%0: List(Int)", "Int", body, &inputs), "89\nlimit failure: the loop was not done after 4 rounds\n");
}

#[test]
fn a_shared_value_is_one_for_all_flows() {
    let body = "%1: Int = call count.slow_add at count.slow_add (shared hits, %0)\n%2: Int = call count.value at count.value (shared hits, 0)\nyield %2";
    assert_eq!(run("%0: Int", "Int", body, &ints(&[1, 1])), "1\n4\ncounter 1000: slow_add 1, slow_add 1\n");
}

#[test]
fn each_call_site_has_a_state_of_its_own_that_outlives_the_flow() {
    let body = "%1: Int = call step.next at first (%0)\n%2: Int = call step.slow_next at second (10)\n%3: (Int, Int) = record(%1, %2)\nyield %3";
    assert_eq!(run("%0: Int", "(Int, Int)", body, &ints(&[1, 1])), "(1, 10)\n(4, 40)\n");
}

#[test]
fn what_is_changed_in_place_is_put_back_and_what_is_given_away_is_moved() {
    let body = "%1: count.Counter = call count.new at count.new (0)\n%2: List(Int) = for %3: Int in [1, 2]\n  %4: Int = call count.slow_add at count.slow_add (%1, %3)\n  yield %4\n%5: Int = call count.value at count.value (%1, 0)\n%6: Int = call count.finish at count.finish (%1)\n%7: (Int, Int) = record(%5, %6)\nyield %7";
    assert_eq!(run("%0: Int", "(Int, Int)", body, &ints(&[0])), "(5, 5)\n");
}

#[test]
fn what_can_only_be_moved_goes_through_records_variants_and_switches() {
    let body = "%1: count.Counter = call count.new at count.new (0)\n%2: Int = call count.add at count.add (%1, %0)\n%3: Option(count.Counter) = variant.1(%1)\n%4: (Option(count.Counter), Int) = record(%3, 1)\n%5: Int = field.1(%4)\n%6: Option(count.Counter) = field.0(%4)\n%7: Int = switch %6\n  tag 0\n    yield 0\n  tag 1 (%8: count.Counter)\n    %9: Int = call count.finish at count.finish (%8)\n    yield %9\nyield %7";
    assert_eq!(run("%0: Int", "Int", body, &ints(&[6])), "6\n");
}

#[test]
fn a_panic_and_a_refused_argument_end_only_their_flow() {
    let body = "%1: Int = switch %0\n  value 0\n    %2: Int = call faulty.panic at faulty.panic ()\n    yield %2\n  value 1\n    %3: Int = call faulty.refuse at faulty.refuse ()\n    yield %3\n  otherwise\n    yield %0\nyield %1";
    assert_eq!(
        run("%0: Int", "Int", body, &ints(&[0, 1, 2])),
        "panic failure: `faulty.panic` panicked: out of ideas\nargument failure: 300 is no u8\n2\n"
    );
}

#[test]
fn functions_that_wait_and_functions_that_block_are_waited_for() {
    let body = "%1: Int = call a.slow_change at a.slow_change (%0)\n%2: Int = call a.block at a.block (%1)\nyield %2";
    assert_eq!(run("%0: Int", "Int", body, &ints(&[2])), "56\na: slow_change 2 begins, slow_change 2 ends, block 33\n");
}
