//! Asymmetric fence: the heavy half, which executes a fence on all processors of this process at once.

#[cfg(target_os = "linux")]
use std::sync::atomic::Ordering;

/// Returns whether the system has [`heavy_fence`]. The first call registers the process for it.
#[cfg(target_os = "linux")]
pub(crate) fn has_heavy_fence() -> bool {
    use std::sync::OnceLock;

    use rustix::thread::{MembarrierCommand, membarrier};

    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok())
}

/// Returns false: for this system no fence of this kind is known.
#[cfg(not(target_os = "linux"))]
pub(crate) fn has_heavy_fence() -> bool {
    false
}

/// Orders the earlier stores and later loads of *every* thread of this process, as if each had executed a sequentially
/// consistent fence here.
///
/// The expedited `membarrier` interrupts the processors that run threads of this process; other threads have passed a
/// context switch, which is a fence as well.
///
/// # Panics
/// Panics if the system has no such fence: see [`has_heavy_fence`].
#[cfg(target_os = "linux")]
pub(crate) fn heavy_fence() {
    use rustix::thread::{MembarrierCommand, membarrier};

    membarrier(MembarrierCommand::PrivateExpedited).expect("a process that is registered for it may use it");
    std::sync::atomic::fence(Ordering::SeqCst);
}

/// Does not exist on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn heavy_fence() {
    unreachable!("has_heavy_fence() is false");
}
