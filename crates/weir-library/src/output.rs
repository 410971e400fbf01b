//! Buffered outputs: the standard streams, to which programs write line by line.
//!
//! Written bytes first go to the output's buffer. They reach the operating system
//! 1. when the buffer holds `BUFFER_BYTES`, by the call that filled it;
//! 2. otherwise within `FLUSH_WITHIN`, by a thread that starts at the first buffered byte and ends after one flush;
//! 3. at the latest when the program ends ([`weir::Closing`]), so that nothing is lost at the end of the input.
//!
//! A failure to write is reported to the next call that writes to the same output, or else at the end of the program.
//! The bytes that could not be written are discarded and not retried. If the standard output no longer has a reader, an
//! embedder may handle that instead ([`Outputs::on_broken_pipe`]).

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use indexmap::IndexMap;
use parking_lot::Mutex;
use weir::Failure;
use weir::memory::of_program;

/// Number of buffered bytes at which a call writes them itself.
const BUFFER_BYTES: usize = 64 * 1024;
/// Maximum time that bytes stay buffered.
const FLUSH_WITHIN: Duration = Duration::from_millis(50);

/// Name of the standard output in messages.
pub(crate) const STANDARD_OUTPUT: &str = "the standard output";

/// The outputs of a program, each open once however many calls write to it.
#[derive(Clone, Default)]
pub struct Outputs(Arc<Mutex<OutputTable>>);

#[derive(Default)]
struct OutputTable {
    /// Open outputs by their name in messages.
    open: IndexMap<String, Arc<OutputFile>>,
    /// The text of the standard streams, if it is captured.
    captured: Option<String>,
    /// `true` while a thread is about to flush them.
    flushing: bool,
    on_broken_pipe: BrokenPipePolicy,
}

/// Policy for a standard output that no longer has a reader.
#[derive(Default)]
enum BrokenPipePolicy {
    /// Writing fails.
    #[default]
    Fails,
    /// This function is called.
    Calls(Box<dyn FnOnce() + Send>),
    /// The function has been called.
    Called,
}

/// An open output.
pub(crate) struct OutputFile {
    name: String,
    /// `true` for a terminal: every write is flushed.
    interactive: bool,
    file: Mutex<BufferedFile>,
}

struct BufferedFile {
    file: File,
    buffer: Vec<u8>,
    /// Reason why bytes were lost, not yet reported.
    failure: Option<Failure>,
    /// `true` if the other end has no reader.
    broken_pipe: bool,
}

impl Outputs {
    /// Returns the output of this name, and opens it if necessary.
    pub(crate) fn open(&self, name: &str, open: impl FnOnce() -> io::Result<File>) -> io::Result<Arc<OutputFile>> {
        let mut state = self.0.lock();
        if let Some(output) = state.open.get(name) {
            return Ok(Arc::clone(output));
        }
        let output = Arc::new(OutputFile::new(name, open()?));
        state.open.insert(name.to_owned(), Arc::clone(&output));
        Ok(output)
    }

    /// Returns outputs that keep what is written to the standard streams, at most [`Outputs::CAPTURED_MAX`] bytes of it, instead
    /// of writing it.
    #[must_use]
    pub fn capturing() -> Outputs {
        Outputs(Arc::new(Mutex::new(OutputTable { captured: Some(String::new()), ..OutputTable::default() })))
    }

    /// The number of bytes of captured output; the rest is left out.
    pub const CAPTURED_MAX: usize = 64 * 1024;

    /// Returns what the program has written to the standard streams, if it is captured.
    #[must_use]
    pub fn captured(&self) -> Option<String> {
        self.0.lock().captured.clone()
    }

    /// Keeps a line of a standard stream. Returns `false` if they are not captured.
    pub(crate) fn capture(&self, line: &str) -> bool {
        let mut table = self.0.lock();
        let Some(captured) = &mut table.captured else { return false };
        let more = "… the rest of the output is left out\n";
        if captured.len() + line.len() < Self::CAPTURED_MAX {
            captured.extend([line, "\n"]);
        } else if !captured.ends_with(more) {
            captured.push_str(more);
        }
        true
    }

    /// Has `then` called once if the standard output no longer has a reader. Further output to it is then discarded,
    /// and writing succeeds.
    pub fn on_broken_pipe(&self, then: impl FnOnce() + Send + 'static) {
        self.0.lock().on_broken_pipe = BrokenPipePolicy::Calls(Box::new(then));
    }

    /// Writes `parts` contiguously.
    pub(crate) fn write(&self, output: &OutputFile, parts: &[&[u8]]) -> Result<(), Failure> {
        match output.write(parts) {
            Ok(false) => Ok(()),
            Ok(true) => {
                self.flush_soon();
                Ok(())
            }
            Err(failure) => self.unless_broken_pipe(output, failure),
        }
    }

    /// Returns the failure, unless the policy for a broken pipe handles it.
    fn unless_broken_pipe(&self, output: &OutputFile, failure: Failure) -> Result<(), Failure> {
        if self.notice_broken_pipe(output) { Ok(()) } else { Err(failure) }
    }

