//! The rounds of a `for` whose calls are in several sections.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use parking_lot::Mutex;
use test_support::flows::gates::{Gates, Waiting, function, immediate, int, with_state};
use test_support::flows::{Feed, options};
use weir_host::{Call, Function, FunctionCode, Outcome, Passing, Settled, Type, Value, World};
use weir_ir::plan::Plan;
use weir_runtime::{ENGINES, Options, queued_calls};
use weir_trace::{Detail, EventKind, Recorder, TraceEvent};

use super::{Begun, Called, PLAN, noted, parameters, plan, program, run};

/// The rounds of one `for` through two calls, whose results are the digits of the answer.
const ROUNDS: &str = "    %1: List(Int) = list(%0, 1, 2, 3, 4, 5, 6, 7)
    %2: List(Int) = for %3: Int in %1
      %4: Int = call a.first at first (%3)
      %5: Int = call b.second at second (%4)
      yield %5
    %6: Int = fold %2 from 0 as %7: Int, %8: Int
      %9: Int = multiply(%7, 10)
      %10: Int = add(%9, %8)
      yield %10
    yield %6
";

/// A function that returns its argument after `run`, which it may block its thread for.
fn stage(
    path: &'static str,
    world: World,
    blocks: bool,
    run: impl Fn(i64) + Clone + Send + Sync + 'static,
) -> Function {
    let code = if blocks {
        FunctionCode::Blocking(Arc::new(move |call: &mut Call<'_>| {
            let (x, run) = (int(call, 0), run.clone());
            Ok(Box::new(move || {
                run(x);
                Settled { outcome: Outcome::Value(Value::Int(x)), restored: Vec::new() }
            }))
        }))
    } else {
        FunctionCode::Immediate(Arc::new(move |call: &mut Call<'_>| {
            let x = int(call, 0);
            run(x);
            Outcome::Value(Value::Int(x))
        }))
    };
    function(path, &parameters(), world, code)
}

/// Rounds with a loop inside, which makes the second call; the results are the digits of the answer.
const NESTED: &str = "    %1: List(Int) = list(%0, 1, 2, 3, 4, 5, 6, 7)
    %2: List(List(Int)) = for %3: Int in %1
      %4: Int = call a.first at first (%3)
      %5: List(Int) = list(%4)
      %6: List(Int) = for %7: Int in %5
        %8: Int = call b.second at second (%7)
        yield %8
      yield %6
    %9: Int = fold %2 from 0 as %10: Int, %11: List(Int)
      %12: Int = fold %11 from %10 as %13: Int, %14: Int
        %15: Int = multiply(%13, 10)
        %16: Int = add(%15, %14)
        yield %16
      yield %12
    yield %9
";

/// Runs eight rounds of two calls. The second call of each round holds its thread until the first call of the next round
/// has begun.
fn run_rounds_that_overlap(body: &str, plan_text: &str, (world, blocks, has_state): (World, bool, bool)) {
    let (begun, order) = (Arc::new(Begun::default()), Called::default());
    let (counted, awaited) = (Arc::clone(&begun), Arc::clone(&begun));
    let [first_order, second_order] = [(); 2].map(|()| Arc::clone(&order));
    let first = stage("a.first", world, blocks, move |x| {
        first_order.lock().push(("a.first", x.to_string()));
        counted.add();
    });
    let second = stage("b.second", world, blocks, move |x| {
        let next = (x as usize + 2).min(8);
        assert!(awaited.wait_for(next), "the next round has not come to the first section");
        second_order.lock().push(("b.second", x.to_string()));
    });
    let functions = [first, second].map(|function| if has_state { with_state(function) } else { function });
    let (feed, running) = run(functions.to_vec(), body, Options { plan: plan(plan_text), ..options("event", 2) });
    let what = format!("{world:?}, blocks: {blocks}, has state: {has_state}, under\n{plan_text}");
    assert_eq!(feed.run(vec![Value::Int(0)]), Ok(Value::Int(1_234_567)), "{what}");
    drop(feed);
    running.wait().expect("the source ends");
    if world == World::Writes || has_state {
        for path in ["a.first", "b.second"] {
            let order = order.lock();
            let rounds: Vec<i64> = order.iter().filter(|of| of.0 == path).flat_map(|of| of.1.parse()).collect();
            assert_eq!(rounds, (0..8).collect::<Vec<_>>(), "{what}");
        }
    }
}

