//! Signs of other languages, reported once each and put into our own, so that nothing else has to be said about them.
//!
//! What takes more than a look at the neighbouring tokens is in [`crate::parser`], and quotes and comments in
//! [`crate::lexer`].

use crate::lexer::DIAGNOSTICS_MAX;
use crate::token::{Token, TokenKind};
use crate::{Code, Diagnostic, SourceId, Span};

/// A diagnostic about something that has another form here, with the edit that gives it this form.
pub(crate) fn substitution(span: Span, dialect_form: &str, weir_form: &str) -> Diagnostic {
    Diagnostic::new(Code::DialectSyntax, format!("`{dialect_form}` is `{weir_form}` here"))
        .at(span, "of another language")
        .fix(format!("write `{weir_form}`"), span, weir_form)
}

/// The tokens with foreign signs put into ours, and what was reported on the way.
pub(crate) fn translate(source: SourceId, text: &str, tokens: Vec<Token>) -> (Vec<Token>, Vec<Diagnostic>) {
    if !tokens.windows(2).any(|pair| may_begin_dialect(pair[0], pair[1])) {
        return (tokens, Vec::new());
    }
    let out = Vec::with_capacity(tokens.len());
    let mut translator = DialectTranslator {
        source,
        text,
        tokens,
        at: 0,
        out,
        line_begins: false,
        in_use: false,
        diagnostics: Vec::new(),
    };
    while translator.at < translator.tokens.len() {
        translator.take();
    }
    (translator.out, translator.diagnostics)
}

/// Whether something of another language may begin with a token. Of most files nothing does.
fn may_begin_dialect(token: Token, next: Token) -> bool {
    use TokenKind as T;
    let touches = next.start == token.end;
    match token.kind {
        T::Ampersand => true,
        T::Word => touches && (next.kind.opens_text() || next.kind == T::Bang),
        T::EqualEqual | T::NotEqual => touches && next.kind == T::Equal,
        T::Less => touches && next.kind == T::Greater,
        T::Colon => touches && next.kind == T::Colon,
        T::DotDot => touches && next.kind == T::Dot,
        _ => false,
    }
}

struct DialectTranslator<'t> {
    source: SourceId,
    text: &'t str,
    tokens: Vec<Token>,
    /// The index of the next token.
    at: usize,
    out: Vec<Token>,
    /// Whether a dropped token was the first one on its line.
    line_begins: bool,
    /// Whether the line uses modules; what it names of them is reported as a whole.
    in_use: bool,
    diagnostics: Vec<Diagnostic>,
}

/// The signs of two tokens without a space between them, with the token that they are here.
const PAIRS: &[(TokenKind, TokenKind, TokenKind, &str)] = &[
    (TokenKind::EqualEqual, TokenKind::Equal, TokenKind::EqualEqual, "=="),
    (TokenKind::NotEqual, TokenKind::Equal, TokenKind::NotEqual, "!="),
    (TokenKind::Less, TokenKind::Greater, TokenKind::NotEqual, "!="),
    (TokenKind::Colon, TokenKind::Colon, TokenKind::Dot, "."),
    (TokenKind::DotDot, TokenKind::Dot, TokenKind::DotDot, ".."),
];

/// Letters before a text that mean something elsewhere.
const PREFIXES: &[&str] = &["f", "r", "b", "u", "s", "rb", "raw"];

/// Macros of other languages that are something here.
const MACROS: &[(&str, &str)] = &[
    ("format", "put values into a text with braces: `\"{name}\"`"),
    ("assert", "write `expect condition` in a `test`"),
    ("assert_eq", "write `expect a == b` in a `test`"),
    ("todo", "give a value, or fail: `fail(\"not yet\")`"),
];

/// Macros that are functions here.
const CALLS: &[(&str, &str)] = &[
    ("bail", "fail"),
    ("dbg", "stdio.print"),
    ("eprint", "stdio.print_error"),
    ("eprintln", "stdio.print_error"),
    ("panic", "fail"),
    ("print", "stdio.print"),
    ("println", "stdio.print"),
];

