//! Conversion of collections: lists, maps, options, results and tuples, element by element.

use std::collections::BTreeMap;
use std::hash::Hash;

use indexmap::IndexMap;

use crate::convert::parts::{part, within};
use crate::convert::{Parts, mismatch};
use crate::{Elements, Entries, Failure, Generic, HostType, Outcome, Type, TypeDefinition, Value};

pub(super) fn list_from_value<T: HostType>(value: Value) -> Result<Vec<T>, Failure> {
    let Value::List(elements) = value else { return Err(mismatch(&T::list_type(), &value)) };
    let place = |(index, element)| part(element).map_err(|failure| within(format_args!("element {index}"), failure));
    elements.into_iter().enumerate().map(place).collect()
}

pub(super) fn list_into_value<T: HostType>(list: Vec<T>) -> Result<Value, Failure> {
    let mut failed = None;
    // The iterator knows its length, so that the elements are stored once, where they stay.
    let values = list.into_iter().map(|element| {
        element.into_value().unwrap_or_else(|failure| {
            failed.get_or_insert(failure);
            Value::Absent
        })
    });
    let elements = values.collect();
    failed.map_or(Ok(Value::List(elements)), Err)
}

/// A list, or `Bytes` for `u8`.
impl<T: HostType> HostType for Vec<T> {
    fn ty() -> Type {
        T::list_type()
    }

    fn define(definitions: &mut Vec<TypeDefinition>) {
        T::define(definitions);
    }

    fn from_value(value: Value) -> Result<Self, Failure> {
        T::list_from_value(value)
    }

    fn into_value(self) -> Result<Value, Failure> {
        T::list_into_value(self)
    }
}

impl<T: HostType> HostType for Option<T> {
    fn ty() -> Type {
        Type::option(T::ty())
    }

    fn define(definitions: &mut Vec<TypeDefinition>) {
        T::define(definitions);
    }

    fn from_value(value: Value) -> Result<Self, Failure> {
        match value {
            Value::Variant(Value::NONE, None) => Ok(None),
            Value::Variant(Value::SOME, Some(payload)) => Parts::new(payload).next().map(Some),
            other => Err(mismatch(&Self::ty(), &other)),
        }
    }

    fn into_value(self) -> Result<Value, Failure> {
        match self {
            None => Ok(Value::none()),
            Some(value) => value.into_value().map(Value::some),
        }
    }

    #[inline]
    fn into_outcome(self) -> Result<Outcome, Failure> {
        self.map_or(Ok(Outcome::None), |value| value.into_value().map(Outcome::Some))
    }
}

impl<T: HostType, E: HostType> HostType for Result<T, E> {
    fn ty() -> Type {
        Type::result(T::ty(), E::ty())
    }

    fn define(definitions: &mut Vec<TypeDefinition>) {
        T::define(definitions);
        E::define(definitions);
    }

    fn from_value(value: Value) -> Result<Self, Failure> {
        match value {
            Value::Variant(Value::OK, Some(payload)) => Parts::new(payload).next().map(Ok),
            Value::Variant(Value::ERR, Some(payload)) => Parts::new(payload).next().map(Err),
            other => Err(mismatch(&Self::ty(), &other)),
        }
    }

    fn into_value(self) -> Result<Value, Failure> {
        match self {
            Ok(value) => value.into_value().map(Value::ok),
            Err(error) => error.into_value().map(Value::err),
        }
    }
}

fn map_from_value<K: HostType, V: HostType, M: FromIterator<(K, V)>>(value: Value) -> Result<M, Failure> {
    let Value::Map(entries) = value else { return Err(mismatch(&Type::map(K::ty(), V::ty()), &value)) };
    if entries.is_empty() {
        return Ok(M::from_iter([]));
    }
    let entry = |(key, value): (Value, Value)| {
        let place = key.clone();
        let place = |failure: Failure| within(format_args!("entry {place}"), failure);
        Ok((K::from_value(key).map_err(place)?, V::from_value(value).map_err(place)?))
    };
    entries.into_iter().map(entry).collect()
}

