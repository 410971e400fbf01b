//! Measurements: throughput at the sink, and processor time per tuple and operator.

use std::fmt;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::family::GraphCase;

/// The result of one model in one case.
#[derive(Clone)]
pub(crate) struct ModelRow {
    pub(crate) case: GraphCase,
    pub(crate) model: String,
    /// Tuples per second.
    pub(crate) throughput: f64,
    /// Processor time per tuple and operator in nanoseconds; `None` if no tuple reached the sink.
    pub(crate) cpu_ns: Option<f64>,
}

impl ModelRow {
    pub(crate) const HEADING: &str = "family      cost model              tuples/s    cpu ns per tuple and operator";

    pub(crate) fn json(&self) -> Value {
        json!({
            "family": self.case.family.name(),
            "cost": self.case.cost,
            "model": self.model,
            "tuples_per_second": self.throughput,
            "cpu_ns_per_tuple_and_operator": self.cpu_ns,
        })
    }
}

impl fmt::Display for ModelRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ModelRow { case, model, throughput, cpu_ns } = self;
        let cpu_ns = cpu_ns.map_or("–".to_owned(), |cpu_ns| format!("{cpu_ns:.1}"));
        write!(f, "{:<8} {:>7} {model:<16} {throughput:>11.0} {cpu_ns:>10}", case.family.name(), case.cost)
    }
}

/// A measurement that has begun: time, processor time and count at its begin.
pub(crate) struct Meter {
    begin: Instant,
    cpu: Duration,
    count: u64,
}

impl Meter {
    pub(crate) fn start(count: u64) -> Self {
        Meter { begin: Instant::now(), cpu: cpu_time(), count }
    }

    /// Ends the measurement of a model whose sink has counted up to `count`.
    pub(crate) fn row(self, case: GraphCase, model: impl Into<String>, count: u64) -> ModelRow {
        let tuples = (count - self.count) as f64;
        let cpu = (cpu_time() - self.cpu).as_nanos() as f64;
        ModelRow {
            case,
            model: model.into(),
            throughput: tuples / self.begin.elapsed().as_secs_f64(),
            cpu_ns: (tuples > 0.0).then(|| cpu / tuples / case.family.depth() as f64),
        }
    }
}

/// Returns the processor time of this process, all threads together.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
