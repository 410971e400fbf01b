//! Scanner of Rust sources: their documentation comments, type declarations and functions, with line numbers.
//!
//! Sources are read as token trees, so that texts and comments cannot be mistaken for code.

use std::iter::Peekable;
use std::vec::IntoIter;

use proc_macro2::{Delimiter, Group, LexError, TokenStream, TokenTree};

/// The declarations of a source file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The first line of each documentation comment.
    pub comments: Vec<Found>,
    /// The names of structs, enums, unions, traits and type aliases, except associated types and those of tests.
    pub types: Vec<Found>,
    /// The functions that have a body.
    pub functions: Vec<Function>,
}

/// A piece of text and its line.
#[derive(Debug, PartialEq, Eq)]
pub struct Found {
    /// The line, counted from 1.
    pub line: usize,
    /// The text.
    pub text: String,
}

/// A function and its extent.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// The line of `fn`, counted from 1.
    pub line: usize,
    /// The name.
    pub name: String,
    /// The number of lines from `fn` to the closing brace.
    pub lines: usize,
}

/// The surroundings of a token, as far as they decide what a declaration is.
#[derive(Clone, Copy, Default)]
struct Context {
    /// The tokens are the body of an `impl` or a `trait`.
    associated: bool,
    /// The tokens belong to a test module or to the arguments of a macro.
    hidden: bool,
}

/// Scans a source file.
///
/// # Errors
/// Fails if the text is not made of Rust tokens.
pub fn scan(text: &str) -> Result<Source, LexError> {
    let mut source = Source::default();
    source.walk(text.parse()?, Context::default());
    Ok(source)
}

type Tokens = Peekable<IntoIter<TokenTree>>;

impl Source {
    fn walk(&mut self, tokens: TokenStream, context: Context) {
        let mut tokens: Tokens = tokens.into_iter().collect::<Vec<_>>().into_iter().peekable();
        let (mut comment_end, mut test, mut body) = (0, false, Context { associated: false, ..context });
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    if let Some(attribute) = attribute(&mut tokens) {
                        self.comment(&attribute, &mut comment_end);
                        test |= attribute.stream().to_string().replace(' ', "") == "cfg(test)";
                    }
                }
                TokenTree::Punct(punct) if punct.as_char() == '!' => self.macro_arguments(&mut tokens, context),
                TokenTree::Punct(punct) if punct.as_char() == ';' => test = false,
                TokenTree::Ident(word) => match word.to_string().as_str() {
                    "fn" => {
                        self.function(word.span().start().line, &mut tokens, Context { associated: false, ..context });
                        test = false;
                    }
                    "impl" => body.associated = true,
                    keyword @ ("struct" | "enum" | "union" | "trait" | "type") => {
                        self.declaration(keyword, &tokens.peek().cloned(), context);
                        body.associated = keyword == "trait";
                    }
                    "mod" => body.hidden |= test,
                    _ => {}
                },
                TokenTree::Group(group) => {
                    self.walk(group.stream(), body);
                    if group.delimiter() == Delimiter::Brace {
                        (test, body) = (false, Context { associated: false, ..context });
                    }
                }
                _ => {}
            }
        }
    }

    /// Records the comment that the attribute is, unless it continues the comment that ends on the line before.
    fn comment(&mut self, attribute: &Group, end: &mut usize) {
        let mut tokens = attribute.stream().into_iter();
        let (Some(TokenTree::Ident(word)), Some(_), Some(TokenTree::Literal(text))) =
            (tokens.next(), tokens.next(), tokens.next())
        else {
            return;
        };
        if word != "doc" {
            return;
        }
        let line = text.span().start().line;
        if *end == 0 || line > *end + 1 {
            let text = text.to_string();
            self.comments.push(Found { line, text: text.trim_matches('"').trim().to_owned() });
        }
        *end = text.span().end().line;
    }

    /// The arguments of `name!(…)` have comments and functions, and declare nothing here.
    fn macro_arguments(&mut self, tokens: &mut Tokens, context: Context) {
        if let Some(TokenTree::Group(group)) = tokens.next_if(|token| matches!(token, TokenTree::Group(_))) {
            self.walk(group.stream(), Context { hidden: true, ..context });
        }
    }

    fn declaration(&mut self, keyword: &str, name: &Option<TokenTree>, context: Context) {
        let Some(TokenTree::Ident(name)) = name else { return };
        let associated = keyword == "type" && context.associated;
        if !context.hidden && !associated {
            self.types.push(Found { line: name.span().start().line, text: name.to_string() });
        }
    }

    /// Reads a function from its name on.
    fn function(&mut self, line: usize, tokens: &mut Tokens, context: Context) {
        let Some(TokenTree::Ident(name)) = tokens.next_if(|token| matches!(token, TokenTree::Ident(_))) else { return };
        for token in tokens.by_ref() {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ';' => return,
                TokenTree::Group(group) => {
                    self.walk(group.stream(), context);
                    if group.delimiter() == Delimiter::Brace {
                        let lines = group.span_close().end().line - line + 1;
                        self.functions.push(Function { line, name: name.to_string(), lines });
                        return;
                    }
                }
                _ => {}
            }
        }
    }
}

/// The brackets of an attribute, `#[…]` or `#![…]`, from behind the `#` on.
fn attribute(tokens: &mut Tokens) -> Option<Group> {
    tokens.next_if(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == '!'));
    match tokens.next_if(|token| matches!(token, TokenTree::Group(_))) {
        Some(TokenTree::Group(group)) => Some(group),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(found: &[Found]) -> Vec<(usize, &str)> {
        found.iter().map(|found| (found.line, found.text.as_str())).collect()
    }

    #[test]
    fn the_first_line_of_each_comment_counts() {
        let source = scan("//! Caption.\n//!\n//! More.\n\n/// One\n/// two.\nfn f() {\n    /// Inner.\n    let _ = \"/// text\";\n}\n")
            .expect("these are tokens");
        assert_eq!(texts(&source.comments), [(1, "Caption."), (5, "One"), (8, "Inner.")]);
    }

    #[test]
    fn fields_and_arguments_of_macros_have_comments() {
        let source = scan(
            "struct S {\n    /// A.\n    a: u8,\n    /// B.\n    b: u8,\n}\nlibrary! {\n    /// C.\n    pub c: d\n}\n",
        );
        assert_eq!(texts(&source.expect("these are tokens").comments), [(2, "A."), (4, "B."), (8, "C.")]);
    }

    #[test]
    fn associated_types_and_those_of_tests_are_no_declarations() {
        let text = "struct A;\nimpl T for A { type Item = A; fn f() -> impl T { struct B; } }\ntrait T { type Item; }\n\
                    type C = A;\nquote! { struct D; }\n#[cfg(test)]\nmod tests { enum E {} }\nmod inner { enum F {} }\n";
        let source = scan(text).expect("these are tokens");
        let names: Vec<&str> = source.types.iter().map(|found| found.text.as_str()).collect();
        assert_eq!(names, ["A", "B", "T", "C", "F"]);
    }

    #[test]
    fn the_lines_of_a_function_reach_to_its_brace() {
        let source = scan("fn a(\n    b: u8,\n) -> u8 {\n    fn c() {}\n    b\n}\ntrait T { fn d(); }\n")
            .expect("these are tokens");
        let lines: Vec<_> = source.functions.iter().map(|found| (found.name.as_str(), found.lines)).collect();
        assert_eq!(lines, [("c", 1), ("a", 6)]);
    }
}
