//! Arguments that carry their type: `http.json(post)` receives the post and the definition of `Post`.

use weir_host::{Field, NamedArguments, Passing, Text, Type, TypeDefinition, TypeOf, TypeShape, Value};
use weir_ir::expr::Atom;
use weir_ir::prim::Prim;
use weir_syntax::ast::{Argument, Expr};
use weir_syntax::{Code, Diagnostic, Span};

use super::{Binding, Lowering};
use crate::lang_items::{JSON_VALUE, SERVICE};
use crate::types::{fields_of, names_in};

impl<'a> Lowering<'a, '_> {
    /// Returns the pair of an argument and its type. Reports an opaque part, which the function could not read.
    pub(super) fn with_type(&mut self, argument: Atom, path: &Text, written: Option<&Expr>, span: Span) -> Atom {
        let ty = written.map_or(Type::Unit, |written| self.ty(written));
        let definitions = self.definitions_in(&ty);
        let of = TypeOf { ty, definitions };
        // A request of a test can have any body.
        let is_body = of.ty == Type::Bytes && path.strip_prefix(SERVICE).is_some_and(|rest| rest.starts_with('.'));
        if let Some(part) = closed_part(&of).filter(|_| !is_body) {
            self.cannot_look_into(&of.ty, &part, path, span);
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
        parameters.last().filter(|last| last.passing == Passing::Named)?;
        let is_parameter = |name: &str| parameters.iter().any(|parameter| parameter.name.as_str() == name);
        let (mut fields, mut atoms, mut definitions) = (Vec::new(), Vec::new(), Vec::new());
        for (argument, value) in arguments.iter().zip(values) {
            let (Some(name), Binding::Atom(atom)) = (&argument.name, value) else { continue };
            if is_parameter(name.as_str()) {
                continue;
            }
            let ty = self.ty(&argument.value);
            let of = TypeOf { definitions: self.definitions_in(&ty), ty: ty.clone() };
            if let Some(part) = closed_part(&of) {
                self.cannot_look_into(&of.ty, &part, path, argument.value.span);
            }
            self.no_shared(std::slice::from_ref(atom), argument.value.span);
            definitions.extend(of.definitions);
            fields.push(Field { name: name.as_str().into(), ty });
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
            Diagnostic::new(Code::ClosedValue, format!("`{path}` cannot read values of the type `{part}`"))
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

/// Returns an opaque part of the type.
fn closed_part(of: &TypeOf) -> Option<Type> {
    let fields = of.definitions.iter().flat_map(|definition| fields_of(&definition.shape));
    let mut opaque = of.definitions.iter().filter(|known| matches!(known.shape, TypeShape::Opaque { .. }));
    let closed_definition = opaque.find(|known| &*known.name != JSON_VALUE);
    let closed = closed_definition.map(|known| Type::named(&known.name));
    closed.or_else(|| std::iter::once(&of.ty).chain(fields.map(|field| &field.ty)).find_map(closed_in))
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
