//! The flows of a random program under an engine with threads.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use weir_host::{Begun, Environment, Failure, Flows, Library, LocalFuture, Opened, Route, Source, Stop, Value};
use weir_ir::graph::Program;
use weir_runtime::{EngineRow, Options, RunningProgram, start};

/// Time limit for a program, which takes far less than a second.
const PATIENCE: Duration = Duration::from_secs(120);

type Answers = Arc<Mutex<Vec<Result<Value, Failure>>>>;

/// Begins so many flows of the first route, each when the one before has answered.
#[derive(Clone)]
struct OneByOne {
    flows: u64,
    answers: Answers,
}

impl Source for OneByOne {
    fn open(&self, _: Vec<Value>, _: Arc<[Route]>, _: &Environment) -> Result<Arc<dyn Opened>, Failure> {
        Ok(Arc::new(self.clone()))
    }
}

impl Opened for OneByOne {
    fn describe(&self) -> String {
        "the statements of a random program".into()
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, _stop: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            for flow in 0..self.flows.cast_signed() {
                let answer = answer(&*flows, flow).await;
                self.answers.lock().push(answer);
            }
            Ok(())
        })
    }
}

async fn answer(flows: &dyn Flows, flow: i64) -> Result<Value, Failure> {
    let mut inputs = vec![Value::Int(flow)];
    loop {
        match flows.begin(0, &mut inputs) {
            Begun::Done(answer) => return answer,
            Begun::Pending(answer) => return answer.await,
            Begun::Full => flows.room().await,
        }
    }
}

/// Returns the answers of the flows under an engine with two threads. Closes the environment of the library.
pub(crate) fn answers(
    program: &Program,
    mut library: Library,
    flows: u64,
    engine: &'static EngineRow,
) -> Vec<Result<Value, Failure>> {
    let source = OneByOne { flows, answers: Answers::default() };
    let http = library.modules.get_mut("http").and_then(|http| http.sources.get_mut("http"));
    http.expect("the library has HTTP").1 = Arc::new(source.clone());
    let options = Options { engine, threads: Some(2), strip_max: 2, ..Options::default() };
    let running = start(program, &library, options).unwrap_or_else(|error| panic!("{error}"));
    wait(running, engine.name);
    std::mem::take(&mut *source.answers.lock())
}

/// Waits for the end of a program, with a time limit.
fn wait(running: RunningProgram, engine: &str) {
    let (ended, end) = mpsc::channel();
    let waiting = thread::spawn(move || ended.send(running.wait()));
    let result = end.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("the program does not end under `{engine}`"));
    result.unwrap_or_else(|failure| panic!("{failure}"));
    waiting.join().expect("the thread has sent its last").expect("the receiver is there");
}
