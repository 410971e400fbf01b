//! Values: what flows carry between functions.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::{Failure, Text};

/// How deep dropping, comparing and hashing go into a value by recursion, which takes some hundred bytes of stack each;
/// deeper, they go on with memory of the heap.
const NESTED_MAX: u32 = 128;

/// A value of Weir. Small ones are held in place; large ones are shared, and cloning counts a reference.
///
/// It is 24 bytes, so that passing it is three words moved.
#[derive(Clone, Default)]
pub enum Value {
    /// An empty slot: not yet computed, or moved out. Never seen by a program.
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
    /// A value of a host type that cannot be shared; it is moved. Cloning it leaves [`Value::Absent`] behind, and the
    /// compiler's check of moves makes sure that nobody does.
    Unique(Unique),
}

/// The one holder of a host value that cannot be shared.
pub struct Unique(Option<Box<dyn HostValue>>);

impl Unique {
    /// Holds `value`.
    #[must_use]
    pub fn new(value: Box<dyn HostValue>) -> Self {
        Unique(Some(value))
    }

    /// The value, or `None` in a clone.
    #[must_use]
    pub fn into_inner(self) -> Option<Box<dyn HostValue>> {
        self.0
    }

    /// The value, or `None` in a clone.
    #[must_use]
    pub fn get(&self) -> Option<&dyn HostValue> {
        self.0.as_deref()
    }

    /// The value, or `None` in a clone.
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
    /// The type's whole name in Weir, such as `image.Ppm`.
    fn type_name(&self) -> &'static str;
    /// The value as any, to be cast down.
    fn as_any(&self) -> &dyn Any;
    /// The value as any, to be cast down and changed.
    fn as_any_mut(&mut self) -> &mut dyn Any;
    /// The shared value as any, to be cast down.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
    /// The owned value as any, to be cast down.
    fn into_any_box(self: Box<Self>) -> Box<dyn Any + Send + Sync>;
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

    /// `None`.
    #[must_use]
    pub fn none() -> Value {
        Value::Variant(Value::NONE, None)
    }

    /// `Some(value)`.
    #[must_use]
    pub fn some(value: Value) -> Value {
        Value::variant(Value::SOME, [value])
    }

    /// `Ok(value)`.
    #[must_use]
    pub fn ok(value: Value) -> Value {
        Value::variant(Value::OK, [value])
    }

    /// `Err(failure)`.
    #[must_use]
    pub fn err(failure: Value) -> Value {
        Value::variant(Value::ERR, [failure])
    }

    /// A variant with a payload of one or more.
    #[must_use]
    pub fn variant(tag: u32, payload: impl Into<Values>) -> Value {
        Value::Variant(tag, Some(payload.into()))
    }

    /// A text.
    #[must_use]
    pub fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    /// Bytes.
    #[must_use]
    pub fn bytes(bytes: impl Into<Bytes>) -> Value {
        Value::Bytes(Box::new(bytes.into()))
    }

    /// A list.
    #[must_use]
    pub fn list(elements: Vec<Value>) -> Value {
        Value::List(elements.into())
    }

    /// Moves the value out and leaves [`Value::Absent`].
    #[must_use]
    pub fn take(&mut self) -> Value {
        std::mem::take(self)
    }

    /// Drops what lies in the slot. Most often that is a few bits, which is found out here and not in a call.
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
        // Nothing is left that needs a drop.
        std::mem::forget(self.take());
    }

    /// Puts a value into the slot.
    #[inline]
    pub fn put(&mut self, value: Value) {
        self.clear();
        self.fill(value);
    }

    /// Puts a value into a slot that is cleared. Nothing is dropped, so that a number goes there out of a register.
    #[inline]
    pub(crate) fn fill(&mut self, value: Value) {
        std::mem::forget(std::mem::replace(self, value));
    }

    /// Whether the slot that this value lies in is empty.
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
mod elements;
mod entries;
mod show;
mod values;
mod walk;

pub use elements::Elements;
pub use entries::Entries;
pub use values::Values;
pub use walk::Walk;
