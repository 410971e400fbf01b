//! Rows of the tables: one for each route, section and batched function, sorted as requested.

use std::collections::BTreeMap;

use serde::Serialize;
use weir_trace::Durations;

use super::model::{Model, SampleWindow};
use crate::trace_socket::message::{BatchesSample, RouteSample, SectionSample};

/// One route, over the last seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct RouteRow {
    pub(super) route: String,
    /// Flows that ended per second, including failures.
    pub(super) rate: f64,
    /// Mean duration; `None` if no flow ended.
    pub(super) mean_ns: Option<u64>,
    pub(super) p50_ns: Option<u64>,
    pub(super) p99_ns: Option<u64>,
    /// Running flows.
    pub(super) running: u64,
    /// Flows that succeeded since the start.
    pub(super) ended: u64,
    /// Flows that failed since the start.
    pub(super) failed: u64,
    /// Flows that failed per second.
    pub(super) failed_rate: f64,
}

/// One section, over the last seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct SectionRow {
    pub(super) section: String,
    pub(super) engine: String,
    pub(super) crew: String,
    pub(super) threads: u64,
    pub(super) threads_max: u64,
    pub(super) waiting: u64,
    pub(super) waiting_max: u64,
    /// Flows that passed per second.
    pub(super) rate: f64,
    /// Flows that passed while the program was watched.
    pub(super) passed: u64,
}

/// The batches of one function, over the last seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct BatchesRow {
    pub(super) function: String,
    /// Batches per second.
    pub(super) rate: f64,
    /// Calls in a batch, on average; `None` if no batch was answered.
    pub(super) calls_per_batch: Option<f64>,
    /// Mean time from the first call of a batch to the moment at which it was sent.
    pub(super) waited_mean_ns: Option<u64>,
    /// Times that the function took.
    pub(super) took_mean_ns: Option<u64>,
    pub(super) took_p99_ns: Option<u64>,
    /// Batches that gather or are with the function.
    pub(super) in_flight: u64,
    pub(super) in_flight_max: u64,
    /// Batches that wait for one of these to be answered.
    pub(super) queued: u64,
    /// Batches since the start, the calls and requests in them, and the reasons for which they were sent.
    pub(super) batches: u64,
    pub(super) calls: u64,
    pub(super) requests: u64,
    pub(super) sent_because: BTreeMap<String, u64>,
}

/// The orders of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SortOrder {
    /// As in the program.
    #[default]
    Program,
    /// By descending rate.
    Rate,
    /// Routes and batches by 99th percentile, sections by queue fill.
    Slowness,
    /// Routes by failures, the others as in the program.
    Failures,
}

impl SortOrder {
    /// Returns the next order.
    pub(super) fn next(self) -> SortOrder {
        match self {
            SortOrder::Program => SortOrder::Rate,
            SortOrder::Rate => SortOrder::Slowness,
            SortOrder::Slowness => SortOrder::Failures,
            SortOrder::Failures => SortOrder::Program,
        }
    }

    /// Returns the name of the order.
    pub(super) fn name(self) -> &'static str {
        match self {
            SortOrder::Program => "program",
            SortOrder::Rate => "rate",
            SortOrder::Slowness => "slowness",
            SortOrder::Failures => "failures",
        }
    }
}

/// Returns the rows of all routes.
pub(super) fn routes(model: &Model, order: SortOrder) -> Vec<RouteRow> {
    let mut rows: Vec<RouteRow> = model.routes.iter().map(RouteRow::of).collect();
    match order {
        SortOrder::Program => {}
        SortOrder::Rate => rows.sort_by(|a, b| b.rate.total_cmp(&a.rate)),
        SortOrder::Slowness => rows.sort_by_key(|row| std::cmp::Reverse(row.p99_ns)),
        SortOrder::Failures => rows.sort_by_key(|row| std::cmp::Reverse(row.failed)),
    }
    rows
}

