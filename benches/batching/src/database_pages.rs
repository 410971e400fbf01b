//! The pages of the shop and the timeline over databases, on a real clock, beside versions that are optimised by hand: the latency
//! of one reader, who asks for one page after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use bench_harness::BenchResult;
use futures_util::future::{join, join3, join4};
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use test_support::postgres::PostgresServer;
use weir_host::{
    Batch, BatchAnswers, Begun, Failure, Flows, Function, FunctionCode, LocalFuture, Opened, Outcome, PendingBatch,
    Stop, Type, Value,
};
use weir_runtime::{Options, Platform, ScriptedPlatform, SystemPlatform, start};
use weir_syntax::{SourceFile, SourceId};

use crate::databases::{Database, DatabaseResult};
use crate::host::{batched, batched_list, keep, library, once};
use crate::pages::{PAGES, Page};

/// The delay before a query of PostgreSQL: that of a network.
const DELAY: Duration = Duration::from_millis(1);

/// The pages of a run that are not measured, and those that are.
const WARM_UP: usize = 20;
const MEASURED: usize = 100;

/// The pairs of runs.
const ROUNDS: usize = 9;

const LIMITS: Batch = Batch { at_most: 500, in_flight: 8, gathered: 0 };

/// The number of the reader.
const READER: i64 = 1;

/// The run of a page: the median of the latency, in nanoseconds, the queries of one page, and the number that it results in.
#[derive(Clone, Copy)]
struct PageRun {
    ns: u64,
    queries: u64,
    result: i64,
}

/// Measures the pages over both databases.
pub(crate) fn database_pages() -> BenchResult<Vec<Json>> {
    let mut results = Vec::new();
    let postgres = PostgresServer::start();
    for page in PAGES.iter().filter(|page| page.name != "blog") {
        let stores = page.sources();
        results.push(compared(page, "SQLite", &Database::sqlite(&stores)?)?);
        if let Some(server) = &postgres {
            let schema = format!("page_{}", results.len());
            results.push(compared(
                page,
                "PostgreSQL, 1 ms away",
                &Database::postgres(server, &schema, &stores, DELAY)?,
            )?);
        }
    }
    Ok(results)
}

/// Asks for a page over SQLite this many times, by hand or in Weir, for a tool that counts instructions. Time stands still for Weir,
/// because a tool makes queries so slow that the program would treat them differently.
pub(crate) fn requests(name: &str, by_hand: bool, count: usize) -> BenchResult<Json> {
    let page =
        PAGES.iter().find(|page| page.name.contains(name)).ok_or_else(|| format!("there is no page `{name}`"))?;
    let database = Database::sqlite(&page.sources())?;
    let made = match by_hand {
        true => hand_run(page, &database, count)?,
        false => run(page, &database, count, Arc::new(ScriptedPlatform::new(0)))?,
    };
    Ok(json!({ "page": page.name, "by_hand": by_hand, "pages": count, "queries": made.queries }))
}

fn compared(page: &Page, name: &str, database: &Arc<Database>) -> BenchResult<Json> {
    let (mut ratios, mut last) = (Vec::new(), None);
    for round in 0..ROUNDS {
        let first = if round % 2 == 0 { Some(weir_run(page, database, MEASURED)?) } else { None };
        let hand = hand_run(page, database, MEASURED)?;
        let weir = first.map_or_else(|| weir_run(page, database, MEASURED), Ok)?;
        if weir.result != hand.result {
            return Err(format!("{}: Weir has {}, by hand it is {}", page.name, weir.result, hand.result).into());
        }
        ratios.push(weir.ns as f64 / hand.ns as f64);
        last = Some((weir, hand));
    }
    ratios.sort_by(f64::total_cmp);
    let (relative, (weir, hand)) = (ratios[ratios.len() / 2], last.ok_or("no round")?);
    println!(
        "{} over {name}: Weir {} queries, {} µs; by hand {} queries, {} µs; latency {relative:.3} in the median of {ROUNDS} \
         pairs ({:.3} to {:.3})",
        page.name,
        weir.queries,
        weir.ns / 1_000,
        hand.queries,
        hand.ns / 1_000,
        ratios[0],
        ratios[ratios.len() - 1],
    );
    Ok(json!({ "page": page.name, "database": name, "queries": weir.queries, "queries_by_hand": hand.queries,
        "latency_ns": weir.ns, "latency_by_hand_ns": hand.ns, "latency_relative": relative }))
}

