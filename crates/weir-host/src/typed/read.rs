//! Parser of the textual form of a type.

use super::TypeOf;
use crate::{Failure, Field, Text, Type, TypeDefinition, TypeShape, Variant};

/// Maximum nesting depth of types.
pub(super) const DEPTH_MAX: usize = 256;

/// Parses the text of a type.
pub(super) fn type_of(text: &str) -> Result<TypeOf, Failure> {
    let mut reader = TypeParser { text, at: 0, depth: 0 };
    let ty = reader.ty()?;
    let mut definitions = Vec::new();
    while reader.takes(";") {
        definitions.push(reader.definition()?);
    }
    if reader.rest().is_empty() { Ok(TypeOf { ty, definitions }) } else { Err(reader.expected("the end")) }
}

pub(super) struct TypeParser<'a> {
    text: &'a str,
    /// The offset of the next byte.
    pub(super) at: usize,
    pub(super) depth: usize,
}

impl<'a> TypeParser<'a> {
    /// Returns the whole text.
    pub(super) fn whole(&self) -> &'a str {
        self.text
    }

    /// Skips white space and returns the rest of the text.
    pub(super) fn rest(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    pub(super) fn expected(&self, what: &str) -> Failure {
        Failure::argument(format!("must be the text of a type: expected {what} at {}", self.at))
    }

    /// Skips a punctuation mark if it is next; returns `true` if it was.
    pub(super) fn takes(&mut self, mark: &str) -> bool {
        let is_next = self.rest().starts_with(mark);
        self.at += if is_next { mark.len() } else { 0 };
        is_next
    }

    pub(super) fn mark(&mut self, mark: &str) -> Result<(), Failure> {
        if self.takes(mark) { Ok(()) } else { Err(self.expected(mark)) }
    }

    /// Parses a name, which may contain dots.
    fn name(&mut self) -> Result<&'a str, Failure> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '.').unwrap_or(rest.len());
        self.at += end;
        if end == 0 { Err(self.expected("a name")) } else { Ok(&rest[..end]) }
    }

    /// Parses a comma-separated list up to the closing mark.
    pub(super) fn listed<T>(
        &mut self,
        close: &str,
        each: impl Fn(&mut Self) -> Result<T, Failure>,
    ) -> Result<Vec<T>, Failure> {
        let mut all = Vec::new();
        while !self.takes(close) {
            if !all.is_empty() {
                self.mark(",")?;
            }
            all.push(each(self)?);
        }
        Ok(all)
    }

    fn ty(&mut self) -> Result<Type, Failure> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.expected("less depth"));
        }
        let ty = if self.takes("(") { tuple(self.listed(")", TypeParser::ty)?) } else { self.named()? };
        self.depth -= 1;
        Ok(ty)
    }

    fn named(&mut self) -> Result<Type, Failure> {
        let name = self.name()?;
        if !self.takes("(") {
            return Ok(simple(name).unwrap_or_else(|| Type::named(name)));
        }
        Ok(match (name, self.listed(")", TypeParser::ty)?.as_slice()) {
            ("List", [part]) => Type::list(part.clone()),
            ("Option", [part]) => Type::option(part.clone()),
            ("Map", [key, value]) => Type::map(key.clone(), value.clone()),
            ("Result", [ok, err]) => Type::result(ok.clone(), err.clone()),
            _ => return Err(self.expected("a type with these parts")),
        })
    }

    fn definition(&mut self) -> Result<TypeDefinition, Failure> {
        let (kind, name) = (self.name()?, self.name()?);
        let shape = match kind {
            "record" => {
                self.mark("{")?;
                TypeShape::Record(self.listed("}", TypeParser::field)?)
            }
            "enum" => {
                self.mark("{")?;
                TypeShape::Enum(self.listed("}", TypeParser::variant)?)
            }
            "opaque" => TypeShape::Opaque { shareable: true },
            _ => return Err(self.expected("`record` or `enum`")),
        };
        Ok(TypeDefinition { name: name.into(), doc: Text::default(), shape })
    }

    fn field(&mut self) -> Result<Field, Failure> {
        let name = self.name()?.into();
        self.mark(":")?;
        let (ty, external) = (self.ty()?, self.external()?);
        let default = if self.takes("=") { Some(self.constant()?) } else { None };
        Ok(Field { name, ty, external, default })
    }

    fn variant(&mut self) -> Result<Variant, Failure> {
        let name = self.name()?.into();
        self.mark("(")?;
        let fields = self.listed(")", TypeParser::field)?;
        Ok(Variant { name, fields, external: self.external()? })
    }

    /// Parses `as "name"`, if it is next.
    fn external(&mut self) -> Result<Option<Text>, Failure> {
        if self.takes("as ") { self.quoted().map(Some) } else { Ok(None) }
    }
}

fn tuple(mut parts: Vec<Type>) -> Type {
    match (parts.len(), parts.pop()) {
        (1, Some(only)) => only,
        (_, Some(last)) => {
            parts.push(last);
            Type::tuple(parts)
        }
        (_, None) => Type::Unit,
    }
}

fn simple(name: &str) -> Option<Type> {
    const SIMPLE: [Type; 10] = [
        Type::Bool,
        Type::Int,
        Type::Float,
        Type::Text,
        Type::Bytes,
        Type::Time,
        Type::Duration,
        Type::Size,
        Type::Failure,
        Type::Never,
    ];
    SIMPLE.into_iter().find(|ty| ty.to_string() == name)
}
