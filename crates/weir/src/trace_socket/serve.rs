//! Trace server: every reader has a thread and a bounded ring of events.

use std::io::{self, ErrorKind, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use weir_trace::{Detail, Recorder, TraceReader};

use super::directory;
use super::message::{Hello, Message, TraceLine};

/// Maximum number of readers.
const READERS_MAX: usize = 8;
/// Maximum number of events that wait for one reader: half a minute of a program with a thousand sections.
const EVENTS_MAX: usize = 65_536;
/// Interval at which a waiting thread checks whether the program has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time limit for sending the remaining events at the end of the program.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// The trace socket of a running program. Dropping it removes the socket.
pub(crate) struct TraceServer {
    path: PathBuf,
    state: Arc<ServerState>,
    /// Disconnected when the last reader's thread has ended.
    finished: Receiver<()>,
}

/// State shared by all threads.
struct ServerState {
    hello: Hello,
    recorder: Recorder,
    events_max: usize,
    readers: AtomicUsize,
    /// True when the program has ended.
    ended: AtomicBool,
}

impl TraceServer {
    /// Opens the trace socket of this process for the events of `recorder`.
    ///
    /// # Errors
    /// Fails if there is no socket folder or the socket cannot be bound.
    pub(crate) fn start(hello: Hello, recorder: Recorder) -> io::Result<TraceServer> {
        let folder = directory::folder()?;
        // Removes the sockets of killed programs; the list itself is not needed.
        let _ = directory::list(&folder);
        let (listener, path) = directory::bind(&folder, &hello.program)?;
        TraceServer::on(listener, path, hello, recorder, EVENTS_MAX)
    }

    fn on(
        listener: UnixListener,
        path: PathBuf,
        hello: Hello,
        recorder: Recorder,
        events_max: usize,
    ) -> io::Result<TraceServer> {
        let (readers, ended) = (AtomicUsize::new(0), AtomicBool::new(false));
        let state = Arc::new(ServerState { hello, recorder, events_max, readers, ended });
        let (finished, waits) = mpsc::channel();
        let accepting = Arc::clone(&state);
        // The thread ends with the process: an accepting thread cannot be interrupted.
        std::thread::Builder::new().name("weir trace".into()).spawn(move || accept(&listener, &accepting, finished))?;
        Ok(TraceServer { path, state, finished: waits })
    }

    /// Sends the remaining events within a time limit, and closes the socket.
    pub(crate) fn end(self) {
        self.state.ended.store(true, Ordering::Release);
        // Wakes the accepting thread, which then drops its sender.
        drop(UnixStream::connect(&self.path));
        let _ = self.finished.recv_timeout(DRAIN_TIMEOUT);
    }
}

impl Drop for TraceServer {
    fn drop(&mut self) {
        // The socket may already have been removed.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn accept(listener: &UnixListener, state: &Arc<ServerState>, finished: Sender<()>) {
    for stream in listener.incoming() {
        if state.ended.load(Ordering::Acquire) {
            return;
        }
        let Ok(stream) = stream else {
            // Probably out of file handles; retry later.
            std::thread::sleep(POLL_INTERVAL);
            continue;
        };
        let (state, finished) = (Arc::clone(state), finished.clone());
        let serve = move || {
            state.serve_reader(stream);
            drop(finished);
        };
        // Without a thread, the reader sees its connection end.
        let _ = std::thread::Builder::new().name("weir trace reader".into()).spawn(serve);
    }
}

impl ServerState {
    fn serve_reader(&self, stream: UnixStream) {
        if stream.set_write_timeout(Some(POLL_INTERVAL)).is_err() {
            return;
        }
        let before = self.readers.fetch_add(1, Ordering::AcqRel);
        let mut connection = ReaderConnection { stream, state: self, told: 0 };
        // An error means that the reader has disconnected.
        let _ = if before < READERS_MAX {
            connection.stream_events()
        } else {
            connection.say(&[Message::Full { readers_max: READERS_MAX }.into()])
        };
        self.readers.fetch_sub(1, Ordering::AcqRel);
    }
}

/// One reader.
struct ReaderConnection<'a> {
    stream: UnixStream,
    state: &'a ServerState,
    /// Number of lost events that have been reported.
    told: u64,
}

impl ReaderConnection<'_> {
    fn stream_events(&mut self) -> io::Result<()> {
        let reader = self.state.recorder.reader(Detail::Sections, self.state.events_max);
        self.say(&[Message::Hello(self.state.hello.clone()).into()])?;
        loop {
            let ended = self.state.ended.load(Ordering::Acquire);
            let lines = self.pending_lines(&reader);
            self.say(&lines)?;
            if ended && lines.is_empty() {
                return self.say(&[Message::End.into()]);
            }
        }
    }

    /// Returns the new events, preceded by the number of lost ones.
    fn pending_lines(&mut self, reader: &TraceReader) -> Vec<TraceLine> {
        let events = reader.wait(POLL_INTERVAL);
        let lost = reader.lost();
        let count = lost - std::mem::replace(&mut self.told, lost);
        let at_ns = events.first().map_or(0, |event| event.at_ns);
        let missing = (count > 0).then_some(TraceLine { at_ns, message: Message::Lost { count } });
        missing.into_iter().chain(events.iter().filter_map(TraceLine::of)).collect()
    }

    /// Writes lines. After the end of the program, gives up as soon as the reader is slow.
    fn say(&mut self, lines: &[TraceLine]) -> io::Result<()> {
        let text: String = lines.iter().map(TraceLine::text).collect();
        let mut left = text.as_bytes();
        while !left.is_empty() {
            match self.stream.write(left) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => left = &left[written..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_slow(&error) && !self.state.ended.load(Ordering::Acquire) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Returns true if the reader has not yet read earlier output.
fn is_slow(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{BufRead, BufReader};
    use std::path::Path;

    use weir_trace::{EventKind, RefusalReason};

    use super::*;

    /// A private folder, removed when dropped.
    pub(crate) struct TestFolder(PathBuf);

    impl TestFolder {
        pub(crate) fn new(name: &str) -> TestFolder {
            let path = std::env::temp_dir().join(format!("weir-socket-{}-{name}", std::process::id()));
            std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(&path).unwrap();
            TestFolder(path)
        }

        pub(crate) fn path(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for TestFolder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn hello() -> Hello {
        Hello {
            version: super::super::message::VERSION,
            program: "test".into(),
            file: "test.weir".into(),
            pid: 1,
            engine: "event".into(),
            plan: None,
            sources: Vec::new(),
        }
    }

    fn serve(folder: &TestFolder, events_max: usize) -> (TraceServer, Recorder) {
        let recorder = Recorder::off();
        let (listener, path) = directory::bind(folder.path(), "test").unwrap();
        (TraceServer::on(listener, path, hello(), recorder.clone(), events_max).unwrap(), recorder)
    }

    fn next(lines: &mut impl Iterator<Item = io::Result<String>>) -> Message {
        TraceLine::read(&lines.next().expect("there is a line").unwrap()).unwrap().message
    }

    #[test]
    fn a_reader_is_told_what_happens_up_to_the_end() {
        let folder = TestFolder::new("end");
        let (server, recorder) = serve(&folder, 8);
        assert!(!recorder.wants(Detail::Log), "nothing is recorded where nobody is connected");
        let mut lines = BufReader::new(UnixStream::connect(&server.path).unwrap()).lines();
        assert_eq!(next(&mut lines), Message::Hello(hello()));
        recorder.record(1, EventKind::Stopping);
        assert_eq!(next(&mut lines), Message::Stopping);
        let path = server.path.clone();
        server.end();
        assert_eq!(next(&mut lines), Message::End);
        assert!(lines.next().is_none() && !path.exists());
    }

    #[test]
    fn a_slow_reader_loses_events_and_is_told_how_many() {
        const EVENTS: u32 = 200_000;
        let folder = TestFolder::new("slow");
        let (server, recorder) = serve(&folder, 100);
        let mut lines = BufReader::new(UnixStream::connect(&server.path).unwrap()).lines();
        assert_eq!(next(&mut lines), Message::Hello(hello()));
        // Far more than the ring and the socket buffers hold; recording must not block even if no reader reads.
        (0..EVENTS).for_each(|entry| {
            recorder.record(u64::from(entry), EventKind::Refused { entry, reason: RefusalReason::Full })
        });
        let (mut came, mut lost) = (0, 0);
        while came + lost < u64::from(EVENTS) {
            match next(&mut lines) {
                Message::Refused { .. } => came += 1,
                Message::Lost { count } => lost += count,
                other => panic!("{other:?}"),
            }
        }
        assert!(lost > 0 && came > 0 && came + lost == u64::from(EVENTS), "{came} came and {lost} were lost");
    }

    #[test]
    fn the_end_does_not_wait_for_a_reader_that_does_not_read() {
        let folder = TestFolder::new("stuck");
        let (server, recorder) = serve(&folder, 1_000_000);
        let stream = UnixStream::connect(&server.path).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        assert_eq!(next(&mut lines), Message::Hello(hello()));
        (0..100_000).for_each(|entry| recorder.record(1, EventKind::Refused { entry, reason: RefusalReason::Full }));
        server.end();
        drop(stream);
    }

    #[test]
    fn one_reader_too_many_is_told_so() {
        let folder = TestFolder::new("full");
        let (server, recorder) = serve(&folder, 8);
        let mut readers = Vec::new();
        for _ in 0..READERS_MAX {
            let mut lines = BufReader::new(UnixStream::connect(&server.path).unwrap()).lines();
            assert_eq!(next(&mut lines), Message::Hello(hello()));
            readers.push(lines);
        }
        let mut lines = BufReader::new(UnixStream::connect(&server.path).unwrap()).lines();
        assert_eq!(next(&mut lines), Message::Full { readers_max: READERS_MAX });
        assert!(lines.next().is_none());
        recorder.record(1, EventKind::Stopping);
        readers.iter_mut().for_each(|lines| assert_eq!(next(lines), Message::Stopping));
    }
}
