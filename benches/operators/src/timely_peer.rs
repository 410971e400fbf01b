//! Peer timely-dataflow: a chain of maps on one worker, in timely's batches.

use std::time::{Duration, Instant};

use timely::dataflow::InputHandle;
use timely::dataflow::operators::vec::Map;
use timely::dataflow::operators::{Input, Inspect, Probe};

use crate::BenchResult;
use crate::family::{GraphCase, OPERATORS, Tuple, operate};
use crate::measure::{Meter, ModelRow};

/// The number of tuples that are submitted before the worker runs: timely's own batch size.
const BATCH: u64 = 1_024;

/// Measures a chain of operators.
pub(crate) fn run(case: GraphCase, span: Duration) -> BenchResult<ModelRow> {
    let row = timely::execute_directly(move |worker| {
        let mut input = InputHandle::new();
        let sunk = std::rc::Rc::new(std::cell::Cell::new(0u64));
        let sink = sunk.clone();
        let probe = worker.dataflow(|scope| {
            let mut stream = scope.input_from(&mut input);
            for _ in 0..OPERATORS {
                stream = stream.map(move |mut tuple: Box<Tuple>| {
                    operate(&mut tuple, case.cost);
                    tuple
                });
            }
            stream.inspect(move |_| sink.set(sink.get() + 1)).probe().0
        });
        let mut epoch = 0;
        let mut run_until = |end: Instant| {
            while Instant::now() < end {
                (0..BATCH).for_each(|number| input.send(Box::new(Tuple::new(number, 1))));
                epoch += 1;
                input.advance_to(epoch);
                worker.step_while(|| probe.less_than(&epoch));
            }
        };
        run_until(Instant::now() + span / 4);
        let meter = Meter::start(sunk.get());
        run_until(Instant::now() + span);
        meter.row(case, "timely", sunk.get())
    });
    Ok(row)
}
