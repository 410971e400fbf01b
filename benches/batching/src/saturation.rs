//! Batches under load, on a real clock, beside a batcher that is written by hand: throughput and latency at saturation, and the
//! cost of an element that is gathered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bench_harness::{BenchResult, median};
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio::sync::oneshot;
use tokio::task::{LocalSet, yield_now};
use weir_host::{
    Batch, BatchAnswers, Begun, Failure, Flows, LocalFuture, Opened, Outcome, PendingBatch, Stop, Type, Value,
};
use weir_runtime::{Options, start};

use crate::host::{batched, library, once, same, wait};

/// The limits of the store, for both.
const LIMITS: Batch = Batch { at_most: 64, in_flight: 4, gathered: 0 };

/// The times that the store takes for a batch, in milliseconds: with the first one it is the limit, and with the second the
/// processor is.
const LATENCIES_MS: [u64; 2] = [8, 1];

/// The clients, each of which makes one request after the other.
const CLIENTS: i64 = 512;

/// The requests of each client that are not measured: in the first ones, threads start and memory is taken.
const WARM_UP: usize = 2;

/// The duration of a run.
const DURATION: Duration = Duration::from_millis(500);

/// The pairs of runs.
const ROUNDS: usize = 9;

/// The latency of the store of a run whose instructions are counted ([`requests`]).
const COUNTED_LATENCY: Duration = Duration::from_millis(1);

/// The elements of the list whose elements are asked for, and the runs over it.
const ELEMENTS: i64 = 20_000;
const RUNS: usize = 15;

/// The latencies of the requests of a run, in nanoseconds.
type Latencies = Vec<u64>;

/// The end of a run.
#[derive(Clone, Copy)]
enum RunEnd {
    /// After this time.
    After(Duration),
    /// After this many requests of each client.
    Requests(usize),
}

async fn store(keys: Vec<i64>, latency: Duration) -> Vec<i64> {
    tokio::time::sleep(latency).await;
    keys.into_iter().map(|key| key * 10).collect()
}

/// A batcher as one writes it by hand: as many senders as may be under way, each of which takes what has gathered.
struct HandBatcher {
    gathered: Mutex<Gathered>,
    latency: Duration,
}

#[derive(Default)]
struct Gathered {
    waiting: Vec<(i64, oneshot::Sender<i64>)>,
    senders: usize,
}

impl HandBatcher {
    async fn get(self: &Arc<Self>, key: i64) -> i64 {
        let (sender, answer) = oneshot::channel();
        if self.gathered.lock().add(key, sender) {
            tokio::spawn(Arc::clone(self).send());
        }
        answer.await.unwrap_or_default()
    }

    async fn send(self: Arc<Self>) {
        loop {
            yield_now().await;
            let Some((keys, answers)) = self.gathered.lock().take() else { return };
            for (answer, sender) in store(keys, self.latency).await.into_iter().zip(answers) {
                _ = sender.send(answer);
            }
        }
    }
}

impl Gathered {
    /// Adds a request; returns true if it needs a sender.
    fn add(&mut self, key: i64, sender: oneshot::Sender<i64>) -> bool {
        self.waiting.push((key, sender));
        let begins = self.senders < LIMITS.in_flight;
        self.senders += usize::from(begins);
        begins
    }

    /// Takes the next batch; `None` if the sender is not needed any more.
    fn take(&mut self) -> Option<(Vec<i64>, Vec<oneshot::Sender<i64>>)> {
        let count = self.waiting.len().min(LIMITS.at_most);
        if count == 0 {
            self.senders -= 1;
            return None;
        }
        Some(self.waiting.drain(..count).unzip())
    }
}

/// Measures throughput and p99 of both, in pairs of runs, for each latency.
pub(crate) fn saturation() -> BenchResult<Vec<Json>> {
    LATENCIES_MS.into_iter().map(|ms| saturated(Duration::from_millis(ms))).collect()
}

