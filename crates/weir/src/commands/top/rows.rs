//! The rows that tables have: one for each route and each section, in the order that is asked for.

use serde::Serialize;

use super::model::{Model, SampleWindow};
use crate::trace_socket::message::{RouteSample, SectionSample};

/// One route, over the last seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct RouteRow {
    pub(super) route: String,
    /// How many flows ended in a second, with an answer or a failure.
    pub(super) rate: f64,
    /// How long they took; nothing where none ended.
    pub(super) mean_ns: Option<u64>,
    pub(super) p50_ns: Option<u64>,
    pub(super) p99_ns: Option<u64>,
    /// How many are under way.
    pub(super) running: u64,
    /// How many have ended with an answer since the start.
    pub(super) ended: u64,
    /// How many have failed since the start.
    pub(super) failed: u64,
    /// How many failed in a second.
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
    /// How many flows passed it in a second.
    pub(super) rate: f64,
    /// How many have passed it while somebody watched.
    pub(super) passed: u64,
}

/// The order of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SortOrder {
    /// As in the program.
    #[default]
    Program,
    /// Those with the highest rate first.
    Rate,
    /// Routes by their 99th percentile, sections by how full their queue is.
    Slowness,
    /// Routes by their failures, sections as in the program.
    Failures,
}

impl SortOrder {
    /// The next one.
    pub(super) fn next(self) -> SortOrder {
        match self {
            SortOrder::Program => SortOrder::Rate,
            SortOrder::Rate => SortOrder::Slowness,
            SortOrder::Slowness => SortOrder::Failures,
            SortOrder::Failures => SortOrder::Program,
        }
    }

    /// What it is called.
    pub(super) fn name(self) -> &'static str {
        match self {
            SortOrder::Program => "program",
            SortOrder::Rate => "rate",
            SortOrder::Slowness => "slowness",
            SortOrder::Failures => "failures",
        }
    }
}

/// The rows of all routes.
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

/// The rows of all sections.
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

    /// How full its queue is, 0 to 1 and a little over.
    pub(super) fn fill(&self) -> f64 {
        if self.waiting_max == 0 { 0.0 } else { self.waiting as f64 / self.waiting_max as f64 }
    }

    /// `2`, or `2 of 8` where there may be more.
    pub(super) fn threads(&self) -> String {
        match self.threads_max {
            most if most > self.threads => format!("{} of {most}", self.threads),
            _ => self.threads.to_string(),
        }
    }
}
