//! Patterns.

use super::{LetterCase, Parser};
use crate::ast::{
    FieldPattern, Literal, Name, Path, Pattern, PatternArgument, PatternKind, RestPattern, TextPart, TextStyle,
};
use crate::token::TokenKind as T;
use crate::{Code, Diagnostic};
use std::sync::Arc;

impl Parser<'_> {
    /// `simple_pattern [| simple_pattern]*`
    pub(super) fn pattern(&mut self) -> Pattern {
        let start = self.span();
        let first = self.simple_pattern();
        if !self.at(T::Bar) {
            return first;
        }
        let mut patterns = vec![first];
        while self.eat(T::Bar).is_some() {
            patterns.push(self.simple_pattern());
        }
        self.pattern_node(start, PatternKind::Or(patterns))
    }

    /// Parses a pattern without a top-level `|`.
    pub(super) fn simple_pattern(&mut self) -> Pattern {
        let start = self.span();
        let kind = self.nested(Self::pattern_kind).unwrap_or(PatternKind::Error);
        self.pattern_node(start, kind)
    }

    fn pattern_kind(&mut self) -> PatternKind {
        match self.peek() {
            T::Underscore => {
                self.bump();
                PatternKind::Wildcard
            }
            T::Word => self.word_pattern(),
            T::DotDot if !matches!(self.nth_kind(1), T::Number | T::Minus) => self.misplaced_rest(),
            T::Number | T::Minus | T::DotDot | T::DotDotEqual | T::True | T::False => self.literal_pattern(),
            T::TextOpen | T::BlockTextOpen => self.text_pattern(),
            T::ParenOpen => self.tuple_pattern(),
            T::BracketOpen => self.list_pattern(),
            kind if kind.is_reserved() && (!kind.joins() || self.nth_kind(1) == T::Equal) && !self.at_new_line() => {
                self.reserved_word("a name");
                PatternKind::Bind(self.word())
            }
            _ => {
                self.unexpected("a pattern");
                PatternKind::Error
            }
        }
    }

    /// `name`, `Path`, `Path( argument,* )`, `Path { field,* }`
    fn word_pattern(&mut self) -> PatternKind {
        let path = self.path("a pattern");
        let same_line = !self.token().first_on_line;
        match self.peek() {
            T::ParenOpen if same_line => {
                self.check_case(path.last(), LetterCase::Upper, "a variant name");
                PatternKind::Variant { path, arguments: self.delimited(T::ParenOpen, Self::pattern_argument) }
            }
            T::BraceOpen if same_line && path.last().is_upper() => self.record_pattern(path),
            _ if path.names.len() == 1 && !path.last().is_upper() => PatternKind::Bind(path.last().clone()),
            _ => PatternKind::Variant { path, arguments: Vec::new() },
        }
    }

    /// `[name :]? pattern`
    fn pattern_argument(&mut self) -> PatternArgument {
        let start = self.span();
        let name = self.label();
        let pattern = self.pattern();
        PatternArgument { name, pattern, span: self.since(start) }
    }

    /// `name :`, if it comes next.
    pub(super) fn label(&mut self) -> Option<Name> {
        if !(self.at(T::Word) && self.nth_kind(1) == T::Colon) {
            return None;
        }
        let name = self.word();
        self.bump();
        Some(name)
    }

    /// `Path { [name [: pattern]? | ..],* }`
    fn record_pattern(&mut self, path: Path) -> PatternKind {
        let mut rest = None;
        let fields = self.braced(|parser| {
            if let Some(span) = parser.eat(T::DotDot) {
                rest = Some(span);
                return None;
            }
            Some(parser.field_pattern())
        });
        PatternKind::Record { path, fields: fields.into_iter().flatten().collect(), rest }
    }

    fn field_pattern(&mut self) -> FieldPattern {
        let start = self.span();
        let name = self.name("a field name");
        let shorthand = self.eat(T::Colon).is_none();
        let pattern = match shorthand {
            true => self.pattern_node(start, PatternKind::Bind(name.clone())),
            false => self.pattern(),
        };
        FieldPattern { name, pattern, shorthand, span: self.since(start) }
    }

    /// `( pattern,* )`; parentheses around one pattern have no meaning.
    fn tuple_pattern(&mut self) -> PatternKind {
        let mut patterns = self.delimited(T::ParenOpen, Self::pattern);
        match patterns.len() {
            1 => patterns.remove(0).kind,
            _ => PatternKind::Tuple(patterns),
        }
    }

    /// `[ [pattern | .. name?],* ]`
    fn list_pattern(&mut self) -> PatternKind {
        let (mut before, mut rest, mut after) = (Vec::new(), None, Vec::new());
        self.delimited(T::BracketOpen, |parser| {
            // `..3` is a range.
            if parser.at(T::DotDot) && !matches!(parser.nth_kind(1), T::Number | T::Minus) {
                let found = parser.rest_pattern();
                if rest.is_some() {
                    parser.second_rest(&found);
                } else {
                    rest = Some(found);
                }
                return;
            }
            let pattern = parser.pattern();
            if rest.is_some() { after.push(pattern) } else { before.push(pattern) }
        });
        PatternKind::List { before, rest, after }
    }

    /// `.. name?`
    fn rest_pattern(&mut self) -> RestPattern {
        let start = self.bump();
        let binding = self.at(T::Word).then(|| {
            let word = self.span();
            let name = self.word();
            self.check_case(&name, LetterCase::Lower, "a name");
            Box::new(self.pattern_node(word, PatternKind::Bind(name)))
        });
        RestPattern { binding, span: self.since(start) }
    }

    /// Reports `..` outside a list or record pattern.
    fn misplaced_rest(&mut self) -> PatternKind {
        let rest = self.rest_pattern();
        let diagnostic = Diagnostic::new(Code::UnexpectedToken, "`..` is allowed only in list and record patterns")
            .at(rest.span, "not a list or record pattern")
            .hint("write `_` for each ignored value");
        self.report(diagnostic);
        PatternKind::Error
    }

    fn second_rest(&mut self, rest: &RestPattern) {
        let diagnostic = Diagnostic::new(Code::UnexpectedToken, "a list pattern has at most one `..`")
            .at(rest.span, "second `..`")
            .note("two of them would be ambiguous");
        self.report(diagnostic);
    }

    /// `literal`, `literal? [.. | ..=] literal?`
    fn literal_pattern(&mut self) -> PatternKind {
        let low = (!matches!(self.peek(), T::DotDot | T::DotDotEqual)).then(|| self.literal());
        let inclusive = match self.peek() {
            // At the beginning of a line, `..` ignores the other fields of a record.
            T::DotDot if low.is_none() || !self.token().first_on_line => false,
            T::DotDotEqual => true,
            _ => return low.flatten().map_or(PatternKind::Error, PatternKind::Literal),
        };
        self.bump();
        let high = matches!(self.peek(), T::Number | T::Minus).then(|| self.literal()).flatten();
        if high.is_none() && (inclusive || low.is_none()) {
            self.unexpected("the end of the range");
        }
        PatternKind::Range { low: low.flatten(), high, inclusive }
    }

    /// `-? number`, `true`, `false`
    fn literal(&mut self) -> Option<Literal> {
        if self.at(T::Minus) && self.nth_kind(1) != T::Number {
            self.bump();
            self.unexpected("a number");
            return None;
        }
        self.signed_literal()
    }

    /// Parses a text literal without interpolation.
    fn text_pattern(&mut self) -> PatternKind {
        let text = self.text_literal();
        let value: String = text.parts.iter().map(literal_part).collect();
        let interpolation = text.parts.iter().find_map(|part| match part {
            TextPart::Expr(expr) => Some(expr.span),
            TextPart::Literal { .. } => None,
        });
        if let Some(span) = interpolation {
            let diagnostic = Diagnostic::new(Code::UnexpectedToken, "text in a pattern cannot contain interpolation")
                .at(span, "known only at run time")
                .hint("bind the text to a name and compare it in a guard: `text if text == …`");
            self.report(diagnostic);
        }
        let raw = match text.style {
            TextStyle::Line => Arc::from(&self.text[text.span.range()]),
            TextStyle::Block => Arc::from(format!("\"{}\"", super::texts::escape(&value))),
        };
        PatternKind::Text { value: Arc::from(value), raw }
    }
}

fn literal_part(part: &TextPart) -> &str {
    match part {
        TextPart::Literal { value, .. } => value,
        TextPart::Expr(_) => "",
    }
}