/// Calls `see` for each kind of call under each engine that has threads of its own for it.
fn for_each_kind(see: impl Fn(&str, (World, bool, bool))) {
    for engine in ["manual", "staged", "dedicated", "elastic"] {
        for (world, blocks) in
            [(World::Pure, false), (World::Writes, false), (World::Pure, true), (World::Writes, true)]
        {
            // An elastic engine decides how many threads it has for calls that do not block.
            if engine != "elastic" || blocks {
                [false, true].into_iter().for_each(|has_state| see(engine, (world, blocks, has_state)));
            }
        }
    }
}

#[test]
fn the_rounds_of_one_for_are_in_different_sections_at_the_same_time() {
    for_each_kind(|engine, kind| {
        let plan = PLAN.replace("manual", engine).replace("threads = 1", "threads = 2");
        run_rounds_that_overlap(ROUNDS, &plan, kind);
    });
}

#[test]
fn rounds_overlap_with_a_loop_inside_that_the_plan_puts_into_a_section() {
    for_each_kind(|engine, kind| {
        // The plan names the calls of the inner loop, and those beside it or not.
        let both = PLAN.replace("manual", engine);
        let second = both.replace("[[section]]\nname = \"one\"\nnodes = [\"first\"]\n", "");
        run_rounds_that_overlap(NESTED, &both, kind);
        run_rounds_that_overlap(NESTED, &second, kind);
    });
}

#[test]
fn a_loop_inside_is_a_stage_if_the_plan_divides_its_calls_or_names_one_of_them() {
    // The inner loop makes two calls with private state, beside the first one of the round.
    let body = NESTED.replace(
        "(%7)\n        yield %8\n",
        "(%7)\n        %17: Int = call c.third at third (%8)\n        yield %17\n",
    );
    let second = "engine = \"manual\"\nthreads = 1\n[[section]]\nname = \"two\"\nnodes = [\"second\"]\n";
    let third = "[[section]]\nname = \"three\"\nnodes = [\"third\"]\n";
    for plan_text in [second.to_owned(), format!("{second}{third}"), format!("{PLAN}{third}")] {
        let (begun, order) = (Arc::new(Begun::default()), Called::default());
        let (counted, awaited) = (Arc::clone(&begun), Arc::clone(&begun));
        let [second_order, third_order] = [(); 2].map(|()| Arc::clone(&order));
        let first = stage("a.first", World::Pure, false, move |x| {
            assert!(
                awaited.wait_for((x as usize).saturating_sub(1)),
                "the second call of a round before has not begun"
            );
        });
        let second = stage("b.second", World::Pure, false, move |x| {
            counted.add();
            second_order.lock().push(("b.second", x.to_string()));
        });
        let third = stage("c.third", World::Pure, false, move |x| third_order.lock().push(("c.third", x.to_string())));
        let functions = vec![first, with_state(second), with_state(third)];
        let (feed, running) = run(functions, &body, Options { plan: plan(&plan_text), ..options("event", 2) });
        assert_eq!(feed.run(vec![Value::Int(0)]), Ok(Value::Int(1_234_567)), "under\n{plan_text}");
        drop(feed);
        running.wait().expect("the source ends");
        for path in ["b.second", "c.third"] {
            let order = order.lock();
            let rounds: Vec<i64> = order.iter().filter(|of| of.0 == path).flat_map(|of| of.1.parse()).collect();
            assert_eq!(rounds, (0..8).collect::<Vec<_>>(), "{path} under\n{plan_text}");
        }
    }
}

#[test]
fn rounds_go_on_while_the_calls_on_the_state_of_another_section_wait_in_its_queue() {
    // The first call in the second section holds its thread until the inner loop of the last round has run in the first one.
    let body = NESTED.replace("call b.second at second (%7)", "call c.third at third (%7)");
    let body =
        body.replace("        yield %8\n", "        %17: Int = call b.second at second (%8)\n        yield %17\n");
    let (begun, order) = (Arc::new(Begun::default()), Called::default());
    let (counted, awaited, second_order) = (Arc::clone(&begun), Arc::clone(&begun), Arc::clone(&order));
    let first = stage("a.first", World::Pure, false, |_| {});
    let second = stage("b.second", World::Pure, false, move |x| {
        assert!(awaited.wait_for(8), "the loop of the last round has not come to the first section");
        second_order.lock().push(("b.second", x.to_string()));
    });
    let third = stage("c.third", World::Pure, false, move |_| counted.add());
    let functions = vec![first, with_state(second), with_state(third)];
    let plan = plan(&PLAN.replace("\"first\"", "\"third\""));
    let (feed, running) = run(functions, &body, Options { plan, ..options("event", 2) });
    assert_eq!(feed.run(vec![Value::Int(0)]), Ok(Value::Int(1_234_567)));
    drop(feed);
    running.wait().expect("the source ends");
    let rounds: Vec<i64> = order.lock().iter().flat_map(|of| of.1.parse()).collect();
    assert_eq!(rounds, (0..8).collect::<Vec<_>>());
}

