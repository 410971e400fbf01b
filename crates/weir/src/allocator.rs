//! The allocator of the command: that of the system, which reports to the memory accounts what it allocates.
//!
//! Invariants:
//!
//! 1. Every request goes to [`System`] as it came, so that its requirements on layouts and pointers hold if they hold for
//!    this allocator.
//! 2. A report touches plain cells of its thread without a destructor and an atomic number: it allocates nothing, and can
//!    neither unwind nor be interrupted by itself.
//! 3. An allocation and its release are reported with the same size, so that the sum of all reports is what is allocated. A
//!    request that the system may refuse, because it is large, is reported when it was granted.
//!
//! Released memory is not always given back to the system: glibc keeps it for later allocations, in each of its arenas. By
//! default its thresholds grow to 32 and 64 MiB with the blocks that a program releases, and there are eight arenas for each
//! core, so that a program of some threads could keep many times its limit. [`limit_kept`] bounds them.

use std::alloc::{GlobalAlloc, Layout, System};

use crate::memory::{allocated, released};

/// A request below this is granted, or ends the process. It is reported first: the call of the system's allocator is then
/// the last thing to do, which saves a stack frame.
const LARGE_BYTES: usize = 1 << 20;

/// The part of the program's memory that each arena of the system's allocator may keep at its end. Chosen by judgement: with
/// sixteen arenas, as on two cores, an eighth of the memory.
const KEPT_PART: u64 = 128;
/// The part of the program's memory from which on a block is mapped on its own. Smaller than what is kept: large values, such as the
/// texts of rows, leave gaps in an arena that is kept from shrinking by some small block behind them.
const MAPPED_PART: u64 = 512;
/// The least number of bytes, which is what glibc begins with. Less would give back and ask for pages all the time.
const KEPT_BYTES_MIN: u64 = 128 * 1024;
/// The greatest number of bytes, which glibc's own adjustment does not exceed either.
const KEPT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// Bounds what the system's allocator keeps of what was released, for a program that may hold this many bytes. Large blocks
/// are given back when they are released. Does nothing where the allocator is not glibc's.
pub(crate) fn limit_kept(program: u64) {
    let part = |of: u64| (program / of).clamp(KEPT_BYTES_MIN, KEPT_BYTES_MAX);
    let (kept, mapped) = (part(KEPT_PART), part(MAPPED_PART));
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    for (threshold, bytes) in [(libc::M_MMAP_THRESHOLD, mapped), (libc::M_TRIM_THRESHOLD, kept)] {
        let bytes = libc::c_int::try_from(bytes).expect("the greatest number fits");
        #[expect(
            unsafe_code,
            reason = "a setting of the system's allocator, for which the standard library has no function"
        )]
        // SAFETY: `mallopt` may be called at any time by any thread, and refuses values that it cannot use.
        let _is_set = unsafe { libc::mallopt(threshold, bytes) };
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = (kept, mapped);
}

struct AccountedAllocator;

#[expect(unsafe_code, reason = "an allocator cannot be written without; every request goes to the system's as it came")]
// SAFETY: all requests go to `System` unchanged, whose promises are the same.
unsafe impl GlobalAlloc for AccountedAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() < LARGE_BYTES {
            allocated(layout.size());
            // SAFETY: the caller's promise about `layout` is handed on.
            return unsafe { System.alloc(layout) };
        }
        // SAFETY: as above.
        report_granted(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if layout.size() < LARGE_BYTES {
            allocated(layout.size());
            // SAFETY: the caller's promise about `layout` is handed on.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: as above.
        report_granted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        released(layout.size());
        // SAFETY: the pointer came from this allocator, hence from `System`, with this layout.
        unsafe { System.dealloc(pointer, layout) };
    }

    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size < LARGE_BYTES {
            released(layout.size());
            allocated(size);
            // SAFETY: the pointer came from `System` with this layout, and the caller promises that the size is valid.
            return unsafe { System.realloc(pointer, layout, size) };
        }
        // SAFETY: as above.
        let moved = report_granted(unsafe { System.realloc(pointer, layout, size) }, size);
        if !moved.is_null() {
            released(layout.size());
        }
        moved
    }
}

/// Reports an allocation, unless it was refused.
fn report_granted(pointer: *mut u8, size: usize) -> *mut u8 {
    if !pointer.is_null() {
        allocated(size);
    }
    pointer
}

#[global_allocator]
static ALLOCATOR: AccountedAllocator = AccountedAllocator;

#[cfg(test)]
mod tests {
    use crate::memory::enter;

    #[test]
    fn the_balance_of_a_flow_is_what_it_has_allocated() {
        let entered = enter(0);
        let held = vec![0_u8; 100_000];
        let mut grown: Vec<u64> = Vec::with_capacity(1_000);
        let before = entered.balance();
        assert!((108_000..108_100).contains(&before), "{before}");
        for length in [10_000, 1_000_000] {
            grown.reserve_exact(length);
            let expected = 100_000 + 8 * length as i64;
            assert!((expected..expected + 100).contains(&entered.balance()), "{}", entered.balance());
        }
        drop((held, grown));
        assert_eq!(entered.leave(), 0);
    }

    #[test]
    fn a_request_that_the_system_refuses_is_not_counted() {
        let entered = enter(0);
        let mut list: Vec<u8> = Vec::new();
        assert!(list.try_reserve_exact(isize::MAX as usize).is_err());
        assert_eq!(entered.leave(), 0);
    }
}
