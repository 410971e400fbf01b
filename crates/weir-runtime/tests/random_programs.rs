//! Random programs under every engine, compared with the reference evaluator.

use test_support::flows::random_cases::{execute, execute_with, seeds};
use test_support::flows::{Feed, options};
use weir_ir::generate::{
    Case, Random, Recording, batched_case, case, check, evaluate, find_in, independent_case, rounds_case, updating_case,
};
use weir_ir::plan::Plan;
use weir_runtime::{ENGINES, ForkPolicy, Options, SliceLength, start};

/// The programs that are tried; `WEIR_SEEDS=400..4000` tries others.
const PROGRAMS: u64 = 150;

/// The lengths of slices: usual ones, and ones that are over at each safe point.
const SLICES: [SliceLength; 2] = [SliceLength { quantum: 1_000, quanta: 10 }, SliceLength::ONE_UNIT];

/// The largest number of elements of a strip: so few that short lists have several.
const STRIP_MAX: usize = 2;

/// Programs that once showed a mistake: a body kept the atomic step from ending that it waited for.
const REGRESSIONS: [u64; 1] = [671];

#[test]
fn engines_give_the_evaluators_answers_and_effects() {
    for seed in seeds(PROGRAMS).chain(REGRESSIONS) {
        check(seed, |case| {
            let expected = evaluate(case, seed).map_err(|failure| failure.to_string())?;
            for (row, slice) in ENGINES.iter().flat_map(|row| SLICES.map(|slice| (row, slice))) {
                let found = execute(case, seed, Options { slice, strip_max: STRIP_MAX, ..options(row.name, 2) })?;
                if found != expected {
                    return Err(format!("evaluated {expected:#?}\nbut under `{}`, {slice:?} {found:#?}", row.name));
                }
            }
            Ok(())
        });
    }
}

#[test]
fn flows_that_stay_on_their_event_loop_give_the_evaluators_answers_and_effects() {
    for seed in seeds(PROGRAMS).chain(REGRESSIONS) {
        check(seed, |case| {
            let mut expected = evaluate(case, seed).map_err(|failure| failure.to_string())?;
            for forks in [ForkPolicy::Always, ForkPolicy::AlwaysOnHelpers, ForkPolicy::AlwaysInPlace] {
                let options = Options { slice: SliceLength::ONE_UNIT, forks, ..options("elastic", 2) };
                let found = execute_with(Feed::on_each_loop(), case, seed, options)?;
                if expected.has_fault() {
                    // Effects do not wait for faults of earlier calls, see `Op::may_end`.
                    expected.effects.clone_from(&found.effects);
                }
                if found != expected {
                    return Err(format!("evaluated {expected:#?}\nbut under {forks:?} {found:#?}"));
                }
            }
            Ok(())
        });
    }
}

#[test]
fn calls_behind_a_barrier_wait_for_it_and_it_waits_for_those_before() {
    let mut tried = 0;
    for seed in seeds(PROGRAMS) {
        let case = match seed % 4 {
            0 => rounds_case(seed),
            1 => independent_case(seed),
            2 => batched_case(seed),
            _ => case(seed),
        };
        let Some(case) = case.with_barriers() else { continue };
        let compared = |case: &Case| {
            let expected = evaluate(case, seed).map_err(|failure| failure.to_string())?;
            let row = &ENGINES[seed as usize % ENGINES.len()];
            let slice = SLICES[seed as usize / ENGINES.len() % SLICES.len()];
            let found = execute(case, seed, Options { slice, strip_max: STRIP_MAX, ..options(row.name, 2) })?;
            if found == expected || expected.has_fault() {
                return Ok(());
            }
            Err(format!("evaluated {expected:#?}\nbut under `{}`, {slice:?} {found:#?}", row.name))
        };
        tried += 1;
        if let Some(found) = find_in(case, compared) {
            panic!("seed {seed}: {found}");
        }
    }
    assert!(tried > 10, "{tried} programs with barriers");
}

