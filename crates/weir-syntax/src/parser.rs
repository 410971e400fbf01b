//! Tokens to a tree, by recursive descent: each rule of the grammar is one function, with its syntax above it.
//!
//! In the syntax, `x?` is optional, `x*` any number, `x,*` any number with commas between, `[a b]` one of them.
//!
//! The parser never fails. Where a token does not fit it reports that once, puts an `Error` node or an empty name into
//! the tree, and goes on; a list skips to its next element, a block to its next statement, a file to its next item.
//! Brackets are balanced beforehand ([`crate::balance`]), so skipping cannot leave the bracket that it is in.
//!
//! Two limits keep every later pass from overflowing its stack: [`NESTING_MAX`] bounds how deep the rules call each
//! other, [`HEIGHT_MAX`] how high the tree of one expression grows (a chain such as `a + b + c + …` grows without
//! nesting).

mod bodies;
mod control;
mod dialect;
mod docs;
mod expressions;
mod items;
mod literals;
mod messages;
mod patterns;
mod primary;
mod recovery;
mod services;
mod statements;
mod texts;
mod types;

pub(crate) use texts::escape;

use crate::ast::{Comment, Expr, ExprId, ExprKind, Name, Path, Pattern, PatternId, PatternKind, Tree};
use crate::ast::{Visitor, walk_expr};
use crate::balance::balance;
use crate::dialect::translate;
use crate::lexer::{CommentPlace, DIAGNOSTICS_MAX, lex};
use crate::token::{Token, TokenKind};
use crate::{Code, Diagnostic, Parsed, SourceId, Span};
use std::sync::Arc;

/// How deep brackets, blocks, operators, patterns and types may stand in each other.
pub const NESTING_MAX: u32 = 128;

/// How high the tree of an expression may be.
pub const HEIGHT_MAX: u16 = 256;

/// Parses a file. Never fails: what is wrong is in the diagnostics.
#[must_use]
pub fn parse(source: SourceId, text: &str) -> Parsed {
    let lexed = lex(source, text);
    let (tokens, report_substitution) = translate(source, text, lexed.tokens);
    let (tokens, mut diagnostics) = balance(source, text, tokens);
    diagnostics.extend(lexed.diagnostics.into_iter().chain(report_substitution));
    let mut parser = Parser::new(source, text, tokens, lexed.comments, diagnostics);
    let tree = parser.file();
    parser.finish(tree)
}

/// Whether `Name {` makes a record here. In the head of an `if`, `match` or loop the brace begins the body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BraceRole {
    RecordLiteral,
    Body,
}

struct Parser<'t> {
    source: SourceId,
    text: &'t str,
    tokens: Vec<Token>,
    /// The index of the next token.
    at: usize,
    comments: Vec<CommentPlace>,
    /// For each comment, whether it became documentation.
    comment_taken: Vec<bool>,
    diagnostics: Vec<Diagnostic>,
    /// The token that the last report about an unexpected token was for; it gets no second one.
    reported_at: Option<usize>,
    /// The first token of the item, statement or element that is being parsed.
    begun_at: usize,
    /// How many rules are being parsed in each other.
    depth: u32,
    depth_reported: bool,
    braces: BraceRole,
    /// Whether line ends mean nothing, as between `(` and `)`.
    line_ends_ignored: bool,
    /// For each expression so far, how high its tree is.
    heights: Vec<u16>,
    pattern_count: u32,
}

impl<'t> Parser<'t> {
    fn new(
        source: SourceId,
        text: &'t str,
        tokens: Vec<Token>,
        comments: Vec<CommentPlace>,
        diagnostics: Vec<Diagnostic>,
    ) -> Self {
        let comment_taken = vec![false; comments.len()];
        Self {
            source,
            text,
            tokens,
            at: 0,
            comments,
            comment_taken,
            diagnostics,
            reported_at: None,
            begun_at: 0,
            depth: 0,
            depth_reported: false,
            braces: BraceRole::RecordLiteral,
            line_ends_ignored: false,
            heights: Vec::new(),
            pattern_count: 0,
        }
    }

