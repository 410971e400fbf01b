//! httperf: offers a rate of requests, each on a connection of its own, and says what came of them.

use std::process::Command;

use bench_harness::Outcome;

/// What a server did under one rate.
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
}

/// A request that has waited so long counts as an error, in seconds.
const PATIENCE: &str = "2";

pub(crate) fn is_installed() -> bool {
    Command::new("httperf").arg("--version").output().is_ok()
}

pub(crate) fn run(port: u16, file: &str, rate: u32, seconds: f64) -> Outcome<Met> {
    let requests = (f64::from(rate) * seconds).max(1.0) as u64;
    let output = Command::new("httperf")
        .args(["--hog", "--verbose", "--verbose", "--server", "127.0.0.1", "--port", &port.to_string()])
        .args(["--uri", &format!("/{file}"), "--add-header", "Connection: close\\n"])
        .args(["--rate", &rate.to_string(), "--num-conns", &requests.to_string(), "--num-calls", "1"])
        .args(["--timeout", PATIENCE])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    parse(&text, requests).ok_or_else(|| format!("httperf said something else:\n{text}").into())
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

/// What so large a part stayed below; 0 where nothing was counted.
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
    use super::*;

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
";

    #[test]
    fn what_httperf_says_is_read() {
        let met = parse(SAID, 100).expect("it has all parts");
        assert_eq!((met.replies_per_second, met.mean_ms, met.median_ms, met.errors), (196.0, 1.7, 1.5, 3));
        assert_eq!(met.slowest_hundredth_ms, 12.5);
    }

    #[test]
    fn anything_else_is_not_taken_for_figures() {
        assert!(parse("usage: httperf", 100).is_none());
    }
}
