//! Flows on the calling thread, one after the other: without sources, event loops and the threads of an engine.

use std::future::poll_fn;
use std::task::{Context, Poll};

use weir_host::{Failure, Library, Value};
use weir_ir::graph::Program;

use super::{Options, Settings, StartError, make_shared, prepare};
use crate::flow::{ActiveFlow, NewFlow};
use crate::units::{Advanced, Units};

/// Runs flows of the first route of a program's first entry point on this thread, one after the other, and returns their
/// answers. No source is opened, and no thread starts but those on which calls block and forks run. For tests that run very
/// many programs: the start of an engine takes longer than a small program.
///
/// # Errors
/// Fails if the program does not fit the library, a shared value cannot be created, or the system refuses.
///
/// # Panics
/// Panics if the program has no entry point.
pub fn run_on_calling_thread(
    program: &Program,
    library: &Library,
    options: &Options,
    flows: impl IntoIterator<Item = Vec<Value>>,
) -> Result<Vec<Result<Value, Failure>>, StartError> {
    let settings = Settings::resolve(program, options)?;
    settings.memory.apply();
    let (prepared, _) = prepare(program, library, options, &settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    prepared.instance.first_loop.get_or_init(|| runtime.handle().clone());
    let inside = runtime.enter();
    make_shared(program, &prepared, runtime.handle())?;
    drop(inside);
    let answer = |mut inputs: Vec<Value>| {
        let mut flow = NewFlow::new(&prepared.instance, 0, 0, &mut inputs).flow();
        runtime.block_on(poll_fn(|context| advance(&mut flow, context)))
    };
    Ok(flows.into_iter().map(answer).collect())
}

/// Advances a flow by a slice.
fn advance(flow: &mut ActiveFlow, context: &mut Context<'_>) -> Poll<Result<Value, Failure>> {
    match flow.advance(&Units::slice(flow.slice()), context) {
        Advanced::Ready(answer) => Poll::Ready(answer),
        Advanced::Waits => Poll::Pending,
        Advanced::Yields => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
    }
}
