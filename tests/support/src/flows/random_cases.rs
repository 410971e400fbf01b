//! Random programs under the engines, for tests that compare them with the reference evaluator.

use std::ops::Range;

use weir_host::{Failure, FailureKind, Value};
use weir_ir::generate::{Case, Execution, Recording};
use weir_runtime::{Options, start};

use super::{Answer, Feed};

/// Returns the seeds that `WEIR_SEEDS=400..4000` names, or the first `programs` ones.
#[must_use]
pub fn seeds(programs: u64) -> Range<u64> {
    let said = std::env::var("WEIR_SEEDS").ok();
    let range = said.as_deref().and_then(|said| said.split_once(".."));
    range.and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?)).unwrap_or(0..programs)
}

/// Runs the flows of a case one after the other.
///
/// # Errors
/// Fails if the program cannot be started, or ends with a failure.
pub fn execute(case: &Case, seed: u64, options: Options) -> Result<Execution, String> {
    execute_with(Feed::new(), case, seed, options)
}

/// Runs the flows of a case one after the other, from this source.
///
/// # Errors
/// Fails if the program cannot be started, or ends with a failure.
pub fn execute_with(feed: Feed, case: &Case, seed: u64, options: Options) -> Result<Execution, String> {
    let recording = Recording::new(seed);
    let mut library = recording.library();
    feed.put(&mut library, "a", "elements");
    let graph = weir_ir::optimize(&case.program, &library);
    let running = start(&graph, &library, options).map_err(|error| error.to_string())?;
    let results = case.inputs.iter().map(|inputs| run(&feed, inputs)).collect();
    drop(feed);
    running.wait().map_err(|failure| failure.to_string())?;
    Ok(Execution { results, effects: recording.effects() })
}

/// The number of times that a flow is begun if the program is full.
const TRIES: usize = 100_000;

/// Runs a flow, once more if the program was full: a flow that fails is answered while calls of its other rounds are still in the
/// queues of their sections, which may have room for a single flow.
fn run(feed: &Feed, inputs: &[Value]) -> Answer {
    for _ in 0..TRIES {
        let refused = feed.refused();
        let answer = feed.run(inputs.to_vec());
        if feed.refused() == refused {
            return answer;
        }
        std::thread::yield_now();
    }
    Err(Failure::new(FailureKind::Limit, "full at each try"))
}