#[test]
fn calls_that_take_their_turns_in_the_queue_of_their_section_are_named() {
    let pure = || stage("b.second", World::Pure, false, |_| {});
    let cases = [
        (vec![with_state(pure())], PLAN, vec!["second"]),
        (vec![stage("b.second", World::Writes, false, |_| {})], PLAN, vec!["second"]),
        (vec![pure()], PLAN, vec![]),
        (vec![with_state(stage("b.second", World::Pure, true, |_| {}))], PLAN, vec![]),
        (vec![with_state(pure())], "engine = \"manual\"\n", vec![]),
    ];
    for (mut functions, plan_text, expected) in cases {
        functions.push(stage("a.first", World::Pure, false, |_| {}));
        let (program, library) = program(functions, ROUNDS, &Feed::new());
        let found = queued_calls(&program, &library, &plan(plan_text)).expect("the program fits the library");
        assert_eq!(
            found.iter().map(|of| (&*of.flow, &*of.call)).collect::<Vec<_>>(),
            expected.iter().map(|call| ("feed", *call)).collect::<Vec<_>>()
        );
    }
}

/// Rounds that change a value of their own, and rounds that change one from outside; the results are the digits of the answer.
const CHANGES: [&str; 2] = [
    "    %1: List(Int) = list(%0, 1, 2, 3, 4, 5, 6, 7)
    %2: List(Int) = for %3: Int in %1
      %4: Int = call a.first at first (%3)
      %5: Int = call b.raise at second (%3, 1)
      %6: Int = call a.first at last (%3)
      yield %6
",
    "    %1: List(Int) = list(1, 1, 1, 1, 1, 1, 1, 1)
    %20: Int = call a.first at before (%0)
    %2: List(Int) = for %3: Int in %1
      %4: Int = call a.first at first (%3)
      %5: Int = call b.raise at second (%20, %4)
      %6: Int = call a.first at last (%20)
      yield %6
",
];

/// The end of these bodies, which makes a number of the results.
const CHANGED: &str = "    %7: Int = fold %2 from 0 as %8: Int, %9: Int
      %10: Int = multiply(%8, 10)
      %11: Int = add(%10, %9)
      yield %11
    yield %7
";

/// Returns functions that add to their first argument in place: one that returns at once, one that takes long, and one that
/// blocks its thread.
fn raising() -> [Function; 3] {
    let parameters = [("number", Type::Int, Passing::Change), ("by", Type::Int, Passing::Value)];
    let immediate = |units: u64| {
        FunctionCode::Immediate(Arc::new(move |call: &mut Call<'_>| {
            if !call.declare_units(units) {
                return Outcome::ExceedsUnits;
            }
            let sum = Value::Int(int(call, 0) + int(call, 1));
            call.restore(0, sum.clone());
            Outcome::Value(sum)
        }))
    };
    let blocking = FunctionCode::Blocking(Arc::new(|call: &mut Call<'_>| {
        let sum = Value::Int(int(call, 0) + int(call, 1));
        Ok(Box::new(move || Settled { outcome: Outcome::Value(sum.clone()), restored: vec![(0, sum)] }))
    }));
    [immediate(0), immediate(1 << 40), blocking].map(|code| function("b.raise", &parameters, World::Pure, code))
}

#[test]
fn values_that_calls_change_in_place_are_changed_under_every_engine() {
    for row in ENGINES {
        for raise in raising() {
            for rounds in CHANGES {
                let functions = vec![noted("a.first", 0, &Called::default()), raise.clone()];
                let plan = if row.has_sections() { plan(&PLAN.replace("manual", row.name)) } else { Plan::default() };
                let (feed, running) =
                    run(functions, &format!("{rounds}{CHANGED}"), Options { plan, ..options(row.name, 2) });
                assert_eq!(feed.run(vec![Value::Int(0)]), Ok(Value::Int(12_345_678)), "under {}\n{rounds}", row.name);
                drop(feed);
                running.wait().expect("the source ends");
            }
        }
    }
}

