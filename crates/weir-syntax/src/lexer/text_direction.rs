//! Characters that turn the direction of a text: a reader sees the characters behind them in another order than the compiler, so
//! that a comment or a text can look like code, and code like a comment.
//!
//! Boucher and Anderson, "Trojan Source: Invisible Vulnerabilities", 2021. Their attacks use these nine characters. Marks such as
//! U+200F, which people need to write Arabic and Hebrew, change the place of no other letters, and are allowed.

use super::Lexer;
use crate::token::TokenKind;
use crate::{Code, Diagnostic};

/// Returns whether the character begins or ends an embedding, an override or an isolate of the bidirectional algorithm.
pub(super) fn turns_text(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

impl Lexer<'_> {
    /// Reports such characters in texts and comments, from the offset `begin` on. In code they are unknown characters.
    pub(super) fn report_directions(&mut self, begin: u32) {
        let source = self.code.source();
        for (at, found) in source[begin as usize..].match_indices(turns_text) {
            let start = begin + at as u32;
            let span = self.place(start, start + found.len() as u32);
            let code_point = found.chars().next().map_or(0, u32::from);
            let diagnostic = |of: &str| {
                let message =
                    format!("the invisible character U+{code_point:04X} changes the order in which {of} is shown");
                Diagnostic::new(Code::TextDirection, message).at(span, "")
            };
            if self.is_in_text(start) {
                let escaped = format!("\\u{{{code_point:04x}}}");
                self.report(diagnostic("this text").fix(format!("write `{escaped}`"), span, escaped));
            } else if self.is_in_comment(start) {
                self.report(diagnostic("this comment").fix("remove it", span, ""));
            }
        }
    }

    fn is_in_text(&self, at: u32) -> bool {
        let tokens = &self.lexed.tokens;
        let behind = tokens.partition_point(|token| token.start <= at);
        behind
            .checked_sub(1)
            .is_some_and(|before| tokens[before].kind == TokenKind::TextPiece && at < tokens[before].end)
    }

    fn is_in_comment(&self, at: u32) -> bool {
        let comments = &self.lexed.comments;
        let behind = comments.partition_point(|comment| comment.start <= at);
        behind.checked_sub(1).is_some_and(|before| at < comments[before].end)
    }
}
