//! Random programs under every engine, compared with the reference evaluator.

mod support;

use support::{Feed, options, start_expr};
use weir_ir::generate::{Case, Execution, Recording, check, evaluate};
use weir_runtime::ENGINES;

/// How many programs are tried; `WEIR_PROGRAMS` says another number.
const PROGRAMS: u64 = 150;

fn programs() -> u64 {
    std::env::var("WEIR_PROGRAMS").ok().and_then(|count| count.parse().ok()).unwrap_or(PROGRAMS)
}

/// Runs the case's flows one after the other under an engine.
fn execute(case: &Case, seed: u64, engine: &str) -> Execution {
    let recording = Recording::new(seed);
    let mut library = recording.library();
    let feed = Feed::new();
    feed.put(&mut library, "a", "elements");
    let running = start_expr(&case.program, &library, options(engine, 2));
    let results = case.inputs.iter().map(|inputs| feed.run(inputs.clone())).collect();
    drop(feed);
    running.wait().expect("the source ends");
    Execution { results, effects: recording.effects() }
}

#[test]
fn engines_give_the_evaluators_answers_and_effects() {
    for seed in 0..programs() {
        check(seed, |case| {
            let expected = evaluate(case, seed).map_err(|failure| failure.to_string())?;
            for row in ENGINES {
                let found = execute(case, seed, row.name);
                if found != expected {
                    return Err(format!("evaluated {expected:#?}\nbut under `{}` {found:#?}", row.name));
                }
            }
            Ok(())
        });
    }
}
