//! Progress line of finite input, redrawn in place at the bottom of a terminal.

use std::io::{IsTerminal, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weir_host::Progress as Extent;
use weir_library::log::LogFormat;
use weir_runtime::Watcher;

use crate::humanize::{grouped, rounded};

/// Redraw interval.
const INTERVAL: Duration = Duration::from_millis(200);
/// Assumed width of a terminal of unknown size.
const COLUMNS: usize = 80;
/// Clears the current line.
const CLEAR: &str = "\r\u{1b}[K";

/// Draws on a thread of its own, if standard error is a terminal and shows text.
pub(super) struct ProgressLine(Option<(mpsc::Sender<()>, JoinHandle<()>)>);

impl ProgressLine {
    pub(super) fn begin(watcher: Watcher, format: LogFormat) -> ProgressLine {
        if format == LogFormat::Json || !std::io::stderr().is_terminal() {
            return ProgressLine(None);
        }
        let (end, ended) = mpsc::channel();
        let drawing = std::thread::spawn(move || {
            let begun = Instant::now();
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let columns = columns();
                draw(&cut(line(&watcher.progress(), begun.elapsed()), columns));
            }
            draw("");
        });
        ProgressLine(Some((end, drawing)))
    }

    /// Clears the line.
    pub(super) fn end(self) {
        if let Some((end, drawing)) = self.0 {
            drop(end);
            // If drawing failed, there is nothing to clear.
            let _ = drawing.join();
        }
    }
}

/// Returns the width of the terminal.
fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr()).map_or(0, |size| size.ws_col.into());
    if size == 0 { COLUMNS } else { size }
}

fn draw(line: &str) {
    // The cursor stays at the start of the line, so that log messages overwrite it.
    let _ = write!(std::io::stderr().lock(), "{CLEAR}{line}\r");
}

/// Formats elements, percentage, rate and remaining time of each source.
fn line(sources: &[(String, Extent)], elapsed: Duration) -> String {
    let shown = sources.iter().map(|(described, extent)| format!("{described}: {}", words(*extent, elapsed)));
    shown.collect::<Vec<_>>().join("  ")
}

/// Cuts the line to the width of the terminal, because a wrapped line could not be redrawn.
fn cut(line: String, columns: usize) -> String {
    if line.chars().count() < columns {
        return line;
    }
    let kept = line.chars().skip(line.chars().count() + 2 - columns.max(2));
    format!("…{}", kept.collect::<String>())
}

fn words(Extent { elements, done, whole }: Extent, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    let part = if whole == 0 { 1.0 } else { (done as f64 / whole as f64).min(1.0) };
    let rate = elements as f64 / seconds.max(f64::MIN_POSITIVE);
    let elements = grouped(elements);
    let (percent, rate) = ((part * 100.0) as u64, grouped(rate as u64));
    if part == 0.0 {
        return format!("{elements}, {percent} %, {rate}/s");
    }
    let left = Duration::try_from_secs_f64(seconds * (1.0 - part) / part).unwrap_or(Duration::MAX);
    format!("{elements}, {percent} %, {rate}/s, {} left", rounded(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_much_is_done_how_fast_and_how_long_it_takes() {
        let shown = |elements, done, whole, seconds| {
            line(&[("x".to_owned(), Extent { elements, done, whole })], Duration::from_secs(seconds))
        };
        assert_eq!(shown(1_234_567, 25, 100, 10), "x: 1,234,567, 25 %, 123,456/s, 30 s left");
        assert_eq!(shown(0, 0, 100, 10), "x: 0, 0 %, 0/s");
        assert_eq!(shown(999, 1, 100, 100), "x: 999, 1 %, 9/s, 2 h 45 min left");
        assert_eq!(shown(3, 50, 100, 90), "x: 3, 50 %, 0/s, 1 min 30 s left");
        // A file that grows while it is read, and an empty one.
        assert_eq!(shown(10, 200, 100, 1), "x: 10, 100 %, 10/s, 0 s left");
        assert_eq!(shown(0, 0, 0, 1), "x: 0, 100 %, 0/s, 0 s left");
        assert_eq!(line(&[], Duration::ZERO), "");
    }

    #[test]
    fn a_line_is_never_wrapped_and_keeps_its_end() {
        assert_eq!(cut("rows: 9 s left".to_owned(), 80), "rows: 9 s left");
        assert_eq!(cut("rows: 9 s left".to_owned(), 15), "rows: 9 s left");
        assert_eq!(cut("rows: 9 s left".to_owned(), 10), "…9 s left");
        assert_eq!(cut("rows: 9 s left".to_owned(), 0), "…");
    }
}
