//! Parser: tokens to a tree, by recursive descent. Each rule of the grammar is one function, with its syntax above it.
//!
//! Notation: `x?` is optional, `x*` is any number, `x,*` is any number separated by commas, `[a b]` is one of them.
//!
//! The parser never fails. It reports a token that does not fit once, puts an `Error` node or an empty name into the
//! tree, and continues: a list at its next element, a block at its next statement, a file at its next item. Brackets
//! are balanced beforehand ([`crate::balance`]), so recovery cannot leave the current bracket.
//!
//! Two limits protect the stack of every later pass: [`NESTING_MAX`] bounds the depth of nested rules, and
//! [`HEIGHT_MAX`] the height of the tree of one expression (a chain such as `a + b + c + …` grows without nesting).

mod bodies;
mod constraints;
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
mod tables;
mod texts;
mod types;

pub(crate) use texts::escape;

use crate::ast::{Comment, Expr, ExprId, ExprKind, FileIndex, Name, Path, Pattern, PatternId, PatternKind, Tree};
use crate::ast::{Visitor, walk_expr};
use crate::balance::balance;
use crate::dialect::translate;
use crate::lexer::{CommentPlace, DIAGNOSTICS_MAX, lex};
use crate::token::{Token, TokenKind};
use crate::{Code, Diagnostic, Parsed, SourceId, Span};
use std::sync::Arc;

/// Maximum nesting of brackets, blocks, operators, patterns and types.
pub const NESTING_MAX: u32 = 128;

/// Maximum height of the tree of an expression.
pub const HEIGHT_MAX: u16 = 256;

/// Parses a file. Never fails: errors are in the diagnostics.
#[must_use]
pub fn parse(source: SourceId, text: &str) -> Parsed {
    parse_file(source, text, FilePlace::default())
}

/// The place of a file in the text of its program.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FilePlace {
    /// Index of the file.
    pub file: FileIndex,
    /// Offset of its first byte.
    pub offset: u32,
}

/// Parses a file of a program; `text` is the text of the program up to the end of the file. Never fails: errors are in the
/// diagnostics.
#[must_use]
pub fn parse_file(source: SourceId, text: &str, place: FilePlace) -> Parsed {
    let lexed = lex(source, text, place.offset);
    let (tokens, report_substitution) = translate(source, text, lexed.tokens);
    let (tokens, mut diagnostics) = balance(source, text, tokens);
    diagnostics.extend(lexed.diagnostics.into_iter().chain(report_substitution));
    let mut parser = Parser::new(source, text, tokens, lexed.comments, diagnostics);
    parser.place = place;
    let tree = parser.file();
    parser.finish(tree)
}

/// Meaning of the brace in `Name {`. In the head of an `if`, `match` or loop it begins the body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BraceRole {
    RecordLiteral,
    Body,
}

