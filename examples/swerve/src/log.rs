//! The log: one thread that writes lines for all modules, into files that roll (§6, "Underlying I/O and Logging").
//!
//! Rolling is a post-consumption action of a timer: neither the modules nor the log's protocol know of it. The last line
//! before an exit is a callback of its own asynchronous send: the failing module cleans up first, and the lines that it
//! logs meanwhile follow the fatal one.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_events::{Channel, Event, Signal, a_send, s_trans};

use crate::server::Style;

/// Opens the log file of a number, counted from 0.
pub type OpenLog = Arc<dyn Fn(usize) -> io::Result<Box<dyn Write + Send>> + Send + Sync>;

/// A handle of the log.
#[derive(Clone)]
pub(crate) struct Log {
    records: Channel<Record>,
    written: Arc<AtomicUsize>,
    style: Style,
    /// Fired when the log is closed, so that it rolls no more.
    closed: Signal,
}

/// A message to the log.
#[derive(Clone)]
enum Record {
    Line(Line),
    /// Answered when all records before it are written.
    Flush(Channel<()>),
}

/// A log entry, which the log's thread formats.
#[derive(Clone, Debug)]
pub(crate) enum Line {
    ConnectionStart,
    RequestStart(String),
    RequestEnd(u16),
    Fatal(String),
}

/// The current log file.
struct LogFile {
    number: usize,
    out: Box<dyn Write + Send>,
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::ConnectionStart => formatter.write_str("connection start"),
            Line::RequestStart(path) => write!(formatter, "request start {path}"),
            Line::RequestEnd(status) => write!(formatter, "request end {status}"),
            Line::Fatal(reason) => write!(formatter, "fatal: {reason}"),
        }
    }
}

impl Log {
    /// Starts a log that rolls whenever `rolls` takes effect.
    ///
    /// # Errors
    /// If the first file cannot be opened.
    pub(crate) fn start(style: Style, open: OpenLog, rolls: Event<()>) -> io::Result<Self> {
        let file = Arc::new(Mutex::new(LogFile { number: 0, out: open(0)? }));
        let closed = Signal::new();
        roll_again(file.clone(), open, rolls.unless(&closed));
        let log = Log { records: Channel::rendezvous(), written: Arc::default(), style, closed };
        let (records, written) = (log.records.clone(), log.written.clone());
        std::thread::spawn(move || {
            while let Ok(record) = records.recv().sync() {
                match record {
                    // A log whose disk is full must not stop the server.
                    Record::Line(line) => _ = writeln!(lock(&file).out, "{line}"),
                    Record::Flush(done) => {
                        _ = lock(&file).out.flush();
                        _ = done.post(());
                        continue;
                    }
                }
                written.fetch_add(1, Relaxed);
            }
            lock(&file).out.flush()
        });
        Ok(log)
    }

    pub(crate) fn write(&self, line: Line) {
        match self.style {
            Style::Synchronous => drop(self.records.blocking_send(Record::Line(line))),
            Style::ReadAhead | Style::Asynchronous => drop(self.records.post(Record::Line(line))),
        }
    }

    /// Logs a fatal line at once; yields the event of the exit, to be synchronised after the clean-up. It takes effect
    /// when the log has the line, flushes the log, and then runs `exit`.
    pub(crate) fn fail(&self, reason: &str, exit: impl Fn() + Send + Sync + 'static) -> Event<()> {
        let records = self.records.clone();
        a_send(&self.records, Record::Line(Line::Fatal(reason.to_owned())))
            .callback(move |_| {
                let flushed = Channel::rendezvous();
                if records.post(Record::Flush(flushed.clone())).is_ok() {
                    _ = flushed.recv().sync();
                }
                exit();
            })
            .a_sync()
    }

    pub(crate) fn lines_written(&self) -> usize {
        self.written.load(Relaxed)
    }

    pub(crate) fn close(&self) {
        self.records.close();
        self.closed.fire();
    }
}

/// Rolls once `rolls` yields, in the implicit thread, and then waits for the next time; `None` ends it.
fn roll_again(file: Arc<Mutex<LogFile>>, open: OpenLog, rolls: Event<Option<()>>) {
    let next = rolls.clone();
    let roll = move |is_due: Option<()>| {
        if is_due.is_none() {
            return;
        }
        let mut current = lock(&file);
        let number = current.number + 1;
        // A file that cannot be opened leaves the log in the old one.
        if let Ok(out) = open(number) {
            _ = current.out.flush();
            *current = LogFile { number, out };
        }
        drop(current);
        roll_again(file.clone(), open.clone(), next.clone());
    };
    s_trans(&rolls).a_wrap(roll).a_sync();
}

fn lock(file: &Mutex<LogFile>) -> MutexGuard<'_, LogFile> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

    use super::*;

    /// Log files in memory.
    #[derive(Clone, Default)]
    struct Files(Arc<Mutex<Vec<Vec<u8>>>>);

    struct OneFile(Files, usize);

    impl Write for OneFile {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.0.lock().unwrap()[self.1].extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Files {
        fn open(&self) -> OpenLog {
            let files = self.clone();
            Arc::new(move |number| {
                files.0.lock().unwrap().push(Vec::new());
                Ok(Box::new(OneFile(files.clone(), number)))
            })
        }

        fn texts(&self) -> Vec<String> {
            self.0.lock().unwrap().iter().map(|file| String::from_utf8(file.clone()).unwrap()).collect()
        }
    }

    fn until(condition: impl Fn() -> bool) {
        while !condition() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_log_rolls_without_losing_a_line() {
        let (files, rolls) = (Files::default(), Channel::<()>::rendezvous());
        let log = Log::start(Style::Asynchronous, files.open(), rolls.recv().wrap(drop)).unwrap();
        for day in 0..3 {
            log.write(Line::RequestEnd(200 + day));
            until(|| log.lines_written() == usize::from(day) + 1);
            rolls.send(()).sync().unwrap();
            // The new file is in use before the timer waits again.
            until(|| rolls.receivers_len() == 1);
        }
        log.close();
        assert_eq!(files.texts(), ["request end 200\n", "request end 201\n", "request end 202\n", ""]);
    }

    #[test]
    fn a_fatal_line_comes_before_those_of_the_clean_up_and_all_before_the_exit() {
        let (files, at_exit) = (Files::default(), Channel::unbounded());
        let log = Log::start(Style::Asynchronous, files.open(), weir_events::never()).unwrap();
        let (disk, into) = (files.clone(), at_exit.clone());
        log.write(Line::ConnectionStart);
        let exit = log.fail("no more memory", move || into.post(disk.texts().concat()).unwrap());
        log.write(Line::RequestEnd(503));
        assert!(at_exit.is_empty(), "nobody exits before the clean-up is done");
        exit.sync();
        let text = "connection start\nfatal: no more memory\nrequest end 503\n";
        assert_eq!(at_exit.try_recv(), Ok(text.to_owned()));
        log.close();
    }
}
