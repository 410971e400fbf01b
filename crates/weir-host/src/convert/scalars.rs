//! Conversion of the scalars that Weir stores in their Rust form, alone and in packed lists.

use crate::convert::collections::list_from_value;
use crate::convert::mismatch;
use crate::{Failure, HostType, Type, Value};

/// Implements [`HostType`] for a scalar: its variant in `Value` and `Type`, the view of a packed list of it and the vector that
/// is moved out of one, and the conversions from and to words.
macro_rules! scalars {
    ($($rust:ident: $variant:ident, $packed:ident, $moved:ident, $from_word:expr, $into_word:expr;)*) => {$(
        impl HostType for $rust {
            const WORD: bool = true;

            #[inline]
            fn from_word(word: u64) -> Result<Self, Failure> {
                Ok($from_word(word))
            }

            #[inline]
            fn into_word(self) -> Result<u64, Failure> {
                Ok($into_word(self))
            }

            fn ty() -> Type {
                Type::$variant
            }

            #[inline]
            fn from_value(value: Value) -> Result<Self, Failure> {
                Self::copied(&value).ok_or_else(|| mismatch(&Type::$variant, &value))
            }

            #[inline]
            fn into_value(self) -> Result<Value, Failure> {
                Ok(Value::$variant(self))
            }

            #[inline]
            fn copied(value: &Value) -> Option<Self> {
                Self::in_place(value).copied()
            }

            #[inline]
            fn in_place(value: &Value) -> Option<&Self> {
                if let Value::$variant(value) = value { Some(value) } else { None }
            }

            #[inline]
            fn in_place_mut(value: &mut Value) -> Option<&mut Self> {
                if let Value::$variant(value) = value { Some(value) } else { None }
            }

            fn list_from_value(mut value: Value) -> Result<Vec<Self>, Failure> {
                if let Value::List(elements) = &mut value
                    && let Some(all) = elements.$moved()
                {
                    return Ok(all);
                }
                match Self::list_in_place(&value) {
                    Some(all) => Ok(all.to_vec()),
                    None => list_from_value(value),
                }
            }

            fn list_into_value(list: Vec<Self>) -> Result<Value, Failure> {
                Ok(Value::List(list.into()))
            }

            #[inline]
            fn list_in_place(value: &Value) -> Option<&[Self]> {
                if let Value::List(elements) = value { elements.$packed() } else { None }
            }
        }
    )*};
}

scalars! {
    bool: Bool, as_bools, take_bools, |word| word != 0, u64::from;
    i64: Int, as_ints, take_ints, u64::cast_signed, i64::cast_unsigned;
    f64: Float, as_floats, take_floats, f64::from_bits, f64::to_bits;
}
