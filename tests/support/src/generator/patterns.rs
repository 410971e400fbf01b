//! Random patterns, types and literals.

use super::{Generator, nowhere};
use std::sync::Arc;
use weir_syntax::ast::{
    FieldPattern, Literal, LiteralValue, Path, Pattern, PatternArgument, PatternId, PatternKind, RestPattern, Type,
    TypeKind,
};

impl Generator {
    pub(super) fn pattern(&mut self, depth: usize) -> Pattern {
        if self.chance(15) {
            let patterns = self.several(2, 3, |generator| generator.simple_pattern(depth));
            return pattern(PatternKind::Or(patterns));
        }
        self.simple_pattern(depth)
    }

    fn simple_pattern(&mut self, depth: usize) -> Pattern {
        let kind = match self.below(if depth == 0 { 5 } else { 10 }) {
            0 => PatternKind::Wildcard,
            1 => PatternKind::Bind(self.lower()),
            2 => PatternKind::Literal(self.literal()),
            3 => self.text_pattern(),
            4 => self.range(),
            5 => PatternKind::Variant {
                path: self.upper_path(),
                arguments: self.several(0, 3, |generator| generator.pattern_argument(depth - 1)),
            },
            6 => PatternKind::Record {
                path: self.upper_path(),
                fields: self.several(0, 3, |generator| generator.field_pattern(depth - 1)),
                rest: self.some(40, |_| nowhere()),
            },
            7 => {
                let least = if self.chance(20) { 0 } else { 2 };
                PatternKind::Tuple(
                    self.several(least, if least == 0 { 0 } else { 3 }, |generator| generator.pattern(depth - 1)),
                )
            }
            8 => self.list_pattern(depth),
            _ => return self.pattern(depth - 1),
        };
        pattern(kind)
    }

    fn pattern_argument(&mut self, depth: usize) -> PatternArgument {
        PatternArgument { name: self.some(30, Self::lower), pattern: self.pattern(depth), span: nowhere() }
    }

    fn field_pattern(&mut self, depth: usize) -> FieldPattern {
        let name = self.lower();
        let shorthand = self.chance(40);
        let inner = if shorthand { pattern(PatternKind::Bind(name.clone())) } else { self.pattern(depth) };
        FieldPattern { name, pattern: inner, shorthand, span: nowhere() }
    }

    fn list_pattern(&mut self, depth: usize) -> PatternKind {
        let before = self.several(0, 2, |generator| generator.pattern(depth - 1));
        let rest = self.some(50, |generator| {
            let binding = generator.some(60, |generator| Box::new(pattern(PatternKind::Bind(generator.lower()))));
            RestPattern { binding, span: nowhere() }
        });
        let after =
            if rest.is_some() { self.several(0, 2, |generator| generator.pattern(depth - 1)) } else { Vec::new() };
        PatternKind::List { before, rest, after }
    }

    fn text_pattern(&mut self) -> PatternKind {
        let value = self.characters();
        PatternKind::Text { raw: Arc::from(std::format!("\"{}\"", escaped(&value))), value: Arc::from(value) }
    }

    fn range(&mut self) -> PatternKind {
        let low = self.some(60, Self::plain_number);
        let inclusive = self.chance(50);
        let high =
            if inclusive || low.is_none() { Some(self.plain_number()) } else { self.some(50, Self::plain_number) };
        PatternKind::Range { low, high, inclusive }
    }

    fn plain_number(&mut self) -> Literal {
        let (value, raw) = self.pick(&[
            (LiteralValue::Int(0), "0"),
            (LiteralValue::Int(255), "0xff"),
            (LiteralValue::Int(-1_000), "-1_000"),
            (LiteralValue::Int(i64::MIN), "-9223372036854775808"),
            (LiteralValue::Float(1.5), "1.5"),
            (LiteralValue::Float(-2e-7), "-2e-7"),
        ]);
        Literal { value, raw: Arc::from(raw), span: nowhere() }
    }

    pub(super) fn literal(&mut self) -> Literal {
        if self.chance(50) {
            return self.plain_number();
        }
        let (value, raw) = self.pick(&[
            (LiteralValue::Bool(true), "true"),
            (LiteralValue::Bool(false), "false"),
            (LiteralValue::Size(65536), "64kb"),
            (LiteralValue::Duration(1_500_000_000), "1.5s"),
        ]);
        Literal { value, raw: Arc::from(raw), span: nowhere() }
    }

    pub(super) fn ty(&mut self, depth: usize) -> Type {
        let kind = match self.below(if depth == 0 { 2 } else { 5 }) {
            0 => TypeKind::Named { path: self.upper_path(), arguments: Vec::new() },
            1 => TypeKind::Named { path: Path { names: vec![self.lower()], span: nowhere() }, arguments: Vec::new() },
            2 => TypeKind::Named {
                path: self.upper_path(),
                arguments: self.several(1, 2, |generator| generator.ty(depth - 1)),
            },
            3 => {
                let count = self.pick(&[0, 2, 3]);
                TypeKind::Tuple(self.several(count, count, |generator| generator.ty(depth - 1)))
            }
            _ => TypeKind::Function {
                parameters: self.several(0, 2, |generator| generator.ty(depth - 1)),
                returns: self.some(60, |generator| Box::new(generator.ty(depth - 1))),
            },
        };
        Type { kind, span: nowhere() }
    }
}

pub(super) fn pattern(kind: PatternKind) -> Pattern {
    Pattern { id: PatternId { file: 0, index: 0 }, kind, span: nowhere() }
}

/// Returns the characters as they are written between quotes.
pub(super) fn escaped(value: &str) -> String {
    let mut out = String::new();
    for character in value.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0' => out.push_str("\\0"),
            '"' | '\\' | '{' => out.extend(['\\', character]),
            other => out.push(other),
        }
    }
    out
}
