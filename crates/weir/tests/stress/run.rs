//! One run of a case: its flows begin one by one or all together, and its end has a time limit.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::Mutex;
use weir_host::{Begun, Environment, Failure, Flows, Library, LocalFuture, Opened, Route, Source, Stop, Value};
use weir_ir::generate::{Case, Execution, Recording};
use weir_runtime::{Options, RunningProgram, start};
use weir_trace::{Detail, Recorder, TraceReader};

use crate::setting::Setting;

/// Time limit for a program, which takes a few milliseconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// The same limit while a failure is shrunk.
pub(crate) const PATIENCE_SHRINKING: Duration = Duration::from_secs(4);

/// Time at which a flow begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// After the previous one has ended.
    OneByOne,
    /// As soon as there is room.
    Together,
}

/// Runs this number of flows of a case, cycling through the rows of its inputs.
///
/// # Errors
/// Returns errors other than wrong answers: the program does not start or end, or loses or duplicates a flow.
pub(crate) fn execute(
    case: &Case,
    setting: &Setting,
    begin: Begin,
    flows: usize,
    patience: Duration,
) -> Result<Execution, String> {
    let recording = match begin {
        Begin::OneByOne => Recording::new(setting.seed),
        Begin::Together => Recording::of_many(setting.seed),
    };
    let rows = case.inputs.iter().cycle().take(flows).cloned().collect();
    let rows = Arc::new(Rows { begin, rows, answers: Mutex::new(vec![Answers::default(); flows]) });
    let library = with_source(recording.library(), Arc::clone(&rows));
    let program = weir_ir::optimize(&case.program, &library);
    let (recorder, reader) = Recorder::new(Detail::Sections, Recorder::EVENTS_MAX);
    let options =
        Options { plan: setting.plan.clone(), thread_counts: setting.thread_counts, recorder, ..Options::default() };
    let running = start(&program, &library, options).map_err(|error| error.to_string())?;
    wait(running, patience).map_err(|why| format!("under\n{setting}\n{why}: {}", rows.stand(&reader)))?;
    let results = rows.results()?;
    Ok(Execution { results, effects: recording.effects() })
}

/// Waits for the end of the program, with a time limit.
fn wait(running: RunningProgram, patience: Duration) -> Result<(), String> {
    let (ended, end) = mpsc::channel();
    let waiting = std::thread::spawn(move || ended.send(running.wait()));
    match end.recv_timeout(patience) {
        Ok(result) => {
            waiting.join().expect("the thread has sent its last").expect("this receiver is there");
            result.map_err(|failure| failure.to_string())
        }
        Err(_) => Err("it does not end".into()),
    }
}

type Answers = Vec<Result<Value, Failure>>;

/// Begins the flows of a case, and keeps all answers of each.
struct Rows {
    begin: Begin,
    rows: Vec<Vec<Value>>,
    answers: Mutex<Vec<Answers>>,
}

impl Rows {
    /// Returns the single answer of each flow.
    fn results(&self) -> Result<Answers, String> {
        let answers = self.answers.lock();
        let results = answers.iter().enumerate().map(|(flow, answers)| match answers.as_slice() {
            [answer] => Ok(answer.clone()),
            answers => Err(format!("flow {flow} was answered {} times", answers.len())),
        });
        results.collect()
    }

    /// Describes the progress for a message.
    fn stand(&self, reader: &TraceReader) -> String {
        let missing: Vec<usize> = self
            .answers
            .lock()
            .iter()
            .enumerate()
            .filter(|(_, answers)| answers.is_empty())
            .map(|(flow, _)| flow)
            .collect();
        let said: Vec<String> = reader.take().iter().map(|event| event.kind.to_string()).collect();
        let latest = said.len().saturating_sub(LATEST);
        format!("the flows {missing:?} have no answer; the trace says\n  {}", said[latest..].join("\n  "))
    }

    fn keep(&self, flow: usize, answer: Result<Value, Failure>) {
        self.answers.lock()[flow].push(answer);
    }

    async fn feed(self: Arc<Self>, flows: Arc<dyn Flows>) {
        for (flow, row) in self.rows.iter().enumerate() {
            match (begin(&*flows, row).await, self.begin) {
                (Begun::Done(answer), _) => self.keep(flow, answer),
                (Begun::Pending(answer), Begin::OneByOne) => self.keep(flow, answer.await),
                (Begun::Pending(answer), Begin::Together) => {
                    let own = Arc::clone(&self);
                    tokio::task::spawn_local(async move { own.keep(flow, answer.await) });
                }
                (Begun::Full, _) => unreachable!("it has waited for room"),
            }
        }
    }
}

/// Number of latest events in a message.
const LATEST: usize = 12;

/// Begins a flow as soon as there is room.
async fn begin(flows: &dyn Flows, row: &[Value]) -> Begun {
    let mut inputs = row.to_vec();
    loop {
        match flows.begin(0, &mut inputs) {
            Begun::Full => flows.room().await,
            begun => return begun,
        }
    }
}

struct Handle(Arc<Rows>);

impl Source for Handle {
    fn open(&self, _: Vec<Value>, _: Arc<[Route]>, _: &Environment) -> Result<Arc<dyn Opened>, Failure> {
        Ok(Arc::clone(&self.0) as Arc<dyn Opened>)
    }
}

impl Opened for Rows {
    fn describe(&self) -> String {
        format!("{} flows, {:?}", self.rows.len(), self.begin)
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, _stop: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            self.feed(flows).await;
            Ok(())
        })
    }
}

/// Returns the library with the case's flows as the source that generated programs name.
fn with_source(mut library: Library, rows: Arc<Rows>) -> Library {
    let module = library.modules.get_mut("a").expect("the recording library has the module `a`");
    let named = module.sources.get_mut("elements").expect("generated programs begin at `a.elements`");
    named.1 = Arc::new(Handle(rows));
    library
}