impl DialectTranslator<'_> {
    fn take(&mut self) {
        let token = self.tokens[self.at];
        let pair = self.adjacent(0).and_then(|next| {
            PAIRS
                .iter()
                .find(|(first, second, ..)| *first == token.kind && *second == next.kind)
                .map(|pair| (next, pair))
        });
        match token.kind {
            TokenKind::Ampersand => self.ampersand(token),
            TokenKind::Colon if pair.is_some() && self.turbofish() => {}
            TokenKind::Word if self.adjacent(0).is_some_and(|next| next.kind.opens_text()) && self.is_prefix() => {
                let span = token.span(self.source);
                self.report_superfluous(span, "braces and escapes mean the same in every text");
                self.skip(1);
            }
            TokenKind::Word if self.at_macro() => self.macro_call(token),
            _ => match pair {
                Some((next, (_, _, weir_form, sign))) => {
                    let whole = Token { kind: *weir_form, end: next.end, ..token };
                    if !self.in_use {
                        self.report(substitution(whole.span(self.source), self.text_of(whole), sign));
                    }
                    self.push(whole, 2);
                }
                None => self.push(token, 1),
            },
        }
    }

    /// The token behind the next `ahead + 1` ones, if no space stands between.
    fn adjacent(&self, ahead: usize) -> Option<Token> {
        let before = self.tokens.get(self.at + ahead)?;
        self.tokens
            .get(self.at + ahead + 1)
            .copied()
            .filter(|next| next.start == before.end && before.start < before.end)
    }

    fn text_of(&self, token: Token) -> &str {
        &self.text[token.start as usize..token.end as usize]
    }

    /// Takes `count` tokens as this one.
    fn push(&mut self, token: Token, count: usize) {
        let first_on_line = token.first_on_line || std::mem::take(&mut self.line_begins);
        if first_on_line {
            self.in_use = token.kind == TokenKind::Use || ["import", "using"].contains(&self.text_of(token));
        }
        self.out.push(Token { first_on_line, ..token });
        self.at += count;
    }

    /// Drops `count` tokens.
    fn skip(&mut self, count: usize) {
        let dropped = self.tokens.iter().skip(self.at).take(count);
        self.line_begins |= dropped.into_iter().any(|token| token.first_on_line);
        self.at += count;
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < DIAGNOSTICS_MAX {
            self.diagnostics.push(diagnostic);
        }
    }

    fn report_superfluous(&mut self, span: Span, why: &str) {
        let dialect_form = self.text[span.range()].trim_end().to_owned();
        let diagnostic = Diagnostic::new(Code::DialectSyntax, format!("`{dialect_form}` is not needed here"))
            .at(span, why)
            .fix("take it out", span, "");
        self.report(diagnostic);
    }

    /// `a & b` is `a && b`, and `&a` is `a`.
    fn ampersand(&mut self, token: Token) {
        let ends_operand = |last: &Token| {
            let kind = last.kind;
            kind.is_closing() || matches!(kind, TokenKind::Word | TokenKind::Number | TokenKind::TextClose)
        };
        if self.out.last().is_some_and(ends_operand) && !token.first_on_line {
            self.report(substitution(token.span(self.source), "&", "&&"));
            return self.push(Token { kind: TokenKind::AndAnd, ..token }, 1);
        }
        let next = self.tokens.get(self.at + 1).copied();
        let mutable = next.filter(|next| next.kind == TokenKind::Word && self.text_of(*next) == "mut");
        let end = mutable.map_or(token.end, |mutable| (mutable.end + 1).min(self.text.len() as u32));
        let end = if self.text.is_char_boundary(end as usize) { end } else { token.end };
        self.report_superfluous(Span::new(self.source, token.start, end), "values need no mark to be shared");
        self.skip(1 + usize::from(mutable.is_some()));
    }

    /// `::<…>`, dropped up to the matching bracket on its line. Returns whether it stood here.
    fn turbofish(&mut self) -> bool {
        let rest = &self.tokens[self.at..];
        if rest.get(2).is_none_or(|token| token.kind != TokenKind::Less) {
            return false;
        }
        let Some(count) = angles(&rest[2..]) else { return false };
        let (start, end) = (rest[0].start, rest[count + 1].end);
        self.report_superfluous(Span::new(self.source, start, end), "types of a call are found by the compiler");
        self.skip(count + 2);
        true
    }

    fn is_prefix(&self) -> bool {
        PREFIXES.contains(&self.text_of(self.tokens[self.at]))
    }

    /// Whether `name!(` or `name![` comes next.
    fn at_macro(&self) -> bool {
        let bang = self.adjacent(0).is_some_and(|next| next.kind == TokenKind::Bang);
        let opens = |next: Token| matches!(next.kind, TokenKind::ParenOpen | TokenKind::BracketOpen);
        bang && self.adjacent(1).is_some_and(opens)
    }

    /// Reports `name!`, and leaves `name`, or of `vec!` the list alone.
    fn macro_call(&mut self, name: Token) {
        let span = Span::new(self.source, name.start, name.end + 1);
        let word = self.text_of(name).to_owned();
        if word == "vec" {
            self.report_superfluous(span, "a list is its elements in brackets");
            return self.skip(2);
        }
        let diagnostic =
            Diagnostic::new(Code::DialectSyntax, format!("there is no `{word}!` here")).at(span, "of another language");
        self.report(match MACROS.iter().find(|(dialect_form, _)| *dialect_form == word) {
            Some((_, advice)) => diagnostic.hint(*advice),
            None if let Some((_, weir_form)) = CALLS.iter().find(|(dialect_form, _)| *dialect_form == word) => {
                diagnostic.fix(format!("write `{weir_form}`"), span, *weir_form)
            }
            None => diagnostic.fix("there are no macros: call a function", Span { start: name.end, ..span }, ""),
        });
        self.push(name, 2);
    }
}

/// How many tokens `<…>` takes that stands at the beginning, if it ends on its line.
fn angles(tokens: &[Token]) -> Option<usize> {
    let mut open = 0u32;
    for (at, token) in tokens.iter().enumerate().take_while(|(at, token)| *at == 0 || !token.first_on_line) {
        match token.kind {
            TokenKind::Less => open += 1,
            TokenKind::Greater => open = open.saturating_sub(1),
            _ => {}
        }
        if open == 0 {
            return Some(at + 1);
        }
    }
    None
}
