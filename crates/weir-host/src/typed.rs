//! Values with their types, for functions that need the names of fields and variants, such as those that write JSON.
//!
//! Values do not contain names: a record is the sequence of its fields. A parameter of type [`Typed`] accepts a value
//! of any type that contains no opaque parts. The compiler, which knows the type, passes both as a pair
//! ([`Passing::Typed`]), with the type as the text of a [`TypeOf`], so that programs can be printed:
//!
//! ```text
//! List(Link); record Link {slug: Text as "short-name" = "", of: Kind}; enum Kind {Plain(), Tagged(0: Text) as "tag"}
//! ```
//!
//! Conversely, a function that creates values of any type, such as one that reads JSON, has a parameter of type
//! [`TypeArgument`], which calls do not write: the compiler passes the type that the place of the call expects.
//!
//! [`Passing::Typed`]: crate::Passing::Typed

mod constant;
mod read;

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::convert::mismatch;
use constant::{ConstantText, QuotedName};

use crate::{Failure, Field, HostType, Passing, Text, Type, TypeDefinition, TypeShape, Value};

/// Maximum number of parsed types cached by a thread; a program has one for each call.
const REMEMBERED_MAX: usize = 1_024;

/// A type and the definitions of all named types in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeOf {
    /// The type.
    pub ty: Type,
    /// The definitions of the records and enums that the type mentions, directly or indirectly.
    pub definitions: Vec<TypeDefinition>,
}

impl Default for TypeOf {
    /// Returns the type `()`.
    fn default() -> Self {
        TypeOf { ty: Type::Unit, definitions: Vec::new() }
    }
}

impl TypeOf {
    /// Returns the shape of a named type; `None` if the type does not mention the name.
    #[must_use]
    pub fn shape(&self, name: &str) -> Option<&TypeShape> {
        self.definitions.iter().find(|definition| &*definition.name == name).map(|definition| &definition.shape)
    }

    /// Parses the text of a type.
    ///
    /// # Errors
    /// Fails if the text is not in the format of [`fmt::Display`]; the message gives the position.
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
                        write_external(f, variant.external.as_ref())?;
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
        write_external(f, field.external.as_ref())?;
        if let Some(default) = &field.default {
            write!(f, " = {}", ConstantText(default))?;
        }
    }
    Ok(())
}

fn write_external(f: &mut fmt::Formatter<'_>, name: Option<&Text>) -> fmt::Result {
    name.map_or(Ok(()), |name| write!(f, " as {}", QuotedName(name)))
}

/// A value together with its type, which is the type parameter called `NAME`.
#[derive(Clone, Debug)]
pub struct Typed<const NAME: char> {
    /// The value.
    pub value: Value,
    /// Its type.
    pub of: Arc<TypeOf>,
}

impl<const NAME: char> HostType for Typed<NAME> {
    const PASSING: Passing = Passing::Typed;

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

/// The arguments of a call that name no parameter of the function, as `order: 7` in `log.info("paid", order: 7)`: a record
/// together with its type, or `()` if there are none.
#[derive(Clone, Debug)]
pub struct NamedArguments(pub Typed<'n'>);

impl NamedArguments {
    /// The name of the record type of the arguments.
    pub const TYPE_NAME: &'static str = "arguments";
}

impl Default for NamedArguments {
    fn default() -> Self {
        NamedArguments(Typed { value: Value::Unit, of: Arc::default() })
    }
}

impl HostType for NamedArguments {
    const PASSING: Passing = Passing::Named;

    fn ty() -> Type {
        Typed::<'n'>::ty()
    }

    fn from_value(value: Value) -> Result<Self, Failure> {
        Typed::from_value(value).map(NamedArguments)
    }

    fn into_value(self) -> Result<Value, Failure> {
        self.0.into_value()
    }
}

/// The type that a call has for the type parameter called `NAME`, which the function's result mentions: for
/// `fn decode(text: &str, of: TypeArgument<'a'>) -> Result<Generic<'a'>, Failure>`, the type that is to be read.
#[derive(Clone, Debug)]
pub struct TypeArgument<const NAME: char>(pub Arc<TypeOf>);

impl<const NAME: char> HostType for TypeArgument<NAME> {
    const PASSING: Passing = Passing::TypeOf(NAME);

    fn ty() -> Type {
        Type::Text
    }

    fn from_value(value: Value) -> Result<Self, Failure> {
        let Value::Text(text) = &value else { return Err(mismatch(&Self::ty(), &value)) };
        remembered(text).map(TypeArgument)
    }

    fn into_value(self) -> Result<Value, Failure> {
        Ok(Value::text(&self.0.to_string()))
    }
}

thread_local! {
    /// The types that this thread has parsed.
    static READ: RefCell<IndexMap<Text, Arc<TypeOf>>> = RefCell::default();
}

/// Parses the text of a type, once on each thread.
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
