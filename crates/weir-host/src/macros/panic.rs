//! Catching panics of functions that wait or block.
//!
//! The engine catches the panic of a function that returns immediately, whose arguments are still in the frame.
//! Unwinding would lose the arguments that a waiting call has taken out of the frame, so its panic is caught here and
//! becomes a fault, and the call settles.

use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

use crate::{Failure, FailureKind, Outcome};

type BodyResult = Result<Outcome, Box<Failure>>;

/// Runs the body of a blocking function.
pub fn catch_panic(body: impl FnOnce() -> BodyResult) -> Outcome {
    let ended = catch_unwind(AssertUnwindSafe(body));
    ended.unwrap_or_else(|panic| Err(panicked(&*panic))).unwrap_or_else(Outcome::Fault)
}

/// Runs the body of a function that waits. The body stays where it is, because a future that takes another one has room for it
/// twice.
pub async fn catch_panic_async(mut body: Pin<&mut impl Future<Output = BodyResult>>) -> Outcome {
    let ended = poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| body.as_mut().poll(context)));
        polled.unwrap_or_else(|panic| Poll::Ready(Err(panicked(&*panic))))
    });
    ended.await.unwrap_or_else(Outcome::Fault)
}

/// Converts a panic into a failure.
#[cold]
pub(super) fn panicked(panic: &(dyn Any + Send)) -> Box<Failure> {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    let message = format!("the function panicked: {}", text.unwrap_or("without a message"));
    Box::new(Failure::new(FailureKind::Panic, message))
}