/// Makes this many requests for each client, by hand or in Weir, for a tool that counts instructions.
pub(crate) fn requests(by_hand: bool, count: usize) -> BenchResult<Json> {
    let run = if by_hand { hand_run } else { weir_run };
    let made = run(COUNTED_LATENCY, RunEnd::Requests(count))?.len();
    Ok(json!({ "by_hand": by_hand, "requests": made }))
}

fn saturated(latency: Duration) -> BenchResult<Json> {
    let (mut rates, mut tails, end) = (Vec::new(), Vec::new(), RunEnd::After(DURATION));
    for round in 0..ROUNDS {
        let first = if round % 2 == 0 { Some(weir_run(latency, end)?) } else { None };
        let hand = hand_run(latency, end)?;
        let weir = first.map_or_else(|| weir_run(latency, end), Ok)?;
        rates.push(weir.len() as f64 / hand.len() as f64);
        tails.push(p99(weir) as f64 / p99(hand) as f64);
    }
    let (rate, tail) = (median(rates), median(tails));
    println!(
        "{CLIENTS} clients of a store that takes {latency:?} for a batch: Weir relative to batching by hand: throughput \
         {rate:.3}, p99 {tail:.3}"
    );
    let latency_ns = u64::try_from(latency.as_nanos())?;
    Ok(
        json!({ "clients": CLIENTS, "latency_ns": latency_ns, "throughput_relative": rate, "p99_relative": tail, "rounds": ROUNDS }),
    )
}

fn hand_run(latency: Duration, end: RunEnd) -> BenchResult<Latencies> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let batcher = Arc::new(HandBatcher { gathered: Mutex::default(), latency });
    let client = move |key: i64| {
        let batcher = Arc::clone(&batcher);
        async move { batcher.get(key).await }
    };
    Ok(runtime.block_on(clients(client, end)))
}

fn weir_run(latency: Duration, end: RunEnd) -> BenchResult<Latencies> {
    let latencies = Arc::<Mutex<Latencies>>::default();
    let code = move |keys: Vec<Value>| -> PendingBatch {
        let keys = keys.iter().map(|key| if let Value::Int(key) = key { *key } else { 0 }).collect();
        Box::pin(async move {
            let answers =
                store(keys, latency).await.into_iter().map(|answer| Outcome::Value(Value::Int(answer))).collect();
            BatchAnswers { answers, failed_as_a_whole: false }
        })
    };
    let clients = Arc::new(ClientSource(Arc::clone(&latencies), end));
    run("%1: Int = call store.get at get (%0)\n    yield %1", Type::Int, clients, batched(LIMITS, code))?;
    let measured = std::mem::take(&mut *latencies.lock());
    Ok(measured)
}

/// A source of flows of many clients.
struct ClientSource(Arc<Mutex<Latencies>>, RunEnd);

impl Opened for ClientSource {
    fn describe(&self) -> String {
        format!("{CLIENTS} clients")
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, _stop: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            let client = move |key: i64| {
                let flows = Arc::clone(&flows);
                async move {
                    if let Begun::Pending(answer) = flows.begin(0, &mut vec![Value::Int(key)]) {
                        _ = answer.await;
                    }
                    0
                }
            };
            *self.0.lock() = clients(client, self.1).await;
            Ok(())
        })
    }
}

