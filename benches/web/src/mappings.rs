//! The section mappings of the thesis on connections that are kept alive: `main.weir`, whose loop the plans cut, with five
//! requests per connection, beside `pipeline.weir` with one.
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::path::Path;

use bench_harness::{BenchResult, Load, LoadOptions, Workload, median, results};
use serde_json::json;

use crate::servers;
use crate::workload::{ALONE, SMALL};

/// The number of requests per connection.
const REQUESTS: u64 = 5;

/// Measures each mapping, both programs in turns.
pub(crate) fn run(folder: &Path, options: LoadOptions) -> BenchResult<()> {
    println!("mappings: requests per second under the section mappings; medians of {} rounds\n", options.rounds);
    println!("{:<14} {:>14} {:>14} {:>8}", "mapping", "1 a connection", "5 a connection", "ratio");
    let (alone, kept) = ((ALONE.workload)(), Workload { requests_per_connection: REQUESTS, ..(SMALL.workload)() });
    let load = Load::new(options.connections)?;
    let mut rows = Vec::new();
    for (mapping, _) in servers::MAPPINGS {
        let names = [format!("map-{mapping}"), format!("kept-{mapping}")];
        let servers = servers::start(&names.each_ref().map(String::as_str), folder)?;
        let [one, five] = &servers[..] else { return Err("both servers are ours".into()) };
        let mut rates = [Vec::new(), Vec::new(), Vec::new()];
        // The first round warms up.
        for round in 0..=options.rounds {
            let [alone, kept] = [(one, &alone), (five, &kept)]
                .map(|(server, workload)| load.run(server, options.seconds, round as u64, workload));
            let (alone, kept) = (alone?.requests_per_second, kept?.requests_per_second);
            if round > 0 {
                rates.iter_mut().zip([alone, kept, kept / alone]).for_each(|(rates, rate)| rates.push(rate));
            }
        }
        let [alone, kept, ratio] = rates.map(median);
        println!("{mapping:<14} {alone:>14.0} {kept:>14.0} {ratio:>8.2}");
        rows.push(json!({
            "mapping": mapping, "pipeline_per_second": alone, "kept_per_second": kept, "ratio": ratio,
        }));
    }
    println!();
    results::publish("bench-web-mappings", &rows.into())
}
