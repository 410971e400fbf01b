//! Test support that several crates use: libraries, sources and programs for tests.

// The functions of `fixture` are written as a user writes theirs, against a crate named `weir`.
#[cfg(feature = "fixture")]
extern crate weir_host as weir;

#[cfg(feature = "fixture")]
pub mod fixture;
#[cfg(feature = "flows")]
pub mod flows;
#[cfg(feature = "generator")]
pub mod generator;
pub mod long_program;
mod own_process;
pub mod postgres;
pub mod postgres_proxy;
pub mod random;
mod wakers;

pub use own_process::is_run_alone;
pub use wakers::CountingWaker;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Polls a future once, and returns its output if it is ready.
pub fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