    /// Applies the policy for a broken pipe; returns `true` if it handled one.
    fn notice_broken_pipe(&self, output: &OutputFile) -> bool {
        if output.name != STANDARD_OUTPUT || !output.file.lock().broken_pipe {
            return false;
        }
        let mut state = self.0.lock();
        match std::mem::replace(&mut state.on_broken_pipe, BrokenPipePolicy::Called) {
            BrokenPipePolicy::Fails => {
                state.on_broken_pipe = BrokenPipePolicy::Fails;
                return false;
            }
            BrokenPipePolicy::Calls(then) => {
                drop(state);
                then();
            }
            BrokenPipePolicy::Called => {}
        }
        true
    }

    /// Schedules a flush of all outputs, unless one is pending.
    fn flush_soon(&self) {
        let mut state = self.0.lock();
        if state.flushing {
            return;
        }
        state.flushing = true;
        drop(state);
        let outputs = self.clone();
        let begun = thread::Builder::new().name("weir output".into()).spawn(move || {
            thread::sleep(FLUSH_WITHIN);
            outputs.flush_late();
        });
        if begun.is_err() {
            // No thread could be started, so the caller flushes.
            self.flush_late();
        }
    }

    fn flush_late(&self) {
        let open = {
            let mut state = self.0.lock();
            // Later writes have to start another thread.
            state.flushing = false;
            state.open.values().cloned().collect::<Vec<_>>()
        };
        for output in open {
            output.file.lock().flush(&output.name);
            self.notice_broken_pipe(&output);
        }
    }
}

impl weir::Closing for Outputs {
    fn close(&self) -> Result<(), Failure> {
        let open: Vec<_> = self.0.lock().open.values().cloned().collect();
        let flushed =
            |output: &Arc<OutputFile>| output.flush().or_else(|failure| self.unless_broken_pipe(output, failure));
        let failures = open.iter().filter_map(|output| flushed(output).err());
        failures.reduce(|first, _| first).map_or(Ok(()), Err)
    }
}

impl OutputFile {
    fn new(name: &str, file: File) -> Self {
        let interactive = io::IsTerminal::is_terminal(&file);
        let file = BufferedFile { file, buffer: Vec::new(), failure: None, broken_pipe: false };
        OutputFile { name: name.to_owned(), interactive, file: Mutex::new(file) }
    }

    /// Writes, and returns `true` if the buffer was empty before and is not any more.
    fn write(&self, parts: &[&[u8]]) -> Result<bool, Failure> {
        let mut file = self.file.lock();
        file.tell()?;
        let waited = !file.buffer.is_empty();
        // The buffer outlives the flow that fills it.
        of_program(|| parts.iter().for_each(|part| file.buffer.extend_from_slice(part)));
        if self.interactive || file.buffer.len() >= BUFFER_BYTES {
            file.flush(&self.name);
            return file.tell().map(|()| false);
        }
        Ok(!waited && !file.buffer.is_empty())
    }

    fn flush(&self) -> Result<(), Failure> {
        let mut file = self.file.lock();
        file.flush(&self.name);
        file.tell()
    }
}

/// Returns the reason why bytes were not written, for messages.
pub(crate) fn unwritten_reason(error: &io::Error) -> Cow<'static, str> {
    match error.kind() {
        io::ErrorKind::BrokenPipe => "nobody reads it any more".into(),
        io::ErrorKind::StorageFull => "the disk is full".into(),
        io::ErrorKind::QuotaExceeded => "the quota of the disk is used up".into(),
        io::ErrorKind::FileTooLarge => "the file would become larger than the system allows".into(),
        _ => error.to_string().into(),
    }
}

impl BufferedFile {
    fn flush(&mut self, name: &str) {
        let written = self.file.write_all(&self.buffer);
        self.buffer.clear();
        if let Err(error) = written {
            self.broken_pipe |= error.kind() == io::ErrorKind::BrokenPipe;
            let why = unwritten_reason(&error);
            self.failure.get_or_insert_with(|| Failure::function(format!("{name} cannot be written: {why}")));
        }
    }

    /// Reports a failure once.
    fn tell(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use weir::Closing;

    use super::*;

    #[test]
    fn buffered_bytes_are_flushed_in_order() {
        let (mut reader, writer) = io::pipe().unwrap();
        let outputs = Outputs::default();
        let output = outputs.open("a pipe", || Ok(File::from(std::os::fd::OwnedFd::from(writer)))).unwrap();
        let written: String = (0..10_000).map(|line| format!("{line}\n")).collect();
        let copy = written.clone();
        let reading = thread::spawn(move || {
            let mut read = vec![0; copy.len()];
            reader.read_exact(&mut read).unwrap();
            assert!(read == copy.as_bytes());
        });
        written.lines().for_each(|line| outputs.write(&output, &[line.as_bytes(), b"\n"]).unwrap());
        reading.join().unwrap();
    }

    #[test]
    fn a_write_failure_is_reported_once_to_the_next_writer() {
        let outputs = Outputs::default();
        let full = || File::options().write(true).open("/dev/full");
        let output = outputs.open("the disk", full).unwrap();
        let piece = vec![b'x'; BUFFER_BYTES];
        let failure = outputs.write(&output, &[&piece]).unwrap_err();
        assert_eq!(failure.message.as_str(), "the disk cannot be written: the disk is full");
        outputs.write(&output, &[b"more"]).unwrap();
        assert!(outputs.close().is_err(), "what waited is lost, and that is told at the end");
        assert!(outputs.close().is_ok());
    }
}
