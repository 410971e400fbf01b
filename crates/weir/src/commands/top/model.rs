//! Model of a watched program: the latest samples of each section, route and batched function, and their history.
//!
//! Once per period the program sends a sample of each section, each route and each batched function, in a fixed order. Counters count from the
//! start of the program, so lost samples make a rate coarser but not wrong.

use std::collections::VecDeque;

use weir_trace::Durations;

use crate::trace_socket::message::{BatchesSample, Hello, Message, RouteSample, SectionSample, TraceLine};

/// Number of periods over which rates and latencies are computed: 5 seconds.
const WINDOW: usize = 10;
/// Number of periods in a chart: 4 minutes.
pub(super) const HISTORY_MAX: usize = 480;
/// Maximum number of failures kept.
const FAILURES_MAX: usize = 50;

/// State of a watched program, as far as it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) hello: Option<Hello>,
    /// Time of the latest event, in nanoseconds since the program started.
    pub(super) at_ns: u64,
    pub(super) sections: Vec<SampleWindow<SectionSample>>,
    pub(super) routes: Vec<SampleWindow<RouteSample>>,
    pub(super) batches: Vec<SampleWindow<BatchesSample>>,
    pub(super) pools: Vec<PoolHistory>,
    /// Flows per second, by period.
    pub(super) throughput: History,
    /// 99th percentile of the latency in nanoseconds, by period.
    pub(super) latency: History,
    /// Threads of all pools, by period.
    pub(super) threads: History,
    pub(super) failures: VecDeque<RecentFailure>,
    /// Number of refused flows since the view started.
    pub(super) refused: u64,
    /// Number of events lost because the view was slow.
    pub(super) lost: u64,
    pub(super) stopping: bool,
    /// Durations of the flows of all routes that ended in this period.
    period: Durations,
}

/// The latest samples of a section, route or batched function, newest last.
#[derive(Clone, Debug)]
pub(super) struct SampleWindow<T>(VecDeque<(u64, T)>);

/// Values by period, newest last.
#[derive(Clone, Debug, Default)]
pub(super) struct History(VecDeque<u64>);

/// Thread counts of a pool, which serves one or more sections.
#[derive(Clone, Debug)]
pub(super) struct PoolHistory {
    pub(super) name: String,
    /// First section of the pool; its samples begin a period.
    first: String,
    pub(super) levels: History,
}

/// A failure of a flow or a source.
#[derive(Clone, Debug)]
pub(super) struct RecentFailure {
    /// Time of the latest occurrence.
    pub(super) at_ns: u64,
    /// Number of occurrences.
    pub(super) count: u64,
    pub(super) text: String,
}

impl Model {
    /// Processes a line.
    pub(super) fn take(&mut self, line: TraceLine) {
        self.at_ns = self.at_ns.max(line.at_ns);
        match line.message {
            Message::Hello(hello) => self.hello = Some(hello),
            Message::Section(section) => self.take_section(line.at_ns, section),
            Message::Route(route) => self.take_route(line.at_ns, route),
            Message::Batches(batches) => self.take_batches(line.at_ns, batches),
            Message::Lost { count } => self.lost += count,
            Message::Refused { .. } => self.refused += 1,
            Message::Stopping => self.stopping = true,
            Message::FlowFailed { path, kind, message } => {
                let kind = if kind == "function" { String::new() } else { format!(" ({kind})") };
                self.record_failure(line.at_ns, format!("{path}{kind}: {message}"));
            }
            Message::SourceEnded { failure: Some(failure), .. } => {
                self.record_failure(line.at_ns, format!("a source: {failure}"));
            }
            Message::ElementSkipped { message, .. } => {
                self.record_failure(line.at_ns, format!("a skipped element: {message}"));
            }
            Message::SourceRetries { message, .. } => {
                self.record_failure(line.at_ns, format!("a source that tries again: {message}"));
            }
            Message::RequestFailed { message, .. } => {
                self.record_failure(line.at_ns, format!("a request: {message}"));
            }
            Message::ConnectionsShed { message, .. } => {
                self.record_failure(line.at_ns, format!("a source at its limit: {message}"));
            }
            Message::OutOfTime { flows } => {
                self.record_failure(line.at_ns, format!("{flows} flows given up: the time to stop was over"));
            }
            Message::SourceOpened { .. }
            | Message::SourceEnded { .. }
            | Message::Full { .. }
            | Message::End
            | Message::Unknown => {}
        }
    }

