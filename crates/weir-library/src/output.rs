//! Buffered outputs: the standard streams, to which programs write line by line.
//!
//! Written bytes first go to the output's buffer. They reach the operating system
//! 1. when the buffer holds `BUFFER_BYTES`, by the call that filled it;
//! 2. otherwise within `FLUSH_WITHIN`, by a thread of the output that starts at the first buffered byte and ends when the buffer is
//!    empty;
//! 3. at the latest when the program ends ([`weir::Closing`]), so that nothing is lost at the end of the input.
//!
//! Lines of the log wait for no reader: only the thread writes them, and those that find no room in the buffer are counted and lost.
//!
//! A failure to write is reported to the next call that writes to the same output, or else at the end of the program.
//! The bytes that could not be written are discarded and not retried. If the standard output no longer has a reader, an
//! embedder may handle that instead ([`Outputs::on_broken_pipe`]).

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::channel;
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
/// Number of buffered bytes beyond which lines of the log are lost: some thousand lines.
const LOG_BYTES_MAX: usize = 1024 * 1024;
/// Time for which the end of the program waits for a reader of standard error.
const END_MAX: Duration = Duration::from_secs(2);

/// Name of the standard output in messages.
pub(crate) const STANDARD_OUTPUT: &str = "the standard output";
/// Name of the standard error in messages.
pub(crate) const STANDARD_ERROR: &str = "the standard error";

/// The outputs of a program, each open once however many calls write to it.
#[derive(Clone, Default)]
pub struct Outputs(Arc<Mutex<OutputTable>>);

#[derive(Default)]
struct OutputTable {
    /// Open outputs by their name in messages.
    open: IndexMap<String, Arc<OutputFile>>,
    /// The text of the standard streams, if it is captured.
    captured: Option<String>,
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
    /// Locked before the buffer by whoever writes to the file, so that bytes keep their order.
    file: Mutex<File>,
    buffer: Mutex<OutputBuffer>,
}

/// The bytes that were written to an output and have not reached the operating system.
#[derive(Default)]
struct OutputBuffer {
    bytes: Vec<u8>,
    /// The lines of the log for which there was no room.
    lost_lines: u64,
    /// `true` while a thread is about to flush it.
    flushing: bool,
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
    pub(crate) fn write(&self, output: &Arc<OutputFile>, parts: &[&[u8]]) -> Result<(), Failure> {
        match output.write(parts) {
            Ok(begins) => {
                if begins {
                    self.flush_soon(output);
                }
                Ok(())
            }
            Err(failure) => self.unless_broken_pipe(output, failure),
        }
    }

    /// Writes a line of the log, and waits for no reader, but for a person at a terminal. The line is lost if there is no room for it;
    /// `of_lost` makes the line that tells how many were, behind which the next one comes.
    pub(crate) fn write_log(&self, output: &Arc<OutputFile>, line: &str, of_lost: impl FnOnce(u64) -> String) {
        if output.interactive {
            _ = self.write(output, &[line.as_bytes()]);
        } else if output.buffer.lock().add_log_line(line, of_lost) {
            self.flush_soon(output);
        }
    }

    /// Returns the failure, unless the policy for a broken pipe handles it.
    fn unless_broken_pipe(&self, output: &OutputFile, failure: Failure) -> Result<(), Failure> {
        if self.notice_broken_pipe(output) { Ok(()) } else { Err(failure) }
    }

