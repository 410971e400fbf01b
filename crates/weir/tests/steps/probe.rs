//! Library of the generated programs: shared logs, and a source that begins all flows at once.
//!
//! A *log* is a number with its history. Each access names a *token*: every atomic step that holds the log has its own,
//! and so has every call outside a step. Waiting functions yield as often as the seed determines, while they hold their
//! arguments.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll};
use std::thread;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use weir::{
    Begun, Environment, Failure, Flows, Library, LocalFuture, Opened, Route, Source, SourceSignature, Stop, Type, Value,
};

use crate::programs::PURSE;
use crate::vault::vault;

/// One access to a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event {
    /// Number of the flow.
    pub(crate) flow: i64,
    /// Token of the step.
    pub(crate) token: i64,
    pub(crate) writes: bool,
    /// Value of the log before the access.
    pub(crate) saw: i64,
}

/// State that the programs of a test share with it.
#[derive(Clone, Default)]
pub(crate) struct Probe(Arc<Inner>);

#[derive(Default)]
struct Inner {
    histories: Mutex<Vec<(String, History)>>,
    tokens: AtomicI64,
    random: AtomicI64,
    /// The number in the vault.
    vault: AtomicI64,
    /// The calls of stateful functions: the number of the call's state, and that of the flow.
    turns: Mutex<Vec<(i64, i64)>>,
}

type History = Arc<Mutex<Vec<Event>>>;

impl Probe {
    pub(crate) fn new(seed: u64) -> Probe {
        let histories = Mutex::new(vec![(PURSE.to_owned(), History::default())]);
        Probe(Arc::new(Inner { random: AtomicI64::new(seed as i64), histories, ..Inner::default() }))
    }

    /// Notes an access to the vault and returns its number.
    pub(crate) fn note_vault(&self, flow: i64, token: i64, writes: bool) -> i64 {
        let saw = self.0.vault.load(Ordering::Relaxed);
        let token = own(token, self);
        let histories = self.0.histories.lock();
        let purse = histories.iter().find(|(name, _)| name == PURSE);
        purse.expect("the vault has a history").1.lock().push(Event { flow, token, writes, saw });
        saw
    }

    /// Changes the number in the vault.
    pub(crate) fn set_vault(&self, value: i64) -> i64 {
        self.0.vault.store(value, Ordering::Relaxed);
        value
    }

    /// Events of each log, in order.
    pub(crate) fn histories(&self) -> Vec<(String, Vec<Event>)> {
        let histories = self.0.histories.lock();
        histories.iter().map(|(name, history)| (name.clone(), history.lock().clone())).collect()
    }

    /// Returns a call that came after one of a later flow.
    pub(crate) fn out_of_turn(&self) -> Option<String> {
        let turns = self.0.turns.lock();
        let later = |at: usize, (state, flow): (i64, i64)| {
            turns[..at].iter().any(|(other, later)| *other == state && *later > flow)
        };
        let fault = turns.iter().enumerate().find(|(at, turn)| later(*at, **turn))?;
        Some(format!("the call {fault:?} came too late: {turns:?}"))
    }