    fn take_section(&mut self, at_ns: u64, section: SectionSample) {
        let known = self.pools.iter().position(|crew| crew.name == section.crew);
        let index = known.unwrap_or_else(|| {
            let (name, first) = (section.crew.clone(), section.section.clone());
            self.pools.push(PoolHistory { name, first, levels: History::default() });
            self.pools.len() - 1
        });
        if self.pools[index].first == section.section {
            self.pools[index].levels.push(section.threads);
        }
        let threads = self.pools.iter().filter_map(|crew| crew.levels.latest()).sum();
        if self.sections.first().is_none_or(|first| first.latest().section == section.section) {
            self.threads.push(threads);
        }
        self.threads.replace(threads);
        let same = |track: &&mut SampleWindow<SectionSample>| track.latest().section == section.section;
        match self.sections.iter_mut().find(same) {
            Some(track) => track.push(at_ns, section),
            None => self.sections.push(SampleWindow::new(at_ns, section)),
        }
    }

    fn take_route(&mut self, at_ns: u64, route: RouteSample) {
        let name = |route: &RouteSample| (route.entry, route.route.clone());
        let Some(index) = self.routes.iter().position(|track| name(track.latest()) == name(&route)) else {
            self.routes.push(SampleWindow::new(at_ns, route));
            return;
        };
        self.routes[index].push(at_ns, route);
        if index == 0 {
            self.throughput.push(0);
            self.latency.push(0);
            self.period = Durations::default();
        }
        let (rate, took) = self.routes[index].latest_period();
        self.throughput.replace(self.throughput.latest().unwrap_or(0) + rate.round() as u64);
        self.period = self.period.with(&took);
        self.latency.replace(self.period.quantile_ns(0.99).unwrap_or(0));
    }

    fn take_batches(&mut self, at_ns: u64, batches: BatchesSample) {
        match self.batches.iter_mut().find(|track| track.latest().function == batches.function) {
            Some(track) => track.push(at_ns, batches),
            None => self.batches.push(SampleWindow::new(at_ns, batches)),
        }
    }

    /// Records a failure as the latest one, and counts repeated ones.
    fn record_failure(&mut self, at_ns: u64, text: String) {
        let before = self.failures.iter().position(|failure| failure.text == text);
        let count = before.and_then(|place| self.failures.remove(place)).map_or(0, |failure| failure.count) + 1;
        self.failures.push_back(RecentFailure { at_ns, count, text });
        if self.failures.len() > FAILURES_MAX {
            self.failures.pop_front();
        }
    }

    /// Returns true if the rates of all routes are known.
    pub(super) fn has_rates(&self) -> bool {
        !self.routes.is_empty() && self.routes.iter().all(|track| track.0.len() > 1)
    }

    /// Returns true if no sample has arrived.
    pub(super) fn is_empty(&self) -> bool {
        self.routes.is_empty() && self.sections.is_empty()
    }

    /// Returns the thread counts of a pool.
    pub(super) fn levels(&self, crew: &str) -> Option<&History> {
        self.pools.iter().find(|known| known.name == crew).map(|crew| &crew.levels)
    }
}

impl<T> SampleWindow<T> {
    fn new(at_ns: u64, value: T) -> SampleWindow<T> {
        SampleWindow(VecDeque::from([(at_ns, value)]))
    }

    fn push(&mut self, at_ns: u64, value: T) {
        self.0.push_back((at_ns, value));
        if self.0.len() > WINDOW + 1 {
            self.0.pop_front();
        }
    }

    /// Returns the newest value.
    pub(super) fn latest(&self) -> &T {
        &self.0.back().expect("a track begins with a value, and keeps its last").1
    }

