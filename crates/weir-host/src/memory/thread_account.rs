//! The account of a thread: what was allocated and released there, on the way to the total of the process.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

use super::reached_limit::ReachedLimit;

/// The sum of a thread's reports after which they are added to the total of the process. Chosen by judgement: an atomic
/// addition for each 64 KiB costs nothing, and a hundred threads hide 6 MiB at most.
const SETTLED_BYTES: i64 = 64 * 1024;

/// The bytes of the process that were reported and settled, and those that are reserved.
pub(super) static TOTAL: AtomicI64 = AtomicI64::new(0);

/// The reports of one thread, and the flow that it runs. Without a destructor, so that the allocator may use it at any
/// time, also while the thread ends.
pub(super) struct ThreadAccount {
    /// The bytes reported since they were last added to the total.
    unsettled: Cell<i64>,
    /// The bytes reported before.
    pub(super) settled: Cell<i64>,
    /// The bytes of the thread at which the balance of the running flow is 0.
    pub(super) base: Cell<i64>,
    /// The limit of the running flow; the greatest number if no flow runs.
    pub(super) limit: Cell<i64>,
    /// The balance that the running flow may have whatever the limits say, because it is in an atomic step; 0 otherwise.
    pub(super) assured: Cell<i64>,
    /// The balance with which the next flow begins.
    pub(super) opening: Cell<i64>,
    /// The limit for which a flow was refused something since [`take_refusal`](super::take_refusal).
    pub(super) refused: Cell<Option<ReachedLimit>>,
    /// True if the thread settles when it ends.
    pub(super) settles_at_end: Cell<bool>,
}

thread_local! {
    static ACCOUNT: ThreadAccount = const {
        ThreadAccount {
            unsettled: Cell::new(0),
            settled: Cell::new(0),
            base: Cell::new(0),
            limit: Cell::new(i64::MAX),
            assured: Cell::new(0),
            opening: Cell::new(0),
            refused: Cell::new(None),
            settles_at_end: Cell::new(false),
        }
    };
    static SETTLE_AT_END: SettleAtEnd = const { SettleAtEnd };
}

/// Gives access to the account of this thread.
///
/// [`LocalKey::with`](std::thread::LocalKey::with) is a call, and the access itself another one, unless the whole program is
/// optimised at link time; every allocation goes through here.
#[inline(always)]
pub(super) fn account<R>(of: impl FnOnce(&ThreadAccount) -> R) -> R {
    match ACCOUNT.try_with(of) {
        Ok(result) => result,
        Err(_) => unreachable!("an account has no destructor"),
    }
}

/// Settles the account of its thread when it is dropped.
struct SettleAtEnd;

impl Drop for SettleAtEnd {
    fn drop(&mut self) {
        account(ThreadAccount::settle);
    }
}

impl ThreadAccount {
    #[inline(always)]
    fn add(&self, bytes: i64) {
        let unsettled = self.unsettled.get().wrapping_add(bytes);
        self.unsettled.set(unsettled);
        if unsettled > SETTLED_BYTES {
            self.settle();
        }
    }

    #[inline(always)]
    fn subtract(&self, bytes: i64) {
        let unsettled = self.unsettled.get().wrapping_sub(bytes);
        self.unsettled.set(unsettled);
        if unsettled < -SETTLED_BYTES {
            self.settle();
        }
    }

    #[cold]
    #[inline(never)]
    fn settle(&self) {
        let bytes = self.unsettled.replace(0);
        self.settled.set(self.settled.get().wrapping_add(bytes));
        TOTAL.fetch_add(bytes, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn bytes(&self) -> i64 {
        self.settled.get().wrapping_add(self.unsettled.get())
    }

    #[inline]
    pub(super) fn balance(&self) -> i64 {
        self.bytes().wrapping_sub(self.base.get())
    }

    #[cold]
    pub(super) fn settle_at_end(&self) {
        self.settles_at_end.set(true);
        // A thread that ends already has no destructors left to run.
        let _ = SETTLE_AT_END.try_with(|_| ());
    }
}

/// About the bytes that the system's allocator needs beside each allocation: a word, and alignment to 16 bytes.
const OVERHEAD_BYTES: usize = 16;

#[inline(always)]
pub(super) fn with_overhead(bytes: usize) -> i64 {
    bytes.wrapping_add(OVERHEAD_BYTES) as i64
}

/// Reports an allocation of this size on this thread. For allocators: it allocates nothing, and never unwinds.
#[inline(always)]
pub fn allocated(bytes: usize) {
    account(|account| account.add(with_overhead(bytes)));
}

/// Reports a release of an allocation of this size on this thread. For allocators, like [`allocated`].
#[inline(always)]
pub fn released(bytes: usize) {
    account(|account| account.subtract(with_overhead(bytes)));
}

/// Returns the bytes that the process holds, as far as they were settled.
#[must_use]
pub fn used() -> u64 {
    TOTAL.load(Ordering::Relaxed).max(0).unsigned_abs()
}
