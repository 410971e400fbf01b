//! A fence on all processors at once, where the system has one.

#[cfg(target_os = "linux")]
use std::sync::atomic::Ordering;

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
