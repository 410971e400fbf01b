//! A source on a thread of its own, whose elements a test receives one by one.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]
#![allow(dead_code, reason = "each test file uses its part")]

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tokio::sync::Notify;
use weir::{Begun, Failure, Flows, LocalFuture, Opened, SourceProblem, Stop, Value};
use weir_events::Signal;
use weir_library::files::Root;

/// Longest time that a test waits for something that should happen immediately.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A directory that is removed when dropped.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    pub(crate) fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("weir-streams-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Place(path)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.0.join(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }

    pub(crate) fn root(&self) -> Root {
        Root::open(&self.0).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Sends the elements to the test. Every third time there is no room at first, and as long as the test says so.
struct ToTest {
    is_full: Arc<AtomicBool>,
    elements: mpsc::Sender<Value>,
    asked: AtomicUsize,
    problems: Arc<Mutex<Vec<SourceProblem>>>,
}

impl Flows for ToTest {
    fn begin(&self, entry: usize, inputs: &mut Vec<Value>) -> Begun {
        assert_eq!((entry, inputs.len()), (0, 1));
        if self.is_full.load(Ordering::SeqCst) || self.asked.fetch_add(1, Ordering::SeqCst).is_multiple_of(3) {
            return Begun::Full;
        }
        // An error means that the test has ended already.
        let _ = self.elements.send(inputs.remove(0));
        Begun::Done(Ok(Value::Unit))
    }

    fn room(&self) -> LocalFuture<()> {
        Box::pin(tokio::task::yield_now())
    }

    fn report(&self, problem: SourceProblem) {
        self.problems.lock().unwrap().push(problem);
    }
}

/// Opens a source with these arguments and the defaults of the others.
pub(crate) fn open(path: &str, arguments: &[Value], place: Option<&Place>) -> Result<Arc<dyn Opened>, Failure> {
    let mut library = weir_library::library();
    if let Some(place) = place {
        library.environment.insert(place.root());
    }
    let (module, name) = path.split_once('.').unwrap();
    let (signature, source) = &library.modules[module].sources[name];
    let mut all = arguments.to_vec();
    all.extend(signature.parameters[all.len()..].iter().map(|parameter| parameter.default.clone().unwrap()));
    source.open(all, Arc::new([]), &library.environment)
}

/// Runs a source to its end, and discards its elements.
pub(crate) fn run_to_end(opened: &Arc<dyn Opened>) {
    let runtime = tokio::runtime::LocalRuntime::new().unwrap();
    let flows = Arc::new(ToTest {
        is_full: Arc::default(),
        elements: mpsc::channel().0,
        asked: AtomicUsize::new(0),
        problems: Arc::default(),
    });
    let never = Stop::new(weir_events::never());
    runtime.block_on(Arc::clone(opened).run(flows, never)).unwrap();
}

/// A running source; it stops when dropped. Its event loop runs until then, as a program's does until no flow is left.
pub(crate) struct Running {
    pub(crate) described: String,
    /// While it is set, there is no room for flows.
    pub(crate) is_full: Arc<AtomicBool>,
    elements: mpsc::Receiver<Value>,
    problems: Arc<Mutex<Vec<SourceProblem>>>,
    ended: mpsc::Receiver<Result<(), Failure>>,
    stop: Signal,
    dropped: Arc<Notify>,
}

impl Running {
    pub(crate) fn start(path: &str, arguments: &[Value], place: Option<&Place>) -> Running {
        let opened = open(path, arguments, place).unwrap();
        let ((sender, elements), (end, ended)) = (mpsc::channel(), mpsc::channel());
        let (stop, dropped) = (Signal::new(), Arc::new(Notify::new()));
        let problems = Arc::<Mutex<_>>::default();
        let is_full = Arc::<AtomicBool>::default();
        let running = Running {
            is_full: Arc::clone(&is_full),
            described: opened.describe(),
            elements,
            problems: Arc::clone(&problems),
            ended,
            stop: stop.clone(),
            dropped: dropped.clone(),
        };
        std::thread::spawn(move || {
            let runtime = tokio::runtime::LocalRuntime::new().unwrap();
            let stop = Stop::new(stop.fired());
            let flows = Arc::new(ToTest { is_full, elements: sender, asked: AtomicUsize::new(0), problems });
            end.send(runtime.block_on(opened.run(flows, stop))).unwrap();
            runtime.block_on(dropped.notified());
        });
        running
    }

    /// Returns the next element.
    pub(crate) fn next(&self) -> Value {
        self.elements.recv_timeout(PATIENCE).expect("an element comes")
    }

    /// Returns the next elements, formatted.
    pub(crate) fn shown(&self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.next().to_string()).collect()
    }

    /// Returns the messages of the elements that the source has skipped, and of its further attempts.
    pub(crate) fn skipped(&self) -> Vec<String> {
        let message = |problem: &SourceProblem| match problem {
            SourceProblem::ElementSkipped(failure) => failure.message.to_string(),
            SourceProblem::Retries(failure) => format!("tries again: {}", failure.message),
            SourceProblem::RequestFailed(failure) => format!("request failed: {}", failure.message),
            SourceProblem::ShedsConnections(failure) => format!("sheds: {}", failure.message),
        };
        self.problems.lock().unwrap().iter().map(message).collect()
    }

    /// Waits until the source ends by itself; returns the remaining elements and the result.
    pub(crate) fn rest(self) -> (Vec<String>, Result<(), Failure>) {
        let mut elements = Vec::new();
        while let Ok(element) = self.elements.recv_timeout(PATIENCE) {
            elements.push(element.to_string());
        }
        (elements, self.ended.recv_timeout(PATIENCE).unwrap())
    }

    /// Waits until the source ends by itself.
    pub(crate) fn wait(&self) -> Result<(), Failure> {
        self.ended.recv_timeout(PATIENCE).unwrap()
    }

    /// Returns the elements that have arrived and were not returned before.
    pub(crate) fn elements_so_far(&self) -> Vec<String> {
        self.elements.try_iter().map(|element| element.to_string()).collect()
    }

    /// Stops the source, and waits until it has ended.
    pub(crate) fn stop(&self) -> Result<(), Failure> {
        self.stop.fire();
        self.ended.recv_timeout(PATIENCE).unwrap()
    }

    /// Returns the address at the end of the source's description.
    pub(crate) fn address(&self) -> SocketAddr {
        self.described.rsplit('/').next().unwrap().parse().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.fire();
        self.dropped.notify_one();
    }
}
