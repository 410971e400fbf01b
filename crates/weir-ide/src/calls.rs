//! Signature help: the signature of the call at the cursor, and its active parameter.

use weir_syntax::Span;
use weir_syntax::ast::{Argument, Expr, ExprKind, Visitor, walk_expr, walk_tree};

use crate::document::Document;

/// The signature of the call at an offset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallHelp {
    /// The function's signature: `fn image.scale(image: image.Ppm, eighths: Int) -> …`.
    pub signature: String,
    /// The documentation of the function.
    pub doc: String,
    /// The parameters, as the signature shows them.
    pub parameters: Vec<String>,
    /// The index of the parameter at the offset; `None` if there are too many arguments.
    pub active: Option<usize>,
}

impl Document {
    /// Returns help for the innermost call whose parentheses contain `offset`.
    #[must_use]
    pub fn call_help(&self, offset: u32) -> Option<CallHelp> {
        let mut search = CallSearch { offset, found: None };
        walk_tree(&mut search, &self.checked.parsed.tree);
        let call = search.found?;
        let reference = self.checked.reference_at(call.function.end)?;
        let described = self.checked.describe(&reference.symbol, &self.library)?;
        let parameters = parameters(&described.signature);
        let active = call.active(&parameters, offset).filter(|active| *active < parameters.len());
        Some(CallHelp { signature: described.signature, doc: described.doc, parameters, active })
    }
}

struct CallSite<'a> {
    function: Span,
    arguments: &'a [Argument],
    /// The number of parameters that the receiver or the piped value takes.
    given: usize,
}

impl CallSite<'_> {
    fn active(&self, parameters: &[String], offset: u32) -> Option<usize> {
        let before = self.arguments.iter().take_while(|argument| argument.span.end < offset).count();
        let named = self.arguments.get(before).and_then(|argument| argument.name.as_ref());
        match named {
            Some(name) => parameters.iter().position(|parameter| parameter.split(':').next() == Some(name.as_str())),
            None => Some(before + self.given),
        }
    }
}

struct CallSearch<'a> {
    offset: u32,
    found: Option<CallSite<'a>>,
}

impl<'a> Visitor<'a> for CallSearch<'a> {
    fn expr(&mut self, expr: &'a Expr) {
        if expr.span.start > self.offset || self.offset > expr.span.end {
            return;
        }
        let call = match &expr.kind {
            ExprKind::Call { function, arguments } => {
                let is_method = matches!(&function.kind, ExprKind::Field { object, .. } if is_value(object));
                Some(CallSite { function: function.span, arguments, given: usize::from(is_method) })
            }
            ExprKind::Pipe { function, arguments, .. } => {
                Some(CallSite { function: function.span, arguments, given: 1 })
            }
            _ => None,
        };
        if let Some(call) = call.filter(|call| call.function.end < self.offset && self.offset < expr.span.end) {
            self.found = Some(call);
        }
        walk_expr(self, expr);
    }
}

/// Returns whether the object is certainly a value; a single name may also be a module.
fn is_value(object: &Expr) -> bool {
    !matches!(object.kind, ExprKind::Name(_))
}

/// Splits the parameters of a signature at its outermost commas.
fn parameters(signature: &str) -> Vec<String> {
    let Some(open) = signature.find('(') else { return Vec::new() };
    let (mut depth, mut start, mut found) = (0, open + 1, Vec::new());
    let mut characters = signature.char_indices().skip_while(|(at, _)| *at <= open);
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => skip_text(&mut characters),
            '(' | '[' | '{' => depth += 1,
            ',' if depth == 0 => {
                found.push(signature[start..at].trim().to_owned());
                start = at + 1;
            }
            ')' if depth == 0 => {
                found.push(signature[start..at].trim().to_owned());
                break;
            }
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
    }
    found.retain(|parameter| !parameter.is_empty());
    found
}

/// Advances behind the end of a text literal.
fn skip_text(characters: &mut impl Iterator<Item = (usize, char)>) {
    while let Some((_, character)) = characters.next() {
        match character {
            '"' => return,
            '\\' => drop(characters.next()),
            _ => {}
        }
    }
}
