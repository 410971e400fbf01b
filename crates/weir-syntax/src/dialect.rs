//! Dialect recovery for tokens: recognises operators and words of other languages, reports each once, and replaces it
//! by its Weir form, so that it causes no further errors.
//!
//! Syntax that needs more than the neighbouring tokens is handled in [`crate::parser`], quotes and comments in
//! [`crate::lexer`].

use crate::lexer::DIAGNOSTICS_MAX;
use crate::token::{Token, TokenKind};
use crate::{Code, Diagnostic, SourceId, Span};

/// Creates a diagnostic for syntax of another language, with an edit that replaces it by its Weir form.
pub(crate) fn substitution(span: Span, dialect_form: &str, weir_form: &str) -> Diagnostic {
    Diagnostic::new(Code::DialectSyntax, format!("`{dialect_form}` is `{weir_form}` in Weir"))
        .at(span, "syntax of another language")
        .fix(format!("write `{weir_form}`"), span, weir_form)
}

/// Returns the tokens with dialect syntax replaced, and the diagnostics.
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

/// Returns true if dialect syntax may begin with this token. Most files contain none.
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
    /// Index of the next token.
    at: usize,
    out: Vec<Token>,
    /// True if a dropped token was the first of its line.
    line_begins: bool,
    /// True on a line that imports modules. A path of another language is reported there as a whole.
    in_use: bool,
    diagnostics: Vec<Diagnostic>,
}

/// Pairs of adjacent tokens that form one operator elsewhere, with the Weir token and its text.
const PAIRS: &[(TokenKind, TokenKind, TokenKind, &str)] = &[
    (TokenKind::EqualEqual, TokenKind::Equal, TokenKind::EqualEqual, "=="),
    (TokenKind::NotEqual, TokenKind::Equal, TokenKind::NotEqual, "!="),
    (TokenKind::Less, TokenKind::Greater, TokenKind::NotEqual, "!="),
    (TokenKind::Colon, TokenKind::Colon, TokenKind::Dot, "."),
    (TokenKind::DotDot, TokenKind::Dot, TokenKind::DotDot, ".."),
];

/// Prefixes of text literals in other languages.
const PREFIXES: &[&str] = &["f", "r", "b", "u", "s", "rb", "raw"];

/// Macros of other languages, with advice.
const MACROS: &[(&str, &str)] = &[
    ("format", "interpolate values with braces: `\"{name}\"`"),
    ("assert", "write `expect condition` in a `test`"),
    ("assert_eq", "write `expect a == b` in a `test`"),
    ("todo", "return a value, or fail: `fail(\"not yet\")`"),
];

/// Macros of other languages that are functions in Weir.
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
                self.report_superfluous(span, "interpolation and escapes work in every text literal");
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

    /// Returns the token after the next `ahead + 1` ones, if no space comes between.
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

    /// Emits `token` in place of the next `count` tokens.
    fn push(&mut self, token: Token, count: usize) {
        let first_on_line = token.first_on_line || std::mem::take(&mut self.line_begins);
        if first_on_line {
            self.in_use = token.kind == TokenKind::Use || ["import", "using"].contains(&self.text_of(token));
        }
        self.out.push(Token { first_on_line, ..token });
        self.at += count;
    }

    /// Drops the next `count` tokens.
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
        let diagnostic = Diagnostic::new(Code::DialectSyntax, format!("`{dialect_form}` is not needed in Weir"))
            .at(span, why)
            .fix("remove it", span, "");
        self.report(diagnostic);
    }

    /// Replaces `a & b` by `a && b`, and `&a` by `a`.
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
        self.report_superfluous(
            Span::new(self.source, token.start, end),
            "values are passed without a reference operator",
        );
        self.skip(1 + usize::from(mutable.is_some()));
    }

    /// Drops `::<…>` up to the matching bracket on its line. Returns false if there is none here.
    fn turbofish(&mut self) -> bool {
        let rest = &self.tokens[self.at..];
        if rest.get(2).is_none_or(|token| token.kind != TokenKind::Less) {
            return false;
        }
        let Some(count) = angles(&rest[2..]) else { return false };
        let (start, end) = (rest[0].start, rest[count + 1].end);
        self.report_superfluous(Span::new(self.source, start, end), "the compiler infers the types of a call");
        self.skip(count + 2);
        true
    }

    fn is_prefix(&self) -> bool {
        PREFIXES.contains(&self.text_of(self.tokens[self.at]))
    }

    /// Returns true if `name!(` or `name![` comes next.
    fn at_macro(&self) -> bool {
        let bang = self.adjacent(0).is_some_and(|next| next.kind == TokenKind::Bang);
        let opens = |next: Token| matches!(next.kind, TokenKind::ParenOpen | TokenKind::BracketOpen);
        bang && self.adjacent(1).is_some_and(opens)
    }

    /// Reports `name!` and drops the `!`; of `vec!` it drops both.
    fn macro_call(&mut self, name: Token) {
        let span = Span::new(self.source, name.start, name.end + 1);
        let word = self.text_of(name).to_owned();
        if word == "vec" {
            self.report_superfluous(span, "a list literal is written in brackets");
            return self.skip(2);
        }
        let diagnostic = Diagnostic::new(Code::DialectSyntax, format!("Weir has no macro `{word}!`"))
            .at(span, "syntax of another language");
        self.report(match MACROS.iter().find(|(dialect_form, _)| *dialect_form == word) {
            Some((_, advice)) => diagnostic.hint(*advice),
            None if let Some((_, weir_form)) = CALLS.iter().find(|(dialect_form, _)| *dialect_form == word) => {
                diagnostic.fix(format!("write `{weir_form}`"), span, *weir_form)
            }
            None => diagnostic.fix("call a function instead", Span { start: name.end, ..span }, ""),
        });
        self.push(name, 2);
    }
}

/// Returns the number of tokens in the leading `<…>`, if it ends on its line.
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
