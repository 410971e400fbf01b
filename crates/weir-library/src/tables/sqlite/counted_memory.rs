//! The large blocks of memory that SQLite allocates, which count as those of the program do.
//!
//! SQLite sorts in temporary files, but holds one row of each part that it has sorted and written there (2 MB, or one row that has more).
//! No setting bounds that: its own limit (`hard_heap_limit`) is one of the process, so that the connection that writes would be refused
//! memory, too, and a statement without memory takes back the transaction of its connection. So each large block is charged to the flow
//! that runs on the thread, and a query of a connection that only reads is refused one that its flow may not hold.
//!
//! Invariants of the functions that SQLite calls:
//!
//! 1. Every request goes to SQLite's own allocator as it came, or is refused, which each caller in SQLite has to expect.
//! 2. A block is reported if the size that this allocator gives it is large, with that size, when it is allocated and when it is released.
//! 3. They do not unwind.

use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::{Once, OnceLock};

use rusqlite::{ErrorCode, Row, Rows, ffi};
use weir::{Failure, memory};

/// Number of bytes from which a block counts: more than a new cache takes for its first pages, and less than what hurts.
const LARGE_BYTES: c_int = 128 * 1024;

/// SQLite's own allocator.
static OWN: OnceLock<OwnAllocator> = OnceLock::new();

struct OwnAllocator {
    allocate_own: unsafe extern "C" fn(c_int) -> *mut c_void,
    release_own: unsafe extern "C" fn(*mut c_void),
    reallocate_own: unsafe extern "C" fn(*mut c_void, c_int) -> *mut c_void,
    size: unsafe extern "C" fn(*mut c_void) -> c_int,
}

thread_local! {
    /// True while the connection that the thread uses only reads.
    static ONLY_READS: Cell<bool> = const { Cell::new(false) };
    /// True while the rows of a statement are computed.
    static COMPUTES_ROWS: Cell<bool> = const { Cell::new(false) };
    /// The bytes of the large blocks that the thread has allocated.
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
    /// The failure of the flow whose statement was refused memory.
    static REFUSAL: RefCell<Option<Box<Failure>>> = const { RefCell::new(None) };
}

use functions::{allocate, reallocate, release};

/// Has SQLite count its large blocks, unless it is used already, which only tests do.
pub(super) fn begin() {
    static BEGUN: Once = Once::new();
    BEGUN.call_once(set_allocator);
}

#[expect(unsafe_code, reason = "a setting of SQLite for which its library for Rust has no function")]
fn set_allocator() {
    let mut methods = MaybeUninit::<ffi::sqlite3_mem_methods>::zeroed();
    // SAFETY: the functions of the structure are optional, so that zeros are valid. SQLite writes it, and copies what it is given.
    unsafe {
        ffi::sqlite3_config(ffi::SQLITE_CONFIG_GETMALLOC, methods.as_mut_ptr());
        let mut methods = methods.assume_init();
        if let (Some(allocate_own), Some(release_own), Some(reallocate_own), Some(size)) =
            (methods.xMalloc, methods.xFree, methods.xRealloc, methods.xSize)
        {
            _ = OWN.set(OwnAllocator { allocate_own, release_own, reallocate_own, size });
            methods.xMalloc = Some(allocate);
            methods.xFree = Some(release);
            methods.xRealloc = Some(reallocate);
            ffi::sqlite3_config(ffi::SQLITE_CONFIG_MALLOC, &raw const methods);
        }
    }
}

#[expect(unsafe_code, reason = "functions of an allocator, which SQLite calls")]
mod functions {
    use super::*;

    pub(super) unsafe extern "C" fn allocate(bytes: c_int) -> *mut c_void {
        let Some(own) = OWN.get() else { return null_mut() };
        if is_large(bytes) && is_refused(bytes) {
            return null_mut();
        }
        // SAFETY: the request is that of SQLite.
        let block = unsafe { (own.allocate_own)(bytes) };
        // The allocator may give more than was asked for, which decides.
        if bytes >= LARGE_BYTES / 2 && !block.is_null() {
            // SAFETY: the block was just allocated.
            note_allocated(unsafe { (own.size)(block) });
        }
        block
    }

