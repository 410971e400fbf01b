//! Arguments that carry their type: `http.json(post)` receives the post and the definition of `Post`.

use weir_host::{Text, Type, TypeDefinition, TypeOf, TypeShape, Value};
use weir_ir::expr::Atom;
use weir_ir::prim::Prim;
use weir_syntax::ast::Expr;
use weir_syntax::{Code, Diagnostic, Span};

use super::Lowering;
use crate::lang_items::{JSON_VALUE, SERVICE};
use crate::types::{fields_of, names_in};

impl Lowering<'_, '_> {
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
        let pair = Type::tuple(vec![of.ty.clone(), Type::Text]);
        self.prim(Prim::Record, vec![argument, Atom::Value(Value::text(&of.to_string()))], pair, span)
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
