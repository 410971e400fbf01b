//! Engines: who drives the flows.
//!
//! Sources run on event loops, and every flow begins there. An engine decides which thread goes on with it; what a flow
//! does is the same under each.

use std::io;
use std::sync::Arc;

use tokio::runtime::Handle;
use weir_host::{Begun, LocalFuture};

use crate::flow::Flow;
use crate::live::Blocking;
use crate::machine::Machine;

mod event;
mod pool;

/// Every engine there is.
pub const ENGINES: &[EngineRow] = &[event::ROW, pool::ROW];

/// What is known of one engine.
pub struct EngineRow {
    /// Its name, as plans and the command line say it.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub doc: &'static str,
    /// On how many event loops sources run, for a number of threads.
    pub(crate) loops: fn(usize) -> usize,
    /// Where functions run that hold their thread.
    pub(crate) blocking: Blocking,
    /// Starts it.
    pub(crate) start: fn(Setup<'_>) -> io::Result<Arc<dyn Engine>>,
}

/// What an engine is started with.
pub(crate) struct Setup<'a> {
    /// How many threads.
    pub threads: usize,
    /// How many flows may wait: in its queue, or for something.
    pub flows_max: usize,
    /// Where threads come from.
    pub machine: &'a dyn Machine,
    /// The first event loop's runtime, which drives what flows wait for elsewhere.
    pub handle: &'a Handle,
}

/// An engine that runs.
pub(crate) trait Engine: Send + Sync {
    /// Begins the flow that `make` makes, or is full.
    fn begin(&self, make: &mut dyn FnMut() -> Flow) -> Begun;

    /// Waits until one more flow may begin.
    fn room(&self) -> LocalFuture<()>;

    /// Waits until no flow is left.
    fn drained(&self) -> LocalFuture<()>;

    /// Ends its threads. No flow is left.
    fn close(&self);
}

/// The engine of this name.
#[must_use]
pub fn engine(name: &str) -> Option<&'static EngineRow> {
    ENGINES.iter().find(|row| row.name == name)
}

impl std::fmt::Debug for EngineRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}
