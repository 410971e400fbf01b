//! Shared values and other resources that calls read and write.

use std::fmt;
use std::sync::Arc;

use parking_lot::{ArcRwLockReadGuard, ArcRwLockWriteGuard, RawRwLock, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{Text, Value};

/// Access mode of a call to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Shared with other readers.
    Read,
    /// Exclusive.
    Write,
}

/// A resource that calls access and that therefore orders them (rule 2 of "Semantics" in ARCHITECTURE.md).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// A `shared` value, by its name in the program.
    Shared(Text),
    /// A `constraint` that stands for something outside the program, by its name.
    Constraint(Text),
    /// A library's part of the outside world, by the module's name.
    World(Text),
    /// The private state of a stateful function's call site, by the node's name.
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
/// Engines use locks of their own to exclude flows before a call begins, in a canonical order and without blocking a
/// thread. The lock here is uncontended under a correct engine; it keeps an incorrect one sound, if slow.
#[derive(Clone)]
pub struct Shared(Arc<RwLock<Value>>);

/// Guard of a call that reads a shared value in place.
pub type Reading<'a> = RwLockReadGuard<'a, Value>;
/// Guard of a call that changes a shared value in place.
pub type Writing<'a> = RwLockWriteGuard<'a, Value>;
/// Guard of a waiting call that reads a shared value.
pub type ReadGuard = ArcRwLockReadGuard<RawRwLock, Value>;
/// Guard of a waiting call that changes a shared value.
pub type WriteGuard = ArcRwLockWriteGuard<RawRwLock, Value>;

impl Shared {
    /// Creates a shared value with this initial value.
    #[must_use]
    pub fn new(value: Value) -> Self {
        Shared(Arc::new(RwLock::new(value)))
    }

    /// Locks the value for reading. A call may lock it twice, as two of its arguments.
    pub fn read(&self) -> Reading<'_> {
        self.0.read_recursive()
    }

    /// Locks the value for reading, if no call is changing it.
    #[must_use]
    pub fn try_read(&self) -> Option<Reading<'_>> {
        self.0.try_read_recursive()
    }

    /// Locks the value for writing.
    pub fn write(&self) -> Writing<'_> {
        self.0.write()
    }

    /// Returns `true` if the value is not locked; for tests and the trace only, because this can change at any time.
    #[must_use]
    pub fn is_free(&self) -> bool {
        !self.0.is_locked()
    }

    /// Locks the value for reading by an asynchronous call.
    pub fn read_owned(&self) -> ReadGuard {
        RwLock::read_arc_recursive(&self.0)
    }

    /// Locks the value for writing by an asynchronous call.
    pub fn write_owned(&self) -> WriteGuard {
        RwLock::write_arc(&self.0)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}
