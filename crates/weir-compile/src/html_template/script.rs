//! Interpolations in scripts: only where a value stands, outside of texts and comments.
//!
//! The scanner knows texts and comments of JavaScript. A `/` that begins neither could begin a regular expression, a
//! backquote a text with code in it, and `-->` and `#!` a comment; no interpolation may follow them.

/// The remedy for an interpolation in a script that is refused.
pub(super) const HINT: &str =
    "put the value where a value stands, as in `const user = {user};`, at the beginning of a script of its own";

const AFTER_SLASH: &str = "no interpolation can follow a `/` in a script, which could begin a regular expression";
const AFTER_BACKQUOTE: &str = "no interpolation can follow a backquote in a script, which begins a text";
const AFTER_COMMENT: &str = "no interpolation can follow `-->` or `#!` in a script, which could begin a comment";
const AFTER_OPEN_TEXT: &str = "no interpolation can follow a text of a script that does not end on its line";

/// The language of a `script` element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ScriptLanguage {
    /// A classic script or a module.
    JavaScript,
    /// Data that is not run.
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ScriptState {
    Code,
    Slash,
    Quoted(char),
    Escaped(char),
    LineComment,
    BlockComment,
    BlockCommentStar,
    /// It is not certain how the rest is read, for this reason.
    Uncertain(&'static str),
}

/// The state of reading a script.
pub(super) struct ScriptScanner {
    language: Option<ScriptLanguage>,
    state: ScriptState,
    /// The last word of the code.
    word: String,
    /// True if a space follows the last word.
    word_ended: bool,
    /// The last character of code that is no space.
    last: Option<char>,
}

impl ScriptScanner {
    /// Creates a scanner for a script with this `type`.
    pub(super) fn new(of: Option<&Option<String>>) -> Self {
        let language = match of {
            None => Some(ScriptLanguage::JavaScript),
            Some(None) => None,
            Some(Some(of)) => language_of(&of.trim().to_ascii_lowercase()),
        };
        ScriptScanner { language, state: ScriptState::Code, word: String::new(), word_ended: false, last: None }
    }

    pub(super) fn character(&mut self, c: char) {
        self.state = match (self.state, c) {
            (ScriptState::Uncertain(why), _) => ScriptState::Uncertain(why),
            (ScriptState::Slash, '/') => ScriptState::LineComment,
            (ScriptState::Slash, '*') => ScriptState::BlockComment,
            (ScriptState::Slash, _) => ScriptState::Uncertain(AFTER_SLASH),
            (ScriptState::Code, '/') => ScriptState::Slash,
            (ScriptState::Code, '`') => ScriptState::Uncertain(AFTER_BACKQUOTE),
            (ScriptState::Code, '>') if self.last == Some('-') => ScriptState::Uncertain(AFTER_COMMENT),
            (ScriptState::Code, '!') if self.last == Some('#') => ScriptState::Uncertain(AFTER_COMMENT),
            (ScriptState::Code, quote @ ('"' | '\'')) => ScriptState::Quoted(quote),
            (ScriptState::Code, c) => {
                self.code(c);
                ScriptState::Code
            }
            (ScriptState::Escaped(quote), _) => ScriptState::Quoted(quote),
            (ScriptState::Quoted(quote), '\\') => ScriptState::Escaped(quote),
            (ScriptState::Quoted(quote), c) if c == quote => {
                self.code(c);
                ScriptState::Code
            }
            (ScriptState::Quoted(_), '\n') => ScriptState::Uncertain(AFTER_OPEN_TEXT),
            (ScriptState::LineComment, '\n' | '\r' | '\u{2028}' | '\u{2029}') => ScriptState::Code,
            (ScriptState::BlockComment | ScriptState::BlockCommentStar, '*') => ScriptState::BlockCommentStar,
            (ScriptState::BlockCommentStar, '/') => ScriptState::Code,
            (ScriptState::BlockCommentStar, _) => ScriptState::BlockComment,
            (same, _) => same,
        };
    }

    fn code(&mut self, c: char) {
        if c.is_whitespace() {
            self.word_ended = true;
            return;
        }
        if self.word_ended || !(c.is_alphanumeric() || matches!(c, '_' | '$' | '.')) {
            self.word.clear();
        }
        self.word_ended = false;
        self.word.push(c);
        self.last = Some(c);
    }

    /// Determines the language of the value at an interpolation.
    pub(super) fn hole(&mut self) -> Result<ScriptLanguage, &'static str> {
        let language = self.language.ok_or("a script of this type cannot contain an interpolation")?;
        match self.state {
            ScriptState::Code => {}
            ScriptState::Quoted(_) | ScriptState::Escaped(_) => {
                return Err("a text in a script cannot contain an interpolation: the value itself becomes a text");
            }
            ScriptState::Uncertain(why) => return Err(why),
            ScriptState::Slash => return Err(AFTER_SLASH),
            _ => return Err("a comment in a script cannot contain an interpolation"),
        }
        let begins_value = match self.last {
            None => language == ScriptLanguage::Json,
            Some(last) => matches!(last, '=' | '(' | ',' | ':' | '[' | '?') || self.word == "return",
        };
        self.code('0');
        if begins_value {
            Ok(language)
        } else {
            Err("an interpolation in a script stands behind `=`, `(`, `,`, `:`, `[`, `?` or `return`")
        }
    }
}

fn language_of(of: &str) -> Option<ScriptLanguage> {
    match of {
        "" | "module" | "text/javascript" | "application/javascript" => Some(ScriptLanguage::JavaScript),
        "application/json" => Some(ScriptLanguage::Json),
        json if json.ends_with("+json") => Some(ScriptLanguage::Json),
        _ => None,
    }
}
