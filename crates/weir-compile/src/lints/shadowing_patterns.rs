//! Shadowing patterns: warns of a name in a `match` that hides a local of the same type.
//!
//! A name in a pattern binds a new local. Who writes `limit => …` to compare with the local `limit` gets an arm that
//! matches everything.

use weir_syntax::ast::{Arm, Expr, ExprKind, Name, Pattern, PatternKind};
use weir_syntax::{Code, Diagnostic, Edit, Span};

use crate::typed_tree::{Local, Resolution, TypedTree};

/// The warnings of every pattern of a `match` whose name hides a local of the same type.
pub(super) struct ShadowingPatterns<'t> {
    text: &'t str,
    typed: &'t TypedTree,
    pub(super) found: Vec<Diagnostic>,
}

impl<'t> ShadowingPatterns<'t> {
    pub(super) fn new(text: &'t str, typed: &'t TypedTree) -> Self {
        ShadowingPatterns { text, typed, found: Vec::new() }
    }

    /// Looks at an expression, without its children.
    pub(super) fn expr(&mut self, expr: &Expr) {
        if let ExprKind::Match { value, arms } = &expr.kind {
            arms.iter().for_each(|arm| self.arm(value, arm));
        }
    }

    fn arm(&mut self, value: &Expr, arm: &Arm) {
        for (pattern, name) in bound_alone(&arm.pattern) {
            if let Some(hidden) = self.hidden(value, pattern) {
                let diagnostic = Diagnostic::new(
                    Code::ShadowingPattern,
                    format!("this binds a new `{name}` and does not compare with the one above"),
                )
                .at(name.span, format!("matches every `{}`", hidden.ty))
                .because(hidden.span, "this local is hidden");
                let advice = format!("to compare, write `other if other == {name}`; to bind, choose another name");
                self.found.push(match comparison(self.text, arm, name) {
                    Some(Edit { span, replacement }) => diagnostic.offer(advice, span, replacement),
                    None => diagnostic.hint(advice),
                });
            }
        }
    }

    /// Returns the local that the pattern hides, if it is not the matched value itself.
    fn hidden(&self, value: &Expr, pattern: &Pattern) -> Option<&Local> {
        let hidden = self.typed.local(*self.typed.of(pattern.id).hidden_locals.get(&pattern.id)?);
        if hidden.ty != *self.typed.pattern_type(pattern.id) {
            return None;
        }
        let matched = match self.typed.resolution(value.id) {
            Some(Resolution::Local(local)) => self.typed.local(*local).span == hidden.span,
            _ => false,
        };
        (!matched).then_some(hidden)
    }
}

/// Returns the edit that makes a guard compare with the hidden local; `None` if the arm uses the name that it would bind.
fn comparison(text: &str, arm: &Arm, name: &Name) -> Option<Edit> {
    let part = |start: u32, end: u32| text.get(start as usize..end as usize);
    let is_word = |character: char| character == '_' || character.is_alphanumeric();
    if part(arm.span.start, arm.span.end)?.split(|character| !is_word(character)).any(|word| word == "other") {
        return None;
    }
    let behind = part(name.span.end, arm.pattern.span.end)?;
    let mut replacement = format!("other{behind} if other == {name}");
    let mut end = arm.pattern.span.end;
    if let Some(guard) = &arm.guard {
        replacement.push_str(&format!(" && ({})", part(guard.span.start, guard.span.end)?));
        end = guard.span.end;
    }
    Some(Edit { span: Span { end, ..name.span }, replacement })
}

/// Returns the names that are the whole pattern, or the whole pattern of an element of a tuple.
fn bound_alone(pattern: &Pattern) -> Vec<(&Pattern, &Name)> {
    match &pattern.kind {
        PatternKind::Bind(name) => vec![(pattern, name)],
        PatternKind::Tuple(parts) => parts.iter().flat_map(bound_alone).collect(),
        _ => Vec::new(),
    }
}