    /// Returns the increase of a counter per second, over the window.
    pub(super) fn rate(&self, counter: impl Fn(&T) -> u64) -> f64 {
        rate(self.0.front(), self.0.back(), counter)
    }

    /// Returns the oldest value of the window.
    fn oldest(&self) -> &T {
        &self.0.front().expect("a track begins with a value, and keeps its last").1
    }
}

impl SampleWindow<RouteSample> {
    /// Returns the durations of the flows that ended in the window.
    pub(super) fn took(&self) -> Durations {
        self.latest().durations().since(&self.oldest().durations())
    }

    /// Returns flows per second and their durations in the latest period.
    fn latest_period(&self) -> (f64, Durations) {
        let before = self.0.len().checked_sub(2).and_then(|index| self.0.get(index));
        let earlier = before.map(|(_, route)| route.durations()).unwrap_or_default();
        (rate(before, self.0.back(), |route| route.ended + route.failed), self.latest().durations().since(&earlier))
    }
}

impl SampleWindow<BatchesSample> {
    /// Returns the durations of this kind that were added in the window.
    pub(super) fn durations(&self, of: impl Fn(&BatchesSample) -> Durations) -> Durations {
        of(self.latest()).since(&of(self.oldest()))
    }
}

fn rate<T>(from: Option<&(u64, T)>, to: Option<&(u64, T)>, counter: impl Fn(&T) -> u64) -> f64 {
    let (Some((from_ns, from)), Some((to_ns, to))) = (from, to) else { return 0.0 };
    let elapsed_ns = to_ns.saturating_sub(*from_ns);
    if elapsed_ns == 0 {
        return 0.0;
    }
    counter(to).saturating_sub(counter(from)) as f64 * 1e9 / elapsed_ns as f64
}

impl History {
    fn push(&mut self, value: u64) {
        self.0.push_back(value);
        if self.0.len() > HISTORY_MAX {
            self.0.pop_front();
        }
    }

    fn replace(&mut self, value: u64) {
        self.0.back_mut().into_iter().for_each(|last| *last = value);
    }

    /// Returns the newest value.
    pub(super) fn latest(&self) -> Option<u64> {
        self.0.back().copied()
    }

    /// Returns up to `most` values, newest first.
    pub(super) fn newest(&self, most: usize) -> Vec<u64> {
        self.0.iter().rev().take(most).copied().collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the model of a recorded trace.
    pub(in crate::commands::top) fn recorded(trace: &str) -> Model {
        let mut model = Model::default();
        trace.lines().for_each(|line| model.take(TraceLine::read(line).unwrap()));
        model
    }

    #[test]
    fn rates_are_taken_over_the_window() {
        let route = |at_ns: u64, ended: u64| {
            let route = RouteSample { route: "r".into(), begun: ended, ended, ..RouteSample::default() };
            TraceLine { at_ns, message: Message::Route(route) }
        };
        let mut model = Model::default();
        model.take(route(0, 0));
        assert!(!model.has_rates());
        // 100 per second, and 1000 in the latest period.
        (1..20).for_each(|period| model.take(route(period * 500_000_000, period * 50)));
        model.take(route(20 * 500_000_000, 19 * 50 + 500));
        assert!(model.has_rates());
        assert_eq!(model.routes[0].rate(|route| route.ended), 190.0);
        assert_eq!(model.throughput.newest(2), [1_000, 100]);
    }

    #[test]
    fn the_level_of_a_crew_is_told_once_a_period() {
        let section = |name: &str, threads| {
            let section =
                SectionSample { section: name.into(), crew: "elastic".into(), threads, ..SectionSample::default() };
            TraceLine::from(Message::Section(section))
        };
        let mut model = Model::default();
        for threads in 1..4 {
            ["a", "b"].into_iter().for_each(|name| model.take(section(name, threads)));
        }
        assert_eq!(model.levels("elastic").unwrap().newest(9), [3, 2, 1]);
        assert_eq!(model.threads.newest(9), [3, 2, 1]);
    }
}
