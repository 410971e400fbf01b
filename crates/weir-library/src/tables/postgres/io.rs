//! The thread that drives connections, and threads that wait for it.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use weir::{Failure, memory};

/// The thread that drives all connections of a program. It ends when this value is dropped.
#[derive(Debug)]
pub(super) struct IoThread {
    pub(super) handle: Handle,
    _end: oneshot::Sender<()>,
}

impl IoThread {
    /// Starts the thread.
    pub(super) fn begin() -> Result<IoThread, Failure> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name("weir-postgres".to_owned());
        thread.spawn(move || _ = runtime.block_on(ended))?;
        Ok(IoThread { handle, _end: end })
    }
}

/// Blocks the thread until a future is through; `None` if the time is up before.
pub(in crate::tables) fn wait<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    let deadline = Instant::now() + limit;
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(WaitingThread(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        let left = deadline.checked_duration_since(Instant::now())?;
        thread::park_timeout(left);
    }
}

/// Runs work of a flow, or of a batch, on a thread that may block; `None` if the program ends before. What it allocates is theirs.
pub(super) async fn on_thread<T: Send + 'static>(
    handle: &Handle,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let account = memory::carried();
    let (done, bytes) = handle.spawn_blocking(move || account.run(work)).await.ok()?;
    memory::take_over(bytes);
    Some(done)
}

/// Begins a task, whose memory belongs to the program: it may end on another thread, and later than the flow that begins it goes on.
pub(super) fn begin_task(handle: &Handle, task: impl Future<Output = ()> + Send + 'static) {
    drop(memory::of_program(|| handle.spawn(task)));
}

struct WaitingThread(Thread);

impl Wake for WaitingThread {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs futures together, which are answered in their order. Each is polled once before the first is awaited, so that what they
/// send is sent together, in this order.
pub(super) async fn in_order<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut begun: Vec<Result<F::Output, Pin<Box<F>>>> = futures.into_iter().map(|part| Err(Box::pin(part))).collect();
    poll_fn(|context| {
        for part in &mut begun {
            if let Err(future) = part
                && let Poll::Ready(output) = future.as_mut().poll(context)
            {
                *part = Ok(output);
            }
        }
        Poll::Ready(())
    })
    .await;
    let mut outputs = Vec::with_capacity(begun.len());
    for part in begun {
        outputs.push(match part {
            Ok(output) => output,
            Err(future) => future.await,
        });
    }
    outputs
}
