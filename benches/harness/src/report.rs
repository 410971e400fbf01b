//! Report: the results as a table and as JSON.

use std::fmt;

use serde_json::{Value, json};

use crate::load::LoadSample;
use crate::{BenchResult, results};

/// The results of all cases.
#[derive(Debug, Default)]
pub struct LoadReport {
    /// The cases in the order in which they are printed.
    pub cases: Vec<LoadCase>,
}

/// The results of a case: the samples of every server, by round.
#[derive(Debug)]
pub struct LoadCase {
    name: String,
    servers: Vec<(String, Vec<LoadSample>)>,
    /// The index of a second server for throughput ratios.
    second: Option<usize>,
}

impl LoadCase {
    /// Creates a case without samples. Ratios are relative to the first server.
    #[must_use]
    pub fn new(name: &str, servers: Vec<String>) -> Self {
        LoadCase {
            name: name.into(),
            servers: servers.into_iter().map(|server| (server, Vec::new())).collect(),
            second: None,
        }
    }

    /// Reports the throughput relative to another server as well, if that takes part.
    #[must_use]
    pub fn also_to(mut self, server: &str) -> Self {
        self.second = self.servers.iter().position(|(name, _)| name == server);
        self
    }

    /// Adds the sample of a round to the server with this index.
    ///
    /// # Panics
    /// Panics if the index is out of bounds.
    pub fn add(&mut self, server: usize, sample: LoadSample) {
        self.servers[server].1.push(sample);
    }

    fn rows(&self) -> impl Iterator<Item = ReportRow<'_>> + '_ {
        let peer = self.servers.first().map_or(&[][..], |(_, samples)| samples);
        let second = self.second.map_or(&[][..], |second| &self.servers[second].1);
        self.servers.iter().map(move |(server, samples)| {
            let middle = |figure: &dyn Fn(&LoadSample) -> f64| median(samples.iter().map(figure).collect());
            let ratio_to = |peer: &[LoadSample], figure: &dyn Fn(&LoadSample) -> f64| {
                median(samples.iter().zip(peer).map(|(own, peer)| figure(own) / figure(peer)).collect())
            };
            let ratio = |figure: &dyn Fn(&LoadSample) -> f64| ratio_to(peer, figure);
            ReportRow {
                case: &self.name,
                server,
                requests_per_second: middle(&|sample| sample.requests_per_second),
                p50_us: middle(&|sample| sample.p50_ns as f64 / 1e3),
                p99_us: middle(&|sample| sample.p99_ns as f64 / 1e3),
                cpu_us: middle(&|sample| sample.cpu_ns / 1e3),
                throughput_ratio: ratio(&|sample| sample.requests_per_second),
                throughput_second: ratio_to(second, &|sample| sample.requests_per_second),
                p99_ratio: ratio(&|sample| sample.p99_ns as f64),
                cpu_ratio: ratio(&|sample| sample.cpu_ns),
            }
        })
    }
}

/// A row of the table.
struct ReportRow<'a> {
    case: &'a str,
    server: &'a str,
    requests_per_second: f64,
    p50_us: f64,
    p99_us: f64,
    cpu_us: f64,
    throughput_ratio: f64,
    /// Not a number if there is no second server.
    throughput_second: f64,
    p99_ratio: f64,
    cpu_ratio: f64,
}

/// Returns the median of figures, of two in the middle the larger; not a number if there are none.
#[must_use]
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

impl LoadReport {
    /// Returns the rows as a JSON array.
    #[must_use]
    pub fn json(&self) -> Value {
        let rows = self.cases.iter().flat_map(LoadCase::rows).map(|row| {
            json!({
                "case": row.case,
                "server": row.server,
                "requests_per_second": row.requests_per_second,
                "p50_us": row.p50_us,
                "p99_us": row.p99_us,
                "cpu_s_per_1000_requests": row.cpu_us / 1e3,
                "throughput_ratio_to_first": row.throughput_ratio,
                "throughput_ratio_to_second": row.throughput_second,
                "p99_ratio_to_first": row.p99_ratio,
                "cpu_ratio_to_first": row.cpu_ratio,
            })
        });
        Value::Array(rows.collect())
    }

    /// Prints the table and writes the JSON into the target directory.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    #[expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
    pub fn publish(&self, name: &str) -> BenchResult<()> {
        println!("{self}");
        results::publish(name, &self.json())
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles =
            ["case", "server", "requests/s", "p50 us", "p99 us", "cpu us", "throughput", "throughput", "p99", "cpu"];
        let below = ["", "", "", "", "", "a request", "to first's", "to limited", "to first's", "to first's"];
        for [case, server, columns @ ..] in [titles, below] {
            write!(f, "{case:<10} {server:<12}")?;
            columns.iter().try_for_each(|title| write!(f, " {title:>10}"))?;
            writeln!(f)?;
        }
        for row in self.cases.iter().flat_map(LoadCase::rows) {
            writeln!(
                f,
                "{:<10} {:<12} {:>10.0} {:>10.0} {:>10.0} {:>10.2} {:>10.3} {:>10.3} {:>10.3} {:>10.3}",
                row.case,
                row.server,
                row.requests_per_second,
                row.p50_us,
                row.p99_us,
                row.cpu_us,
                row.throughput_ratio,
                row.throughput_second,
                row.p99_ratio,
                row.cpu_ratio
            )?;
        }
        Ok(())
    }
}
