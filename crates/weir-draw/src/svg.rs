//! SVG output: one panel for each flow, light or dark like the reader's system, without external fonts or scripts.
//!
//! [`placed_diagram`] computes positions, [`shapes`] draws marks, and [`lines`] draws edges and the *lifelines* of
//! resources: a resource stands to the right of its flow, and each call that reads or writes it is connected to the
//! line below it.

mod lines;
mod placed_diagram;
mod shapes;
mod sizes;
mod style;
#[cfg(test)]
mod tests;

use std::fmt::{self, Write as _};

use weir_ir::graph::Graph;
use weir_ir::program::{Entry, Flow};

use crate::diagram::Diagram;
use crate::drawing::Drawing;
use placed_diagram::PlacedDiagram;

/// The maximum number of marks in one flow: a larger drawing would be unreadable, and the layout takes quadratic time.
const MARKS_MAX: usize = 3000;
/// The margin of the drawing.
const MARGIN: f64 = 28.0;
/// The space above a panel, for its heading.
const HEADING: f64 = 40.0;
/// The space above a panel without a heading.
const NO_HEADING: f64 = 8.0;
/// The space between panels.
const GAP: f64 = 30.0;

/// The error for a flow with too many nodes for a drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// The flow.
    pub flow: String,
    /// The number of marks that it would have.
    pub marks: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the flow `{}` has {} nodes, and a picture has room for {MARKS_MAX}", self.flow, self.marks)
    }
}

impl std::error::Error for TooLarge {}

/// Returns the program as an SVG document.
///
/// # Errors
/// Fails if a flow has too many nodes for a drawing.
pub fn svg(drawing: &Drawing<'_>) -> Result<String, TooLarge> {
    let mut panels = Vec::new();
    for entry in &drawing.program.entries {
        for (index, flow) in entry.flows.iter().enumerate() {
            let heading = if index == 0 { heading(entry, flow) } else { String::new() };
            panels.push(panel(drawing, flow, heading)?);
        }
    }
    Ok(document(&panels))
}

/// A flow, drawn relative to its upper left corner.
struct Panel {
    heading: String,
    width: f64,
    height: f64,
    body: String,
}

impl Panel {
    /// Returns the space above the panel.
    fn above(&self) -> f64 {
        if self.heading.is_empty() { NO_HEADING } else { HEADING }
    }
}

fn panel(drawing: &Drawing<'_>, flow: &Flow<Graph>, heading: String) -> Result<Panel, TooLarge> {
    let diagram = Diagram::of(drawing, flow);
    if diagram.marks.len() > MARKS_MAX {
        return Err(TooLarge { flow: flow.name.to_string(), marks: diagram.marks.len() });
    }
    let picture = PlacedDiagram::of(&diagram);
    let mut lifelines = lines::lifelines(&diagram, &picture);
    lines::tell_sessions(&mut lifelines, drawing.program);
    let mut body = String::new();
    lines::sections(&mut body, &diagram, &picture);
    shapes::frames(&mut body, &diagram, &picture);
    lines::edges(&mut body, &diagram, &picture);
    lines::draw_lifelines(&mut body, &lifelines);
    shapes::marks(&mut body, &diagram, &picture);
    lines::labels(&mut body, &diagram, &picture);
    lines::section_names(&mut body, &diagram, &picture);
    let right = lifelines.iter().map(|lifeline| lifeline.right()).fold(picture.size.width, f64::max);
    let bottom = lifelines.iter().map(|lifeline| lifeline.bottom).fold(picture.size.height, f64::max);
    Ok(Panel { heading, width: right, height: bottom, body })
}

fn heading(entry: &Entry<Graph>, flow: &Flow<Graph>) -> String {
    let source = entry
        .source
        .split_once('.')
        .map_or(&*entry.source, |(module, name)| if module == name { module } else { &*entry.source });
    match flow.route {
        Some(_) => format!("service {} on {source}", entry.name),
        None => format!("for each of {source}"),
    }
}

fn document(panels: &[Panel]) -> String {
    let width =
        panels.iter().map(|panel| panel.width.max(measure(&panel.heading))).fold(120.0, f64::max) + 2.0 * MARGIN;
    let heights = panels.iter().map(|panel| panel.height + panel.above());
    let gaps = GAP * (panels.len().saturating_sub(1)) as f64;
    let height = heights.sum::<f64>() + gaps + 2.0 * MARGIN;
    let mut text = String::new();
    line(
        &mut text,
        format_args!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="0 0 {width:.0} {height:.0}" role="img" font-family="{}" {}>"#,
            style::SANS,
            style::class("document")
        ),
    );
    text.push_str(&style::sheet());
    line(&mut text, format_args!(r#"<rect {} width="100%" height="100%" rx="14"/>"#, style::class("paper")));
    let mut y = MARGIN;
    for panel in panels {
        line(
            &mut text,
            format_args!(
                r#"<text {} x="{MARGIN}" y="{:.1}">{}</text>"#,
                style::class("heading"),
                y + 13.0,
                escape(&panel.heading)
            ),
        );
        let x = (width - panel.width) / 2.0;
        line(&mut text, format_args!(r#"<g transform="translate({x:.1} {:.1})">"#, y + panel.above()));
        text.push_str(&panel.body);
        text.push_str("</g>\n");
        y += panel.height + panel.above() + GAP;
    }
    text.push_str("</svg>\n");
    text
}

/// Returns the width of a heading.
fn measure(heading: &str) -> f64 {
    heading.chars().count() as f64 * 7.4
}

/// Appends a line. Writing to a string does not fail.
fn line(text: &mut String, arguments: fmt::Arguments<'_>) {
    let _ = writeln!(text, "{arguments}");
}

/// Escapes a text for XML. Replaces characters that XML cannot express by spaces.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            control if control.is_control() || matches!(control, '\u{FFFE}' | '\u{FFFF}') => escaped.push(' '),
            other => escaped.push(other),
        }
    }
    escaped
}
