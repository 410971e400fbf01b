//! Lowers patterns: tests them and binds their names.

use weir_host::{Type, TypeShape, Value};
use weir_ir::expr::{ArmTest, Atom};
use weir_ir::prim::Prim;
use weir_syntax::Span;
use weir_syntax::ast::{Expr, Literal, Pattern, PatternKind, RestPattern};

use super::{Binding, Lowering};
use crate::constant::literal_value;
use crate::typed_tree::LocalId;
use crate::types::Ty;

/// A subpattern, and the projection to its subject.
pub(super) struct Subpattern<'a> {
    pub(super) pattern: &'a Pattern,
    pub(super) at: Projection,
}

/// The position of a part in its whole.
#[derive(Clone, Copy)]
pub(super) enum Projection {
    /// A field of a variant.
    Payload(u32),
    /// A field of a tuple or record.
    Field(u32),
    /// An element of a list, counted from the front, from 0.
    Front(usize),
    /// An element of a list, counted from the back, from 1.
    Back(usize),
}

impl<'a> Lowering<'a, '_> {
    /// Binds the names of a pattern that is known to match.
    pub(super) fn bind(&mut self, pattern: &'a Pattern, value: Atom) {
        match &pattern.kind {
            PatternKind::Bind(_) => self.bind_local(pattern, value),
            PatternKind::Or(alternatives) if has_names(pattern) => self.bind_alternatives(alternatives, value),
            PatternKind::List { before, rest, after } => {
                self.bind_parts(pattern, &value);
                if let Some(RestPattern { binding: Some(binding), span }) = rest {
                    self.bind_rest(binding, value, (before.len(), after.len()), *span);
                }
            }
            _ => self.bind_parts(pattern, &value),
        }
    }

    fn bind_local(&mut self, pattern: &Pattern, value: Atom) {
        if let Some(local) = self.typed.pattern_local(pattern.id) {
            self.names.insert(local, Binding::Atom(value));
        }
    }

    fn bind_parts(&mut self, pattern: &'a Pattern, value: &Atom) {
        for part in self.parts_of(pattern) {
            if has_names(part.pattern) {
                let inner = self.part(&part, value.clone());
                self.hint_name(part.pattern, &inner);
                self.bind(part.pattern, inner);
            }
        }
    }

    fn bind_rest(&mut self, binding: &'a Pattern, value: Atom, (front, back): (usize, usize), span: Span) {
        let ty = self.pattern_type(binding.id);
        let count = |count: usize| Atom::Value(Value::Int(count as i64));
        let rest = match back {
            0 => self.prim(Prim::Rest, vec![value, count(front)], ty, span),
            _ => self.prim(Prim::Middle, vec![value, count(front), count(back)], ty, span),
        };
        self.bind(binding, rest);
    }

    /// Returns the subpatterns of a pattern.
    pub(super) fn parts_of(&self, pattern: &'a Pattern) -> Vec<Subpattern<'a>> {
        let ty = self.typed.pattern_type(pattern.id);
        let numbered = |patterns: &'a [Pattern], at: fn(usize) -> Projection| {
            patterns.iter().enumerate().map(move |(index, pattern)| Subpattern { pattern, at: at(index) })
        };
        match &pattern.kind {
            PatternKind::Variant { arguments, .. } => {
                let parts = arguments.iter().enumerate().map(|(position, argument)| {
                    let index = match &argument.name {
                        Some(name) => self.payload_index(pattern, ty, name.as_str()).unwrap_or(position),
                        None => position,
                    };
                    Subpattern { pattern: &argument.pattern, at: Projection::Payload(index as u32) }
                });
                parts.collect()
            }
            PatternKind::Record { fields, .. } => {
                let all = self.field_names(ty);
                let parts = fields.iter().map(|field| {
                    let index = all.iter().position(|name| name == field.name.as_str()).unwrap_or(0);
                    Subpattern { pattern: &field.pattern, at: Projection::Field(index as u32) }
                });
                parts.collect()
            }
            PatternKind::Tuple(parts) => numbered(parts, |index| Projection::Field(index as u32)).collect(),
            PatternKind::List { before, after, .. } => {
                let front = numbered(before, Projection::Front);
                let count = after.len();
                let back = after.iter().enumerate();
                let back = back.map(|(index, pattern)| Subpattern { pattern, at: Projection::Back(count - index) });
                front.chain(back).collect()
            }
            _ => Vec::new(),
        }
    }

    fn payload_index(&self, pattern: &Pattern, ty: &Ty, name: &str) -> Option<usize> {
        let tag = self.typed.pattern_tag(pattern.id)?;
        let definition = self.program.declarations.definition(self.context.library, ty.name()?)?;
        let TypeShape::Enum(variants) = &definition.shape else { return None };
        variants.get(tag as usize)?.fields.iter().position(|field| field.name.as_str() == name)
    }

    /// Projects a part out of its whole.
    pub(super) fn part(&mut self, part: &Subpattern<'a>, whole: Atom) -> Atom {
        let ty = self.pattern_type(part.pattern.id);
        let span = part.pattern.span;
        match part.at {
            Projection::Payload(index) => self.prim(Prim::Payload(index), vec![whole], ty, span),
            Projection::Field(index) => self.prim(Prim::Field(index), vec![whole], ty, span),
            Projection::Front(index) => {
                self.prim(Prim::Index, vec![whole, Atom::Value(Value::Int(index as i64))], ty, span)
            }
            Projection::Back(index) => {
                let length = self.prim(Prim::Length, vec![whole.clone()], Type::Int, span);
                let back = Atom::Value(Value::Int(index as i64));
                let at = self.prim(Prim::Subtract, vec![length, back], Type::Int, span);
                self.prim(Prim::Index, vec![whole, at], ty, span)
            }
        }
    }

    /// Returns whether the pattern matches, as a `Bool`; `None` if it always does.
    pub(super) fn test(&mut self, pattern: &'a Pattern, value: &Atom) -> Option<Atom> {
        let span = pattern.span;
        match &pattern.kind {
            PatternKind::Wildcard | PatternKind::Bind(_) | PatternKind::Error => None,
            PatternKind::Literal(literal) => self.equals(value, literal_value(literal), span),
            PatternKind::Text { value: text, .. } => self.equals(value, Value::text(text), span),
            PatternKind::Range { low, high, inclusive } => {
                self.in_range(value, low.as_ref(), high.as_ref(), *inclusive, span)
            }
            PatternKind::Variant { .. } => {
                let tag = self.typed.pattern_tag(pattern.id).unwrap_or(0);
                let is = self.prim(Prim::IsVariant(tag), vec![value.clone()], Type::Bool, span);
                self.boolean_and(Some(is), span, |lowering| lowering.test_parts(pattern, value))
            }
            PatternKind::List { before, rest, after } => {
                let wanted = before.len() + after.len();
                let length = self.prim(Prim::Length, vec![value.clone()], Type::Int, span);
                let prim = if rest.is_some() { Prim::GreaterOrEqual } else { Prim::Equal };
                let wanted = Atom::Value(Value::Int(wanted as i64));
                let fits = self.prim(prim, vec![length, wanted], Type::Bool, span);
                self.boolean_and(Some(fits), span, |lowering| lowering.test_parts(pattern, value))
            }
            PatternKind::Record { .. } | PatternKind::Tuple(_) => self.test_parts(pattern, value),
            PatternKind::Or(alternatives) => self.test_any(alternatives, value, span),
        }
    }

    fn test_parts(&mut self, pattern: &'a Pattern, value: &Atom) -> Option<Atom> {
        let parts = self.parts_of(pattern).into_iter().filter(|part| part.pattern.is_refutable());
        let parts: Vec<Subpattern<'a>> = parts.collect();
        self.test_all(&parts, value, pattern.span)
    }

    fn test_all(&mut self, parts: &[Subpattern<'a>], value: &Atom, span: Span) -> Option<Atom> {
        let (first, others) = parts.split_first()?;
        let inner = self.part(first, value.clone());
        let first = self.test(first.pattern, &inner);
        if others.is_empty() {
            return first;
        }
        self.boolean_and(first, span, |lowering| lowering.test_all(others, value, span))
    }

    fn test_any(&mut self, alternatives: &'a [Pattern], value: &Atom, span: Span) -> Option<Atom> {
        let (first, others) = alternatives.split_first()?;
        let first = self.test(first, value)?;
        if others.is_empty() {
            return Some(first);
        }
        Some(self.choose(
            first,
            &Type::Bool,
            span,
            |_| Self::constant_true(),
            |lowering| lowering.test_any(others, value, span).unwrap_or(Self::constant_true()),
        ))
    }

    fn equals(&mut self, value: &Atom, wanted: Value, span: Span) -> Option<Atom> {
        Some(self.prim(Prim::Equal, vec![value.clone(), Atom::Value(wanted)], Type::Bool, span))
    }

    fn in_range(
        &mut self,
        value: &Atom,
        low: Option<&Literal>,
        high: Option<&Literal>,
        inclusive: bool,
        span: Span,
    ) -> Option<Atom> {
        let least = low.map(|low| {
            let operands = vec![value.clone(), Atom::Value(literal_value(low))];
            self.prim(Prim::GreaterOrEqual, operands, Type::Bool, span)
        });
        self.boolean_and(least, span, |lowering| {
            let high = high?;
            let prim = if inclusive { Prim::LessOrEqual } else { Prim::Less };
            let operands = vec![value.clone(), Atom::Value(literal_value(high))];
            Some(lowering.prim(prim, operands, Type::Bool, span))
        })
    }

    /// Binds the names of the matching alternative, as a tuple of their values in it.
    fn bind_alternatives(&mut self, alternatives: &'a [Pattern], value: Atom) {
        let Some((first, _)) = alternatives.split_first() else { return };
        let mut names = Vec::new();
        names_of(self, first, &mut names);
        let types: Vec<Type> = names.iter().map(|(_, local)| self.local_type(*local)).collect();
        let whole = if types.len() == 1 { types[0].clone() } else { Type::Tuple(types.clone().into()) };
        let bound = self.alternative(alternatives, &value, &names, (&types, &whole));
        for (index, (_, local)) in names.iter().enumerate() {
            let atom = match types.len() {
                1 => bound.clone(),
                _ => self.prim(Prim::Field(index as u32), vec![bound.clone()], types[index].clone(), first.span),
            };
            self.names.insert(*local, Binding::Atom(atom));
        }
    }

    fn alternative(
        &mut self,
        alternatives: &'a [Pattern],
        value: &Atom,
        names: &[(&'a str, LocalId)],
        (types, whole): (&[Type], &Type),
    ) -> Atom {
        let Some((first, others)) = alternatives.split_first() else { return Atom::Value(Value::Unit) };
        let matches = if others.is_empty() { None } else { self.test(first, value) };
        let Some(matches) = matches else { return self.names_in(first, value, names, types) };
        self.choose(
            matches,
            whole,
            first.span,
            |lowering| lowering.names_in(first, value, names, types),
            |lowering| lowering.alternative(others, value, names, (types, whole)),
        )
    }

    fn names_in(&mut self, pattern: &'a Pattern, value: &Atom, names: &[(&'a str, LocalId)], types: &[Type]) -> Atom {
        self.bind(pattern, value.clone());
        let mut own = Vec::new();
        names_of(self, pattern, &mut own);
        let atoms = names.iter().map(|(name, _)| {
            let local = own.iter().find(|(own, _)| own == name).map(|(_, local)| *local);
            match local.and_then(|local| self.names.get(&local)) {
                Some(Binding::Atom(atom)) => atom.clone(),
                _ => Atom::Value(Value::Unit),
            }
        });
        let atoms = atoms.collect();
        self.together(atoms, types, pattern.span)
    }

    /// Binds the names of a refutable pattern; `otherwise` exits if it does not match.
    pub(super) fn bind_or(&mut self, pattern: &'a Pattern, value: Atom, otherwise: &'a Expr) {
        if let Some(matches) = self.test(pattern, &value) {
            let unit = Atom::Value(Value::Unit);
            self.choose(matches, &Type::Unit, pattern.span, |_| unit, |lowering| lowering.expr(otherwise));
        }
        self.bind(pattern, value);
    }

    /// Returns the test of a switch arm for a flat pattern; `None` if the pattern is nested.
    pub(super) fn direct_test(&self, pattern: &Pattern) -> Option<ArmTest> {
        match &pattern.kind {
            PatternKind::Wildcard | PatternKind::Bind(_) => Some(ArmTest::Otherwise),
            PatternKind::Literal(literal) => Some(ArmTest::Value(literal_value(literal))),
            PatternKind::Text { value, .. } => Some(ArmTest::Value(Value::text(value))),
            PatternKind::Variant { arguments, .. } => {
                let shallow = !arguments.iter().any(|argument| argument.pattern.is_refutable());
                let tag = self.typed.pattern_tag(pattern.id)?;
                shallow.then_some(ArmTest::Tag(tag))
            }
            _ => (!pattern.is_refutable()).then_some(ArmTest::Otherwise),
        }
    }
}

