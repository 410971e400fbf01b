//! Bodies with more operations than a region has registers: several regions run them, one behind the other.

use std::fmt::Write;

use test_support::flows::gates::library;
use weir_host::{Failure, Value};
use weir_ir::evaluate::Evaluator;
use weir_ir::expr::Program;
use weir_runtime::{Options, regions, run_on_calling_thread};

/// The number of statements. Before regions were bounded, a body of as many stayed steps as a whole.
const STATEMENTS: usize = 6_000;

/// Returns a program of statements that use values from shortly and from long before. Some choose between two arms, and the
/// results of the others grow until they overflow if the parameter is large.
fn long_program() -> Program {
    let mut body = String::new();
    let mut next = 1;
    let mut values = vec![0];
    for statement in 0..STATEMENTS {
        let (last, far) = (values[values.len() - 1], values[(statement * 7 + 3) % values.len()]);
        // Writing to a `String` cannot fail.
        _ = match statement % 3 {
            0 => writeln!(body, "    %{next}: Int = add(%{last}, %{far})"),
            1 => writeln!(body, "    %{next}: Int = remainder(%{last}, {})", 1_000_003 + statement),
            _ => {
                let (test, chosen, in_arm) = (next, next + 1, next + 2);
                next += 2;
                values.push(chosen);
                let arms = format!(
                    "      value true\n        %{in_arm}: Int = subtract(%{last}, %{far})\n        yield %{in_arm}\n      \
                     otherwise\n        yield %{far}\n"
                );
                writeln!(body, "    %{test}: Bool = less(%{far}, %{last})")
                    .and_then(|()| write!(body, "    %{chosen}: Int = switch %{test}\n{arms}"))
            }
        };
        if statement % 3 != 2 {
            values.push(next);
        }
        next += 1;
    }
    let text = format!(
        "entry test from test.feed ordered\n  arguments\n    yield (0,)\n  flow feed (%0 x: Int) -> Int\n{body}    \
         yield %{}\n",
        values[values.len() - 1]
    );
    weir_ir::parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the answers of the evaluator.
fn evaluated(program: &Program, inputs: &[i64]) -> Vec<Result<Value, Failure>> {
    let library = library(Vec::new());
    let mut evaluator = Evaluator::new(program, &library).expect("there are no shared values");
    inputs.iter().map(|input| evaluator.run(0, 0, vec![Value::Int(*input)]).map_err(|failure| *failure)).collect()
}

#[test]
fn a_large_body_is_several_regions_that_give_the_evaluators_answers() {
    let (program, library) = (long_program(), library(Vec::new()));
    let graph = weir_ir::lower(&program, &library);
    let listing = regions(&graph, &library).expect("the program can be prepared");
    let (formed, bounded) =
        (listing.matches(": region of ").count(), listing.matches("it would become too large").count());
    assert!(formed > 4 && bounded == formed - 1 && !listing.contains("stay"), "{formed} regions, {bounded} bounded");
    let inputs = [5, -3, 0, 999_999_937, i64::MAX, i64::MIN];
    let flows = inputs.map(|input| vec![Value::Int(input)]);
    let found = run_on_calling_thread(&graph, &library, &Options::default(), flows).expect("it starts");
    let expected = evaluated(&program, &inputs);
    assert_eq!(found, expected);
    assert!(expected.iter().any(Result::is_ok) && expected.iter().any(Result::is_err), "{expected:?}");
}