#[test]
fn calls_of_rounds_run_on_the_threads_of_their_sections_and_are_counted() {
    // On a single processor, the event loop runs all sections.
    if std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1) {
        return;
    }
    for blocks in [false, true] {
        let threads = Called::default();
        let noted = |path: &'static str| {
            let threads = Arc::clone(&threads);
            stage(path, World::Pure, blocks, move |_| {
                threads.lock().push((path, std::thread::current().name().unwrap_or_default().to_owned()));
            })
        };
        let (recorder, reader) = Recorder::new(Detail::Sections, 256);
        let functions = vec![noted("a.first"), noted("b.second")];
        let (feed, running) = run(functions, ROUNDS, Options { plan: plan(PLAN), recorder, ..options("manual", 1) });
        assert_eq!(feed.run(vec![Value::Int(0)]), Ok(Value::Int(1_234_567)));
        drop(feed);
        running.wait().expect("the source ends");
        for (path, section) in [("a.first", "one"), ("b.second", "two")] {
            let threads = threads.lock();
            let of_path: Vec<_> = threads.iter().filter(|(called, _)| *called == path).collect();
            assert_eq!(of_path.len(), 8);
            assert!(of_path.iter().all(|(_, thread)| thread.contains(section)), "{threads:?}");
        }
        let said: Vec<String> = reader.take().iter().map(|event| event.kind.to_string()).collect();
        for section in ["one", "two"] {
            let passed = said.iter().rfind(|said| said.starts_with(&format!("section {section}: ")));
            assert_eq!(passed, Some(&format!("section {section}: 1 threads, 0 waiting, 8 passed")));
        }
    }
}

#[test]
fn a_call_that_panics_in_another_section_ends_its_flow_and_no_other() {
    for row in ENGINES.iter().filter(|row| row.has_sections()) {
        for blocks in [false, true] {
            let first = stage("a.first", World::Pure, blocks, |x| assert_ne!(x, -1, "no luck"));
            let second = stage("b.second", World::Writes, blocks, |_| {});
            let text = PLAN.replace("manual", row.name);
            let (feed, running) =
                run(vec![first, second], ROUNDS, Options { plan: plan(&text), ..options("event", 2) });
            let failed = feed.run(vec![Value::Int(-1)]).expect_err("the first round panics");
            assert!(failed.message.contains("no luck"), "{failed}");
            assert_eq!(feed.run(vec![Value::Int(0)]), Ok(Value::Int(1_234_567)), "under {}", row.name);
            drop(feed);
            running.wait().expect("the source ends");
        }
    }
}

#[test]
fn a_flow_that_is_given_up_begins_no_further_call_in_another_section() {
    for engine in ["manual", "staged", "dedicated"] {
        let (gates, begun, (release, released)) = (Gates::new(), Arc::new(Begun::default()), channel::<()>());
        let (counted, released) = (Arc::clone(&begun), Mutex::new(released));
        let first = immediate("a.first", &parameters(), move |call| {
            counted.add();
            _ = released.lock().recv();
            Outcome::Value(Value::Int(int(call, 0)))
        });
        let functions =
            vec![first, stage("b.second", World::Pure, false, |_| {}), gates.waiting("c.wait", World::Reads)];
        let wait = "      %20: Int = call c.wait at wait (%3)\n      %4:";
        let body = ROUNDS.replace("      %4:", wait);
        let text = PLAN.replace("manual", engine);
        let (recorder, reader) = Recorder::new(Detail::Flows, 64);
        let (feed, running) = run(functions, &body, Options { plan: plan(&text), recorder, ..options("event", 1) });
        let flow = feed.begin(vec![Value::Int(0)]);
        let waiting: Vec<_> = (0..8).map(|_| gates.next()).collect();
        assert!(begun.wait_for(1), "under {engine}");
        // The call of the first round is under way, and those of the others stand behind it.
        drop(flow);
        waiting.into_iter().for_each(Waiting::given_up);
        // Now some calls are given up, and the last ones soon.
        let is_end = |event: &TraceEvent| matches!(event.kind, EventKind::FlowGivenUp { .. });
        while !reader.take().iter().any(is_end) {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop((feed, release));
        running.wait().expect("the source ends");
        assert_eq!(*begun.count.lock(), 1, "under {engine}");
    }
}
