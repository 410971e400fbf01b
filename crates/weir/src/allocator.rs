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

use std::alloc::{GlobalAlloc, Layout, System};

use crate::memory::{allocated, released};

/// A request below this is granted, or ends the process. It is reported first: the call of the system's allocator is then
/// the last thing to do, which saves a stack frame.
const LARGE_BYTES: usize = 1 << 20;

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
