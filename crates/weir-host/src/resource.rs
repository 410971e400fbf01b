//! Shared values: one Rust value for all flows, under a constraint of readers and a writer.

use std::fmt;
use std::sync::Arc;

use parking_lot::{ArcRwLockReadGuard, ArcRwLockWriteGuard, RawRwLock, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{Text, Value};

/// How a call uses a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Beside other readers.
    Read,
    /// Alone.
    Write,
}

/// What may be touched by calls, and therefore orders them: design, "What the program means", 2.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// A `shared` value, by its name in the program.
    Shared(Text),
    /// A `constraint` that stands for something outside the program, by its name.
    Constraint(Text),
    /// A library's part of the outside world, by the module's name.
    World(Text),
    /// The private state of one call site of a stateful function, by the node's name.
    State(Text),
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Resource::Shared(name) => write!(f, "shared {name}"),
            Resource::Constraint(name) => write!(f, "constraint {name}"),
            Resource::World(name) => write!(f, "world {name}"),
            Resource::State(name) => write!(f, "state {name}"),
        }
    }
}

/// The Rust value behind a `shared` name or the state of a call site.
///
/// Engines keep flows out by constraints before a call begins, in the canonical order and without holding a thread; the
/// lock here is what makes a wrong engine slow instead of unsound, and is not contended under a right one.
#[derive(Clone)]
pub struct Shared(Arc<RwLock<Value>>);

/// Held while a call reads a shared value in place.
pub type Reading<'a> = RwLockReadGuard<'a, Value>;
/// Held while a call changes a shared value in place.
pub type Writing<'a> = RwLockWriteGuard<'a, Value>;
/// Held while a call that waits reads a shared value.
pub type ReadGuard = ArcRwLockReadGuard<RawRwLock, Value>;
/// Held while a call that waits changes a shared value.
pub type WriteGuard = ArcRwLockWriteGuard<RawRwLock, Value>;

impl Shared {
    /// A shared value that begins as `value`.
    #[must_use]
    pub fn new(value: Value) -> Self {
        Shared(Arc::new(RwLock::new(value)))
    }

    /// Reads the value in place. One call may read it twice, as two of its arguments.
    pub fn read(&self) -> Reading<'_> {
        self.0.read_recursive()
    }

    /// Changes the value in place.
    pub fn write(&self) -> Writing<'_> {
        self.0.write()
    }

    /// Whether nobody holds it now; for tests and for the trace, because it may change at once.
    #[must_use]
    pub fn is_free(&self) -> bool {
        !self.0.is_locked()
    }

    /// A guard that an asynchronous call keeps while it waits.
    pub fn read_owned(&self) -> ReadGuard {
        RwLock::read_arc_recursive(&self.0)
    }

    /// A guard that an asynchronous call keeps while it waits.
    pub fn write_owned(&self) -> WriteGuard {
        RwLock::write_arc(&self.0)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}
