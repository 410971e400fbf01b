//! Comments that silence warnings: `// allow W0703: a lost hit does no harm`.
//!
//! Behind code, such a comment *covers* its line, and the item, member of a service, statement, arm or expression that ends there.
//! On a line of its own, or behind an opening bracket, it covers the one that begins in the next line of code, or else that line.
//! So it covers the same after the formatter, which may break lines or move the comment behind a bracket into the block. A warning
//! that begins in the covered part is left out. A comment without effect is a warning itself ([`Code::UnusedAllow`]), which no
//! comment silences.

use std::collections::BTreeMap;
use std::ops::Range;

use weir_syntax::ast::{
    Comment, Expr, ExprKind, Item, ItemKind, Statement, Tree, Visitor, walk_expr, walk_item, walk_statement, walk_tree,
};
use weir_syntax::{Code, Diagnostic, Edit, Parsed, Span};

use crate::program_files::FileModules;
use crate::whole_lines::whole_lines;

/// A code in a comment that allows warnings.
struct AllowedCode<'t> {
    /// The text of the code, which may be none that exists.
    id: &'t str,
    span: Span,
    is_used: bool,
}

/// A comment that allows warnings.
struct Allow<'t> {
    comment: Span,
    /// True if the comment stands on a line of its own, or behind an opening bracket.
    is_above: bool,
    codes: Vec<AllowedCode<'t>>,
    /// The covered part of the text.
    covered: Range<u32>,
}

/// Removes the warnings that comments of the program allow, and adds those of comments without effect.
pub(crate) fn apply(diagnostics: &mut Vec<Diagnostic>, parsed: &Parsed, text: &str, files: &FileModules) {
    let mut allows = allows_of(parsed, text, files);
    if allows.is_empty() {
        return;
    }
    diagnostics.retain(|diagnostic| !is_allowed(diagnostic, &mut allows));
    // What a program with errors does not report might be silenced, and so might warnings of flows that use a library or a module.
    let has_flows = parsed.tree.items.iter().any(|item| matches!(item.kind, ItemKind::Service(_) | ItemKind::Entry(_)));
    if has_flows && !diagnostics.iter().any(Diagnostic::is_error) {
        let own = allows.iter().filter(|allow| !files.is_of_library(files.index_at(allow.comment.start)));
        diagnostics.extend(own.flat_map(|allow| allow.unused(text)));
    }
}

/// Returns the edit that allows a warning: a comment above the smallest statement, arm, member or item in which it begins.
pub(crate) fn edit(diagnostic: &Diagnostic, tree: &Tree, text: &str) -> Option<Edit> {
    let at = diagnostic.span()?;
    if !diagnostic.code.can_be_allowed() {
        return None;
    }
    let mut search =
        ConstructSearch { text, begins: BTreeMap::new(), ends: BTreeMap::new(), around: Some((at.start, None)) };
    walk_tree(&mut search, tree);
    let (_, Some(construct)) = search.around? else { return None };
    let line = line_start(text, construct.start);
    let indent = &text[line..construct.start as usize];
    let place = Span { start: line as u32, end: line as u32, ..at };
    Some(Edit { span: place, replacement: format!("{indent}// allow {}\n", diagnostic.code.id()) })
}

fn is_allowed(diagnostic: &Diagnostic, allows: &mut [Allow<'_>]) -> bool {
    let Some(span) = diagnostic.span().filter(|_| !diagnostic.is_error()) else { return false };
    let around = allows.iter_mut().filter(|allow| allow.covered.contains(&span.start));
    // All of them count as used: an inner one may be there for a part, and an outer one for the rest.
    let mut is_allowed = false;
    for code in around.flat_map(|allow| &mut allow.codes).filter(|code| code.id == diagnostic.code.id()) {
        code.is_used = true;
        is_allowed = true;
    }
    is_allowed
}

fn allows_of<'t>(parsed: &'t Parsed, text: &str, files: &FileModules) -> Vec<Allow<'t>> {
    let mut allows: Vec<Allow<'t>> =
        parsed.comments.iter().filter_map(|comment| Allow::of(comment, text, files)).collect();
    if allows.is_empty() {
        return allows;
    }
    let (above, behind): (Vec<&Allow<'_>>, Vec<_>) = allows.iter().partition(|allow| allow.is_above);
    let begins = above.into_iter().map(|allow| (allow.covered.start, allow.covered.end)).collect();
    let ends = behind.into_iter().map(|allow| (allow.covered.end, allow.covered.start)).collect();
    let mut search = ConstructSearch { text, begins, ends, around: None };
    walk_tree(&mut search, &parsed.tree);
    for allow in &mut allows {
        let Range { start, end } = allow.covered;
        allow.covered = match allow.is_above {
            true => start..search.begins.get(&start).copied().unwrap_or(end),
            false => search.ends.get(&end).copied().unwrap_or(start)..end,
        };
    }
    allows
}

impl<'t> Allow<'t> {
    /// Returns the comment as one that allows warnings in the line that it ends, or in the next line of code.
    fn of(comment: &'t Comment, text: &str, files: &FileModules) -> Option<Self> {
        let codes = codes_of(comment)?;
        let line = line_start(text, comment.span.start);
        let code = text[line..comment.span.start as usize].trim_end();
        let is_above = code.trim_start().is_empty() || code.ends_with(['{', '(', '[']);
        let covered = match is_above {
            true => next_line_of_code(text, comment.span.end as usize),
            false => line..line + code.trim_end_matches([',', ' ']).len(),
        };
        let is_here = files.index_at(covered.start as u32) == files.index_at(comment.span.start);
        let end = if is_here { covered.end } else { covered.start };
        Some(Allow { comment: comment.span, is_above, codes, covered: covered.start as u32..end as u32 })
    }

