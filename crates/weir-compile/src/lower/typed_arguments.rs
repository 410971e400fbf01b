//! Arguments that carry types: `http.json(post)` receives the post and the definition of `Post`, and `json.decode(text)` that
//! of the type that it is expected to create.

use weir_host::{Field, NamedArguments, Passing, Text, Type, TypeDefinition, TypeOf, TypeShape, Value};
use weir_ir::expr::Atom;
use weir_ir::prim::Prim;
use weir_syntax::ast::{Argument, Expr};
use weir_syntax::{Code, Diagnostic, Span};

use super::{Binding, Lowering};
use crate::lang_items::{FORM_PART, JSON_VALUE, READ_BODY, READERS_OF_NAMED_TEXTS, SERVICE, WRITERS_OF_RECORDS};
use crate::types::{fields_of, names_in};

/// The hint for an `Option` whose values JSON writes like its `None`.
const ONE_NULL_HINT: &str =
    "`None` and the inner value are both `null` in JSON; declare an enum that names the cases, or read a `json.Value`";

impl<'a> Lowering<'a, '_> {
    /// Returns the pair of an argument and its type. Reports an opaque part, which the function could not read.
    pub(super) fn with_type(&mut self, argument: Atom, path: &Text, written: Option<&Expr>, span: Span) -> Atom {
        let of = self.type_of(written.map_or(Type::Unit, |written| self.ty(written)));
        let is_request = path.strip_prefix(SERVICE).is_some_and(|rest| rest.starts_with('.'));
        let closed = if is_request { closed_part_of_body(&of) } else { closed_part(&of) };
        if let Some(part) = closed {
            self.cannot_look_into(&of.ty, &part, path, span);
        } else if WRITERS_OF_RECORDS.contains(&path.as_str()) && !is_list_of_records(&of) {
            let message = format!("`{path}` cannot write values of the type `{}`", of.ty);
            let diagnostic = Diagnostic::new(Code::ClosedValue, message)
                .at(span, "no list of records")
                .hint("pass a list of records: the names of their fields are those of the columns");
            self.context.report_once(diagnostic);
        }
        self.typed_pair((argument, of.ty.clone()), &of, span)
    }

    /// Returns the pair of a value and its type.
    pub(super) fn typed_pair(&mut self, (value, ty): (Atom, Type), of: &TypeOf, span: Span) -> Atom {
        let pair = Type::tuple(vec![ty, Type::Text]);
        self.prim(Prim::Record, vec![value, Atom::Value(Value::text(&of.to_string()))], pair, span)
    }

    /// Returns the arguments that name no parameter of the host function, as one record with its type; `None` if there are
    /// none.
    pub(super) fn named_arguments(
        &mut self,
        path: &Text,
        arguments: &'a [Argument],
        values: &[Binding<'a>],
        span: Span,
    ) -> Option<Binding<'a>> {
        let parameters = &self.context.library.function(path)?.signature.parameters;
        let (_, others) = parameters.split_last().filter(|(last, _)| last.passing == Passing::Named)?;
        let is_parameter = |name: &str| others.iter().any(|parameter| parameter.name.as_str() == name);
        let (mut fields, mut atoms, mut definitions) = (Vec::new(), Vec::new(), Vec::new());
        for (argument, value) in arguments.iter().zip(values) {
            let Some(name) = argument.name.as_ref().filter(|name| !is_parameter(name.as_str())) else { continue };
            let ty = self.ty(&argument.value);
            let Binding::Atom(atom) = value else {
                self.cannot_look_into(&ty, &ty, path, argument.value.span);
                continue;
            };
            let of = TypeOf { definitions: self.definitions_in(&ty), ty: ty.clone() };
            if let Some(part) = closed_part(&of) {
                self.cannot_look_into(&of.ty, &part, path, argument.value.span);
            }
            self.no_shared(std::slice::from_ref(atom), argument.value.span);
            definitions.extend(of.definitions);
            fields.push(Field::new(name.as_str(), ty));
            atoms.push(atom.clone());
        }
        if fields.is_empty() {
            return None;
        }
        let ty = Type::tuple(fields.iter().map(|field| field.ty.clone()).collect());
        let of = record_of(fields, definitions);
        let record = self.prim(Prim::Record, atoms, ty.clone(), span);
        Some(Binding::Atom(self.typed_pair((record, ty), &of, span)))
    }

    /// Returns the type that a call has for the type parameter of the function's result. Reports a part of it that no text
    /// can represent.
    pub(super) fn type_argument(
        &mut self,
        parameter: char,
        (declared, actual): (&Type, &Type),
        path: &Text,
        span: Span,
    ) -> Atom {
        let of = self.type_of(type_for(parameter, declared, actual).unwrap_or(Type::Unit));
        if path.as_str() == READ_BODY {
            // The parameters of routes have been checked.
        } else if let Some(part) = unreadable_part(&of) {
            let place = if of.ty == part { String::new() } else { format!(", with `{part}` in it") };
            let message = format!("`{path}` cannot create values of the type `{part}`");
            let hint = match part {
                Type::Option(_) => ONE_NULL_HINT,
                _ => "read plain data: numbers, texts, times, lists, maps, records, enums",
            };
            let diagnostic = Diagnostic::new(Code::ClosedValue, message)
                .at(span, format!("expected to create `{}`{place}", of.ty))
                .hint(hint);
            self.context.report_once(diagnostic);
        } else if READERS_OF_NAMED_TEXTS.contains(&path.as_str()) && !has_names(&of) {
            let message = format!("`{path}` cannot create values of the type `{}`", of.ty);
            let diagnostic = Diagnostic::new(Code::ClosedValue, message)
                .at(span, "reads texts with names, such as those of columns")
                .hint("read records, whose fields have these names, or maps from `Text`");
            self.context.report_once(diagnostic);
        }
        Atom::Value(Value::text(&of.to_string()))
    }

    fn type_of(&self, ty: Type) -> TypeOf {
        let definitions = self.definitions_in(&ty);
        TypeOf { ty, definitions }
    }

    /// Returns the definitions of all named types in a type.
    fn definitions_in(&self, ty: &Type) -> Vec<TypeDefinition> {
        let mut found: Vec<TypeDefinition> = Vec::new();
        let mut wanted = Vec::new();
        names_in(ty, &mut wanted);
        wanted.reverse();
        while let Some(name) = wanted.pop() {
            if found.iter().any(|known| known.name == name) {
                continue;
            }
            if let Some(definition) = self.program.declarations.definition(self.context.library, &name) {
                found.push(TypeDefinition { doc: Text::default(), ..definition.clone() });
                for field in fields_of(&definition.shape) {
                    names_in(&field.ty, &mut wanted);
                }
            }
        }
        found
    }

    fn cannot_look_into(&mut self, ty: &Type, part: &Type, path: &Text, span: Span) {
        let place = if ty == part { format!("this is `{ty}`") } else { format!("this is `{ty}`, with `{part}` in it") };
        let diagnostic =
            Diagnostic::new(Code::ClosedValue, format!("`{path}` cannot take values of the type `{part}`"))
                .at(span, place)
                .hint("pass plain data: numbers, texts, lists, maps, records, enums");
        self.context.report_once(diagnostic);
    }
}

