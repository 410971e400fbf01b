//! Rendering of diagnostics, as text for people and as JSON for programs. Pure functions.

mod excerpt;
mod json;

pub use json::render_json;

use crate::{Diagnostic, Severity, SourceFile, Sources};
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use excerpt::Excerpt;
use std::fmt::Write as _;

/// Style of a rendering.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// With terminal colours.
    Colour,
    /// Plain characters.
    Plain,
}

/// Renders a diagnostic with the source around its labels, without a final line end.
///
/// The output is bounded: long lines and long ranges are cut.
#[must_use]
pub fn render(sources: &Sources, diagnostic: &Diagnostic, style: Style) -> String {
    let excerpts = excerpt::excerpts(sources, &diagnostic.labels);
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level.primary_title(diagnostic.message.as_str()).id(diagnostic.code.id());
    let mut group = Group::with_title(title);
    for excerpt in &excerpts {
        group = group.element(snippet(excerpt));
    }
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(note.as_str()));
    }
    for hint in &diagnostic.help {
        group = group.element(Level::HELP.message(hint.text.as_str()));
    }
    let renderer = match style {
        Style::Colour => Renderer::styled(),
        Style::Plain => Renderer::plain(),
    };
    let mut rendered = renderer.render(&[group]);
    // Of a line that is cut, the excerpt has another column than the file.
    for (shown, place) in excerpts.iter().filter_map(|excerpt| excerpt.moved.as_ref()) {
        rendered = rendered.replacen(shown, place, 1);
    }
    rendered
}

fn snippet(excerpt: &Excerpt) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
    let annotations = excerpt.annotations.iter().map(|mark| {
        let kind = if mark.primary { AnnotationKind::Primary } else { AnnotationKind::Context };
        let annotation = kind.span(mark.range.clone());
        if mark.text.is_empty() { annotation } else { annotation.label(mark.text.as_str()) }
    });
    Snippet::source(excerpt.text.as_str())
        .line_start(excerpt.first_line as usize)
        .path(excerpt.name.as_str())
        .annotations(annotations)
}

/// Renders all diagnostics, separated by empty lines, and a line with their number. Empty if there are none.
#[must_use]
pub fn render_all(sources: &Sources, diagnostics: &[Diagnostic], style: Style) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        out.push_str(&render(sources, diagnostic, style));
        out.push_str("\n\n");
    }
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    let warnings = diagnostics.len() - errors;
    match (errors, warnings) {
        (0, 0) => {}
        (0, warnings) => _ = writeln!(out, "{}", counted(warnings, "warning")),
        (errors, 0) => _ = writeln!(out, "{}", counted(errors, "error")),
        (errors, warnings) => _ = writeln!(out, "{}, {}", counted(errors, "error"), counted(warnings, "warning")),
    }
    out
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Returns the location of a byte as `name:line:column`.
#[must_use]
pub fn location(file: &SourceFile, offset: u32) -> String {
    let at = file.line_column(offset);
    format!("{}:{}:{}", file.part_at(offset).name, at.line, at.column)
}
