//! The limits of the process, and of each flow.

use std::sync::atomic::{AtomicI64, Ordering};

use super::thread_account::TOTAL;

/// See [`MemoryLimits::flow`]; written at the start of a program.
pub(super) static FLOW_LIMIT: AtomicI64 = AtomicI64::new(MemoryLimits::FLOW_BYTES_MAX as i64);
/// See [`MemoryLimits::program`]; written at the start of a program.
pub(super) static PROGRAM_LIMIT: AtomicI64 = AtomicI64::new(i64::MAX);

/// The limits of the process. They are those of its program, because an allocator belongs to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// The bytes that a flow may hold.
    pub flow: u64,
    /// The bytes that the program may hold.
    pub program: u64,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        MemoryLimits { flow: MemoryLimits::FLOW_BYTES_MAX, program: u64::MAX }
    }
}

impl MemoryLimits {
    /// The default limit of a flow, 256 MiB.
    pub const FLOW_BYTES_MAX: u64 = 256 * 1024 * 1024;

    /// Applies the limits to this process.
    pub fn apply(self) {
        // The greatest number stands for a thread without a flow.
        FLOW_LIMIT.store(signed(self.flow).min(i64::MAX - 1), Ordering::Relaxed);
        PROGRAM_LIMIT.store(signed(self.program), Ordering::Relaxed);
    }
}

pub(super) fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Returns the limit of the program; `None` if it has none.
#[must_use]
pub fn program_limit() -> Option<u64> {
    let limit = PROGRAM_LIMIT.load(Ordering::Relaxed);
    (limit < i64::MAX).then(|| limit.max(0).unsigned_abs())
}

/// Returns the limit of a flow.
#[must_use]
pub fn flow_limit() -> u64 {
    FLOW_LIMIT.load(Ordering::Relaxed).max(0).unsigned_abs()
}

/// Returns true if the process holds its limit or more: nothing new should begin.
#[inline]
#[must_use]
pub fn is_full() -> bool {
    TOTAL.load(Ordering::Relaxed) >= PROGRAM_LIMIT.load(Ordering::Relaxed)
}
