//! Tokens: keywords, names, literals and symbols.
//!
//! A text literal consists of several tokens: its opening quotes, its pieces, and for each interpolation the tokens
//! between [`TokenKind::InterpolationOpen`] and [`TokenKind::InterpolationClose`].

use crate::{SourceId, Span};
use logos::Logos;

/// One token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// True if it is the first token of its line.
    pub(crate) first_on_line: bool,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Token {
    pub(crate) fn span(self, source: SourceId) -> Span {
        Span::new(source, self.start, self.end)
    }
}

/// The kinds of tokens. The derived lexer produces those outside text literals, [`crate::lexer`] the others.
#[derive(Logos, Clone, Copy, PartialEq, Eq, Debug)]
#[logos(skip r"[ \t\r\x0c\u{feff}]+")]
pub(crate) enum TokenKind {
    #[token("\n")]
    LineEnd,
    #[regex(r"//[^\n]*", allow_greedy = true)]
    Comment,

    #[regex(r"[\p{XID_Start}_]\p{XID_Continue}*", priority = 1)]
    Word,
    #[regex(r"[0-9][0-9A-Za-z_]*(\.[0-9][0-9A-Za-z_]*)?")]
    #[regex(r"[0-9][0-9_]*(\.[0-9][0-9_]*)?[eE][+-]?[0-9][0-9A-Za-z_]*", priority = 20)]
    Number,
    #[regex(r"\.[0-9]+")]
    DotIndex,

    #[token("as")]
    As,
    #[token("atomic")]
    Atomic,
    #[token("else")]
    Else,
    #[token("enum")]
    Enum,
    #[token("expect")]
    Expect,
    #[token("false")]
    False,
    #[token("fn")]
    Fn,
    #[token("fold")]
    Fold,
    #[token("for")]
    For,
    #[token("if")]
    If,
    #[token("in")]
    In,
    #[token("let")]
    Let,
    #[token("loop")]
    Loop,
    #[token("match")]
    Match,
    #[token("race")]
    Race,
    #[token("record")]
    Record,
    #[token("retry")]
    Retry,
    #[token("return")]
    Return,
    #[token("service")]
    Service,
    #[token("shared")]
    Shared,
    #[token("true")]
    True,
    #[token("until")]
    Until,
    #[token("use")]
    Use,
    #[token("with")]
    With,
    #[token("within")]
    Within,
    #[token("_", priority = 10)]
    Underscore,

    #[token("(")]
    ParenOpen,
    #[token(")")]
    ParenClose,
    #[token("[")]
    BracketOpen,
    #[token("]")]
    BracketClose,
    #[token("{")]
    BraceOpen,
    #[token("}")]
    BraceClose,

    #[token(",")]
    Comma,
    #[token(";")]
    Semicolon,
    #[token(":")]
    Colon,
    #[token(".")]
    Dot,
    #[token("..")]
    DotDot,
    #[token("..=")]
    DotDotEqual,
    #[token("=")]
    Equal,
    #[token("=>")]
    FatArrow,
    #[token("->")]
    Arrow,
    #[token("?")]
    Question,
    #[token("|")]
    Bar,
    #[token("|>")]
    Pipe,
    #[token("||")]
    OrOr,
    #[token("&&")]
    AndAnd,
    /// An operator of other languages; [`crate::dialect`] replaces all of them.
    #[token("&")]
    Ampersand,
    #[token("==")]
    EqualEqual,
    #[token("!=")]
    NotEqual,
    #[token("<")]
    Less,
    #[token("<=")]
    LessEqual,
    #[token(">")]
    Greater,
    #[token(">=")]
    GreaterEqual,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("!")]
    Bang,

    /// `html` directly before a text literal.
    HtmlPrefix,
    #[token("\"")]
    TextOpen,
    #[token("\"\"\"")]
    BlockTextOpen,
    TextPiece,
    TextClose,
    InterpolationOpen,
    InterpolationClose,

    /// The end of the file; always the last token.
    End,
}

impl TokenKind {
    /// Returns true for a reserved word.
    pub(crate) fn is_reserved(self) -> bool {
        self as u8 >= Self::As as u8 && self as u8 <= Self::Within as u8
    }

    /// Returns true for a reserved word that continues a construct: before it, a name is missing.
    pub(crate) fn joins(self) -> bool {
        matches!(self, Self::As | Self::Else | Self::If | Self::In | Self::For | Self::Until | Self::Within)
    }

    /// Returns the closing bracket of an opening one.
    pub(crate) fn closing(self) -> Option<Self> {
        match self {
            Self::ParenOpen => Some(Self::ParenClose),
            Self::BracketOpen => Some(Self::BracketClose),
            Self::BraceOpen => Some(Self::BraceClose),
            Self::InterpolationOpen => Some(Self::InterpolationClose),
            _ => None,
        }
    }

    /// Returns true if it closes a bracket or an interpolation.
    pub(crate) fn is_closing(self) -> bool {
        matches!(self, Self::ParenClose | Self::BracketClose | Self::BraceClose | Self::InterpolationClose)
    }

    /// Returns true if it begins a text literal.
    pub(crate) fn opens_text(self) -> bool {
        matches!(self, Self::TextOpen | Self::BlockTextOpen)
    }

    /// Returns a description for messages, where the token's own characters are not enough.
    pub(crate) fn description(self) -> Option<&'static str> {
        match self {
            Self::HtmlPrefix => Some("a template"),
            Self::TextOpen | Self::BlockTextOpen | Self::TextPiece | Self::TextClose => Some("a text literal"),
            Self::InterpolationOpen => Some("an interpolation"),
            Self::InterpolationClose => Some("the end of the interpolation"),
            Self::End => Some("the end of the file"),
            _ => None,
        }
    }
}