/// Lets all clients make requests until the end.
async fn clients<F: Future<Output = i64> + 'static>(
    request: impl Fn(i64) -> F + Clone + 'static,
    end: RunEnd,
) -> Latencies {
    let (local, start) = (LocalSet::new(), Instant::now());
    let goes_on = move |made: usize| match end {
        RunEnd::After(time) => start.elapsed() < time,
        RunEnd::Requests(count) => made < count,
    };
    let client = |key: i64| {
        let request = request.clone();
        local.spawn_local(async move {
            let mut latencies = Vec::new();
            while goes_on(latencies.len()) {
                let begun = Instant::now();
                request(key).await;
                latencies.push(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
            }
            latencies.drain(..WARM_UP.min(latencies.len()));
            latencies
        })
    };
    let running: Vec<_> = (0..CLIENTS).map(client).collect();
    let all = async {
        let mut all = Vec::new();
        for client in running {
            all.extend(client.await.unwrap_or_default());
        }
        all
    };
    local.run_until(all).await
}

/// Measures the time of an element of a `for` over a function that is batched and returns at once, beyond the function.
pub(crate) fn element() -> BenchResult<Json> {
    let code = |keys: Vec<Value>| -> PendingBatch {
        Box::pin(async {
            BatchAnswers { answers: keys.into_iter().map(Outcome::Value).collect(), failed_as_a_whole: false }
        })
    };
    let times = Arc::<Mutex<Vec<Duration>>>::default();
    let source = Arc::new(ListSource(Arc::clone(&times)));
    let body =
        "%1: List(Int) = for %2: Int in %0\n      %3: Int = call store.get at get (%2)\n      yield %3\n    yield 0";
    let limits = Batch { at_most: 1_000, in_flight: 8, gathered: 0 };
    run(body, Type::list(Type::Int), source, batched(limits, code))?;
    let best = times.lock().iter().copied().min().unwrap_or_default();
    let ns = best.as_nanos() as f64 / ELEMENTS as f64;
    println!("an element that is gathered: {ns:.0} ns");
    Ok(json!({ "element_ns": ns }))
}

/// A source of flows over a list, one after the other.
struct ListSource(Arc<Mutex<Vec<Duration>>>);

impl Opened for ListSource {
    fn describe(&self) -> String {
        "one client".into()
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, _stop: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            let list = Value::list((0..ELEMENTS).map(Value::Int).collect::<Vec<_>>());
            for _ in 0..RUNS {
                let begun = Instant::now();
                if let Begun::Pending(answer) = flows.begin(0, &mut vec![list.clone()]) {
                    answer.await?;
                }
                self.0.lock().push(begun.elapsed());
            }
            Ok(())
        })
    }
}

/// Executes this many flows, one after the other, whose calls are not batched: a call that returns at once, or, if `waits`, then
/// one that waits. For a tool that counts instructions.
pub(crate) fn plain(waits: bool, count: usize) -> BenchResult<Json> {
    let waiting = if waits { "%2: Int = call wait.wait at wait (%1)\n    yield %2" } else { "yield %1" };
    let body = format!("%1: Int = call same.same at same (%0)\n    {waiting}");
    run_with(
        &body,
        Type::Int,
        Arc::new(PlainSource(count)),
        [("same".to_owned(), same()), ("wait".to_owned(), wait())],
    )?;
    Ok(json!({ "waits": waits, "flows": count }))
}

/// A source of so many flows, one after the other.
struct PlainSource(usize);

impl Opened for PlainSource {
    fn describe(&self) -> String {
        "one client".into()
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, _stop: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            for key in (0..).take(self.0) {
                if let Begun::Pending(answer) = flows.begin(0, &mut vec![Value::Int(key)]) {
                    answer.await?;
                }
            }
            Ok(())
        })
    }
}

fn run(body: &str, element: Type, source: Arc<dyn Opened>, function: weir_host::Function) -> BenchResult<()> {
    run_with(body, element, source, [("store".to_owned(), function)])
}

fn run_with(
    body: &str,
    element: Type,
    source: Arc<dyn Opened>,
    functions: impl IntoIterator<Item = (String, weir_host::Function)>,
) -> BenchResult<()> {
    let parameter = if element == Type::Int { "Int" } else { "List(Int)" };
    let text = format!(
        "entry test from test.feed ordered\n  arguments\n    yield (0,)\n  flow feed (%0: {parameter}) -> Int\n    {body}\n"
    );
    let library = library(element, once(source), functions)?;
    let graph = weir_ir::optimize(&weir_ir::parse::expr(&text).map_err(|error| error.to_string())?, &library);
    let options = Options { threads: Some(1), ..Options::default() };
    let running = start(&graph, &library, options).map_err(|error| error.to_string())?;
    running.wait().map_err(|failure| failure.to_string())?;
    Ok(())
}

fn p99(mut latencies: Latencies) -> u64 {
    latencies.sort_unstable();
    latencies.get(latencies.len() * 99 / 100).copied().unwrap_or(1)
}
