//! Messages of the parser, each worded in one place.

use super::{LetterCase, Parser};
use crate::ast::{Expr, ExprKind, Name};
use crate::token::{Token, TokenKind};
use crate::{Code, Diagnostic, Span};

/// Words of other languages, with their Weir form.
const DIALECT_WORDS: &[(&str, &str)] = &[
    ("class", "record"),
    ("const", "let"),
    ("def", "fn"),
    ("func", "fn"),
    ("function", "fn"),
    ("import", "use"),
    ("interface", "record"),
    ("struct", "record"),
    ("switch", "match"),
    ("val", "let"),
    ("var", "let"),
    ("while", "loop"),
];

/// Words of SQL in a query, with advice.
const SQL_WORDS: &[(&str, &str)] = &[
    ("between", "write two comparisons: `low <= row.column && row.column <= high`"),
    ("distinct", "leave equal values out of the result of the query: `(for row in rows { row.column }).unique()`"),
    ("group", "group the rows of the query: `(for row in rows { row }).group_by(|row| row.column)`"),
    ("in", "ask the list: `[\"a\", \"b\"].contains(row.column)`"),
    ("join", "read the other row in the body, by its key: `for order in orders { users[order.user] }`"),
    ("like", "call `contains`, `starts_with` or `ends_with`: `row.column.starts_with(\"a\")`"),
    ("offset", PAGES),
    ("order", ORDER),
    ("orderby", ORDER),
    ("skip", PAGES),
    ("sort", ORDER),
    ("sorted", ORDER),
];

const ORDER: &str = "order the rows by a column: `order by row.column`";
const PAGES: &str = "read the rows in pages: `limit 20 after cursor`";