/// Returns the rows of all sections.
pub(super) fn sections(model: &Model, order: SortOrder) -> Vec<SectionRow> {
    let mut rows: Vec<SectionRow> = model.sections.iter().map(SectionRow::of).collect();
    match order {
        SortOrder::Program | SortOrder::Failures => {}
        SortOrder::Rate => rows.sort_by(|a, b| b.rate.total_cmp(&a.rate)),
        SortOrder::Slowness => rows.sort_by(|a, b| b.fill().total_cmp(&a.fill())),
    }
    rows
}

/// Returns the rows of all functions whose calls are gathered into batches.
pub(super) fn batches(model: &Model, order: SortOrder) -> Vec<BatchesRow> {
    let mut rows: Vec<BatchesRow> = model.batches.iter().map(BatchesRow::of).collect();
    match order {
        SortOrder::Program | SortOrder::Failures => {}
        SortOrder::Rate => rows.sort_by(|a, b| b.rate.total_cmp(&a.rate)),
        SortOrder::Slowness => rows.sort_by_key(|row| std::cmp::Reverse(row.took_p99_ns)),
    }
    rows
}

impl RouteRow {
    fn of(track: &SampleWindow<RouteSample>) -> RouteRow {
        let (latest, took) = (track.latest(), track.took());
        RouteRow {
            route: latest.route.clone(),
            rate: track.rate(|route| route.ended + route.failed),
            mean_ns: took.mean_ns(),
            p50_ns: took.quantile_ns(0.5),
            p99_ns: took.quantile_ns(0.99),
            running: latest.begun.saturating_sub(latest.ended + latest.failed + latest.given_up),
            ended: latest.ended,
            failed: latest.failed,
            failed_rate: track.rate(|route| route.failed),
        }
    }
}

impl SectionRow {
    fn of(track: &SampleWindow<SectionSample>) -> SectionRow {
        let latest = track.latest().clone();
        SectionRow {
            rate: track.rate(|section| section.passed),
            section: latest.section,
            engine: latest.engine,
            crew: latest.crew,
            threads: latest.threads,
            threads_max: latest.threads_max,
            waiting: latest.waiting,
            waiting_max: latest.waiting_max,
            passed: latest.passed,
        }
    }

    /// Returns the fill of the queue, from 0 to a little over 1.
    pub(super) fn fill(&self) -> f64 {
        if self.waiting_max == 0 { 0.0 } else { self.waiting as f64 / self.waiting_max as f64 }
    }

    /// Formats threads: `2`, or `2 of 8` if there may be more.
    pub(super) fn threads(&self) -> String {
        match self.threads_max {
            most if most > self.threads => format!("{} of {most}", self.threads),
            _ => self.threads.to_string(),
        }
    }
}

impl BatchesRow {
    fn of(track: &SampleWindow<BatchesSample>) -> BatchesRow {
        let latest = track.latest().clone();
        let rate = track.rate(|sample| sample.batches);
        let waited = track.durations(|sample| Durations::new(sample.waited.clone(), sample.waited_sum_ns));
        let took = track.durations(|sample| Durations::new(sample.took.clone(), sample.took_sum_ns));
        BatchesRow {
            function: latest.function,
            rate,
            calls_per_batch: (rate > 0.0).then(|| track.rate(|sample| sample.calls) / rate),
            waited_mean_ns: waited.mean_ns(),
            took_mean_ns: took.mean_ns(),
            took_p99_ns: took.quantile_ns(0.99),
            in_flight: latest.in_flight,
            in_flight_max: latest.in_flight_max,
            queued: latest.queued,
            batches: latest.batches,
            calls: latest.calls,
            requests: latest.requests,
            sent_because: latest.sent_because,
        }
    }

    /// Formats the batches that are out: `1 of 8`, or `8 of 8 + 3` if others wait for them.
    pub(super) fn in_flight(&self) -> String {
        let queued = if self.queued > 0 { format!(" + {}", self.queued) } else { String::new() };
        format!("{} of {}{queued}", self.in_flight, self.in_flight_max)
    }
}
