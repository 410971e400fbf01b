//! Checks patterns and binds their names.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_syntax::ast::{FieldPattern, Literal, Name, Pattern, PatternArgument, PatternKind, RestPattern};
use weir_syntax::{Code, Diagnostic, Span};

use super::expr::literal_type;
use super::{ExhaustivenessCheck, Expected, TypeChecker};
use crate::suggest::{listed, nearest};
use crate::typed_tree::{GenericCallee, LocalId, Resolution};
use crate::types::Ty;
use crate::weir_modules::WeirFunction;

impl<'a> TypeChecker<'a, '_> {
    /// Checks a pattern that must match every value of the type.
    pub(super) fn irrefutable_pattern(&mut self, pattern: &'a Pattern, ty: &Ty) {
        if self.pattern(pattern, ty) {
            self.matches.push(ExhaustivenessCheck::Irrefutable(pattern));
        }
    }

    /// Checks a pattern against the type of its subject and binds its names. Returns whether it has no errors.
    pub(super) fn pattern(&mut self, pattern: &'a Pattern, ty: &Ty) -> bool {
        let mut bound = BTreeMap::new();
        let said = self.context.reported();
        self.part(pattern, ty, &mut bound);
        self.context.reported() == said
    }

    fn part(&mut self, pattern: &'a Pattern, ty: &Ty, bound: &mut BoundNames) {
        if let Some(slot) = self.typed.of_mut(pattern.id).pattern_types.get_mut(pattern.id.index as usize) {
            *slot = ty.clone();
        }
        match &pattern.kind {
            PatternKind::Wildcard | PatternKind::Error => {}
            PatternKind::Bind(name) => self.bind_pattern(pattern, name, ty, bound),
            PatternKind::Literal(literal) => self.fits(pattern.span, literal_type(literal), ty),
            PatternKind::Text { .. } => self.fits(pattern.span, Ty::TEXT, ty),
            PatternKind::Range { low, high, .. } => self.range(pattern.span, low.as_ref(), high.as_ref(), ty),
            PatternKind::Variant { path, arguments } => self.variant_pattern(pattern, path, arguments, ty, bound),
            PatternKind::Record { path, fields, rest } => {
                let record = self.record_type(path);
                self.fits(path.span, record.clone(), ty);
                self.record_pattern(pattern.span, &record, fields, *rest, bound);
            }
            PatternKind::Tuple(parts) => self.tuple_pattern(pattern.span, parts, ty, bound),
            PatternKind::List { before, rest, after } => {
                self.list_pattern(pattern.span, before.iter().chain(after), rest.as_ref(), ty, bound);
            }
            PatternKind::Or(alternatives) => self.or_pattern(alternatives, ty, bound),
        }
    }

    fn bind_pattern(&mut self, pattern: &Pattern, name: &Name, ty: &Ty, bound: &mut BoundNames) {
        if name.is_missing() {
            return;
        }
        if let Some((first, _)) = bound.get(&name.text) {
            let diagnostic = Diagnostic::new(Code::BoundTwice, format!("`{name}` is bound twice in one pattern"))
                .at(name.span, "bound again here")
                .because(*first, "first bound here")
                .hint("rename one of them, or `_`");
            return self.report(diagnostic);
        }
        if let Some(hidden) = self.scope.find(name.as_str()) {
            self.typed.of_mut(pattern.id).hidden_locals.insert(pattern.id, hidden);
        }
        let local = self.bind(name.text.clone(), name.span, ty.clone());
        bound.insert(name.text.clone(), (name.span, local));
        self.typed.of_mut(pattern.id).pattern_locals.insert(pattern.id, local);
    }

    fn fits(&mut self, span: Span, found: Ty, ty: &Ty) {
        if self.inference.unify(&found, ty) {
            return;
        }
        let (found, wanted) = (self.inference.resolve(&found), self.inference.resolve(ty));
        let diagnostic =
            Diagnostic::new(Code::PatternType, format!("this pattern matches `{found}`, but the value is `{wanted}`"))
                .at(span, format!("matches `{found}` only"));
        let is_unwrapped = matches!(&wanted, Ty::Result(pair) if self.inference.unify(&found, &pair.0));
        self.report(match is_unwrapped {
            true => diagnostic.hint("unwrap the value first, with `?` or `else { … }`"),
            false => diagnostic,
        });
    }

    fn range(&mut self, span: Span, low: Option<&Literal>, high: Option<&Literal>, ty: &Ty) {
        for literal in low.into_iter().chain(high) {
            self.fits(literal.span, literal_type(literal), ty);
        }
        let ty = self.inference.shallow(ty);
        if ![Ty::INT, Ty::FLOAT, Ty::SIZE, Ty::DURATION, Ty::Error].contains(&ty) {
            self.fits(span, Ty::INT, &ty);
        }
    }

    fn variant_pattern(
        &mut self,
        pattern: &Pattern,
        path: &weir_syntax::ast::Path,
        arguments: &'a [PatternArgument],
        ty: &Ty,
        bound: &mut BoundNames,
    ) {
        let name = path.last();
        let variant = match path.qualifier() {
            [] => self.variant(name.as_str(), Some(ty)),
            names => self.qualified_variant(names, name),
        };
        let Some(variant) = variant else {
            if !name.is_missing() && !self.is_constant_pattern(path) {
                self.unknown_variant_of(name, ty);
            }
            arguments.iter().for_each(|argument| self.part(&argument.pattern, &Ty::Error, bound));
            return;
        };
        self.refer_variant(name, &variant);
        self.fits(path.span, variant.ty.clone(), ty);
        self.typed.of_mut(pattern.id).pattern_tags.insert(pattern.id, variant.tag);
        if arguments.len() != variant.fields.len() {
            self.payload_count(pattern.span, path, arguments.len(), variant.fields.len());
        }
        for (at, argument) in arguments.iter().enumerate() {
            let index = match &argument.name {
                Some(name) => variant.fields.iter().position(|(field, _)| field.as_str() == name.as_str()),
                None => Some(at),
            };
            let field = index.and_then(|index| variant.fields.get(index)).map_or(Ty::Error, |(_, ty)| ty.clone());
            if let (None, Some(name)) = (index, &argument.name) {
                self.no_payload(name, path);
            }
            self.part(&argument.pattern, &field, bound);
        }
    }

    /// Checks `Shape.Circle`, `image.Format.Png` or `image.Png`.
    pub(super) fn qualified_variant(
        &mut self,
        names: &[Name],
        variant: &Name,
    ) -> Option<super::names::ResolvedVariant> {
        if let Some(whole) = self.type_named(names) {
            return self.variant_of(&whole, variant.as_str());
        }
        let [module] = names else { return None };
        let module = self.module(module)?;
        let enums: Vec<_> = self.context.library.modules.get(&module)?.types.keys().cloned().collect();
        enums.iter().find_map(|whole| self.variant_of(whole, variant.as_str()))
    }

    fn unknown_variant_of(&mut self, name: &Name, ty: &Ty) {
        let ty = self.inference.resolve(ty);
        let known = self.variants_of(&ty);
        if known.is_empty() {
            return self.unknown_variant(name);
        }
        let mut diagnostic = Diagnostic::new(Code::UnknownVariant, format!("`{ty}` has no variant `{name}`"))
            .at(name.span, "no such variant");
        diagnostic = match nearest(name.as_str(), known.iter().map(String::as_str)) {
            Some(near) => diagnostic.suggest(format!("did you mean `{near}`?"), name.span, near),
            None => diagnostic.hint(format!("it has {}", listed(&known))),
        };
        self.report(diagnostic);
    }

    fn variants_of(&self, ty: &Ty) -> Vec<String> {
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        match ty {
            Ty::Option(_) => names(["Some", "None"]),
            Ty::Result(_) => names(["Ok", "Err"]),
            other => {
                let definition =
                    other.name().and_then(|name| self.typed.declarations.definition(self.context.library, name));
                match definition.map(|definition| &definition.shape) {
                    Some(weir_host::TypeShape::Enum(variants)) => {
                        variants.iter().map(|variant| variant.name.to_string()).collect()
                    }
                    _ => Vec::new(),
                }
            }
        }
    }

    fn payload_count(&mut self, span: Span, path: &weir_syntax::ast::Path, found: usize, wanted: usize) {
        let carries = match wanted {
            0 => "carries no value".to_owned(),
            1 => "carries 1 value".to_owned(),
            _ => format!("has {wanted} fields"),
        };
        let written = if wanted == 0 { path.to_string() } else { format!("{path}({})", vec!["_"; wanted].join(", ")) };
        let diagnostic =
            Diagnostic::new(Code::PatternArguments, format!("`{path}` {carries}, and the pattern has {found}"))
                .at(span, "wrong number of fields")
                .hint(format!("write `{written}`"));
        self.report(diagnostic);
    }

    fn no_payload(&mut self, name: &Name, path: &weir_syntax::ast::Path) {
        let diagnostic = Diagnostic::new(Code::UnknownField, format!("`{path}` has no field `{name}`"))
            .at(name.span, "no such field");
        self.report(diagnostic);
    }

    fn record_pattern(
        &mut self,
        span: Span,
        record: &Ty,
        fields: &'a [FieldPattern],
        rest: Option<Span>,
        bound: &mut BoundNames,
    ) {
        let all = self.fields_of(record);
        for field in fields {
            let found = self.field_of(record, field.name.as_str());
            if found.is_none() && *record != Ty::Error && !field.name.is_missing() {
                let diagnostic =
                    Diagnostic::new(Code::UnknownField, format!("`{record}` has no field `{}`", field.name))
                        .at(field.name.span, "no such field")
                        .hint(format!("it has {}", listed(&all)));
                self.report(diagnostic);
            }
            self.refer_field(record, &field.name);
            self.part(&field.pattern, &found.map_or(Ty::Error, |(_, ty)| ty), bound);
        }
        let missing: Vec<String> =
            all.into_iter().filter(|name| !fields.iter().any(|field| field.name.as_str() == name)).collect();
        if rest.is_none() && !missing.is_empty() {
            let diagnostic =
                Diagnostic::new(Code::PatternArguments, format!("this pattern omits {}", listed(&missing)))
                    .at(span, "not all fields are named")
                    .hint("add `..` to ignore the others");
            self.report(diagnostic);
        }
    }

    fn tuple_pattern(&mut self, span: Span, parts: &'a [Pattern], ty: &Ty, bound: &mut BoundNames) {
        if parts.is_empty() {
            return self.fits(span, Ty::UNIT, ty);
        }
        let types: Vec<Ty> = parts.iter().map(|_| self.inference.fresh()).collect();
        self.fits(span, Ty::tuple(types.clone()), ty);
        for (part, ty) in parts.iter().zip(types) {
            self.part(part, &ty, bound);
        }
    }

    fn list_pattern(
        &mut self,
        span: Span,
        parts: impl Iterator<Item = &'a Pattern>,
        rest: Option<&'a RestPattern>,
        ty: &Ty,
        bound: &mut BoundNames,
    ) {
        let element = self.inference.fresh();
        self.fits(span, Ty::list(element.clone()), ty);
        for part in parts {
            self.part(part, &element, bound);
        }
        if let Some(binding) = rest.and_then(|rest| rest.binding.as_deref()) {
            self.part(binding, &Ty::list(element), bound);
        }
    }

    /// Checks alternatives, which must bind the same names with the same types.
    fn or_pattern(&mut self, alternatives: &'a [Pattern], ty: &Ty, bound: &mut BoundNames) {
        let mut first: Option<BoundNames> = None;
        for alternative in alternatives {
            let mark = self.scope.mark();
            let mut own = BTreeMap::new();
            self.part(alternative, ty, &mut own);
            match &first {
                None => first = Some(own),
                Some(first) => {
                    // The names of the first alternative represent those of all.
                    self.scope.leave(mark);
                    self.same_names(alternative, first, &own);
                }
            }
        }
        bound.extend(first.unwrap_or_default());
    }

    fn same_names(&mut self, alternative: &Pattern, first: &BoundNames, own: &BoundNames) {
        let differ =
            first.keys().find(|name| !own.contains_key(*name)).or(own.keys().find(|name| !first.contains_key(*name)));
        if let Some(name) = differ.filter(|name| self.constant_declared(name).is_none()) {
            let diagnostic =
                Diagnostic::new(Code::AlternativesDiffer, "the alternatives of a pattern bind different names")
                    .at(alternative.span, format!("`{name}` is bound in only one of them"))
                    .hint("bind the same names in each");
            self.report(diagnostic);
        }
        for (name, (span, local)) in own {
            let Some((place, other)) = first.get(name) else { continue };
            let (ty, wanted) = (self.typed.local(*local).ty.clone(), self.typed.local(*other).ty.clone());
            self.agree(
                *span,
                ty,
                &Expected::new(wanted, *place, format!("`{name}` has this type in the first alternative")),
            );
        }
    }

    /// Resolves a path to a value or function; `None` if it does not start with a module or enum.
    pub(super) fn path_value(
        &mut self,
        expr: &'a weir_syntax::ast::Expr,
        path: &[Name],
        expected: Option<&Ty>,
    ) -> Option<Ty> {
        let (name, qualifier) = path.split_last()?;
        let first = qualifier.first()?;
        if self.type_named(qualifier).is_some() || (name.is_upper() && self.names_module(first)) {
            let Some(variant) = self.qualified_variant(qualifier, name) else {
                self.unknown_variant(name);
                return Some(Ty::Error);
            };
            return Some(self.variant_without_payload(expr, name, variant));
        }
        if qualifier.len() != 1 || !self.names_module(first) {
            return None;
        }
        let _ = expected;
        if let Some(at) = self.table_named(expr).and_then(|_| self.shared_named(expr)) {
            return Some(self.shared_as_value(expr, at));
        }
        if let Some(file) = self.module_file(first) {
            if let Some(at) = self.constant_of_file(file, first, name) {
                return Some(self.constant_named(expr, at, name.span));
            }
            return Some(match self.function_of_file(file, first, name) {
                Some(at) => self.function_value(expr, at, name.span),
                None => Ty::Error,
            });
        }
        if let Some(function) = self.weir_function_named(first, name) {
            return Some(self.weir_value(expr, function, name.span));
        }
        let Some(signature) = self.host_function(first, name) else { return Some(Ty::Error) };
        let mut parameters = crate::types::Substitution::new();
        let taken = signature.written().iter().map(|p| Ty::of(&p.ty, &mut parameters, &mut self.inference)).collect();
        let result = Ty::of(&signature.call_type(), &mut parameters, &mut self.inference);
        self.typed.resolve(expr.id, Resolution::Host(signature.path().into()));
        self.refer(name.span, crate::symbol::Symbol::HostFunction(signature.path().into()));
        self.touches(signature, name.span);
        Some(Ty::function(taken, result))
    }

    /// Resolves an expression to a function of a module that is written in Weir.
    fn weir_value(&mut self, expr: &weir_syntax::ast::Expr, function: WeirFunction<'a>, span: Span) -> Ty {
        let declared = function.declared();
        let taken = declared.parameters.iter().map(|parameter| parameter.ty.clone()).collect();
        let mut types = crate::types::Substitution::new();
        let ty = Ty::function(taken, declared.result.clone()).instantiated(&mut types, &mut self.inference);
        self.typed.resolve(expr.id, Resolution::Weir(function.path()));
        self.uses_weir(function, span);
        self.use_of_generic(GenericCallee::of_module(function), Some(expr.id), types, span);
        ty
    }
}

/// The names that a pattern has bound so far.
pub(super) type BoundNames = BTreeMap<Arc<str>, (Span, LocalId)>;

/// Returns whether the outermost form of the pattern is `Ok`, `Err`, `Some` or `None`. A following `else` then belongs
/// to the pattern, and does not unwrap the value.
pub(super) fn names_outcome(pattern: &Pattern) -> bool {
    match &pattern.kind {
        PatternKind::Variant { path, .. } => {
            path.qualifier().is_empty() && ["Ok", "Err", "Some", "None"].contains(&path.last().as_str())
        }
        PatternKind::Or(alternatives) => alternatives.iter().any(names_outcome),
        _ => false,
    }
}