    fn next_token(&self) -> i64 {
        self.0.tokens.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn pause(&self) -> Yields {
        let drawn = self.0.random.fetch_add(0x9e37_79b9_7f4a_7c15_u64 as i64, Ordering::Relaxed) as u64;
        Yields((drawn ^ (drawn >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 62)
    }
}

/// Yields this number of times.
pub(crate) struct Yields(u64);

impl Future for Yields {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// The number of threads that begin and end before a peer answers: in this time, the threads of an engine mostly do what is left
/// to do without the answer.
const THREADS_BEFORE: usize = 3;

/// A number with its history.
#[derive(weir::Type)]
#[weir(opaque, unique, name = "probe.Log")]
pub(crate) struct Log {
    value: i64,
    history: History,
}

impl Log {
    fn note(&self, flow: i64, token: i64, writes: bool) -> i64 {
        self.history.lock().push(Event { flow, token, writes, saw: self.value });
        self.value
    }
}

weir::library! {
    /// Functions of the programs.
    probe: log, token, pause, peer, never, get, slow_get, add, slow_add, spend, both, Turn::turn, Turn::slow_turn
}

/// State of a stateful call: its number, from its first call on.
#[derive(Default)]
pub(crate) struct Turn(Option<i64>);

impl Turn {
    fn note(&mut self, flow: i64, probe: &Probe) {
        let state = *self.0.get_or_insert_with(|| probe.next_token());
        probe.0.turns.lock().push((state, flow));
    }
}

#[weir::function(reads)]
impl Turn {
    fn turn(&mut self, flow: i64, #[environment] probe: &Probe) {
        self.note(flow, probe);
    }

    async fn slow_turn(&mut self, flow: i64, #[environment] probe: &Probe) {
        self.note(flow, probe);
        probe.pause().await;
    }
}

#[weir::function(reads)]
fn log(name: &str, #[environment] probe: &Probe) -> Log {
    let history = History::default();
    probe.0.histories.lock().push((name.to_owned(), Arc::clone(&history)));
    Log { value: 0, history }
}

/// Returns a unique token.
#[weir::function(reads)]
fn token(#[environment] probe: &Probe) -> i64 {
    probe.next_token()
}

#[weir::function(reads)]
async fn pause(#[environment] probe: &Probe) {
    probe.pause().await;
}

/// Waits for a peer, without a thread, until another thread answers.
#[weir::function(reads, awaits_peer)]
async fn peer() {
    // One answer for each call, not for each poll: a flow is polled as often as anything wakes it, and if each poll began a thread
    // that wakes it, those of two calls could wake it for ever.
    let (answer, answered) = oneshot::channel();
    thread::spawn(move || {
        (0..THREADS_BEFORE).for_each(|_| drop(thread::spawn(|| ()).join()));
        answer.send(())
    });
    _ = answered.await;
}

/// Waits until it is cancelled.
#[weir::function(reads)]
async fn never() {
    std::future::pending().await
}

/// Returns the token, or a new one for a call outside any step.
fn own(token: i64, probe: &Probe) -> i64 {
    if token == 0 { probe.next_token() } else { token }
}

#[weir::function(reads)]
fn get(log: &Log, flow: i64, token: i64, #[environment] probe: &Probe) -> i64 {
    log.note(flow, own(token, probe), false)
}

#[weir::function(reads)]
async fn slow_get(log: &Log, flow: i64, token: i64, #[environment] probe: &Probe) -> i64 {
    let saw = log.note(flow, own(token, probe), false);
    probe.pause().await;
    saw
}

#[weir::function(reads)]
fn add(log: &mut Log, flow: i64, token: i64, by: i64, #[environment] probe: &Probe) -> i64 {
    log.value = log.note(flow, own(token, probe), true).wrapping_mul(3).wrapping_add(by) % 1_000_003;
    log.value
}

#[weir::function(reads)]
async fn slow_add(log: &mut Log, flow: i64, token: i64, by: i64, #[environment] probe: &Probe) -> i64 {
    let before = log.note(flow, own(token, probe), true);
    probe.pause().await;
    log.value = before.wrapping_mul(3).wrapping_add(by) % 1_000_003;
    log.value
}

#[weir::function(reads)]
fn spend(log: &mut Log, flow: i64, token: i64, #[environment] probe: &Probe) -> Result<i64, Failure> {
    let before = log.note(flow, own(token, probe), true);
    log.value += 1;
    if before % 3 == 1 { Err(Failure::function("nothing left")) } else { Ok(before) }
}

#[weir::function(reads)]
async fn both(from: &mut Log, to: &mut Log, flow: i64, from_token: i64, to_token: i64, #[environment] probe: &Probe) {
    let moved = from.note(flow, own(from_token, probe), true) % 7;
    let before = to.note(flow, own(to_token, probe), true);
    probe.pause().await;
    from.value -= moved;
    to.value = before + moved;
}

/// Begins this number of flows at once, with their numbers.
struct AllAtOnce(i64);

impl Source for AllAtOnce {
    fn open(&self, _: Vec<Value>, _: Arc<[Route]>, _: &Environment) -> Result<Arc<dyn Opened>, Failure> {
        Ok(Arc::new(AllAtOnce(self.0)))
    }
}

impl Opened for AllAtOnce {
    fn describe(&self) -> String {
        "all flows at once".into()
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, _: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            let mut going = Vec::new();
            for flow in 0..self.0 {
                let mut inputs = vec![Value::Int(flow)];
                loop {
                    match flows.begin(0, &mut inputs) {
                        Begun::Done(_) => break,
                        // The future progresses only when it is polled, and waits for others meanwhile.
                        Begun::Pending(end) => break going.push(tokio::task::spawn_local(end)),
                        Begun::Full => flows.room().await,
                    }
                }
            }
            for end in going {
                _ = end.await;
            }
            Ok(())
        })
    }
}

/// Returns the library, with a source of this number of flows.
pub(crate) fn library(flows: i64, shared: Probe) -> Library {
    let signature = |name: &str, ordered| SourceSignature {
        module: "probe".into(),
        name: name.into(),
        doc: "".into(),
        parameters: Vec::new(),
        element: Some(Type::Int),
        answer: None,
        ordered,
    };
    let mut library = Library::default();
    let module = probe().source(signature("flows", false), Arc::new(AllAtOnce(flows)));
    library.add(module.source(signature("ordered_flows", true), Arc::new(AllAtOnce(flows)))).unwrap();
    library.add(vault()).unwrap();
    library.environment.insert(shared);
    library
}