/// Returns the type of a record of named arguments; its definition is the first.
fn record_of(fields: Vec<Field>, mut definitions: Vec<TypeDefinition>) -> TypeOf {
    let name = Text::from(NamedArguments::TYPE_NAME);
    definitions.sort_by(|one, other| one.name.cmp(&other.name));
    definitions.dedup_by(|one, other| one.name == other.name);
    let record = TypeDefinition { name: name.clone(), doc: Text::default(), shape: TypeShape::Record(fields) };
    definitions.insert(0, record);
    TypeOf { ty: Type::named(&name), definitions }
}

/// Returns the type that stands for a type parameter, if the declared type mentions it.
fn type_for(parameter: char, declared: &Type, actual: &Type) -> Option<Type> {
    let of = |declared: &Type, actual: &Type| type_for(parameter, declared, actual);
    match (declared, actual) {
        (Type::Parameter(name), actual) => name.chars().eq([parameter]).then(|| actual.clone()),
        (Type::List(declared), Type::List(actual)) | (Type::Option(declared), Type::Option(actual)) => {
            of(declared, actual)
        }
        (Type::Map(declared), Type::Map(actual)) | (Type::Result(declared), Type::Result(actual)) => {
            of(&declared.0, &actual.0).or_else(|| of(&declared.1, &actual.1))
        }
        (Type::Tuple(declared), Type::Tuple(actual)) => {
            declared.iter().zip(&**actual).find_map(|(declared, actual)| of(declared, actual))
        }
        _ => None,
    }
}

