//! The log of the paper's §6: it rolls to a new file now and then, and the process can end with its last words written.
//!
//! Writers send their records asynchronously and go on. Rolling is a post-consumption action of a timer: no writer and
//! no record knows of it. Ending after a fatal record is a *callback* of the record's own send: the module that fails
//! cleans up first, and what it logs meanwhile comes behind the fatal record, where it belongs.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_events::{Channel, Event, Signal, a_send, after, choose_biased, s_trans};

/// Opens the nth file.
type Open = dyn Fn(usize) -> io::Result<Box<dyn Write + Send>> + Send + Sync;

/// A message to the log.
#[derive(Clone)]
enum Record {
    Line(String),
    /// Answered when everything before it is on its way to the disk.
    Flush(Channel<()>),
}

/// A log that runs in a thread of its own.
struct Log {
    records: Channel<Record>,
    #[cfg_attr(not(test), expect(dead_code, reason = "a test looks whether the new file is in use"))]
    file: Arc<Mutex<File>>,
    writer: JoinHandle<io::Result<()>>,
    stop: Signal,
}

/// The current destination of records.
struct File {
    number: usize,
    out: Box<dyn Write + Send>,
}

impl Log {
    /// Starts a log that rolls whenever `rolls` takes effect.
    fn start(open: Arc<Open>, rolls: Event<()>) -> io::Result<Self> {
        let file = Arc::new(Mutex::new(File { number: 0, out: open(0)? }));
        let (records, stop) = (Channel::rendezvous(), Signal::new());
        roll_again(file.clone(), open, rolls);
        let next = choose_biased([records.recv().wrap(Result::ok), stop.fired().wrap(|()| None)]);
        let out = file.clone();
        let writer = std::thread::spawn(move || {
            while let Some(record) = next.sync() {
                match record {
                    Record::Line(line) => writeln!(lock(&out).out, "{line}")?,
                    Record::Flush(done) => {
                        lock(&out).out.flush()?;
                        _ = done.post(());
                    }
                }
            }
            lock(&out).out.flush()
        });
        Ok(Log { records, file, writer, stop })
    }

    /// Writes a record without waiting for it.
    fn write(&self, line: &str) {
        _ = self.records.post(Record::Line(line.to_owned()));
    }

    /// Writes the last record; yields what to do when everything is cleaned up.
    fn fail(&self, line: &str, exit: impl Fn() + Send + Sync + 'static) -> Event<()> {
        let records = self.records.clone();
        a_send(&self.records, Record::Line(line.to_owned()))
            .callback(move |_| {
                // The log has received the record; now let it finish writing.
                let flushed = Channel::rendezvous();
                _ = records.post(Record::Flush(flushed.clone()));
                let _ = flushed.recv().sync();
                exit();
            })
            .a_sync()
    }

    /// Writes what was sent and ends.
    fn close(self) -> io::Result<()> {
        self.stop.fire();
        self.writer.join().unwrap_or_else(|_| Err(io::Error::other("the log's thread panicked")))
    }
}

/// Rolls once `rolls` takes effect, in the implicit thread, and then waits for the next time.
fn roll_again(file: Arc<Mutex<File>>, open: Arc<Open>, rolls: Event<()>) {
    let next = rolls.clone();
    s_trans(&rolls)
        .a_wrap(move |()| {
            let mut old = lock(&file);
            let number = old.number + 1;
            if let Ok(out) = open(number) {
                let _ = old.out.flush();
                *old = File { number, out };
            }
            drop(old);
            roll_again(file.clone(), open.clone(), next.clone());
        })
        .a_sync();
}

fn lock(file: &Mutex<File>) -> std::sync::MutexGuard<'_, File> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

fn main() -> io::Result<()> {
    let open = |number| {
        println!("-- file {number}");
        Ok(Box::new(io::stdout()) as Box<dyn Write + Send>)
    };
    let log = Log::start(Arc::new(open), after(Duration::from_millis(20)))?;
    for n in 0..5 {
        log.write(&format!("record {n}"));
        after(Duration::from_millis(10)).sync();
    }
    let exit = log.fail("fatal: the disk is on fire", || println!("(the process ends here)"));
    log.write("cleaning up");
    exit.sync();
    log.close()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files in memory.
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
        fn open(&self) -> Arc<Open> {
            let files = self.clone();
            Arc::new(move |number| {
                files.0.lock().unwrap().push(Vec::new());
                Ok(Box::new(OneFile(files.clone(), number)) as _)
            })
        }

        fn texts(&self) -> Vec<String> {
            self.0.lock().unwrap().iter().map(|file| String::from_utf8(file.clone()).unwrap()).collect()
        }

        fn until(&self, condition: impl Fn(&[String]) -> bool) {
            while !condition(&self.texts()) {
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn the_log_rolls_and_loses_no_record() {
        let (files, day) = (Files::default(), Channel::<()>::rendezvous());
        let log = Log::start(files.open(), day.recv().wrap(drop)).unwrap();
        log.write("monday 1");
        log.write("monday 2");
        files.until(|texts| texts[0].lines().count() == 2);
        day.send(()).sync().unwrap();
        files.until(|texts| texts.len() == 2);
        // The new file is open but perhaps not yet in use: the lock is given back only after both.
        drop(lock(&log.file));
        log.write("tuesday");
        log.close().unwrap();
        assert_eq!(files.texts(), ["monday 1\nmonday 2\n", "tuesday\n"]);
    }

    #[test]
    fn a_fatal_record_is_written_before_the_exit_and_in_its_place() {
        let (files, exits) = (Files::default(), Channel::rendezvous());
        let log = Log::start(files.open(), weir_events::never()).unwrap();
        let (exiting, disk) = (exits.clone(), files.clone());
        log.write("fine");
        let exit = log.fail("fatal", move || _ = exiting.post(disk.texts().concat()));
        log.write("clean up");
        assert_eq!(exits.recv().poll(), None, "nobody exits before it is asked to");
        exit.sync();
        assert_eq!(exits.recv().poll(), Some(Ok("fine\nfatal\nclean up\n".to_owned())));
        log.close().unwrap();
        assert_eq!(files.texts(), ["fine\nfatal\nclean up\n"]);
    }
}