/// Returns whether the pattern binds any name.
pub(super) fn has_names(pattern: &Pattern) -> bool {
    match &pattern.kind {
        PatternKind::Bind(_) => true,
        PatternKind::Variant { arguments, .. } => arguments.iter().any(|argument| has_names(&argument.pattern)),
        PatternKind::Record { fields, .. } => fields.iter().any(|field| has_names(&field.pattern)),
        PatternKind::Tuple(parts) | PatternKind::Or(parts) => parts.iter().any(has_names),
        PatternKind::List { before, rest, after } => {
            let rest = rest.as_ref().and_then(|rest| rest.binding.as_deref());
            before.iter().chain(after).chain(rest).any(has_names)
        }
        _ => false,
    }
}

fn names_of<'a>(lowering: &Lowering<'a, '_>, pattern: &'a Pattern, found: &mut Vec<(&'a str, LocalId)>) {
    match &pattern.kind {
        PatternKind::Bind(name) => {
            if let Some(local) = lowering.typed.pattern_local(pattern.id) {
                found.push((name.as_str(), local));
            }
        }
        PatternKind::Variant { arguments, .. } => {
            arguments.iter().for_each(|argument| names_of(lowering, &argument.pattern, found));
        }
        PatternKind::Record { fields, .. } => fields.iter().for_each(|field| names_of(lowering, &field.pattern, found)),
        PatternKind::Tuple(parts) => parts.iter().for_each(|part| names_of(lowering, part, found)),
        PatternKind::Or(parts) => parts.iter().take(1).for_each(|part| names_of(lowering, part, found)),
        PatternKind::List { before, rest, after } => {
            let rest = rest.as_ref().and_then(|rest| rest.binding.as_deref());
            before.iter().chain(after).chain(rest).for_each(|part| names_of(lowering, part, found));
        }
        _ => {}
    }
}
