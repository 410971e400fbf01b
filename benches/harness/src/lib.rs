//! Harness of the server benchmarks: servers and load on separate cores, and ratios within a round.
//!
//! A *case* is one load against several *servers*, the first of which is the *peer*. In each *round* every server is
//! measured in turn, and each round begins with another one. A ratio is taken between figures of the same round, and
//! the median of all rounds is reported, so that a drift of the machine cancels out.

pub mod by_hand;
mod load;
mod open_loop;
pub mod peers;
mod process;
mod report;
pub mod results;
mod server;
pub mod tls;

pub use load::{Load, LoadSample, RequestWriter, Workload, random};
pub use open_loop::{OpenSample, Schedule};
pub use report::{LoadCase, LoadReport, median};
pub use server::{ServerProcess, free_port, more_files, pin};

/// The result of a step of a benchmark. Its errors are for the person who runs it.
pub type BenchResult<T> = Result<T, Box<dyn std::error::Error>>;

/// The options that the benchmarks share: `--rounds`, `--seconds`, `--connections`.
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions {
    /// The number of rounds.
    pub rounds: usize,
    /// The duration of a server's measurement in a round.
    pub seconds: f64,
    /// The number of concurrent connections.
    pub connections: usize,
}

impl LoadOptions {
    /// Parses the arguments after the program's name.
    ///
    /// # Errors
    /// Fails on an unknown option, or a value that is not a number.
    pub fn read(arguments: &[String]) -> BenchResult<LoadOptions> {
        let mut options = LoadOptions { rounds: 20, seconds: 1.0, connections: 16 };
        for pair in arguments.chunks(2) {
            match pair {
                [name, value] if name == "--rounds" => options.rounds = value.parse()?,
                [name, value] if name == "--seconds" => options.seconds = value.parse()?,
                [name, value] if name == "--connections" => options.connections = value.parse()?,
                other => return Err(format!("unknown option {other:?}: see the first lines of main.rs").into()),
            }
        }
        Ok(options)
    }
}

/// Removes an option of one benchmark from the arguments, and returns its value.
pub fn taken(arguments: &mut Vec<String>, name: &str) -> Option<String> {
    let at = arguments.iter().position(|argument| argument == name)?;
    arguments.remove(at);
    (at < arguments.len()).then(|| arguments.remove(at))
}

/// Measures all servers in turn, round after round. Ratios are relative to the first server.
///
/// # Errors
/// Fails if a server does not answer 200.
pub fn measure(
    name: &str,
    servers: &[ServerProcess],
    options: LoadOptions,
    workload: &Workload,
) -> BenchResult<LoadCase> {
    let load = Load::new(options.connections)?;
    let mut case = LoadCase::new(name, servers.iter().map(|server| server.name.clone()).collect());
    for round in 0..options.rounds {
        for turn in 0..servers.len() {
            let at = (round + turn) % servers.len();
            case.add(at, load.run(&servers[at], options.seconds, round as u64, workload)?);
        }
    }
    Ok(case)
}