    /// Applies the policy for a broken pipe; returns `true` if it handled one.
    fn notice_broken_pipe(&self, output: &OutputFile) -> bool {
        if output.name != STANDARD_OUTPUT || !output.buffer.lock().broken_pipe {
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

    /// Starts the thread that flushes an output.
    fn flush_soon(&self, output: &Arc<OutputFile>) {
        let (outputs, late) = (self.clone(), Arc::clone(output));
        let begun = thread::Builder::new().name("weir output".into()).spawn(move || {
            thread::sleep(FLUSH_WITHIN);
            outputs.flush_late(&late);
        });
        if begun.is_err() {
            // No thread could be started, so the caller flushes.
            self.flush_late(output);
        }
    }

    /// Flushes an output until its buffer is empty.
    fn flush_late(&self, output: &OutputFile) {
        loop {
            output.write_buffer();
            self.notice_broken_pipe(output);
            let mut buffer = output.buffer.lock();
            if buffer.bytes.is_empty() {
                // Later writes have to start another thread.
                buffer.flushing = false;
                return;
            }
        }
    }
}

impl weir::Closing for Outputs {
    fn close(&self) -> Result<(), Failure> {
        let open: Vec<_> = self.0.lock().open.values().cloned().collect();
        let flushed = |output: &Arc<OutputFile>| {
            output.flush_at_end().or_else(|failure| self.unless_broken_pipe(output, failure))
        };
        let failures = open.iter().filter_map(|output| flushed(output).err());
        failures.reduce(|first, _| first).map_or(Ok(()), Err)
    }
}

impl OutputFile {
    fn new(name: &str, file: File) -> Self {
        let interactive = io::IsTerminal::is_terminal(&file);
        OutputFile { name: name.to_owned(), interactive, file: Mutex::new(file), buffer: Mutex::default() }
    }

    /// Writes, and returns `true` if a thread has to flush the output.
    fn write(&self, parts: &[&[u8]]) -> Result<bool, Failure> {
        let mut buffer = self.buffer.lock();
        buffer.tell()?;
        // The buffer outlives the flow that fills it.
        of_program(|| parts.iter().for_each(|part| buffer.bytes.extend_from_slice(part)));
        if self.interactive || buffer.bytes.len() >= BUFFER_BYTES {
            drop(buffer);
            return self.flush().map(|()| false);
        }
        Ok(buffer.begins_flushing())
    }

    fn flush(&self) -> Result<(), Failure> {
        self.write_buffer();
        self.buffer.lock().tell()
    }

    /// Flushes at the end of the program. What standard error does not take in time is lost, and what nobody reads there.
    fn flush_at_end(self: &Arc<Self>) -> Result<(), Failure> {
        if self.name != STANDARD_ERROR {
            return self.flush();
        }
        let (output, (flushing, flushed)) = (Arc::clone(self), channel());
        let ended = match thread::Builder::new().spawn(move || flushing.send(output.flush())) {
            Ok(_) => flushed.recv_timeout(END_MAX).unwrap_or(Ok(())),
            // No thread could be started, so the caller flushes.
            Err(_) => self.flush(),
        };
        ended.or_else(|failure| if self.buffer.lock().broken_pipe { Ok(()) } else { Err(failure) })
    }

    /// Writes what the buffer holds to the file.
    fn write_buffer(&self) {
        let mut file = self.file.lock();
        let bytes = std::mem::take(&mut self.buffer.lock().bytes);
        let written = file.write_all(&bytes);
        let mut buffer = self.buffer.lock();
        if buffer.bytes.is_empty() {
            // The allocation is used again.
            buffer.bytes = bytes;
            buffer.bytes.clear();
        }
        if let Err(error) = written {
            buffer.broken_pipe |= error.kind() == io::ErrorKind::BrokenPipe;
            let why = unwritten_reason(&error);
            let name = &self.name;
            buffer.failure.get_or_insert_with(|| Failure::function(format!("{name} cannot be written: {why}")));
        }
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

impl OutputBuffer {
    /// Adds a line of the log, if there is room for it; returns `true` if a thread has to flush the output.
    fn add_log_line(&mut self, line: &str, of_lost: impl FnOnce(u64) -> String) -> bool {
        if self.bytes.len() + line.len() > LOG_BYTES_MAX {
            self.lost_lines += 1;
            return false;
        }
        // The buffer outlives the flow that fills it.
        of_program(|| {
            if self.lost_lines > 0 {
                self.bytes.extend_from_slice(of_lost(std::mem::take(&mut self.lost_lines)).as_bytes());
            }
            self.bytes.extend_from_slice(line.as_bytes());
        });
        self.begins_flushing()
    }

    /// Returns `true` if no thread is about to flush the buffer; then the caller starts one.
    fn begins_flushing(&mut self) -> bool {
        !self.bytes.is_empty() && !std::mem::replace(&mut self.flushing, true)
    }

    /// Reports a failure once.
    fn tell(&mut self) -> Result<(), Failure> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};

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
    fn lines_of_the_log_wait_for_no_reader() {
        let (reader, writer) = io::pipe().unwrap();
        let outputs = Outputs::default();
        let output = outputs.open(STANDARD_ERROR, || Ok(File::from(std::os::fd::OwnedFd::from(writer)))).unwrap();
        let line = "x".repeat(1023) + "\n";
        let lost = |count| format!("{count} lines were lost\n");
        for _ in 0..4_000 {
            outputs.write_log(&output, &line, lost);
        }
        outputs.close().unwrap();
        let reading = thread::spawn(move || {
            let lines = BufReader::new(reader).lines().map(Result::unwrap);
            let (told, whole): (Vec<String>, Vec<String>) = lines.partition(|line| line.contains("were lost"));
            (told, whole.len())
        });
        while output.buffer.lock().lost_lines > 0 {
            outputs.write_log(&output, &line, lost);
            thread::yield_now();
        }
        outputs.close().unwrap();
        drop((outputs, output));
        let (told, whole) = reading.join().unwrap();
        let lost: usize = told.iter().map(|line| line.split(' ').next().unwrap().parse::<usize>().unwrap()).sum();
        assert!(lost > 0 && whole + lost >= 4_001, "{whole} lines, and of those lost {told:?}");
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
