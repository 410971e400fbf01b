//! Switches that evaluate their conditions by themselves, under every engine.

use test_support::flows::gates::{Gates, library};
use test_support::flows::{Feed, options, start_expr};
use weir_host::{Value, World};
use weir_runtime::ENGINES;

/// Lines that compute `%9: Bool` from `%0: Int`, and the value of `%9` for 0 to 4.
const CONDITIONS: [(&str, [bool; 5]); 9] = [
    ("%9: Bool = less(%0, 3)", [true, true, true, false, false]),
    ("%1: Bool = less(%0, 1)\n%2: Bool = greater(%0, 3)\n%9: Bool = or(%1, %2)", [true, false, false, false, true]),
    ("%1: Bool = less(0, %0)\n%2: Bool = not_equal(%0, 2)\n%9: Bool = and(%1, %2)", [false, true, false, true, true]),
    ("%1: Bool = less_or_equal(%0, 2)\n%9: Bool = not(%1)", [false, false, false, true, true]),
    // Comparisons of truth values.
    (
        "%1: Bool = less(%0, 2)\n%2: Bool = greater_or_equal(%0, 1)\n%9: Bool = equal(%1, %2)",
        [false, true, false, false, false],
    ),
    (
        "%1: Bool = less(%0, 2)\n%2: Bool = not(%1)\n%3: Bool = not_equal(%1, %2)\n%9: Bool = and(%3, %1)",
        [true, true, false, false, false],
    ),
    // Comparisons of which an operand has waited.
    ("%1: Int = call a.wait at a (%0)\n%9: Bool = greater(%1, %0)", [false; 5]),
    ("%1: Int = call a.wait at a (%0)\n%2: Bool = equal(%0, 4)\n%3: Bool = equal(%1, 1)\n%9: Bool = or(%2, %3)", {
        [false, true, false, false, true]
    }),
    ("%9: Bool = equal(%0, %0)", [true; 5]),
];

#[test]
fn a_switch_takes_the_arm_that_its_condition_says() {
    for (condition, holds) in CONDITIONS {
        for row in ENGINES {
            let taken = (0..5).map(|number| taken(row.name, condition, number));
            let wanted = holds.map(|holds| Value::Int(if holds { 1 } else { 2 }));
            assert_eq!(taken.collect::<Vec<_>>(), wanted, "{} under {}", condition, row.name);
        }
    }
}

/// Runs a flow with this number, and returns the arm that it takes.
fn taken(engine: &'static str, condition: &str, number: i64) -> Value {
    let (feed, gates) = (Feed::new(), Gates::new());
    let mut library = library([gates.waiting("a.wait", World::Writes)]);
    feed.put(&mut library, "test", "feed");
    let lines = condition.lines().map(|line| format!("    {line}\n")).collect::<String>();
    let text = format!(
        "entry test from test.feed ordered\n  arguments\n    yield (0,)\n  flow feed (%0 x: Int) -> Int\n{lines}    \
         %10: Int = switch %9\n      value true\n        yield 1\n      otherwise\n        yield 2\n    yield %10\n"
    );
    let program = weir_ir::parse::expr(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let running = start_expr(&program, &library, options(engine, 1));
    let answer = feed.begin(vec![Value::Int(number)]);
    if condition.contains("a.wait") {
        gates.next().release();
    }
    let answer = answer.blocking_recv().expect("the flow comes to its end").expect("it cannot fail");
    drop(feed);
    running.wait().expect("nothing failed");
    answer
}