    /// Returns the warnings of codes without effect.
    fn unused(&self, text: &str) -> Vec<Diagnostic> {
        let unused: Vec<&AllowedCode<'_>> = self.codes.iter().filter(|code| !code.is_used).collect();
        let all = unused.len() == self.codes.len();
        let warnings = unused.into_iter().map(|code| {
            let removed = if all { self.removed(text) } else { self.without(code) };
            let warning = Diagnostic::new(Code::UnusedAllow, code.problem()).at(code.span, "this has no effect");
            warning.suggest("remove it", removed, "")
        });
        // One of several edits removes the whole comment.
        warnings.take(if all { 1 } else { usize::MAX }).collect()
    }

    /// Returns the part of the text to remove with the comment.
    fn removed(&self, text: &str) -> Span {
        let code = text[..self.comment.start as usize].trim_end_matches([' ', '\t']);
        match code.is_empty() || code.ends_with('\n') {
            true => whole_lines(text, self.comment),
            false => Span { start: code.len() as u32, ..self.comment },
        }
    }

    /// Returns the part of the comment to remove with one of its codes, of which there are others.
    fn without(&self, code: &AllowedCode<'_>) -> Span {
        let others = || self.codes.iter().map(|other| other.span);
        match others().find(|other| other.start > code.span.start) {
            Some(next) => Span { end: next.start, ..code.span },
            None => {
                let before = others().take_while(|other| other.start < code.span.start).last();
                Span { start: before.map_or(code.span.start, |before| before.end), ..code.span }
            }
        }
    }
}

impl AllowedCode<'_> {
    fn problem(&self) -> String {
        match weir_syntax::codes::ALL.iter().find(|code| code.id() == self.id) {
            Some(Code::UnusedAllow) => format!("`{}` cannot be allowed", self.id),
            Some(code) if code.severity() == weir_syntax::Severity::Error => {
                format!("`{}` is an error; only warnings can be allowed", self.id)
            }
            Some(_) => format!("there is no warning `{}` here to allow", self.id),
            None => format!("there is no warning with the code `{}`", self.id),
        }
    }
}

/// Returns the codes of a comment `// allow CODE, CODE: reason`; `None` if it is any other comment.
fn codes_of(comment: &Comment) -> Option<Vec<AllowedCode<'_>>> {
    let codes = comment.text.strip_prefix("//")?.trim_start().strip_prefix("allow ")?;
    let codes = codes.split_once(':').map_or(codes, |(codes, _)| codes);
    let code = |part: &'_ str| -> Option<(usize, usize)> {
        let id = part.trim();
        let digits = id.strip_prefix(['W', 'E'])?;
        let is_code = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let start = id.as_ptr() as usize - comment.text.as_ptr() as usize;
        is_code.then_some((start, start + id.len()))
    };
    let places: Option<Vec<(usize, usize)>> = codes.split(',').map(code).collect();
    let allowed = |(start, end): (usize, usize)| {
        let offset = |at: usize| comment.span.start + at as u32;
        let span = Span { start: offset(start), end: offset(end), ..comment.span };
        AllowedCode { id: &comment.text[start..end], span, is_used: false }
    };
    Some(places?.into_iter().map(allowed).collect())
}

/// Returns the offset at which the line of an offset begins.
fn line_start(text: &str, offset: u32) -> usize {
    text[..offset as usize].rfind('\n').map_or(0, |end| end + 1)
}

/// Returns the next line behind an offset that has more than a comment, from its first character; empty at the end.
fn next_line_of_code(text: &str, offset: usize) -> Range<usize> {
    let mut start = offset;
    for line in text[offset..].split_inclusive('\n') {
        let code = line.trim();
        if !code.is_empty() && !code.starts_with("//") {
            let first = start + (line.len() - line.trim_start().len());
            return first..first + code.len();
        }
        start += line.len();
    }
    start..start
}

/// Searches constructs by their first or last character, and the smallest one around an offset.
struct ConstructSearch<'t> {
    text: &'t str,
    /// The offset behind the largest construct that begins at an offset.
    begins: BTreeMap<u32, u32>,
    /// The offset of the largest construct that ends before an offset.
    ends: BTreeMap<u32, u32>,
    /// An offset, and the smallest construct around it that begins a line.
    around: Option<(u32, Option<Span>)>,
}

impl ConstructSearch<'_> {
    /// Notes a construct that a comment above or behind it covers.
    fn note_covered(&mut self, span: Span) {
        if let Some(end) = self.begins.get_mut(&span.start) {
            *end = span.end.max(*end);
        }
        if let Some(start) = self.ends.get_mut(&span.end) {
            *start = span.start.min(*start);
        }
    }

    fn note(&mut self, span: Span) {
        self.note_covered(span);
        let begins_line = || self.text[line_start(self.text, span.start)..span.start as usize].trim().is_empty();
        if let Some((offset, found)) = &mut self.around
            && (span.start..span.end).contains(offset)
            && begins_line()
        {
            // Outer constructs are visited first.
            *found = Some(span);
        }
    }
}

impl<'a> Visitor<'a> for ConstructSearch<'_> {
    fn item(&mut self, item: &'a Item) {
        self.note(item.span);
        if let ItemKind::Service(service) = &item.kind {
            service.members.iter().for_each(|member| self.note(member.span));
        }
        walk_item(self, item);
    }

    fn statement(&mut self, statement: &'a Statement) {
        self.note(statement.span);
        walk_statement(self, statement);
    }

    fn expr(&mut self, expr: &'a Expr) {
        self.note_covered(expr.span);
        if let ExprKind::Match { arms, .. } = &expr.kind {
            arms.iter().for_each(|arm| self.note(arm.span));
        }
        walk_expr(self, expr);
    }
}
