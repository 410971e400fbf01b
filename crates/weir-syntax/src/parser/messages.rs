//! What the parser says: each kind of fault is worded in one place.

use super::{Case, Parser};
use crate::ast::Name;
use crate::token::{RESERVED_WORDS, TokenKind};
use crate::{Code, Diagnostic, Span};

/// Words of other languages, with what they are called here.
const FOREIGN_WORDS: &[(&str, &str)] = &[
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

impl Parser<'_> {
    /// Reports that `what` was expected where the next token stands, unless this token has had its report.
    pub(super) fn unexpected(&mut self, what: &str) {
        if self.reported_at.replace(self.at) == Some(self.at) {
            return;
        }
        let mut diagnostic = Diagnostic::new(Code::UnexpectedToken, format!("expected {what}, found {}", self.found()))
            .at(self.visible_span(), format!("expected {what}"));
        if self.at(TokenKind::DotIndex) {
            let replacement = format!("0{}", self.token_text());
            diagnostic = diagnostic.fix(format!("write `{replacement}`"), self.span(), replacement);
        } else if let Some((word, ours)) = self.foreign_word() {
            diagnostic = diagnostic.fix(format!("`{word}` is `{ours}` here"), self.span(), ours);
        }
        self.report(diagnostic);
    }

    /// Reports that something else than a new line follows a statement.
    pub(super) fn missing_line_end(&mut self, statement: Span) {
        if self.reported_at.replace(self.at) == Some(self.at) {
            return;
        }
        let found = self.found();
        let mut diagnostic = Diagnostic::new(Code::MissingLineEnd, format!("expected a new line, found {found}"))
            .at(self.visible_span(), "this begins another statement")
            .because(statement, "the statement before it ends here");
        let word = &self.text[statement.range()];
        diagnostic = match foreign(word) {
            Some(ours) => diagnostic.fix(format!("`{word}` is `{ours}` here"), statement, ours),
            None => diagnostic.fix("separate them with `;`", statement.at_end(), ";"),
        };
        self.report(diagnostic);
    }

    pub(super) fn foreign_word(&self) -> Option<(&str, &'static str)> {
        let word = self.token_text();
        (self.at(TokenKind::Word)).then(|| foreign(word).map(|ours| (word, ours))).flatten()
    }

    /// What the next token is, for "found …".
    fn found(&self) -> String {
        let token = self.token();
        match token.kind.description() {
            Some(description) => description.to_owned(),
            None if token.start == token.end => "the end of the line".to_owned(),
            None => format!("`{}`", shortened(self.token_text())),
        }
    }

    /// The next token's place; at the end of the file, the end of what is there.
    fn visible_span(&self) -> Span {
        if self.at(TokenKind::End) { self.previous_span().at_end() } else { self.span() }
    }

    pub(super) fn reserved_word(&mut self, what: &str) {
        let word = self.token_text();
        self.reported_at = Some(self.at);
        self.report(
            Diagnostic::new(Code::ReservedWord, format!("`{word}` is a reserved word and cannot be {what}"))
                .at(self.span(), format!("expected {what}"))
                .note(format!("reserved are {}", RESERVED_WORDS.join(", ")))
                .fix("give it another name", self.span(), format!("{word}_")),
        );
    }

    /// Reports a name whose first letter is in the wrong case.
    pub(super) fn check_case(&mut self, name: &Name, case: Case, what: &str) {
        let Some(first) = name.text.chars().next() else { return };
        let (wrong, case_name) = match case {
            Case::Lower => (first.is_uppercase(), "lower"),
            Case::Upper => (!first.is_uppercase(), "upper"),
        };
        if !wrong {
            return;
        }
        let mended = match case {
            Case::Lower => lower_case(name.as_str()),
            Case::Upper => upper_case(name.as_str()),
        };
        self.report(
            Diagnostic::new(Code::NameCase, format!("{what} begins in {case_name} case"))
                .at(name.span, format!("`{name}` does not"))
                .fix(format!("call it `{mended}`"), name.span, mended),
        );
    }

    pub(super) fn assignment(&mut self, target: Span) {
        self.report(
            Diagnostic::new(Code::Assignment, "a value cannot be assigned again")
                .at(self.span(), "this would change a value")
                .because(target, "values stay as they are")
                .fix("give the new value a name of its own", target.at_start(), "let ")
                .hint("use `fold` where it depends on the value before"),
        );
    }

    pub(super) fn misplaced(&mut self, span: Span, what: &str, belongs: &str) {
        self.report(
            Diagnostic::new(Code::MisplacedClause, format!("{what} has no meaning here"))
                .at(span, "not here")
                .hint(format!("put it {belongs}")),
        );
    }
}

fn foreign(word: &str) -> Option<&'static str> {
    FOREIGN_WORDS.iter().find(|(theirs, _)| *theirs == word).map(|(_, ours)| *ours)
}

/// A token's text for a message: at most 40 characters.
fn shortened(text: &str) -> String {
    const CHARACTERS_MAX: usize = 40;
    match text.char_indices().nth(CHARACTERS_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn lower_case(name: &str) -> String {
    let mut out = String::new();
    for (at, character) in name.chars().enumerate() {
        if character.is_uppercase() && at > 0 && !out.ends_with('_') {
            out.push('_');
        }
        out.extend(character.to_lowercase());
    }
    out
}

fn upper_case(name: &str) -> String {
    let words = name.split('_').filter(|word| !word.is_empty());
    words.map(|word| word[..1].to_uppercase() + &word[1..]).collect()
}