    pub(super) unsafe extern "C" fn release(block: *mut c_void) {
        let Some(own) = OWN.get() else { return };
        // SAFETY: SQLite releases a block that it has, and the size of none is 0.
        unsafe {
            note_released((own.size)(block));
            (own.release_own)(block);
        }
    }

    pub(super) unsafe extern "C" fn reallocate(block: *mut c_void, bytes: c_int) -> *mut c_void {
        let Some(own) = OWN.get() else { return null_mut() };
        // SAFETY: the block is one that SQLite has, and no block has no size.
        let before = unsafe { (own.size)(block) };
        if is_large(bytes) && bytes > before && is_refused(bytes - before) {
            return null_mut();
        }
        // SAFETY: the request is that of SQLite.
        let moved = unsafe { (own.reallocate_own)(block, bytes) };
        if !moved.is_null() {
            note_released(before);
            // SAFETY: the block was just allocated.
            note_allocated(unsafe { (own.size)(moved) });
        }
        moved
    }
}

/// Returns whether the running flow may not hold so many bytes more, and its statement may be refused them.
fn is_refused(bytes: c_int) -> bool {
    if !ONLY_READS.get() || !COMPUTES_ROWS.get() {
        return false;
    }
    let Err(failure) = memory::ask(usize::try_from(bytes).unwrap_or(0)) else { return false };
    REFUSAL.set(Some(failure));
    true
}

fn is_large(bytes: c_int) -> bool {
    bytes >= LARGE_BYTES
}

fn note_allocated(bytes: c_int) {
    if is_large(bytes) {
        let bytes = bytes.unsigned_abs() as usize;
        ALLOCATED.set(ALLOCATED.get().wrapping_add(bytes));
        memory::allocated(bytes);
    }
}

fn note_released(bytes: c_int) {
    if is_large(bytes) {
        memory::released(bytes.unsigned_abs() as usize);
    }
}

/// Reads by a connection that only reads.
pub(super) fn reading<T>(read: impl FnOnce() -> T) -> T {
    /// Ends the reads, also if they panic.
    struct Reads;
    impl Drop for Reads {
        fn drop(&mut self) {
            ONLY_READS.set(false);
        }
    }
    REFUSAL.set(None);
    ONLY_READS.set(true);
    let _reads = Reads;
    read()
}

/// A statement that is being executed.
pub(super) struct CountedStatement {
    allocated_before: usize,
}

impl CountedStatement {
    pub(super) fn begin() -> CountedStatement {
        CountedStatement { allocated_before: ALLOCATED.get() }
    }

    /// Returns the next row. What the caller does with the row is refused nothing: not every function of SQLite can say that.
    pub(super) fn next<'r>(&self, rows: &'r mut Rows<'_>) -> rusqlite::Result<Option<&'r Row<'r>>> {
        COMPUTES_ROWS.set(true);
        let row = rows.next();
        COMPUTES_ROWS.set(false);
        row
    }

    /// Returns a value of the only row.
    pub(super) fn only_row<T>(
        &self,
        mut rows: Rows<'_>,
        value: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.next(&mut rows)?.ok_or(rusqlite::Error::QueryReturnedNoRows).and_then(value)
    }

    /// Returns the bytes of the large blocks that were allocated since the begin; the greatest number if one was refused.
    pub(super) fn allocated(&self) -> usize {
        let is_refused = ONLY_READS.get() && REFUSAL.with_borrow(Option::is_some);
        if is_refused { usize::MAX } else { ALLOCATED.get().wrapping_sub(self.allocated_before) }
    }
}

/// Returns the failure of the flow whose statement was refused memory on this thread, if that is why it has failed.
pub(super) fn take_refusal(error: &rusqlite::Error) -> Option<Failure> {
    let is_refused = error.sqlite_error_code() == Some(ErrorCode::OutOfMemory);
    REFUSAL.take().filter(|_| is_refused).map(|failure| *failure)
}
