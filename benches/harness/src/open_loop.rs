//! Open-loop load: requests arrive at random (a Poisson process), whether or not earlier ones are answered, and each latency
//! counts from the time at which its request was due. A server that answers late therefore does not slow down its clients.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::LocalSet;
use tokio::time::{sleep_until, timeout_at};

use crate::BenchResult;
use crate::load::{Load, LoadConnection, histogram, random};
use crate::server::ServerProcess;

/// The period in which the memory of the server is read.
const MEMORY_PERIOD: Duration = Duration::from_millis(50);

/// A schedule of requests.
#[derive(Clone, Copy, Debug)]
pub struct Schedule<'a> {
    /// The path that is requested.
    pub path: &'a str,
    /// Requests per second, on average.
    pub rate: f64,
    /// The time for which requests are due, in seconds.
    pub seconds: f64,
    /// The time at the beginning whose requests do not count in rates and latencies.
    pub transient: Duration,
    /// The time after which an answer is too late, and is not waited for any longer.
    pub deadline: Duration,
    /// The share of requests that are not answered in time at such a rate when all is normal.
    pub normally_late: f64,
}

/// The result of an open-loop load.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenSample {
    /// Answers with status 200 within the deadline, per second.
    pub in_time_per_second: f64,
    /// The 99th percentile of the latencies of these answers.
    pub p99_ns: u64,
    /// The share of requests that were answered with 503.
    pub refused: f64,
    /// The share of requests that were not answered within the deadline, or whose connection broke.
    pub lost: f64,
    /// The largest memory of the server that was seen.
    pub memory: u64,
    /// The time from the beginning after which all is normal: at most one of 100 requests more than normally is late or refused.
    pub normal_after: Duration,
}

/// Outcome of one request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestOutcome {
    InTime,
    Refused,
    Lost,
}

/// The requests that have ended: the time at which each was due, its outcome, and its latency.
type Ended = Rc<RefCell<Vec<(Duration, RequestOutcome, Duration)>>>;

impl Load {
    /// Sends requests by a schedule.
    ///
    /// # Errors
    /// Fails if a result cannot be recorded.
    pub fn run_open(&self, server: &ServerProcess, schedule: Schedule<'_>) -> BenchResult<OpenSample> {
        let tasks = LocalSet::new();
        let (ended, idle) = (Ended::default(), Rc::<RefCell<Vec<LoadConnection>>>::default());
        let memory = self.runtime.block_on(tasks.run_until(async {
            let begin = Instant::now();
            let (mut memory, mut memory_at) = (0, begin);
            let mut requests = Vec::new();
            for offset in arrivals(schedule) {
                sleep_until((begin + offset).into()).await;
                if memory_at <= Instant::now() {
                    memory = memory.max(server.memory());
                    memory_at = Instant::now() + MEMORY_PERIOD;
                }
                let (port, path, ended, idle) = (server.port, schedule.path.to_owned(), ended.clone(), idle.clone());
                requests.push(tokio::task::spawn_local(async move {
                    let due = begin + offset;
                    let asked = timeout_at((due + schedule.deadline).into(), request(port, &path, &idle)).await;
                    let outcome = asked.unwrap_or(RequestOutcome::Lost);
                    ended.borrow_mut().push((offset, outcome, due.elapsed()));
                }));
            }
            for request in requests {
                _ = request.await;
            }
            memory.max(server.memory())
        }));
        let mut ended = ended.take();
        ended.sort_by_key(|(offset, ..)| *offset);
        summary(&ended, schedule, memory)
    }
}

/// Returns the times at which requests arrive; the same for the same schedule.
fn arrivals(schedule: Schedule<'_>) -> impl Iterator<Item = Duration> {
    let (mut state, mut at) = (1, 0.0);
    let times = std::iter::from_fn(move || {
        let uniform = (random(&mut state) >> 11) as f64 / (1_u64 << 53) as f64;
        at -= (1.0 - uniform).ln() / schedule.rate;
        Some(at)
    });
    times.take_while(move |at| *at < schedule.seconds).map(Duration::from_secs_f64)
}

/// Sends a request on an idle connection, or on a new one.
async fn request(port: u16, path: &str, idle: &RefCell<Vec<LoadConnection>>) -> RequestOutcome {
    let kept = idle.borrow_mut().pop();
    let mut connection = match kept {
        Some(connection) => connection,
        None => match LoadConnection::open(port, None).await {
            Ok(connection) => connection,
            Err(_) => return RequestOutcome::Lost,
        },
    };
    match connection.ask(path).await {
        Ok(_) => {
            idle.borrow_mut().push(connection);
            RequestOutcome::InTime
        }
        Err(error) if error.to_string().contains(" 503") => RequestOutcome::Refused,
        Err(_) => RequestOutcome::Lost,
    }
}

fn summary(
    ended: &[(Duration, RequestOutcome, Duration)],
    schedule: Schedule<'_>,
    memory: u64,
) -> BenchResult<OpenSample> {
    let normal_after = normal_after(ended, schedule.normally_late);
    let ended = &ended[ended.partition_point(|(offset, ..)| *offset < schedule.transient)..];
    let mut latencies = histogram();
    for (_, _, latency) in ended.iter().filter(|(_, outcome, _)| *outcome == RequestOutcome::InTime) {
        latencies.saturating_record(latency.as_nanos() as u64);
    }
    let share =
        |wanted| ended.iter().filter(|(_, outcome, _)| *outcome == wanted).count() as f64 / ended.len().max(1) as f64;
    Ok(OpenSample {
        in_time_per_second: latencies.len() as f64 / (schedule.seconds - schedule.transient.as_secs_f64()),
        p99_ns: latencies.value_at_quantile(0.99),
        refused: share(RequestOutcome::Refused),
        lost: share(RequestOutcome::Lost),
        memory,
        normal_after,
    })
}

/// Returns the earliest time after which at most one of 100 requests more than normally was not answered in time.
fn normal_after(ended: &[(Duration, RequestOutcome, Duration)], normally_late: f64) -> Duration {
    let (mut late, mut after) = (0, Duration::ZERO);
    for (count, (offset, outcome, _)) in ended.iter().rev().enumerate() {
        late += usize::from(*outcome != RequestOutcome::InTime);
        // A few at the end say nothing about the share.
        if late as f64 > 3.0 + count as f64 * (normally_late + 0.01) {
            after = *offset;
            break;
        }
    }
    after
}
