//! Conversion of types that Weir stores in their Rust form, and the type parameters of generic functions.

use crate::convert::mismatch;
use crate::{Bytes, Failure, HostType, Text, Type, TypeDefinition, Value};

impl HostType for () {
    fn ty() -> Type {
        Type::Unit
    }

    #[inline]
    fn from_value(value: Value) -> Result<Self, Failure> {
        if let Value::Unit = value { Ok(()) } else { Err(mismatch(&Type::Unit, &value)) }
    }

    #[inline]
    fn into_value(self) -> Result<Value, Failure> {
        Ok(Value::Unit)
    }
}

impl HostType for Text {
    fn ty() -> Type {
        Type::Text
    }

    #[inline]
    fn from_value(value: Value) -> Result<Self, Failure> {
        if let Value::Text(text) = value { Ok(text) } else { Err(mismatch(&Type::Text, &value)) }
    }

    #[inline]
    fn into_value(self) -> Result<Value, Failure> {
        Ok(Value::Text(self))
    }

    #[inline]
    fn in_place(value: &Value) -> Option<&Self> {
        if let Value::Text(text) = value { Some(text) } else { None }
    }

    #[inline]
    fn in_place_mut(value: &mut Value) -> Option<&mut Self> {
        if let Value::Text(text) = value { Some(text) } else { None }
    }
}

/// Copied in both directions; a [`Text`] is not.
impl HostType for String {
    fn ty() -> Type {
        Type::Text
    }

    fn from_value(value: Value) -> Result<Self, Failure> {
        if let Value::Text(text) = value { Ok(text.as_str().to_owned()) } else { Err(mismatch(&Type::Text, &value)) }
    }

    fn into_value(self) -> Result<Value, Failure> {
        Ok(Value::Text(self.into()))
    }
}

impl HostType for Bytes {
    fn ty() -> Type {
        Type::Bytes
    }

    #[inline]
    fn from_value(value: Value) -> Result<Self, Failure> {
        if let Value::Bytes(bytes) = value { Ok(*bytes) } else { Err(mismatch(&Type::Bytes, &value)) }
    }

    #[inline]
    fn into_value(self) -> Result<Value, Failure> {
        Ok(Value::bytes(self))
    }

    #[inline]
    fn in_place(value: &Value) -> Option<&Self> {
        if let Value::Bytes(bytes) = value { Some(bytes) } else { None }
    }

    #[inline]
    fn in_place_mut(value: &mut Value) -> Option<&mut Self> {
        if let Value::Bytes(bytes) = value { Some(bytes) } else { None }
    }
}

impl HostType for Failure {
    fn ty() -> Type {
        Type::Failure
    }

    fn from_value(value: Value) -> Result<Self, Failure> {
        if let Value::Failure(failure) = value { Ok(*failure) } else { Err(mismatch(&Type::Failure, &value)) }
    }

    fn into_value(self) -> Result<Value, Failure> {
        Ok(Value::Failure(Box::new(self)))
    }
}

/// Converts like `T`; for recursive types.
impl<T: HostType> HostType for Box<T> {
    fn ty() -> Type {
        T::ty()
    }

    fn define(definitions: &mut Vec<TypeDefinition>) {
        T::define(definitions);
    }

    fn from_value(value: Value) -> Result<Self, Failure> {
        T::from_value(value).map(Box::new)
    }

    fn into_value(self) -> Result<Value, Failure> {
        (*self).into_value()
    }
}

/// A value of any type: the type parameter `a` of a generic function. For further parameters see [`Generic`].
impl HostType for Value {
    fn ty() -> Type {
        Type::Parameter("a".into())
    }

    #[inline]
    fn from_value(value: Value) -> Result<Self, Failure> {
        Ok(value)
    }

    #[inline]
    fn into_value(self) -> Result<Value, Failure> {
        Ok(self)
    }

    #[inline]
    fn in_place(value: &Value) -> Option<&Self> {
        Some(value)
    }

    #[inline]
    fn in_place_mut(value: &mut Value) -> Option<&mut Self> {
        Some(value)
    }

    #[inline]
    fn list_in_place(value: &Value) -> Option<&[Self]> {
        if let Value::List(elements) = value { elements.as_values() } else { None }
    }
}

/// A value of any type: the type parameter called `NAME`, such as `Generic<'k'>` for `k`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generic<const NAME: char>(pub Value);

impl<const NAME: char> HostType for Generic<NAME> {
    fn ty() -> Type {
        Type::Parameter(String::from(NAME).into())
    }

    #[inline]
    fn from_value(value: Value) -> Result<Self, Failure> {
        Ok(Generic(value))
    }

    #[inline]
    fn into_value(self) -> Result<Value, Failure> {
        Ok(self.0)
    }
}