impl Parser<'_> {
    /// Reports that `what` was expected at the next token, unless this token has already been reported.
    pub(super) fn unexpected(&mut self, what: &str) {
        if self.reported_at.replace(self.at) == Some(self.at) || self.follows_invented_bracket() {
            return;
        }
        let mut diagnostic = Diagnostic::new(Code::UnexpectedToken, format!("expected {what}, found {}", self.found()))
            .at(self.visible_span(), format!("expected {what}"));
        if self.at(TokenKind::DotIndex) {
            let replacement = format!("0{}", self.token_text());
            diagnostic = diagnostic.fix(format!("write `{replacement}`"), self.span(), replacement);
        } else if what == "`{`" && self.at(TokenKind::Colon) {
            diagnostic = diagnostic.hint("put `{` here, and `}` after the last line of the body");
        } else if let (true, Some(advice)) = (what == "`{`", self.sql_advice()) {
            diagnostic = diagnostic.hint(advice);
        } else if what == "`,` or `)`" && self.at(TokenKind::Equal) && !self.line_broke_off() {
            let name = &self.text[self.previous_span().range()];
            diagnostic = diagnostic.hint(format!("name an argument with a colon: `{name}: …`"));
        } else if matches!(what, "an expression" | "a type" | "a pattern") && self.at_reserved_name() {
            diagnostic = diagnostic.hint(format!("`{}` is a reserved word, and no name", self.token_text()));
        } else if let Some((word, weir_form)) = self.dialect_word() {
            diagnostic = diagnostic.fix(format!("write `{weir_form}` for `{word}`"), self.span(), weir_form);
        }
        self.report(diagnostic);
    }

    /// Reports the `else` of a value where a body begins, and reads it as a part of the value.
    pub(super) fn else_in_head(&mut self, start: Span, value: Expr) -> Expr {
        if !self.at(TokenKind::Else) {
            return value;
        }
        let before = self.diagnostics.len();
        self.unexpected("`{`");
        if let Some(last) = self.diagnostics.get_mut(before) {
            *last = last.clone().hint("put a value with `else` into parentheses: `(value else { … })`");
        }
        self.bump();
        let (value, failure) = (Box::new(value), self.failure_name());
        let otherwise = Box::new(self.else_body());
        self.expr(start, ExprKind::Else { value, failure, otherwise })
    }

    /// Adds a hint to the report of a parameter without a type.
    pub(super) fn advise_type(&mut self, before: usize, name: &Name) {
        if let Some(last) = self.diagnostics.get_mut(before).filter(|last| last.code == Code::UnexpectedToken)
            && last.help.is_empty()
        {
            *last = last.clone().hint(format!("add its type: `{name}: Int`"));
        }
    }

    /// Reports that a statement is not followed by a new line.
    pub(super) fn missing_line_end(&mut self, statement: Span) {
        if self.reported_at.replace(self.at) == Some(self.at) {
            return;
        }
        let word = &self.text[statement.range()];
        if let Some(weir_form) = weir_word(word) {
            return self.report(
                Diagnostic::new(Code::UnexpectedToken, format!("`{word}` does not begin a statement"))
                    .at(statement, "not a Weir keyword")
                    .fix(format!("write `{weir_form}` for `{word}`"), statement, weir_form),
            );
        }
        if word == "html" && self.peek().opens_text() {
            let space = Span { start: statement.end, end: self.span().start, ..statement };
            if space.start == space.end {
                // The other quotes have been reported.
                return;
            }
            return self.report(
                Diagnostic::new(Code::UnexpectedToken, "a template begins with `html` directly before its quotes")
                    .at(self.visible_span(), "a text, and not a template")
                    .fix("remove the space", space, ""),
            );
        }
        let diagnostic = Diagnostic::new(Code::MissingLineEnd, format!("expected a new line, found {}", self.found()))
            .at(self.visible_span(), "this begins another statement")
            .because(statement, "the previous statement ends here");
        let follows_quote = statement.end == self.span().start && self.text[..statement.end as usize].ends_with('"');
        self.report(match follows_quote {
            true => diagnostic.hint("a quotation mark in a text is written `\\\"`; HTML can have `'` in its place"),
            false => diagnostic.fix("separate them with `;`", statement.at_end(), ";"),
        });
    }

    /// Returns true at a reserved word that begins no part of a construct around it, and so was meant as a name.
    fn at_reserved_name(&self) -> bool {
        let kind = self.peek();
        kind.is_reserved() && kind.joins() && !matches!(kind, TokenKind::Else | TokenKind::In)
    }

    /// Returns the advice for a word of SQL, and for a comma that only SQL has.
    fn sql_advice(&self) -> Option<&'static str> {
        match self.nth_kind(1) {
            TokenKind::Number if self.at(TokenKind::Comma) => return Some(PAGES),
            TokenKind::Word if self.at(TokenKind::Comma) && self.nth_kind(2) == TokenKind::In => {
                return Some("write a `for` in the body, or read the other row there by its key: `users[order.user]`");
            }
            _ => {}
        }
        let word = SQL_WORDS.iter().find(|(word, _)| *word == self.token_text());
        word.filter(|_| !self.at_new_line()).map(|(_, advice)| *advice)
    }

    pub(super) fn dialect_word(&self) -> Option<(&str, &'static str)> {
        let word = self.token_text();
        (self.at(TokenKind::Word)).then(|| weir_word(word).map(|weir_form| (word, weir_form))).flatten()
    }

    /// Returns true if the previous bracket was inserted by balancing. Its report explains what is missing here.
    fn follows_invented_bracket(&self) -> bool {
        let before = self.at.checked_sub(1).map(|at| self.tokens[at]);
        before.is_some_and(|token| token.kind.is_closing() && token.start == token.end)
    }

    /// Returns true if the line ended in the middle of an element, so that the missing part belongs to the end of the
    /// line.
    fn line_broke_off(&self) -> bool {
        self.token().first_on_line && self.at > self.begun_at && !self.at(TokenKind::End)
    }

    /// Describes the next token, for "found …".
    fn found(&self) -> String {
        let token = self.token();
        if self.line_broke_off() && !token.kind.is_closing() {
            return "the end of the line".to_owned();
        }
        match token.kind.description() {
            Some(description) => description.to_owned(),
            None if token.start == token.end => "the end of the line".to_owned(),
            None => format!("`{}`", shortened(self.token_text())),
        }
    }

    /// Returns the range of the next token, or the end of the previous one if the next is on another line.
    pub(super) fn visible_span(&self) -> Span {
        if self.at(TokenKind::End) || self.line_broke_off() { self.previous_span().at_end() } else { self.span() }
    }

    pub(super) fn reserved_word(&mut self, what: &str) {
        let word = self.token_text();
        self.reported_at = Some(self.at);
        self.report(
            Diagnostic::new(Code::ReservedWord, format!("`{word}` is a reserved word and cannot be {what}"))
                .at(self.span(), format!("expected {what}"))
                .suggest("choose another name", self.span(), format!("{word}_")),
        );
    }

    /// Reports a name whose first letter is in the wrong case.
    pub(super) fn check_case(&mut self, name: &Name, case: LetterCase, what: &str) {
        let Some(first) = name.text.chars().next() else { return };
        let (wrong, case_name) = match case {
            LetterCase::Lower => (first.is_uppercase(), "lower"),
            LetterCase::Upper => (!first.is_uppercase(), "upper"),
        };
        if !wrong {
            return;
        }
        let mended = match case {
            LetterCase::Lower => lower_case(name.as_str()),
            LetterCase::Upper => upper_case(name.as_str()),
        };
        self.report(
            Diagnostic::new(Code::NameCase, format!("{what} begins in {case_name} case"))
                .at(name.span, format!("`{name}` does not"))
                .fix(format!("rename it to `{mended}`"), name.span, mended),
        );
    }

    pub(super) fn record_in_head(&mut self, record: Span) {
        self.report(
            Diagnostic::new(Code::UnexpectedToken, "a record expression needs parentheses here")
                .at(self.span(), "this brace would begin the body")
                .because(record, "the record")
                .hint("put the record in parentheses"),
        );
    }

    pub(super) fn operator_after_pipe(&mut self, pipe: Span) {
        let symbol = self.token_text();
        self.report(
            Diagnostic::new(Code::UnexpectedToken, format!("`{symbol}` cannot follow a pipe"))
                .at(self.span(), "a pipe ends with a function")
                .because(pipe, "begins here")
                .hint("put the pipe in parentheses, or name its value with `let`"),
        );
    }

    /// Begins the report of an assignment; `None` if it is complete, because the target is a column of a row of a table.
    fn assignment_to_value(&mut self, target: &Expr) -> Option<Diagnostic> {
        let diagnostic = Diagnostic::new(Code::Assignment, "a value cannot be assigned again")
            .at(self.span(), "this would change a value")
            .because(target.span, "values are immutable");
        match self.change_of_row(&self.text[target.span.range()]) {
            Some(advice) => {
                self.report(diagnostic.hint(advice));
                None
            }
            None => Some(diagnostic),
        }
    }

    pub(super) fn assignment(&mut self, target: &Expr) {
        let Some(diagnostic) = self.assignment_to_value(target) else { return };
        let name = &self.text[target.span.range()];
        self.report(match &target.kind {
            ExprKind::Field { object, name } => {
                let object = &self.text[object.span.range()];
                diagnostic.hint(format!("create a new record: `let next = Name {{ ..{object}, {name}: … }}`"))
            }
            ExprKind::Index { object, .. } => {
                let object = &self.text[object.span.range()];
                match self.is_declared_shared(object) {
                    true => diagnostic.hint(format!("call a function of the shared map: `{object}.put(key, value)`")),
                    false if self.is_declared_table(object) => diagnostic
                        .hint(format!("`{object}.upsert(row)` writes a row, whether it is new or not"))
                        .hint(format!("`{object}.update(key, |row| …)` replaces one that is there")),
                    false => diagnostic
                        .hint("create a new list with `for`, or a new map with `map.with(key, value)`")
                        .hint(format!("declare the map `shared` if all flows change it: `{object}.put(key, value)`")),
                }
            }
            _ if self.is_declared_shared(name) => self.change_of_shared(diagnostic, name),
            _ => diagnostic
                .suggest("bind the new value to a name", target.span.at_start(), "let ")
                .hint("use `fold` if it depends on the previous value")
                .hint(format!("declare it `shared` if all flows change it: `{name}.set(…)`")),
        });
    }

    /// Reports `|row| row.field = …`: a closure returns the new value.
    pub(super) fn assignment_in_closure(&mut self, target: &Expr) {
        if matches!(target.kind, ExprKind::Index { .. }) {
            return self.assignment(target);
        }
        let Some(diagnostic) = self.assignment_to_value(target) else { return };
        let name = &self.text[target.span.range()];
        self.report(match &target.kind {
            ExprKind::Field { object, name } => {
                let object = &self.text[object.span.range()];
                diagnostic.hint(format!("return a new record of its type: `Name {{ ..{object}, {name}: … }}`"))
            }
            _ if self.is_declared_shared(name) => self.change_of_shared(diagnostic, name),
            _ => diagnostic.hint(format!("return the new value, without `{name} =`")),
        });
    }

    /// Returns the advice on a change of a column of a row of a table: `accounts[1].balance`.
    pub(super) fn change_of_row(&self, target: &str) -> Option<String> {
        let (table, rest) = target.split_once('[')?;
        let (_, columns) = rest.rsplit_once("].").or_else(|| rest.rsplit_once("]?."))?;
        let is_path = columns.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
        let column = columns.split('.').next().filter(|_| is_path)?;
        let advice =
            || format!("`{table}.update(key, |row| Name {{ ..row, {column}: … }})` changes a row that is there");
        self.is_declared_table(table).then(advice)
    }

    /// Adds the ways to change a shared value.
    pub(super) fn change_of_shared(&self, diagnostic: Diagnostic, name: &str) -> Diagnostic {
        diagnostic
            .hint(format!("call a function of the shared value: `{name}.set(…)` replaces it"))
            .hint(format!("`{name}.add(…)` adds to a number that other flows change, too"))
    }

    /// Returns whether the file declares a shared value of this name.
    pub(super) fn is_declared_shared(&self, name: &str) -> bool {
        let is_declaration = |pair: &[Token]| pair[0].kind == TokenKind::Shared && self.text_of(pair[1]) == name;
        self.tokens.windows(2).any(is_declaration)
    }

    /// Returns whether the file declares a table of this name.
    fn is_declared_table(&self, name: &str) -> bool {
        let is_declaration = |three: &[Token]| {
            self.text_of(three[0]) == "table" && self.text_of(three[1]) == name && three[2].kind == TokenKind::Colon
        };
        self.tokens.windows(3).any(is_declaration)
    }

    pub(super) fn misplaced(&mut self, span: Span, what: &str, belongs: &str) {
        self.report(
            Diagnostic::new(Code::MisplacedClause, format!("{what} is not allowed here"))
                .at(span, "misplaced")
                .hint(format!("move it {belongs}")),
        );
    }
}

fn weir_word(word: &str) -> Option<&'static str> {
    DIALECT_WORDS.iter().find(|(dialect_form, _)| *dialect_form == word).map(|(_, weir_form)| *weir_form)
}

/// Shortens the text of a token to 40 characters.
fn shortened(text: &str) -> String {
    const CHARACTERS_MAX: usize = 40;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn capitalized(word: &str) -> String {
    let mut characters = word.chars();
    let first = characters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(characters).collect()
}

fn lower_case(name: &str) -> String {
    let mut out = String::new();
    let mut after_lower = false;
    for (at, character) in name.chars().enumerate() {
        if character.is_uppercase() && at > 0 && after_lower {
            out.push('_');
        }
        after_lower = character.is_lowercase();
        out.extend(character.to_lowercase());
    }
    out
}

fn upper_case(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    words.map(capitalized).collect()
}
