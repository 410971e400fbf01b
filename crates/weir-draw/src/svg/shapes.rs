//! Draws marks.

use super::placed_diagram::{PlacedDiagram, Rect};
use super::{escape, line, style};
use crate::diagram::{Diagram, DiagramMark};
use crate::looks::MarkKind;

/// Draws the frames around the contents of marks.
pub(super) fn frames(text: &mut String, diagram: &Diagram, picture: &PlacedDiagram) {
    let frames = diagram.marks.iter().zip(&picture.rects).filter(|(mark, _)| mark.kind.is_frame());
    for (mark, rect) in frames {
        let (step, label) = match mark.kind {
            MarkKind::Step => (" step", " step-text"),
            MarkKind::Fn => (" fn", ""),
            _ => ("", ""),
        };
        boxed(text, &format!("frame{step}"), rect, 12.0);
        line(
            text,
            format_args!(
                r#"<text {} x="{:.1}" y="{:.1}">{}</text>"#,
                style::class(&format!("frame-text{label} code")),
                rect.x + 14.0,
                rect.y + 20.0,
                escape(&mark.title)
            ),
        );
        if mark.fallible {
            fallible(text, rect);
        }
    }
}

/// Draws all marks except frames.
pub(super) fn marks(text: &mut String, diagram: &Diagram, picture: &PlacedDiagram) {
    let modules = modules(diagram);
    let marks = diagram.marks.iter().zip(&picture.rects).filter(|(mark, _)| !mark.kind.is_frame());
    for (mark, rect) in marks {
        text.push_str("<g>");
        if !mark.hint.is_empty() {
            line(text, format_args!("<title>{}</title>", escape(&mark.hint)));
        }
        shape(text, mark, rect, &modules);
        text.push_str("</g>\n");
    }
}

fn shape(text: &mut String, mark: &DiagramMark, rect: &Rect, modules: &[&str]) {
    match mark.kind {
        MarkKind::Entry if mark.parent.is_some() => labelled(text, mark, rect, ("begin", "prim-text code", 12.0)),
        MarkKind::Entry => entry(text, mark, rect),
        MarkKind::Call => call(text, mark, rect, modules),
        MarkKind::Prim => labelled(text, mark, rect, ("prim", "prim-text code", 6.0)),
        MarkKind::Fork => fork(text, mark, rect),
        MarkKind::Answer => labelled(text, mark, rect, ("answer", "answer-text", 13.0)),
        MarkKind::Failure => labelled(text, mark, rect, ("failure", "failure-text", 13.0)),
        MarkKind::Repeat | MarkKind::Step | MarkKind::Fn => {}
    }
}

fn labelled(text: &mut String, mark: &DiagramMark, rect: &Rect, (class, letters, radius): (&str, &str, f64)) {
    boxed(text, class, rect, radius);
    if !mark.title.is_empty() {
        centred(text, letters, rect, rect.middle().y + 4.0, &mark.title);
    }
}

fn entry(text: &mut String, mark: &DiagramMark, rect: &Rect) {
    boxed(text, "enter", rect, rect.height / 2.0);
    if mark.over.is_empty() {
        centred(text, "title code enter-text", rect, rect.middle().y + 4.5, &mark.title);
    } else {
        centred(text, "title code enter-text", rect, rect.y + 21.0, &mark.title);
        centred(text, "enter-over", rect, rect.y + 37.0, &mark.over);
    }
}

fn call(text: &mut String, mark: &DiagramMark, rect: &Rect, modules: &[&str]) {
    boxed(text, "card", rect, 8.0);
    let index = modules.iter().position(|module| *module == mark.module()).unwrap_or(0);
    let colour = style::MODULES[index % style::MODULES.len()];
    line(
        text,
        format_args!(
            r#"<rect x="{:.1}" y="{:.1}" width="4" height="{:.1}" rx="2" fill="{colour}"/>"#,
            rect.x + 6.0,
            rect.y + 8.0,
            rect.height - 16.0
        ),
    );
    let x = rect.x + 18.0;
    if mark.over.is_empty() {
        line(
            text,
            format_args!(
                r#"<text {} x="{x:.1}" y="{:.1}">{}</text>"#,
                style::class("title code"),
                rect.middle().y + 4.5,
                escape(&mark.title)
            ),
        );
    } else {
        line(
            text,
            format_args!(
                r#"<text {} x="{x:.1}" y="{:.1}">{}</text>"#,
                style::class("over"),
                rect.y + 17.0,
                escape(&mark.over)
            ),
        );
        line(
            text,
            format_args!(
                r#"<text {} x="{x:.1}" y="{:.1}">{}</text>"#,
                style::class("title code"),
                rect.y + 34.0,
                escape(&mark.title)
            ),
        );
    }
    if mark.fallible {
        fallible(text, rect);
    }
}

/// Draws the sign that a failure of this call ends the flow.
fn fallible(text: &mut String, rect: &Rect) {
    let (x, y) = (rect.right() - 2.0, rect.y + 3.0);
    line(text, format_args!(r#"<circle {} cx="{x:.1}" cy="{y:.1}" r="7.5"/>"#, style::class("failure")));
    line(
        text,
        format_args!(
            r#"<text {} x="{x:.1}" y="{:.1}" text-anchor="middle">?</text>"#,
            style::class("failure-text"),
            y + 4.0
        ),
    );
}

fn fork(text: &mut String, mark: &DiagramMark, rect: &Rect) {
    let slope = if mark.title.is_empty() { rect.width / 2.0 } else { 12.0 };
    let (middle, right, bottom) = (rect.middle().y, rect.right(), rect.bottom());
    line(
        text,
        format_args!(
            r#"<path {} d="M{:.1} {middle:.1}L{:.1} {:.1}H{:.1}L{right:.1} {middle:.1}L{:.1} {bottom:.1}H{:.1}Z"/>"#,
            style::class("fork"),
            rect.x,
            rect.x + slope,
            rect.y,
            right - slope,
            right - slope,
            rect.x + slope,
        ),
    );
    if !mark.title.is_empty() {
        centred(text, "code", rect, middle + 4.0, &mark.title);
    }
}

fn boxed(text: &mut String, class: &str, rect: &Rect, radius: f64) {
    let radius = radius.min(rect.height / 2.0);
    line(
        text,
        format_args!(
            r#"<rect {} x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}" rx="{radius:.1}"/>"#,
            style::class(class),
            rect.x,
            rect.y,
            rect.width,
            rect.height
        ),
    );
}

fn centred(text: &mut String, class: &str, rect: &Rect, y: f64, words: &str) {
    let x = rect.middle().x;
    line(
        text,
        format_args!(
            r#"<text {} x="{x:.1}" y="{y:.1}" text-anchor="middle">{}</text>"#,
            style::class(class),
            escape(words)
        ),
    );
}

/// Returns the modules of the calls, in the order of their first appearance.
fn modules(diagram: &Diagram) -> Vec<&str> {
    let mut modules: Vec<&str> = Vec::new();
    for mark in diagram.marks.iter().filter(|mark| mark.kind == MarkKind::Call) {
        if !modules.contains(&mark.module()) {
            modules.push(mark.module());
        }
    }
    modules
}
