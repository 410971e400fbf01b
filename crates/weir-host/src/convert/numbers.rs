//! Conversion of the numbers that Weir does not store in their Rust form: every Rust integer is an `Int`, with range
//! checks in both directions, and an `f32` is a `Float`.

use crate::convert::mismatch;
use crate::{Bytes, Failure, HostType, Type, Value};

/// Implements [`HostType`] for the integers other than `i64`; further items of an implementation follow in braces.
macro_rules! integers {
    ($($rust:ident { $($more:item)* })*) => {$(
        impl HostType for $rust {
            const WORD: bool = true;

            #[inline]
            fn from_word(word: u64) -> Result<Self, Failure> {
                Self::from_value(Value::Int(word.cast_signed()))
            }

            #[inline]
            fn into_word(self) -> Result<u64, Failure> {
                i64::try_from(self).map(i64::cast_unsigned).map_err(|_| too_large(&self))
            }

            fn ty() -> Type {
                Type::Int
            }

            #[inline]
            fn from_value(value: Value) -> Result<Self, Failure> {
                Self::copied(&value).ok_or_else(|| outside(&value, &$rust::MIN, &$rust::MAX))
            }

            #[inline]
            fn into_value(self) -> Result<Value, Failure> {
                i64::try_from(self).map(Value::Int).map_err(|_| too_large(&self))
            }

            #[inline]
            fn copied(value: &Value) -> Option<Self> {
                if let Value::Int(value) = value { $rust::try_from(*value).ok() } else { None }
            }

            $($more)*
        }
    )*};
}

integers! {
    i8 {}
    i16 {}
    i32 {}
    isize {}
    u8 {
        // A `Vec<u8>` or a `&[u8]` is expected to be bytes, not a list of numbers.
        fn list_type() -> Type {
            Type::Bytes
        }

        fn list_from_value(value: Value) -> Result<Vec<u8>, Failure> {
            Bytes::from_value(value).map(Vec::from)
        }

        fn list_into_value(list: Vec<u8>) -> Result<Value, Failure> {
            Ok(Value::bytes(list))
        }

        #[inline]
        fn list_in_place(value: &Value) -> Option<&[u8]> {
            Bytes::in_place(value).map(|bytes| &**bytes)
        }
    }
    u16 {}
    u32 {}
    u64 {}
    usize {}
}

#[cold]
fn outside(value: &Value, min: &dyn std::fmt::Display, max: &dyn std::fmt::Display) -> Failure {
    match value {
        Value::Int(value) => Failure::argument(format!("must be {min} to {max}, not {value}")),
        other => mismatch(&Type::Int, other),
    }
}

#[cold]
fn too_large(value: &dyn std::fmt::Display) -> Failure {
    Failure::arithmetic(format!("{value} is above {}, the largest Int", i64::MAX))
}

/// Rounds to the nearest; refuses a finite number that an `f32` can represent only as infinity.
impl HostType for f32 {
    const WORD: bool = true;

    fn from_word(word: u64) -> Result<Self, Failure> {
        Self::from_value(Value::Float(f64::from_bits(word)))
    }

    fn into_word(self) -> Result<u64, Failure> {
        Ok(f64::from(self).to_bits())
    }

    fn ty() -> Type {
        Type::Float
    }

    #[inline]
    fn from_value(value: Value) -> Result<Self, Failure> {
        let wide = f64::from_value(value)?;
        let narrow = wide as f32;
        if wide.is_finite() && narrow.is_infinite() {
            return Err(Failure::argument(format!("must be {:?} to {:?}, not {wide:?}", f32::MIN, f32::MAX)));
        }
        Ok(narrow)
    }

    #[inline]
    fn into_value(self) -> Result<Value, Failure> {
        Ok(Value::Float(f64::from(self)))
    }
}
