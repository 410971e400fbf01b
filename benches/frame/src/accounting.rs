//! Accounting: an allocation alone, with a thread-local counter of net bytes, and with an atomic one.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::Row;

/// Allocations of one measurement.
const ALLOCATIONS: u64 = 100_000;

thread_local! {
    static NET_BYTES: Cell<i64> = const { Cell::new(0) };
}
static ALL_BYTES: AtomicI64 = AtomicI64::new(0);

/// The rows of this module.
pub(crate) fn rows() -> Vec<Row> {
    let row = |name, count: fn(i64)| Row::new(name, ALLOCATIONS, move || allocate(count));
    vec![
        row("a 64-byte box made and freed", |_| ()),
        row("the same, net bytes in a thread-local counter", |bytes| NET_BYTES.set(NET_BYTES.get() + bytes)),
        row("the same, net bytes in a shared atomic counter", |bytes| {
            ALL_BYTES.fetch_add(bytes, Ordering::Relaxed);
        }),
    ]
}

#[inline(always)]
fn allocate(count: impl Fn(i64)) -> u64 {
    for number in 0..ALLOCATIONS {
        count(64);
        let made = black_box(Box::new([number; 8]));
        drop(made);
        count(-64);
    }
    ALLOCATIONS
}
