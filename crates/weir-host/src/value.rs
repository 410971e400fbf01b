//! Values that flows carry between functions.

use std::any::Any;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use bytes::Bytes;

use crate::{Failure, Text};

/// Maximum recursion depth of dropping, comparing and hashing a value, each level of which takes some hundred bytes of
/// stack; deeper levels use memory of the heap.
const NESTED_MAX: u32 = 128;

/// A Weir value. Small values are stored inline; large ones are shared, and cloning increments a reference count.
///
/// A value has 24 bytes, so that passing it moves three words.
#[derive(Clone, Default)]
pub enum Value {
    /// An empty slot: not yet computed, or moved out. Programs never see it.
    #[default]
    Absent,
    /// `()`.
    Unit,
    /// A `Bool`.
    Bool(bool),
    /// An `Int`.
    Int(i64),
    /// A `Float`.
    Float(f64),
    /// A `Time`: nanoseconds since 1970-01-01T00:00:00Z.
    Time(i64),
    /// A `Duration`, in nanoseconds; may be negative.
    Duration(i64),
    /// A `Size`, in bytes.
    Size(u64),
    /// A `Text`.
    Text(Text),
    /// A `Bytes`, boxed because `bytes::Bytes` is four words.
    Bytes(Box<Bytes>),
    /// A `List`.
    List(Elements),
    /// A `Map`, in order of insertion.
    Map(Entries),
    /// A tuple, or a record with its fields in the order of its definition.
    Record(Values),
    /// One variant of an enum, `Option` or `Result`: its tag and payload. `None` is 0 and `Some` 1; `Ok` 0, `Err` 1.
    Variant(u32, Option<Values>),
    /// A `Failure`.
    Failure(Box<Failure>),
    /// A shareable value of a host type.
    Host(Arc<dyn HostValue>),
    /// A value of a host type that cannot be shared; it is moved. Cloning it yields an empty holder, which the
    /// compiler's move checker rules out.
    Unique(Unique),
}

/// The only holder of a host value that cannot be shared.
pub struct Unique(Option<Box<dyn HostValue>>);

impl Unique {
    /// Creates a holder of `value`.
    #[must_use]
    pub fn new(value: Box<dyn HostValue>) -> Self {
        Unique(Some(value))
    }

    /// Returns the value, or `None` for a clone.
    #[must_use]
    pub fn into_inner(self) -> Option<Box<dyn HostValue>> {
        self.0
    }

    /// Borrows the value; `None` for a clone.
    #[must_use]
    pub fn get(&self) -> Option<&dyn HostValue> {
        self.0.as_deref()
    }

    /// Borrows the value mutably; `None` for a clone.
    #[must_use]
    pub fn get_mut(&mut self) -> Option<&mut (dyn HostValue + 'static)> {
        self.0.as_deref_mut()
    }
}

impl Clone for Unique {
    fn clone(&self) -> Self {
        Unique(None)
    }
}

/// A value of a Rust type that only host functions look into.
pub trait HostValue: Any + Send + Sync {
    /// Returns the qualified name of the type in Weir, such as `image.Ppm`.
    fn type_name(&self) -> &'static str;
    /// Borrows the value as `Any`, for downcasting.
    fn as_any(&self) -> &dyn Any;
    /// Borrows the value mutably as `Any`, for downcasting.
    fn as_any_mut(&mut self) -> &mut dyn Any;
    /// Converts the shared value to `Any`, for downcasting.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
    /// Converts the owned value to `Any`, for downcasting.
    fn into_any_box(self: Box<Self>) -> Box<dyn Any + Send + Sync>;
    /// Returns the handle of a value that cannot be shared: a value by which a call can reach it as long as it likes
    /// ([`Value::handle`]). By default there is none.
    fn handle(&self) -> Value {
        Value::Absent
    }
    /// Returns the number of the store of the value, if a call that reads it sees it as it was at one moment, also while others change it
    /// ([`Effects::sees_snapshot`](crate::Effects::sees_snapshot)); together with the other values of this store that it reads. By
    /// default there is none.
    fn snapshots(&self) -> Option<NonZeroUsize> {
        None
    }
}