    fn finish(mut self, tree: Tree) -> Parsed {
        self.diagnostics.sort_by_key(|diagnostic| diagnostic.span().map(|span| (span.start, span.end)));
        limit_repeats(&mut self.diagnostics);
        let places = self.comments.iter().zip(&self.comment_taken).filter(|(_, taken)| !**taken);
        let comments = places.map(|(place, _)| self.comment(*place)).collect();
        Parsed { tree, diagnostics: self.diagnostics, comments }
    }

    fn comment(&self, place: CommentPlace) -> Comment {
        let span = Span::new(self.source, place.start, place.end);
        Comment { span, text: Arc::from(self.text[span.range()].trim_end()) }
    }

    // What comes next.

    fn token(&self) -> Token {
        self.tokens[self.at]
    }

    fn peek(&self) -> TokenKind {
        self.token().kind
    }

    fn nth(&self, ahead: usize) -> Token {
        let at = (self.at + ahead).min(self.tokens.len() - 1);
        self.tokens[at]
    }

    fn nth_kind(&self, ahead: usize) -> TokenKind {
        self.nth(ahead).kind
    }

    fn at(&self, kind: TokenKind) -> bool {
        self.peek() == kind
    }

    /// Whether the word `word`, which is not reserved, comes next.
    fn at_word(&self, word: &str) -> bool {
        self.at(TokenKind::Word) && self.token_text() == word
    }

    /// Whether `word` comes next, and `kind` behind it on its line.
    fn at_pair(&self, word: &str, kind: TokenKind) -> bool {
        self.at_word(word) && self.nth_kind(1) == kind && !self.nth(1).first_on_line
    }