/// Returns an opaque part of the type.
fn closed_part(of: &TypeOf) -> Option<Type> {
    part_of(of, closed_in)
}

/// Returns a part that the body of a test's request cannot have. It can be bytes, or a form with files.
fn closed_part_of_body(of: &TypeOf) -> Option<Type> {
    let mut of = of.clone();
    of.definitions.retain(|definition| &*definition.name != FORM_PART);
    closed_part(&of).filter(|_| of.ty != Type::Bytes)
}

/// Returns a part of the type that cannot be read from a text.
fn unreadable_part(of: &TypeOf) -> Option<Type> {
    part_of(of, |ty| unreadable_in(ty, of))
}

/// Returns the first part of the type that is opaque or that `find` returns.
fn part_of(of: &TypeOf, find: impl Fn(&Type) -> Option<Type>) -> Option<Type> {
    let fields = of.definitions.iter().flat_map(|definition| fields_of(&definition.shape));
    let mut opaque = of.definitions.iter().filter(|known| matches!(known.shape, TypeShape::Opaque { .. }));
    let closed_definition = opaque.find(|known| &*known.name != JSON_VALUE);
    let closed = closed_definition.map(|known| Type::named(&known.name));
    closed.or_else(|| std::iter::once(&of.ty).chain(fields.map(|field| &field.ty)).find_map(find))
}

fn unreadable_in(ty: &Type, of: &TypeOf) -> Option<Type> {
    match ty {
        Type::Function(_) | Type::Bytes | Type::Failure | Type::Result(_) | Type::Never | Type::Parameter(_) => {
            Some(ty.clone())
        }
        Type::Option(part) if is_null_itself(part) => Some(ty.clone()),
        Type::List(part) | Type::Option(part) => unreadable_in(part, of),
        Type::Map(pair) if is_key(&pair.0, of) => unreadable_in(&pair.1, of),
        Type::Map(_) => Some(ty.clone()),
        Type::Tuple(parts) => parts.iter().find_map(|part| unreadable_in(part, of)),
        _ => None,
    }
}

/// Returns true if a value of this type may be `null` in JSON, so that an `Option` of it could not be told from `None`.
fn is_null_itself(ty: &Type) -> bool {
    matches!(ty, Type::Option(_) | Type::Unit)
}

/// Returns true if the type is a record or a map from texts.
fn has_names(of: &TypeOf) -> bool {
    match &of.ty {
        Type::Named(name) => matches!(of.shape(name), Some(TypeShape::Record(_))),
        Type::Map(pair) => pair.0 == Type::Text,
        _ => false,
    }
}

/// Returns true if the type is a list of records.
fn is_list_of_records(of: &TypeOf) -> bool {
    let Type::List(element) = &of.ty else { return false };
    matches!(&**element, Type::Named(name) if matches!(of.shape(name), Some(TypeShape::Record(_))))
}

/// Returns true if a text can represent the keys of this type in an object.
fn is_key(ty: &Type, of: &TypeOf) -> bool {
    match ty {
        Type::Named(name) => matches!(of.shape(name), Some(TypeShape::Enum(variants))
            if variants.iter().all(|variant| variant.fields.is_empty())),
        Type::Text => true,
        ty => ty.is_scalar() && *ty != Type::Unit,
    }
}

fn closed_in(ty: &Type) -> Option<Type> {
    match ty {
        Type::Function(_) | Type::Bytes => Some(ty.clone()),
        Type::List(part) | Type::Option(part) => closed_in(part),
        Type::Map(pair) | Type::Result(pair) => closed_in(&pair.0).or_else(|| closed_in(&pair.1)),
        Type::Tuple(parts) => parts.iter().find_map(closed_in),
        _ => None,
    }
}