#[test]
fn random_plans_give_the_evaluators_answers_and_effects() {
    for seed in seeds(PROGRAMS).chain(REGRESSIONS) {
        check(seed, |case| {
            let expected = evaluate(case, seed).map_err(|failure| failure.to_string())?;
            let text = plan_text(case, seed);
            let (plan, problems) = Plan::parse(&text);
            assert_eq!(problems, [], "{text}");
            let slice = SLICES[seed as usize % SLICES.len()];
            let found = execute(case, seed, Options { plan, slice, strip_max: STRIP_MAX, ..options("event", 2) })?;
            if found == expected {
                Ok(())
            } else {
                Err(format!("evaluated {expected:#?}\nbut under\n{text}\n{found:#?}"))
            }
        });
    }
}

#[test]
fn forks_under_random_plans_give_the_evaluators_answers_and_effects() {
    for seed in seeds(PROGRAMS) {
        let case = match seed % 3 {
            0 => rounds_case(seed),
            1 => updating_case(seed),
            _ => independent_case(seed),
        };
        let compared = |case: &Case| {
            let mut expected = evaluate(case, seed).map_err(|failure| failure.to_string())?;
            let text = plan_text(case, seed);
            let (plan, problems) = Plan::parse(&text);
            assert_eq!(problems, [], "{text}");
            let forks = [ForkPolicy::Always, ForkPolicy::AlwaysOnHelpers][seed as usize % 2];
            let options = Options { plan, slice: SliceLength::ONE_UNIT, forks, ..options("event", 2) };
            let found = execute(case, seed, options)?;
            if expected.has_fault() {
                // Effects do not wait for faults of earlier calls, see `Op::may_end`.
                expected.effects.clone_from(&found.effects);
            }
            if found == expected {
                Ok(())
            } else {
                Err(format!("evaluated {expected:#?}\nbut under\n{text}\n{found:#?}"))
            }
        };
        if let Some(found) = find_in(case, compared) {
            panic!("seed {seed}: {found}");
        }
    }
}

/// The number of flows under way at a time when all are begun at once.
const TOGETHER: usize = 12;

#[test]
fn flows_of_random_programs_that_meet_all_end() {
    for seed in seeds(PROGRAMS).chain(REGRESSIONS) {
        check(seed, |case| {
            let elastic = ENGINES.iter().filter(|row| row.name == "elastic").map(|row| (row, Feed::on_each_loop()));
            for (row, feed) in ENGINES.iter().map(|row| (row, Feed::new())).chain(elastic) {
                let mut library = Recording::new(seed).library();
                feed.put(&mut library, "a", "elements");
                let graph = weir_ir::optimize(&case.program, &library);
                let options = Options { slice: SLICES[seed as usize % SLICES.len()], ..options(row.name, 3) };
                let running = start(&graph, &library, options).map_err(|error| error.to_string())?;
                let flows = (0..TOGETHER).map(|index| feed.begin(case.inputs[index % case.inputs.len()].clone()));
                let answers = feed.answers(flows.collect());
                if answers.contains(&None) {
                    return Err(format!("under `{}`: {answers:?}", row.name));
                }
                drop(feed);
                running.wait().map_err(|failure| failure.to_string())?;
            }
            Ok(())
        });
    }
}

/// Returns a plan that divides the case's flow at random, bodies included, with engines at random.
fn plan_text(case: &Case, seed: u64) -> String {
    let mut random = Random::new(seed);
    let engines: Vec<&str> = ENGINES.iter().filter(|row| row.has_sections()).map(|row| row.name).collect();
    let graph = weir_ir::optimize(&case.program, &Recording::new(0).library());
    let mut sections = vec![Vec::new(); 1 + random.below(4)];
    graph.entries[0].flows[0].body.each_node(&mut |node| {
        let count = sections.len();
        if let Some(section) = sections.get_mut(random.below(count + 1)) {
            section.push(format!("{:?}", node.name.as_str()));
        }
    });
    let engine = engines[random.below(engines.len())];
    let mut text = format!("engine = {engine:?}\nthreads = {}\n", 1 + random.below(3));
    for (index, nodes) in sections.iter().enumerate().filter(|(_, nodes)| !nodes.is_empty()) {
        let (engine, queue) = (engines[random.below(engines.len())], 1 + random.below(4));
        text += &format!(
            "[[section]]\nname = \"s{index}\"\nnodes = [{}]\nengine = {engine:?}\nqueue_length_max = {queue}\n",
            nodes.join(", ")
        );
    }
    text
}
