//! Checks the parameters of routes: their names, their types, and what of a request they are read from.

use std::sync::Arc;

use indexmap::IndexMap;
use weir_host::{Field, Text, Type, TypeShape};
use weir_syntax::ast::{self, Expr, ExprKind, Name, ParameterLocation};
use weir_syntax::{Code, Diagnostic, Span};

use super::{Expected, TypeChecker};
use crate::constant::NotConstant;
use crate::lang_items::{FORM_PART, JSON_VALUE};
use crate::typed_tree::RouteInfo;
use crate::types::Ty;

/// The note on types that one word of a request can have.
const WORDS: &str =
    "one word can be a `Text`, `Int`, `Float`, `Bool`, `Size`, `Duration`, `Time`, or a variant without payload";

impl<'a> TypeChecker<'a, '_> {
    pub(super) fn route_parameter(
        &mut self,
        route_parameter: &'a ast::RouteParameter,
        names: &mut IndexMap<Arc<str>, Span>,
        info: &mut RouteInfo,
    ) {
        let parameter = &route_parameter.parameter;
        self.parameter_name(&parameter.name, names);
        self.name_in_request(route_parameter);
        let ty = self.resolve_type(&parameter.ty);
        self.parameter_type(route_parameter.place, &parameter.ty, &ty);
        info.defaults.push(parameter.default.as_ref().and_then(|default| {
            self.expr(default, Some(&Expected::new(ty.clone(), parameter.ty.span, "the parameter's type")));
            self.default(default)
        }));
        info.locals.push(self.bind(parameter.name.text.clone(), parameter.name.span, ty));
    }

    /// Reports a header field that no request has, and the default of a form, which no request takes.
    fn name_in_request(&mut self, route_parameter: &ast::RouteParameter) {
        let parameter = &route_parameter.parameter;
        let name = parameter.name.as_str();
        if route_parameter.place == ParameterLocation::Header && name.starts_with('_') {
            let field = name.replace('_', "-");
            let message = format!("`{name}` is the header field `{field}`, which no client sends");
            let hint = format!("the name of the parameter is that of the field: `{}`", name.trim_start_matches('_'));
            self.report(
                Diagnostic::new(Code::RouteParameter, message).at(parameter.name.span, "begins with `_`").hint(hint),
            );
        }
        if let (ParameterLocation::Form, Some(default)) = (route_parameter.place, &parameter.default) {
            let diagnostic = Diagnostic::new(Code::RouteParameter, "a form has no default")
                .at(default.span, "never used, because an empty body is a form without fields")
                .hint("give defaults to the fields of the record");
            self.report(diagnostic);
        }
    }

    pub(super) fn form_of_get(&mut self, span: Span) {
        let diagnostic = Diagnostic::new(Code::RouteParameter, "a `get` takes no form in its body")
            .at(span, "takes the body")
            .hint("browsers put the fields of such a form into the query: declare each as a parameter without `form`");
        self.report(diagnostic);
    }

    pub(super) fn body_before(&mut self, span: Span) {
        let diagnostic = Diagnostic::new(Code::RouteParameter, "`before` cannot take the body of a request")
            .at(span, "takes the body")
            .hint("let each route take the body that it expects");
        self.report(diagnostic);
    }

    fn default(&mut self, default: &Expr) -> Option<weir_host::Value> {
        match self.typed.constant(default) {
            Ok(value) => Some(value),
            Err(NotConstant { why, .. }) if why.is_empty() || matches!(default.kind, ExprKind::Error) => None,
            Err(NotConstant { span, why }) => {
                let message = "the default of a route's parameter must be a constant";
                let diagnostic = Diagnostic::new(Code::NotConstant, message)
                    .at(span, why)
                    .hint("make the parameter an `Option(…)` and choose the default in the body");
                self.report(diagnostic);
                None
            }
        }
    }

    fn parameter_name(&mut self, name: &Name, seen: &mut IndexMap<Arc<str>, Span>) {
        if let Some(first) = seen.insert(name.text.clone(), name.span)
            && !name.is_missing()
        {
            let diagnostic = Diagnostic::new(Code::NameTaken, format!("the parameter `{name}` is declared twice"))
                .at(name.span, "declared again here")
                .because(first, "first declared here")
                .hint("rename one of them");
            self.report(diagnostic);
        }
    }

    pub(super) fn second_body(&mut self, first: &mut Option<Span>, span: Span) {
        if let Some(first) = first {
            let diagnostic = Diagnostic::new(Code::RouteParameter, "a request has only one body")
                .at(span, "also takes it")
                .because(*first, "takes the body")
                .hint("combine both in one record");
            self.report(diagnostic);
        }
        first.get_or_insert(span);
    }

    fn parameter_type(&mut self, place: ParameterLocation, written: &ast::Type, ty: &Ty) {
        let (fits, takes) = match place {
            ParameterLocation::Path => (self.is_word(ty), WORDS.to_owned()),
            ParameterLocation::Query => {
                let is_word = match ty {
                    Ty::Option(part) | Ty::List(part) => self.is_word(part),
                    ty => self.is_word(ty),
                };
                (is_word, format!("{WORDS}; in the query also an `Option` or a `List` of these"))
            }
            ParameterLocation::Header | ParameterLocation::Cookie | ParameterLocation::UnprefixedCookie => {
                let optional = matches!(ty, Ty::Option(some) if self.is_word(some));
                (self.is_word(ty) || optional, format!("{WORDS}; outside the path also an `Option` of these"))
            }
            ParameterLocation::EncryptedCookie => {
                let takes = "an encrypted cookie can hold all that JSON can, and an `Option` of it, but no `Bytes`";
                (self.is_data(ty, &mut vec![JSON_VALUE.into()]), takes.to_owned())
            }
            ParameterLocation::Form => {
                let takes = "a form is a record, whose fields are the form's of the same names: data, or an `html.Part` for a \
                             file, also in an `Option` or a `List`";
                (self.is_form(ty), takes.to_owned())
            }
            ParameterLocation::Body => {
                let takes = "a body can be a `Text`, `Bytes`, or anything that JSON can hold, but no `Option` of an `Option` or \
                             of `()`: both would be `null`";
                // Arbitrary JSON is accepted as it is.
                (*ty == Ty::BYTES || self.is_data(ty, &mut vec![JSON_VALUE.into()]), takes.to_owned())
            }
        };
        if !fits && *ty != Ty::Error {
            let label = match place {
                ParameterLocation::Form => self
                    .field_of_no_form(ty)
                    .map(|field| format!("a form cannot hold its field `{}: {}`", field.name, field.ty)),
                ParameterLocation::Body | ParameterLocation::EncryptedCookie => self
                    .field_of_no_data(ty, &mut vec![JSON_VALUE.into()])
                    .map(|(of, field)| format!("JSON cannot hold the field `{}: {}` of `{of}`", field.name, field.ty)),
                _ => None,
            };
            let label = label.unwrap_or_else(|| "cannot be parsed from a request".to_owned());
            let mut diagnostic =
                Diagnostic::new(Code::RouteParameterType, format!("a request cannot hold a `{ty}` here"))
                    .at(written.span, label)
                    .note(takes);
            if place == ParameterLocation::Query && self.is_data(ty, &mut vec![JSON_VALUE.into()]) {
                diagnostic =
                    diagnostic.hint("read it from the body, as JSON: write `body` before the name of the parameter");
            }
            self.report(diagnostic);
        }
    }

    /// Returns whether the type can be parsed from one word of a request.
    fn is_word(&self, ty: &Ty) -> bool {
        if [Ty::TEXT, Ty::INT, Ty::FLOAT, Ty::BOOL, Ty::SIZE, Ty::DURATION, Ty::TIME].contains(ty) {
            return true;
        }
        let definition = ty.name().and_then(|name| self.typed.declarations.definition(self.context.library, name));
        match definition.map(|definition| &definition.shape) {
            Some(TypeShape::Enum(variants)) => variants.iter().all(|variant| variant.fields.is_empty()),
            _ => false,
        }
    }

    /// Returns whether the type is a record of data and files.
    fn is_form(&self, ty: &Ty) -> bool {
        self.fields_of_record(ty).is_some() && self.field_of_no_form(ty).is_none()
    }

    fn fields_of_record(&self, ty: &Ty) -> Option<&[Field]> {
        let definition = self.typed.declarations.definition(self.context.library, ty.name()?)?;
        if let TypeShape::Record(fields) = &definition.shape { Some(fields) } else { None }
    }

    /// Returns the first field of a record that is neither data nor a file.
    fn field_of_no_form(&self, ty: &Ty) -> Option<&Field> {
        let is_file = |ty: &Type| match ty {
            Type::Option(part) | Type::List(part) => **part == Type::named(FORM_PART),
            ty => *ty == Type::named(FORM_PART),
        };
        let fits = |field: &Field| is_file(&field.ty) || self.is_data(&Ty::fixed(&field.ty), &mut Vec::new());
        self.fields_of_record(ty)?.iter().find(|field| !fits(field))
    }

    /// Returns the first field in values of the type that is not plain data, with the name of the type that declares it.
    fn field_of_no_data(&self, ty: &Ty, seen: &mut Vec<Text>) -> Option<(Text, &Field)> {
        match ty {
            Ty::List(part) | Ty::Option(part) => self.field_of_no_data(part, seen),
            Ty::Map(pair) => self.field_of_no_data(&pair.1, seen),
            Ty::Tuple(parts) => parts.iter().find_map(|part| self.field_of_no_data(part, seen)),
            Ty::Plain(Type::Named(name)) if !seen.contains(name) => {
                seen.push(name.clone());
                let definition = self.typed.declarations.definition(self.context.library, name)?;
                let fields: Vec<&Field> = match &definition.shape {
                    TypeShape::Record(fields) => fields.iter().collect(),
                    TypeShape::Enum(variants) => variants.iter().flat_map(|variant| &variant.fields).collect(),
                    _ => return None,
                };
                let types = fields.into_iter().map(|field| (field, Ty::fixed(&field.ty)));
                let mut faulty = types.filter(|(_, ty)| !self.is_data(ty, &mut vec![JSON_VALUE.into()]));
                let (field, ty) = faulty.next()?;
                Some(self.field_of_no_data(&ty, seen).unwrap_or_else(|| (name.clone(), field)))
            }
            _ => None,
        }
    }

    /// Returns whether values of the type are plain data.
    pub(super) fn is_data(&self, ty: &Ty, seen: &mut Vec<Text>) -> bool {
        match ty {
            Ty::Function(_) | Ty::Unknown(_) => false,
            Ty::Error => true,
            Ty::Option(part) if matches!(**part, Ty::Option(_) | Ty::UNIT) => false,
            Ty::List(part) | Ty::Option(part) => self.is_data(part, seen),
            Ty::Map(pair) => self.is_word(&pair.0) && self.is_data(&pair.1, seen),
            Ty::Result(_) => false,
            Ty::Tuple(parts) => parts.iter().all(|part| self.is_data(part, seen)),
            Ty::Plain(Type::Named(name)) => {
                if seen.contains(name) {
                    return true;
                }
                seen.push(name.clone());
                match self.typed.declarations.definition(self.context.library, name).map(|definition| &definition.shape)
                {
                    Some(TypeShape::Record(fields)) => fields.iter().all(|f| self.is_data(&Ty::fixed(&f.ty), seen)),
                    Some(TypeShape::Enum(variants)) => {
                        variants.iter().flat_map(|v| &v.fields).all(|f| self.is_data(&Ty::fixed(&f.ty), seen))
                    }
                    _ => false,
                }
            }
            Ty::Plain(plain) => !matches!(plain, Type::Never | Type::Failure | Type::Bytes | Type::Parameter(_)),
        }
    }
}
