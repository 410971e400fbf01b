//! Accounts of forks: what they are charged for, and to whom.

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};

use weir_host::memory;

/// The account of a flow's forks. The flow's own thread and the helpers add to it; all accesses are relaxed, because nothing
/// else depends on what they read.
#[derive(Default)]
pub(crate) struct ForkAccount {
    /// The bytes that the flow held when it last left its thread.
    flow_bytes: AtomicI64,
    /// The bytes that forks have allocated since the flow was last charged for them.
    forked_bytes: AtomicI64,
    /// The slices that forks have used up and that do not count as turns of the flow yet.
    slices: AtomicU32,
}

/// The account of a flow's forks, which is made for the first fork.
#[derive(Default)]
pub(crate) struct FlowForks(OnceCell<Arc<ForkAccount>>);

impl FlowForks {
    /// Returns the account of a fork, for forks of its own.
    pub(crate) fn of(account: &Arc<ForkAccount>) -> FlowForks {
        FlowForks(OnceCell::from(Arc::clone(account)))
    }

    pub(crate) fn account(&self) -> &Arc<ForkAccount> {
        self.0.get_or_init(Arc::default)
    }

    /// Returns the bytes that forks have allocated since the last call.
    pub(crate) fn take_bytes(&self) -> i64 {
        self.0.get().map_or(0, |account| account.forked_bytes.swap(0, Ordering::Relaxed))
    }

    /// Returns the slices that forks have used up since the last call.
    pub(crate) fn take_slices(&self) -> u32 {
        self.0.get().map_or(0, |account| account.slices.swap(0, Ordering::Relaxed))
    }

    /// Notes what the flow holds.
    pub(crate) fn note_bytes(&self, bytes: i64) {
        self.0.get().into_iter().for_each(|account| account.flow_bytes.store(bytes, Ordering::Relaxed));
    }
}

impl ForkAccount {
    /// Returns the bytes that the flow and its forks hold.
    fn balance(&self) -> i64 {
        self.flow_bytes.load(Ordering::Relaxed).saturating_add(self.forked_bytes.load(Ordering::Relaxed))
    }

    /// Runs something of a fork on this thread, and charges the flow for what it allocates, less what it releases.
    pub(crate) fn charged<R>(&self, run: impl FnOnce() -> R) -> R {
        let before = self.balance().max(0);
        // In a test the thread may be that of the flow.
        let (result, growth) = memory::of_program(|| {
            let entered = memory::enter(before);
            let result = run();
            // The flow may have been charged already for what is released now, so that this balance is too small.
            (result, entered.leave_since(before))
        });
        self.forked_bytes.fetch_add(growth, Ordering::Relaxed);
        result
    }

    /// Charges the flow for a slice of a fork.
    pub(crate) fn charge_slice(&self) {
        self.slices.fetch_add(1, Ordering::Relaxed);
    }
}
