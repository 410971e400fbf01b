//! httperf: offers a rate of requests, each on a connection of its own, and says what came of them.
//!
//! It is not asked to choose ports itself (`--hog`): it then binds one that is free, and a connection that the client
//! closed first keeps its port from that for a minute. After some 60,000 of them httperf looks for a port without end,
//! reads no replies meanwhile, and the server seems to have stopped answering. The system, where it chooses, gives such a
//! port out again for another server at once, and for the same one after a second.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use bench_harness::BenchResult;

/// The result of a server at one rate.
pub(crate) struct Met {
    pub(crate) replies: f64,
    pub(crate) replies_per_second: f64,
    /// From a connection's beginning to its end: mean and median, and what 99 of 100 stayed below, which is taken from
    /// httperf's histogram of whole milliseconds.
    pub(crate) mean_ms: f64,
    pub(crate) median_ms: f64,
    pub(crate) slowest_hundredth_ms: f64,
    /// Requests that were not answered, for whatever reason.
    pub(crate) errors: u64,
    /// Requests that were never sent, because httperf had no file or port left; this says of the server only that many
    /// others were waiting for it.
    pub(crate) unasked: u64,
}

/// A request that has waited so long counts as an error.
const PATIENCE: Duration = Duration::from_secs(2);
/// Beyond its rate and its patience httperf may take so long; then it is ended.
const OVERTIME: Duration = Duration::from_secs(20);

pub(crate) fn is_installed() -> bool {
    Command::new("httperf").arg("--version").output().is_ok()
}

/// Offers this many requests per second to a server.
///
/// # Errors
/// If httperf does not start, does not end, or says something else than what came of the requests.
pub(crate) fn run(port: u16, file: &str, rate: u32, seconds: f64) -> BenchResult<Met> {
    let requests = (f64::from(rate) * seconds).max(1.0) as u64;
    let mut command = Command::new("httperf");
    command
        .args(["--verbose", "--verbose", "--server", "127.0.0.1", "--port", &port.to_string()])
        .args(["--uri", &format!("/{file}"), "--add-header", "Connection: close\\n"])
        .args(["--rate", &rate.to_string(), "--num-conns", &requests.to_string(), "--num-calls", "1"])
        .args(["--timeout", &PATIENCE.as_secs().to_string()]);
    let text = said_within(&mut command, Duration::from_secs_f64(seconds) + PATIENCE + OVERTIME)?;
    parse(&text, requests).ok_or_else(|| format!("httperf said something else:\n{text}").into())
}

/// Returns the output of a program, which is killed if it does not end in time.
fn said_within(command: &mut Command, limit: Duration) -> BenchResult<String> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let (told, ended) = mpsc::channel();
    if let Some(mut output) = child.stdout.take() {
        thread::spawn(move || {
            let mut text = Vec::new();
            let read = output.read_to_end(&mut text).map(|_| String::from_utf8_lossy(&text).into_owned());
            // Nobody listens any more where it took too long.
            _ = told.send(read);
        });
    }
    let said = ended.recv_timeout(limit);
    if said.is_err() {
        child.kill()?;
    }
    child.wait()?;
    Ok(said.map_err(|_| format!("{} did not end within {limit:?}", command.get_program().display()))??)
}

fn parse(text: &str, requests: u64) -> Option<Met> {
    let replies = number_after(text, "replies ")?;
    let answered = number_after(text, "2xx=")?;
    Some(Met {
        replies,
        replies_per_second: replies / number_after(text, "test-duration ")?,
        mean_ms: number_after(text, "avg ")?,
        median_ms: number_after(text, "median ")?,
        slowest_hundredth_ms: quantile(&histogram(text), 0.99),
        errors: requests.saturating_sub(answered as u64),
        unasked: ["fd-unavail ", "addrunavail "].iter().filter_map(|word| number_after(text, word)).sum::<f64>() as u64,
    })
}

/// The number behind the first occurrence of a word.
fn number_after(text: &str, word: &str) -> Option<f64> {
    let rest = text.split_once(word)?.1;
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// The lines `milliseconds count` of the histogram of connection times; each counts for the middle of its millisecond.
fn histogram(text: &str) -> Vec<(f64, u64)> {
    let lines = text.lines().skip_while(|line| !line.contains("lifetime histogram")).skip(1);
    // Where milliseconds are left out stands a line of its own.
    let lines = lines.take_while(|line| !line.trim().is_empty() && !line.contains("Total"));
    let row = |line: &str| {
        let (ms, count) = line.trim().split_once(char::is_whitespace)?;
        Some((ms.parse().ok()?, count.trim().parse().ok()?))
    };
    lines.filter_map(row).collect()
}

/// Returns the value below which this part of the histogram lies; 0 if it is empty.
fn quantile(histogram: &[(f64, u64)], part: f64) -> f64 {
    let all: u64 = histogram.iter().map(|(_, count)| count).sum();
    let mut seen = 0;
    let reached = histogram.iter().find(|(_, count)| {
        seen += count;
        seen as f64 >= all as f64 * part
    });
    reached.map_or(0.0, |(ms, _)| *ms)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

    use super::*;
    use std::time::Instant;

    const SAID: &str = "\
Maximum connect burst length: 3
Connection lifetime histogram (time in ms):
             0.5 6
             1.5 90
               :
            12.5 3
            40.5 1

Total: connections 100 requests 100 replies 98 test-duration 0.500 s

Connection time [ms]: min 0.1 avg 1.7 max 40.2 median 1.5 stddev 0.1
Reply status: 1xx=0 2xx=97 3xx=0 4xx=1 5xx=0

Errors: total 2 client-timo 0 socket-timo 0 connrefused 0 connreset 0
Errors: fd-unavail 1 addrunavail 1 ftab-full 0 other 0
";

    #[test]
    fn what_httperf_says_is_read() {
        let met = parse(SAID, 100).expect("it has all parts");
        assert_eq!((met.replies_per_second, met.mean_ms, met.median_ms, met.errors), (196.0, 1.7, 1.5, 3));
        assert_eq!((met.slowest_hundredth_ms, met.unasked), (12.5, 2));
    }

    #[test]
    fn anything_else_is_not_taken_for_figures() {
        assert!(parse("usage: httperf", 100).is_none());
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let begin = Instant::now();
        let error = said_within(Command::new("sleep").arg("1000"), Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.to_string(), "sleep did not end within 50ms");
        assert!(begin.elapsed() < Duration::from_secs(100));
        assert_eq!(said_within(Command::new("echo").arg("done"), Duration::from_secs(100)).unwrap(), "done\n");
    }
}
