//! Open-loop load: requests are sent at fixed times, whether or not earlier ones are answered, and each latency counts from
//! the time at which its request was due. A server that answers late therefore does not slow down its clients.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::task::LocalSet;
use tokio::time::{sleep_until, timeout_at};

use crate::BenchResult;
use crate::load::{Load, LoadConnection, histogram};
use crate::server::ServerProcess;

/// The period in which the memory of the server is read.
const MEMORY_PERIOD: Duration = Duration::from_millis(50);

/// A schedule of requests.
#[derive(Clone, Copy, Debug)]
pub struct Schedule<'a> {
    /// The path that is requested.
    pub path: &'a str,
    /// Requests per second.
    pub rate: f64,
    /// The time for which requests are due, in seconds.
    pub seconds: f64,
    /// The time after which an answer is too late, and is not waited for any longer.
    pub deadline: Duration,
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
    /// The time from the beginning after which every answer was in time; the whole time if the last one was not.
    pub all_in_time_after: Duration,
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
            for number in 0..(schedule.rate * schedule.seconds) as u64 {
                let offset = Duration::from_secs_f64(number as f64 / schedule.rate);
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

/// Sends a request on an idle connection, or on a new one.
async fn request(port: u16, path: &str, idle: &RefCell<Vec<LoadConnection>>) -> RequestOutcome {
    let kept = idle.borrow_mut().pop();
    let mut connection = match kept {
        Some(connection) => connection,
        None => match LoadConnection::open(port).await {
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
    let mut latencies = histogram();
    let mut all_in_time_after = Duration::ZERO;
    for (offset, outcome, latency) in ended {
        if *outcome == RequestOutcome::InTime {
            latencies.saturating_record(latency.as_nanos() as u64);
        } else {
            all_in_time_after = *offset;
        }
    }
    let share =
        |wanted| ended.iter().filter(|(_, outcome, _)| *outcome == wanted).count() as f64 / ended.len().max(1) as f64;
    Ok(OpenSample {
        in_time_per_second: latencies.len() as f64 / schedule.seconds,
        p99_ns: latencies.value_at_quantile(0.99),
        refused: share(RequestOutcome::Refused),
        lost: share(RequestOutcome::Lost),
        memory,
        all_in_time_after,
    })
}