struct Parser<'t> {
    source: SourceId,
    text: &'t str,
    tokens: Vec<Token>,
    /// Index of the next token.
    at: usize,
    comments: Vec<CommentPlace>,
    /// For each comment, true if it became documentation.
    comment_taken: Vec<bool>,
    diagnostics: Vec<Diagnostic>,
    /// The token of the last report about an unexpected token; it gets no second report.
    reported_at: Option<usize>,
    /// First token of the current item, statement or element.
    begun_at: usize,
    /// Number of nested rules.
    depth: u32,
    depth_reported: bool,
    /// Number of `else if` around the current position, each of which is a level.
    else_ifs: u32,
    braces: BraceRole,
    /// True if line ends have no meaning, as between `(` and `)`.
    line_ends_ignored: bool,
    /// Height of the tree of each expression so far.
    heights: Vec<u16>,
    /// Place of the file in the text.
    place: FilePlace,
    /// Number of the next pattern.
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
            else_ifs: 0,
            braces: BraceRole::RecordLiteral,
            line_ends_ignored: false,
            heights: Vec::new(),
            place: FilePlace::default(),
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

    // Lookahead.

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

    /// Returns true if the contextual keyword `word` comes next.
    fn at_word(&self, word: &str) -> bool {
        self.at(TokenKind::Word) && self.token_text() == word
    }

    /// Returns true if `word` comes next, followed by `kind` on its line.
    fn at_pair(&self, word: &str, kind: TokenKind) -> bool {
        self.at_word(word) && self.nth_kind(1) == kind && !self.nth(1).first_on_line
    }

    fn token_text(&self) -> &'t str {
        self.text_of(self.token())
    }

    fn text_of(&self, token: Token) -> &'t str {
        &self.text[token.start as usize..token.end as usize]
    }

    /// Returns true if the next token begins a line and line ends have a meaning.
    fn at_new_line(&self) -> bool {
        self.token().first_on_line && !self.line_ends_ignored
    }

    fn span(&self) -> Span {
        self.token().span(self.source)
    }

    /// Returns the range from `start` to the end of the previous token.
    fn since(&self, start: Span) -> Span {
        let end = self.previous_span().end;
        Span::new(self.source, start.start, end.max(start.start))
    }

    fn previous_span(&self) -> Span {
        match self.at.checked_sub(1) {
            Some(at) => self.tokens[at].span(self.source),
            None => Span::new(self.source, self.place.offset, self.place.offset),
        }
    }

    // Consuming tokens.

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

    /// Consumes `kind`, or reports that `what` was expected.
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

    /// Parses `word`; returns an empty name if there is none.
    fn name(&mut self, what: &str) -> Name {
        if self.at(TokenKind::Word) {
            return self.word();
        }
        // Before a colon or `=`, no construct goes on.
        let is_named = matches!(self.nth_kind(1), TokenKind::Colon | TokenKind::Equal);
        let is_meant = is_named || !self.peek().joins() && !self.at_new_line();
        if self.peek().is_reserved() && is_meant {
            self.reserved_word(what);
            return self.word();
        }
        self.unexpected(what);
        self.missing_name()
    }

    /// Parses a name, and checks that its first letter has the right case.
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

    /// Consumes the next token as a name, even a keyword.
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

    /// Parses the name after a dot, where keywords are names too.
    fn member_name(&mut self) -> Name {
        if self.at(TokenKind::Word) || (self.peek().is_reserved() && !self.token().first_on_line) {
            return self.word();
        }
        self.unexpected("a name after the dot");
        self.missing_name()
    }

    // Nodes.

    /// Creates an expression from `start` to here, or an `Error` if its tree would be too high.
    fn expr(&mut self, start: Span, kind: ExprKind) -> Expr {
        let span = self.since(start);
        let id = ExprId { file: self.place.file, index: self.heights.len() as u32 };
        let mut expr = Expr { id, kind, span, parenthesized: false };
        let height = 1 + child_height(&expr, &self.heights);
        if height > HEIGHT_MAX {
            self.too_high(span);
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
        Pattern { id: self.pattern_id(), kind, span: self.since(start) }
    }

    fn pattern_id(&mut self) -> PatternId {
        let id = PatternId { file: self.place.file, index: self.pattern_count };
        self.pattern_count += 1;
        id
    }

    // Limits and modes.

    /// Runs `rule` one level deeper. At [`NESTING_MAX`], skips its source and returns `None`.
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

    /// Reports an expression whose operators, calls or pipes are too many in a row.
    fn too_high(&mut self, span: Span) {
        self.reported_at = Some(self.at);
        if !std::mem::replace(&mut self.depth_reported, true) {
            let start = Span::new(span.source, span.start, span.start);
            self.report(
                Diagnostic::new(Code::NestingTooDeep, "this expression is too long")
                    .at(start, "begins here")
                    .note(format!("at most {HEIGHT_MAX} operators, calls and fields can follow one another"))
                    .hint("name parts of it with `let`, or put the operands into a list, as in `[a, b, c].sum()`"),
            );
        }
    }

    fn too_deep(&mut self, span: Span) {
        self.reported_at = Some(self.at);
        if !std::mem::replace(&mut self.depth_reported, true) {
            let limit = NESTING_MAX;
            let advice = match self.else_ifs * 2 > NESTING_MAX {
                true => "write a `match`: each `else if` is a level deeper than the one before",
                false => "name inner parts with `let` or `fn`",
            };
            let start = Span::new(span.source, span.start, span.start);
            self.report(
                Diagnostic::new(Code::NestingTooDeep, "nesting is too deep")
                    .at(start, "the limit is reached here")
                    .note(format!("at most {limit} levels can be nested"))
                    .hint(advice),
            );
        }
    }

    /// Runs `rule` with another meaning of braces and line ends, as inside a bracket.
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

/// Maximum number of reports of the same dialect syntax.
const REPEATED_MAX: u32 = 3;

fn limit_repeats(diagnostics: &mut Vec<Diagnostic>) {
    let mut seen = std::collections::BTreeMap::new();
    diagnostics.retain(|found| {
        let count: &mut u32 = seen.entry((found.code, found.message.clone())).or_default();
        *count += 1;
        found.code != Code::DialectSyntax || *count <= REPEATED_MAX
    });
}

/// Case of the first letter of a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LetterCase {
    Lower,
    Upper,
}

/// Returns the height of the highest child expression of `expr`.
fn child_height(expr: &Expr, heights: &[u16]) -> u16 {
    struct Highest<'h> {
        heights: &'h [u16],
        height: u16,
    }
    impl<'a> Visitor<'a> for Highest<'_> {
        fn expr(&mut self, expr: &'a Expr) {
            self.height = self.height.max(self.heights[expr.id.index as usize]);
        }
    }
    let mut highest = Highest { heights, height: 0 };
    walk_expr(&mut highest, expr);
    highest.height
}