    fn token_text(&self) -> &'t str {
        self.text_of(self.token())
    }

    fn text_of(&self, token: Token) -> &'t str {
        &self.text[token.start as usize..token.end as usize]
    }

    /// Whether the next token begins a line, where line ends mean something.
    fn at_new_line(&self) -> bool {
        self.token().first_on_line && !self.line_ends_ignored
    }

    fn span(&self) -> Span {
        self.token().span(self.source)
    }

    /// From `start` to the end of the token before the next one.
    fn since(&self, start: Span) -> Span {
        let end = self.previous_span().end;
        Span::new(self.source, start.start, end.max(start.start))
    }

    fn previous_span(&self) -> Span {
        match self.at.checked_sub(1) {
            Some(at) => self.tokens[at].span(self.source),
            None => Span::new(self.source, 0, 0),
        }
    }

    // Taking it.

    fn bump(&mut self) -> Span {
        let span = self.span();
        if self.peek() != TokenKind::End {
            self.at += 1;
        }
        span
    }

    fn eat(&mut self, kind: TokenKind) -> Option<Span> {
        self.at(kind).then(|| self.bump())
    }

    fn eat_word(&mut self, word: &str) -> Option<Span> {
        self.at_word(word).then(|| self.bump())
    }

    /// Takes `kind`, or reports that `what` was expected.
    fn expect(&mut self, kind: TokenKind, what: &str) -> Option<Span> {
        let span = self.eat(kind);
        if span.is_none() {
            self.unexpected(what);
        }
        span
    }

    fn expect_word(&mut self, word: &str) {
        if self.eat_word(word).is_none() {
            self.unexpected(&format!("`{word}`"));
        }
    }

    /// `word`; an empty name where there is none.
    fn name(&mut self, what: &str) -> Name {
        if self.at(TokenKind::Word) {
            return self.word();
        }
        if self.peek().is_reserved() && !self.peek().joins() && !self.at_new_line() {
            self.reserved_word(what);
            return self.word();
        }
        self.unexpected(what);
        self.missing_name()
    }

    /// A name whose first letter is of the case that its kind has.
    fn lower_name(&mut self, what: &str) -> Name {
        let name = self.name(what);
        self.check_case(&name, LetterCase::Lower, what);
        name
    }

    fn upper_name(&mut self, what: &str) -> Name {
        let name = self.name(what);
        self.check_case(&name, LetterCase::Upper, what);
        name
    }

    /// The next token as a name, whatever word it is.
    fn word(&mut self) -> Name {
        let text = Arc::from(self.token_text());
        Name { text, span: self.bump() }
    }

    fn missing_name(&self) -> Name {
        Name { text: Arc::from(""), span: self.previous_span().at_end() }
    }

    /// `name [. name]*`
    fn path(&mut self, what: &str) -> Path {
        let first = self.name(what);
        let mut names = vec![first];
        while self.at(TokenKind::Dot) && names.len() < NESTING_MAX as usize {
            self.bump();
            names.push(self.member_name());
        }
        let span = self.since(names[0].span);
        Path { names, span }
    }

    /// The name behind a dot, where reserved words are names too.
    fn member_name(&mut self) -> Name {
        if self.at(TokenKind::Word) || (self.peek().is_reserved() && !self.token().first_on_line) {
            return self.word();
        }
        self.unexpected("a name behind the dot");
        self.missing_name()
    }

    // Nodes.

    /// A new expression from `start` to here. Where its tree would be too high, an `Error` takes its place.
    fn expr(&mut self, start: Span, kind: ExprKind) -> Expr {
        let span = self.since(start);
        let mut expr = Expr { id: ExprId(self.heights.len() as u32), kind, span, parenthesized: false };
        let height = 1 + child_height(&expr, &self.heights);
        if height > HEIGHT_MAX {
            self.too_deep(span);
            expr.kind = ExprKind::Error;
            self.heights.push(1);
        } else {
            self.heights.push(height);
        }
        expr
    }

    fn error_expr(&mut self) -> Expr {
        let here = self.previous_span().at_end();
        self.expr(here, ExprKind::Error)
    }

    fn pattern_node(&mut self, start: Span, kind: PatternKind) -> Pattern {
        let id = PatternId(self.pattern_count);
        self.pattern_count += 1;
        Pattern { id, kind, span: self.since(start) }
    }

    // Limits and modes.

    /// Runs `rule` one level deeper; at [`NESTING_MAX`] skips what it would have read and gives nothing.
    fn nested<T>(&mut self, rule: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.depth >= NESTING_MAX {
            self.too_deep(self.span());
            self.skip_operand();
            return None;
        }
        self.depth += 1;
        let result = rule(self);
        self.depth -= 1;
        Some(result)
    }

    fn too_deep(&mut self, span: Span) {
        self.reported_at = Some(self.at);
        if !std::mem::replace(&mut self.depth_reported, true) {
            let limit = NESTING_MAX;
            let start = Span::new(span.source, span.start, span.start);
            self.report(
                Diagnostic::new(Code::NestingTooDeep, "this is nested too deep")
                    .at(start, "the limit is reached here")
                    .note(format!("at most {limit} levels may stand in each other"))
                    .hint("give inner parts names of their own with `let` or `fn`"),
            );
        }
    }

    /// Runs `rule` with other meanings of braces and line ends, as inside of a bracket.
    fn within_mode<T>(&mut self, braces: BraceRole, ignored: bool, rule: impl FnOnce(&mut Self) -> T) -> T {
        let saved = (self.braces, self.line_ends_ignored);
        (self.braces, self.line_ends_ignored) = (braces, ignored);
        let result = rule(self);
        (self.braces, self.line_ends_ignored) = saved;
        result
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < DIAGNOSTICS_MAX {
            self.diagnostics.push(diagnostic);
        }
    }
}

/// Something of another language is reported so often; nobody needs to be told of every arrow.
const REPEATED_MAX: u32 = 3;

fn limit_repeats(diagnostics: &mut Vec<Diagnostic>) {
    let mut seen = std::collections::BTreeMap::new();
    diagnostics.retain(|found| {
        let count: &mut u32 = seen.entry((found.code, found.message.clone())).or_default();
        *count += 1;
        found.code != Code::DialectSyntax || *count <= REPEATED_MAX
    });
}

/// The case of a name's first letter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LetterCase {
    Lower,
    Upper,
}

/// The height of the highest expression directly below `expr`.
fn child_height(expr: &Expr, heights: &[u16]) -> u16 {
    struct Highest<'h> {
        heights: &'h [u16],
        height: u16,
    }
    impl<'a> Visitor<'a> for Highest<'_> {
        fn expr(&mut self, expr: &'a Expr) {
            self.height = self.height.max(self.heights[expr.id.0 as usize]);
        }
    }
    let mut highest = Highest { heights, height: 0 };
    walk_expr(&mut highest, expr);
    highest.height
}
