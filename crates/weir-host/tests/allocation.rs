//! Checks with a counting allocator that a call with scalar arguments does not allocate.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

extern crate weir_host as weir;

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use common::Frame;
use weir::{Argument, Function, FunctionCode, Shared, Size, Value};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u32> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[expect(unsafe_code, reason = "hands every request on to the system's allocator as it came")]
// SAFETY: forwards all requests to `System` unchanged, which upholds the same guarantees.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's guarantee about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: `place` was allocated by `System.alloc` with this layout.
        unsafe { System.dealloc(place, layout) }
    }
}

#[weir::function(pure)]
fn scale(by: f64, width: u16, limit: Size, ready: bool) -> Option<()> {
    (ready && by * f64::from(width) > limit.0 as f64).then_some(())
}

#[weir::function]
fn count(hits: &mut i64, text: &str, bytes: &[u8]) -> u32 {
    *hits += 1;
    u32::try_from(text.len() + bytes.len()).unwrap()
}

#[weir::function(pure)]
fn longest(lengths: Vec<i64>, widths: Vec<f64>, marks: Vec<bool>) -> usize {
    lengths.len().max(widths.len()).max(marks.len())
}

weir::library!(pub(crate) scalars: scale, count, longest);

fn allocations(function: &Function, frame: &mut Frame, arguments: &[Argument]) -> u32 {
    assert!(matches!(function.code, FunctionCode::Immediate(_)));
    let before = ALLOCATIONS.get();
    let outcome = frame.run_with(function, arguments);
    let after = ALLOCATIONS.get();
    common::given(outcome);
    after - before
}

#[test]
fn a_call_with_scalars_allocates_nothing() {
    let module = scalars();
    let slots = [Value::Float(0.5), Value::Int(3), Value::Size(9), Value::Bool(true)];
    let arguments = [0, 1, 2, 3].map(common::slot);
    assert_eq!(allocations(&module.functions["scale"], &mut Frame::of(slots), &arguments), 0);
}

#[test]
fn a_call_that_borrows_allocates_nothing() {
    let module = scalars();
    let mut frame = Frame::of([Value::Int(0), Value::text("water"), Value::bytes(&b"abc"[..])]);
    let arguments = [0, 1, 2].map(common::slot);
    assert_eq!(allocations(&module.functions["count"], &mut frame, &arguments), 0);
    frame.shared.push(Shared::new(Value::Int(0)));
    let arguments = [Argument::Shared(0), common::slot(1), common::slot(2)];
    assert_eq!(allocations(&module.functions["count"], &mut frame, &arguments), 0);
}

#[test]
fn a_call_that_takes_lists_of_scalars_at_their_last_use_allocates_nothing() {
    let module = scalars();
    let lists = || [Value::List(vec![1, 2].into()), Value::List(vec![0.5].into()), Value::List(vec![true].into())];
    let last = [0, 1, 2].map(|index| Argument::Slot { index, last: true });
    assert_eq!(allocations(&module.functions["longest"], &mut Frame::of(lists()), &last), 0);
    let kept = [0, 1, 2].map(|index| Argument::Slot { index, last: false });
    assert_eq!(allocations(&module.functions["longest"], &mut Frame::of(lists()), &kept), 3);
}

#[test]
fn the_counter_counts() {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(ALLOCATIONS.get() - before, 1);
}
