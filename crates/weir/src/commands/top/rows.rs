//! Rows of the tables: one for each route and each section, sorted as requested.

use serde::Serialize;

use super::model::{Model, SampleWindow};
use crate::trace_socket::message::{RouteSample, SectionSample};

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

/// The orders of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SortOrder {
    /// As in the program.
    #[default]
    Program,
    /// By descending rate.
    Rate,
    /// Routes by 99th percentile, sections by queue fill.
    Slowness,
    /// Routes by failures, sections as in the program.
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