impl Value {
    /// The tag of `None`.
    pub const NONE: u32 = 0;
    /// The tag of `Some`.
    pub const SOME: u32 = 1;
    /// The tag of `Ok`.
    pub const OK: u32 = 0;
    /// The tag of `Err`.
    pub const ERR: u32 = 1;

    /// Returns what a call of a batched function gets that borrows a shared value: the calls of a batch cannot borrow it as long as
    /// they wait, so each has its handle, or a copy if it can be shared.
    #[must_use]
    pub fn handle(&self) -> Value {
        match self {
            Value::Unique(unique) => unique.get().map_or(Value::Absent, HostValue::handle),
            other => other.clone(),
        }
    }

    /// Returns the number of the store of the value, if calls that read it may run while others change it ([`HostValue::snapshots`]).
    #[must_use]
    pub fn snapshots(&self) -> Option<NonZeroUsize> {
        if let Value::Unique(unique) = self { unique.get()?.snapshots() } else { None }
    }

    /// Creates `None`.
    #[must_use]
    pub fn none() -> Value {
        Value::Variant(Value::NONE, None)
    }

    /// Creates `Some(value)`.
    #[must_use]
    pub fn some(value: Value) -> Value {
        Value::variant(Value::SOME, [value])
    }

    /// Creates `Ok(value)`.
    #[must_use]
    pub fn ok(value: Value) -> Value {
        Value::variant(Value::OK, [value])
    }

    /// Creates `Err(failure)`.
    #[must_use]
    pub fn err(failure: Value) -> Value {
        Value::variant(Value::ERR, [failure])
    }

    /// Creates a variant with a non-empty payload.
    #[must_use]
    pub fn variant(tag: u32, payload: impl Into<Values>) -> Value {
        Value::Variant(tag, Some(payload.into()))
    }

    /// Creates a text.
    #[must_use]
    pub fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    /// Creates bytes.
    #[must_use]
    pub fn bytes(bytes: impl Into<Bytes>) -> Value {
        Value::Bytes(Box::new(bytes.into()))
    }

    /// Creates a list.
    #[must_use]
    pub fn list(elements: Vec<Value>) -> Value {
        Value::List(elements.into())
    }

    /// Moves the value out and leaves [`Value::Absent`].
    #[must_use]
    pub fn take(&mut self) -> Value {
        std::mem::take(self)
    }

    /// Drops the value in the slot. Most values need no drop, which is tested inline.
    #[inline]
    pub fn clear(&mut self) {
        if !matches!(self, Value::Absent | Value::Unit | Value::Bool(_) | Value::Int(_) | Value::Float(_)) {
            *self = Value::Absent;
        }
    }

    /// Leaves [`Value::Absent`] in the slot.
    #[inline]
    pub fn empty(&mut self) {
        self.clear();
        // Nothing is left to be dropped.
        std::mem::forget(self.take());
    }

    /// Stores a value in the slot.
    #[inline]
    pub fn put(&mut self, value: Value) {
        self.clear();
        self.fill(value);
    }

    /// Stores a value in an empty slot. Nothing is dropped, so that a number is stored directly from a register.
    #[inline]
    pub(crate) fn fill(&mut self, value: Value) {
        std::mem::forget(std::mem::replace(self, value));
    }

    /// Stores a copy in a slot. Numbers and truth values are stored directly from registers.
    #[inline]
    pub fn clone_to(&self, slot: &mut Value) {
        match self {
            Value::Int(number) => slot.put(Value::Int(*number)),
            Value::Float(number) => slot.put(Value::Float(*number)),
            Value::Bool(truth) => slot.put(Value::Bool(*truth)),
            Value::Text(text) => slot.put(Value::Text(text.clone())),
            other => slot.put(other.clone()),
        }
    }

    /// Moves the value to a slot, and leaves [`Value::Absent`].
    #[inline]
    pub fn move_to(&mut self, slot: &mut Value) {
        slot.put(self.take());
    }

    /// Returns `true` if the slot is empty.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Value::Absent)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

mod compare;
mod deep_copy;
mod elements;
mod entries;
mod show;
mod sort;
mod trie;
mod values;
mod walk;

pub use elements::{Element, Elements};
pub use entries::Entries;
pub use values::Values;
pub use walk::Walk;
