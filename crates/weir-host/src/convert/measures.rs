//! Conversion of sizes, durations and times.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::convert::mismatch;
use crate::{Failure, HostType, Type, Value};

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(pub u64);

impl Size {
    /// Returns a size in units of 1,024 bytes.
    #[must_use]
    pub const fn kb(count: u64) -> Size {
        Size(count << 10)
    }

    /// Returns a size in units of 1,024 kb.
    #[must_use]
    pub const fn mb(count: u64) -> Size {
        Size(count << 20)
    }

    /// Returns a size in units of 1,024 mb.
    #[must_use]
    pub const fn gb(count: u64) -> Size {
        Size(count << 30)
    }

    /// Returns the number of bytes as a `usize`, saturating.
    #[must_use]
    pub fn bytes(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Value::Size(self.0).fmt(f)
    }
}

impl HostType for Size {
    const WORD: bool = true;

    #[inline]
    fn from_word(word: u64) -> Result<Self, Failure> {
        Ok(Size(word))
    }

    #[inline]
    fn into_word(self) -> Result<u64, Failure> {
        Ok(self.0)
    }

    fn ty() -> Type {
        Type::Size
    }

    #[inline]
    fn from_value(value: Value) -> Result<Self, Failure> {
        Self::copied(&value).ok_or_else(|| mismatch(&Type::Size, &value))
    }

    #[inline]
    fn into_value(self) -> Result<Value, Failure> {
        Ok(Value::Size(self.0))
    }

    #[inline]
    fn copied(value: &Value) -> Option<Self> {
        if let Value::Size(bytes) = value { Some(Size(*bytes)) } else { None }
    }
}

/// Weir's durations may be negative; Rust's may not.
impl HostType for Duration {
    const WORD: bool = true;

    fn from_word(word: u64) -> Result<Self, Failure> {
        Self::from_value(Value::Duration(word.cast_signed()))
    }

    fn into_word(self) -> Result<u64, Failure> {
        self.into_value().map(|value| if let Value::Duration(nanos) = value { nanos.cast_unsigned() } else { 0 })
    }

    fn ty() -> Type {
        Type::Duration
    }

    fn from_value(value: Value) -> Result<Self, Failure> {
        match value {
            Value::Duration(nanos) => u64::try_from(nanos)
                .map(Duration::from_nanos)
                .map_err(|_| Failure::argument(format!("must not be negative, but is {value}"))),
            other => Err(mismatch(&Type::Duration, &other)),
        }
    }

    fn into_value(self) -> Result<Value, Failure> {
        i64::try_from(self.as_nanos())
            .map(Value::Duration)
            .map_err(|_| Failure::arithmetic(format!("{self:?} is above 292 years, the longest Duration")))
    }

    #[inline]
    fn copied(value: &Value) -> Option<Self> {
        if let Value::Duration(nanos) = value { u64::try_from(*nanos).ok().map(Duration::from_nanos) } else { None }
    }
}

impl HostType for SystemTime {
    const WORD: bool = true;

    fn from_word(word: u64) -> Result<Self, Failure> {
        Self::from_value(Value::Time(word.cast_signed()))
    }

    fn into_word(self) -> Result<u64, Failure> {
        self.into_value().map(|value| if let Value::Time(nanos) = value { nanos.cast_unsigned() } else { 0 })
    }

    fn ty() -> Type {
        Type::Time
    }

    fn from_value(value: Value) -> Result<Self, Failure> {
        let Value::Time(nanos) = value else { return Err(mismatch(&Type::Time, &value)) };
        let distance = Duration::from_nanos(nanos.unsigned_abs());
        let time = if nanos < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
        time.ok_or_else(|| Failure::argument(format!("must be a time that this machine can represent, not {value}")))
    }

    fn into_value(self) -> Result<Value, Failure> {
        let nanos = match self.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_nanos()),
            Err(before) => match before.duration().as_nanos() {
                // The least time has no positive counterpart.
                nanos if nanos == u128::from(i64::MIN.unsigned_abs()) => Ok(i64::MIN),
                nanos => i64::try_from(nanos).map(|nanos| -nanos),
            },
        };
        nanos.map(Value::Time).map_err(|_| Failure::arithmetic("a time outside the years 1677 to 2262"))
    }
}