/// The latencies of a run, and the queries before the pages that are measured.
struct PageTimer {
    database: Arc<Database>,
    /// The number of pages that are measured.
    measured: usize,
    latencies: Vec<u64>,
    queries: u64,
}

impl PageTimer {
    fn new(database: &Arc<Database>, measured: usize) -> PageTimer {
        PageTimer { database: Arc::clone(database), measured, latencies: Vec::new(), queries: 0 }
    }

    /// Notes a page that began then.
    fn note(&mut self, index: usize, begun: Instant) {
        if index < WARM_UP {
            self.queries = self.database.queries();
        } else {
            self.latencies.push(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
    }

    fn ended(&mut self, result: i64) -> PageRun {
        self.latencies.sort_unstable();
        let queries = (self.database.queries() - self.queries) / self.measured.max(1) as u64;
        PageRun { ns: self.latencies.get(self.measured / 2).copied().unwrap_or(0), queries, result }
    }
}

/// A source of one flow after the other.
struct Reader(Arc<Mutex<PageTimer>>);

impl Opened for Reader {
    fn describe(&self) -> String {
        "one reader".into()
    }

    fn run(self: Arc<Self>, flows: Arc<dyn Flows>, _stop: Stop) -> LocalFuture<Result<(), Failure>> {
        Box::pin(async move {
            let measured = self.0.lock().measured;
            for index in 0..WARM_UP + measured {
                let begun = Instant::now();
                if let Begun::Pending(answer) = flows.begin(0, &mut vec![Value::Int(READER)]) {
                    answer.await?;
                }
                self.0.lock().note(index, begun);
            }
            Ok(())
        })
    }
}

/// Returns the batched functions of a store.
fn functions(database: &Arc<Database>, store: usize) -> [Function; 2] {
    let number = |value: &Value| if let Value::Int(number) = value { *number } else { 0 };
    let answers = |answers: DatabaseResult<Vec<Outcome>>, count: usize| match answers {
        Ok(answers) => BatchAnswers { answers, failed_as_a_whole: false },
        Err(error) => {
            let fault = || Outcome::Fault(Box::new(Failure::function(error.to_string())));
            BatchAnswers { answers: (0..count).map(|_| fault()).collect(), failed_as_a_whole: true }
        }
    };
    let (of_get, of_list) = (Arc::clone(database), Arc::clone(database));
    let get = move |keys: Vec<Value>| -> PendingBatch {
        let (database, keys) = (Arc::clone(&of_get), keys.iter().map(number).collect::<Vec<_>>());
        Box::pin(async move {
            let count = keys.len();
            let found = database.get(store, keys).await;
            answers(
                found.map(|found| found.into_iter().map(|found| Outcome::Value(Value::Int(found))).collect()),
                count,
            )
        })
    };
    let list = move |owners: Vec<Value>, others: &[Value]| -> PendingBatch {
        let (database, owners) = (Arc::clone(&of_list), owners.iter().map(number).collect::<Vec<_>>());
        let limit = others.first().map_or(0, number);
        Box::pin(async move {
            let count = owners.len();
            let found = database.list(store, owners, limit).await;
            let lists = |found: Vec<Vec<i64>>| {
                let list = |ids: Vec<i64>| Value::List(ids.into_iter().map(Value::Int).collect());
                found.into_iter().map(|ids| Outcome::Value(list(ids))).collect()
            };
            answers(found.map(lists), count)
        })
    };
    [batched(LIMITS, get), batched_list(LIMITS, list)]
}

fn weir_run(page: &Page, database: &Arc<Database>, measured: usize) -> BenchResult<PageRun> {
    run(page, database, measured, Arc::new(SystemPlatform::new()))
}

fn run(page: &Page, database: &Arc<Database>, measured: usize, platform: Arc<dyn Platform>) -> BenchResult<PageRun> {
    let database = database.for_another_loop();
    let timer = Arc::new(Mutex::new(PageTimer::new(&database, measured)));
    let result = Arc::new(AtomicI64::new(0));
    let (mut kept, of_page) = (keep(), Arc::clone(&result));
    kept.code = FunctionCode::Immediate(Arc::new(move |call| {
        let value = call.value(0);
        if let Value::Int(number) = &value {
            of_page.store(*number, Ordering::Relaxed);
        }
        Outcome::Value(value)
    }));
    let names = page.sources();
    let stores = names.iter().enumerate();
    let functions =
        stores.flat_map(|(store, name)| functions(&database, store).map(|function| (name.clone(), function)));
    let reader = once(Arc::new(Reader(Arc::clone(&timer))));
    let library = library(Type::Int, reader, functions.chain([("sink".to_owned(), kept)]))?;
    let text = page.program();
    let compiled = weir_compile::compile(SourceId(0), &SourceFile::new("bench.weir", text.as_str()), &library);
    let messages = || compiled.diagnostics.iter().map(|found| found.message.clone() + "\n").collect::<String>();
    let graph = compiled.graph.ok_or_else(|| format!("{}{text}", messages()))?;
    let options = Options { threads: Some(1), platform, ..Options::default() };
    let running = start(&graph, &library, options).map_err(|error| error.to_string())?;
    running.wait().map_err(|failure| failure.to_string())?;
    let run = timer.lock().ended(result.load(Ordering::Relaxed));
    Ok(run)
}

/// Runs the version by hand on a thread of its own, as a loop of Weir is: the allocator and the locks of SQLite are faster on the first
/// thread of a process, and while it is the only one.
fn hand_run(page: &Page, database: &Arc<Database>, measured: usize) -> BenchResult<PageRun> {
    let run = std::thread::scope(|scope| scope.spawn(|| hand_run_here(page, database, measured)).join());
    Ok(run.map_err(|_| "the version by hand panicked")??)
}

fn hand_run_here(page: &Page, database: &Arc<Database>, measured: usize) -> Result<PageRun, String> {
    let database = database.for_another_loop();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(async {
        let (mut timer, mut result) = (PageTimer::new(&database, measured), 0);
        for index in 0..WARM_UP + measured {
            let begun = Instant::now();
            let asked = match page.name {
                "shop, home page" => home(&database, READER).await,
                "shop, cart of five products" => cart(&database, READER).await,
                _ => timeline(&database, READER).await,
            };
            result = asked.map_err(|error| error.to_string())?;
            timer.note(index, begun);
        }
        Ok(timer.ended(result))
    })
}

async fn list_of_one(database: &Database, store: usize, owner: i64, count: i64) -> DatabaseResult<Vec<i64>> {
    Ok(database.list(store, vec![owner], count).await?.remove(0))
}

fn sum(numbers: &[i64]) -> i64 {
    numbers.iter().sum()
}

fn length(list: &[i64]) -> i64 {
    i64::try_from(list.len()).unwrap_or(i64::MAX)
}

/// The home page of the shop: two rounds, five queries.
async fn home(database: &Database, reader: i64) -> DatabaseResult<i64> {
    let shelf = async { database.get(3, list_of_one(database, 1, reader, 9).await?).await };
    let (menu, shown, in_cart, advertisement) = join4(
        list_of_one(database, 0, reader, 4),
        shelf,
        list_of_one(database, 2, reader, 2),
        database.get(4, vec![reader]),
    )
    .await;
    Ok(length(&menu?) + sum(&shown?) + length(&in_cart?) + sum(&advertisement?))
}

/// The cart: three rounds, seven queries.
async fn cart(database: &Database, reader: i64) -> DatabaseResult<i64> {
    let rest = async {
        let items = list_of_one(database, 2, reader, 5).await?;
        let count = length(&items);
        let (recommended, shipping, products) =
            join3(list_of_one(database, 4, count, 5), database.get(5, vec![count]), database.get(1, items)).await;
        let mut priced = products?;
        priced.extend(shipping?);
        let (others, prices) = join(database.get(1, recommended?), database.get(3, priced)).await;
        DatabaseResult::Ok(sum(&others?) + sum(&prices?))
    };
    let (menu, rest) = join(list_of_one(database, 0, reader, 4), rest).await;
    Ok(length(&menu?) + rest?)
}

/// The timeline: four rounds, five queries.
async fn timeline(database: &Database, reader: i64) -> DatabaseResult<i64> {
    let ids = list_of_one(database, 0, reader, 20).await?;
    let mut posts = database.get(1, ids).await?;
    let is_missing = |known: &i64| known % 4 == 0;
    let missing: Vec<i64> = posts.iter().copied().filter(is_missing).collect();
    let mut found = database.get(2, missing).await?.into_iter();
    for post in posts.iter_mut().filter(|known| is_missing(known)) {
        *post = found.next().unwrap_or(0);
    }
    let authors: Vec<i64> = posts.iter().map(|post| post % 5).collect();
    let mut distinct = authors.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let (people, media) = join(database.get(3, distinct.clone()), database.get(4, posts)).await;
    let people = people?;
    let of = |author: &i64| distinct.binary_search(author).map_or(0, |place| people[place]);
    Ok(authors.iter().map(of).sum::<i64>() + sum(&media?))
}
