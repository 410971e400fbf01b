//! A fence on all processors at once, where the system has one, and numbers of threads.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Whether [`heavy_fence`] may be used in this process.
#[cfg(target_os = "linux")]
pub(crate) fn has_heavy_fence() -> bool {
    use std::sync::OnceLock;

    use rustix::thread::{MembarrierCommand, membarrier};

    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok())
}

/// Whether [`heavy_fence`] may be used in this process: nothing is known of this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn has_heavy_fence() -> bool {
    false
}

/// What every thread of this process wrote before is seen by all from here on, as if each had made a fence.
///
/// # Panics
/// Panics where there is none ([`has_heavy_fence`]).
#[cfg(target_os = "linux")]
pub(crate) fn heavy_fence() {
    use rustix::thread::{MembarrierCommand, membarrier};

    membarrier(MembarrierCommand::PrivateExpedited).expect("a process that is registered for it may use it");
    std::sync::atomic::fence(Ordering::SeqCst);
}

/// There is none.
#[cfg(not(target_os = "linux"))]
pub(crate) fn heavy_fence() {
    unreachable!("has_heavy_fence() is false");
}

/// The number that the next thread gets which asks for one.
static NEXT: AtomicUsize = AtomicUsize::new(1);

thread_local! {
    /// The number of this thread; 0 before it has one.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// The number of this thread, which no other has or had: never 0. Where it was inlined into other crates, these would come
/// to the word by more detours than a call takes.
#[inline(never)]
pub(crate) fn thread_number() -> usize {
    let number = NUMBER.get();
    if number > 0 { number } else { draw_number() }
}

#[cold]
fn draw_number() -> usize {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    NUMBER.set(number);
    number
}