fn map_into_value<K: HostType, V: HostType>(map: impl IntoIterator<Item = (K, V)>) -> Result<Value, Failure> {
    let map = map.into_iter();
    let mut entries = Entries::with_capacity(map.size_hint().0);
    for (key, value) in map {
        entries.insert(key.into_value()?, value.into_value()?);
    }
    Ok(Value::Map(entries))
}

/// Implements [`HostType`] for the map types of Rust that iterate in the same order in every run.
macro_rules! maps {
    ($($map:ident where K: $($bound:ident)+;)*) => {$(
        impl<K: HostType $(+ $bound)+, V: HostType> HostType for $map<K, V> {
            fn ty() -> Type {
                Type::map(K::ty(), V::ty())
            }

            fn define(definitions: &mut Vec<TypeDefinition>) {
                K::define(definitions);
                V::define(definitions);
            }

            fn from_value(value: Value) -> Result<Self, Failure> {
                map_from_value(value)
            }

            fn into_value(self) -> Result<Value, Failure> {
                map_into_value(self)
            }
        }
    )*};
}

maps! {
    IndexMap where K: Hash Eq;
    BTreeMap where K: Ord;
}

/// A list of any element type in place: `List(T)`.
impl HostType for Elements {
    fn ty() -> Type {
        Type::list(Value::ty())
    }

    fn from_value(value: Value) -> Result<Self, Failure> {
        if let Value::List(elements) = value { Ok(elements) } else { Err(mismatch(&Self::ty(), &value)) }
    }

    fn into_value(self) -> Result<Value, Failure> {
        Ok(Value::List(self))
    }

    #[inline]
    fn in_place(value: &Value) -> Option<&Self> {
        if let Value::List(elements) = value { Some(elements) } else { None }
    }

    #[inline]
    fn in_place_mut(value: &mut Value) -> Option<&mut Self> {
        if let Value::List(elements) = value { Some(elements) } else { None }
    }
}

/// A map of any key and value types in place: `Map(k, v)`, with keys [`Generic<'k'>`](crate::Generic) and values
/// `Generic<'v'>`.
impl HostType for Entries {
    fn ty() -> Type {
        Type::map(Generic::<'k'>::ty(), Generic::<'v'>::ty())
    }

    fn from_value(value: Value) -> Result<Self, Failure> {
        if let Value::Map(entries) = value { Ok(entries) } else { Err(mismatch(&Self::ty(), &value)) }
    }

    fn into_value(self) -> Result<Value, Failure> {
        Ok(Value::Map(self))
    }

    #[inline]
    fn in_place(value: &Value) -> Option<&Self> {
        if let Value::Map(entries) = value { Some(entries) } else { None }
    }

    #[inline]
    fn in_place_mut(value: &mut Value) -> Option<&mut Self> {
        if let Value::Map(entries) = value { Some(entries) } else { None }
    }
}

/// Implements [`HostType`] for tuples of two to four elements.
macro_rules! tuples {
    ($($($element:ident)+;)*) => {$(
        impl<$($element: HostType),+> HostType for ($($element,)+) {
            fn ty() -> Type {
                Type::tuple(vec![$($element::ty()),+])
            }

            fn define(definitions: &mut Vec<TypeDefinition>) {
                $($element::define(definitions);)+
            }

            fn from_value(value: Value) -> Result<Self, Failure> {
                let Value::Record(elements) = value else { return Err(mismatch(&Self::ty(), &value)) };
                let mut parts = Parts::new(elements);
                Ok(($(parts.next::<$element>()?,)+))
            }

            #[expect(non_snake_case, reason = "each element is named by its type parameter")]
            fn into_value(self) -> Result<Value, Failure> {
                let ($($element,)+) = self;
                Ok(Value::Record([$($element.into_value()?),+].into()))
            }
        }
    )*};
}

tuples! {
    A B;
    A B C;
    A B C D;
}
