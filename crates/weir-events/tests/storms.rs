//! The heap after storms of lost choices: group 12. One process for the test alone, because it counts allocations.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::on_one_thread;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use weir_events::*;

/// The system's allocator, counting.
struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged; the counters touch no memory that it hands out.
#[expect(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Relaxed);
        ALLOCATIONS.fetch_add(1, Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations_of(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.load(Relaxed);
    work();
    ALLOCATIONS.load(Relaxed) - before
}

/// 200,000 choices, each lost against one of the others by a receive that waits beside a long timer.
fn lost_choices_of_tasks(idle: &Channel<u8>, busy: &Channel<u8>) {
    let long = after(Duration::from_secs(3600)).wrap(|()| Err(Closed));
    let event = choose([idle.recv(), busy.recv(), long]);
    on_one_thread(async {
        for _ in 0..200_000 {
            let (received, ()) = tokio::join!(event.synchronise(), async { busy.try_send(1).unwrap() });
            assert_eq!(received, Ok(1));
        }
    });
}

#[test]
fn storms_leave_the_heap_as_it_was_and_what_need_not_allocate_does_not() {
    let (idle, busy) = (Channel::<u8>::rendezvous(), Channel::<u8>::rendezvous());
    lost_choices_of_tasks(&idle, &busy);
    let before = BYTES.load(Relaxed);
    lost_choices_of_tasks(&idle, &busy);
    let after_tasks = BYTES.load(Relaxed);
    assert!(after_tasks.abs_diff(before) < 4096, "tasks: {before} bytes before, {after_tasks} after");

    let waiting = choose([idle.recv().wrap(drop), after(Duration::from_secs(3600))]);
    for _ in 0..200_000 {
        assert!(waiting.sync_timeout(Duration::ZERO).is_none());
    }
    let after_threads = BYTES.load(Relaxed);
    assert!(after_threads.abs_diff(after_tasks) < 4096, "threads: {after_tasks} before, {after_threads} after");

    let pending = from_future(std::future::pending::<()>());
    let unready = choose([idle.recv().wrap(drop), pending]);
    assert!(unready.sync_timeout(Duration::ZERO).is_none());
    let before_futures = BYTES.load(Relaxed);
    for _ in 0..50_000 {
        assert!(unready.sync_timeout(Duration::ZERO).is_none());
    }
    let after_futures = BYTES.load(Relaxed);
    assert!(after_futures.abs_diff(before_futures) < 4096, "futures: {before_futures}, then {after_futures}");
    assert_eq!((idle.receivers_len(), busy.receivers_len(), idle.len()), (0, 0, 0));

    // Room for a value is made once; after that an asynchronous send without actions allocates nothing.
    let channel = Channel::rendezvous();
    (0..100).for_each(|n| _ = channel.post(n));
    (0..100).for_each(|n| assert_eq!(channel.try_recv(), Ok(n)));
    let send = a_send(&channel, 5);
    assert_eq!(allocations_of(|| (0..100).for_each(|_| send.a_sync())), 0);
    (0..100).for_each(|_| assert_eq!(channel.try_recv(), Ok(5)));
    let receive = choose([channel.recv(), never()]);
    send.a_sync();
    assert_eq!(
        allocations_of(|| assert_eq!(receive.sync(), Ok(5))),
        0,
        "a choice that need not wait allocates nothing"
    );

    // Nor does a time limit that is made once, for futures that have to wait, but are there in time.
    let late = after(Duration::from_secs(3600));
    on_one_thread(async {
        let one = || until(Box::pin(tokio::task::yield_now()), &late);
        assert_eq!(one().await, Ok(()));
        let before = ALLOCATIONS.load(Relaxed);
        for _ in 0..100 {
            assert_eq!(one().await, Ok(()));
        }
        assert_eq!(ALLOCATIONS.load(Relaxed) - before, 100, "no more than the boxes of the futures");
    });
}
