//! Values that come with their types, for functions that name the parts of any value, such as one that writes JSON.
//!
//! Values know no names: a record is its fields in order. A parameter of the type [`Typed`] takes a value of any type
//! that is plain through and through; the compiler, which knows the type, passes both as a pair ([`Passing::Typed`]),
//! and writes the type as the text of a [`TypeOf`], so that programs stay text:
//!
//! ```text
//! List(Link); record Link {slug: Text, of: Kind}; enum Kind {Plain(), Tagged(0: Text)}
//! ```
//!
//! [`Passing::Typed`]: crate::Passing::Typed

mod read;

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::convert::mismatch;
use crate::{Failure, Field, HostType, Text, Type, TypeDefinition, TypeShape, Value};

/// More types than this are not remembered on a thread; a program has one for each call.
const REMEMBERED_MAX: usize = 1_024;

/// A type and the definitions of all named types in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeOf {
    /// The type.
    pub ty: Type,
    /// The records and enums that it is made of, and those that these are made of.
    pub definitions: Vec<TypeDefinition>,
}

impl TypeOf {
    /// What the named type is; `None` for a name that is not in the type.
    #[must_use]
    pub fn shape(&self, name: &str) -> Option<&TypeShape> {
        self.definitions.iter().find(|definition| &*definition.name == name).map(|definition| &definition.shape)
    }

    /// The type that a text says.
    ///
    /// # Errors
    /// Says where the text is not what [`fmt::Display`] writes.
    pub fn read(text: &str) -> Result<TypeOf, Failure> {
        read::type_of(text)
    }
}

impl fmt::Display for TypeOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.ty)?;
        for definition in &self.definitions {
            let name = &definition.name;
            match &definition.shape {
                TypeShape::Record(fields) => {
                    write!(f, "; record {name} {{")?;
                    write_fields(f, fields)?;
                    f.write_str("}")?;
                }
                TypeShape::Enum(variants) => {
                    write!(f, "; enum {name} {{")?;
                    for (index, variant) in variants.iter().enumerate() {
                        write!(f, "{}{}(", if index == 0 { "" } else { ", " }, variant.name)?;
                        write_fields(f, &variant.fields)?;
                        f.write_str(")")?;
                    }
                    f.write_str("}")?;
                }
                TypeShape::Opaque { .. } => write!(f, "; opaque {name}")?,
            }
        }
        Ok(())
    }
}

fn write_fields(f: &mut fmt::Formatter<'_>, fields: &[Field]) -> fmt::Result {
    for (index, field) in fields.iter().enumerate() {
        write!(f, "{}{}: {}", if index == 0 { "" } else { ", " }, field.name, field.ty)?;
    }
    Ok(())
}

/// A value of the type parameter that `NAME` names, with what that type is.
#[derive(Clone, Debug)]
pub struct Typed<const NAME: char> {
    /// The value.
    pub value: Value,
    /// Its type.
    pub of: Arc<TypeOf>,
}

impl<const NAME: char> HostType for Typed<NAME> {
    const TYPED: bool = true;

    fn ty() -> Type {
        Type::Parameter(String::from(NAME).into())
    }

    fn from_value(value: Value) -> Result<Self, Failure> {
        let Value::Record(pair) = &value else { return Err(mismatch(&Self::ty(), &value)) };
        let [value, Value::Text(text)] = &**pair else { return Err(mismatch(&Self::ty(), &value)) };
        Ok(Typed { value: value.clone(), of: remembered(text)? })
    }

    fn into_value(self) -> Result<Value, Failure> {
        let of = self.of.to_string();
        Ok(Value::Record([self.value, Value::text(&of)].into()))
    }
}

thread_local! {
    /// The types that this thread has read.
    static READ: RefCell<IndexMap<Text, Arc<TypeOf>>> = RefCell::default();
}

/// The type that a text says, read once on each thread.
fn remembered(text: &Text) -> Result<Arc<TypeOf>, Failure> {
    READ.with_borrow_mut(|read| {
        if let Some(known) = read.get(text) {
            return Ok(known.clone());
        }
        if read.len() >= REMEMBERED_MAX {
            read.clear();
        }
        let of = Arc::new(TypeOf::read(text)?);
        read.insert(text.clone(), of.clone());
        Ok(of)
    })
}
