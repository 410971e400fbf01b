//! Graphviz output: the diagrams in DOT, for other tools to lay out.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use weir_host::{Mode, Resource};

use crate::diagram::{Diagram, DiagramMark, EdgeLabel, MarkId};
use crate::drawing::Drawing;
use crate::looks::MarkKind;
use crate::names;

/// Returns the program as a Graphviz document.
#[must_use]
pub fn dot(drawing: &Drawing<'_>) -> String {
    let mut text = String::from(
        "digraph weir {\n  graph [fontname=\"sans-serif\", compound=true, rankdir=TB];\n  \
         node [fontname=\"monospace\", fontsize=11];\n  edge [fontname=\"sans-serif\", fontsize=10];\n",
    );
    let mut resources = BTreeSet::new();
    let flows = drawing.program.entries.iter().flat_map(|entry| &entry.flows);
    for (index, flow) in flows.enumerate() {
        let diagram = Diagram::of(drawing, flow);
        let _ = writeln!(text, "  subgraph cluster_f{index} {{\n    label={};", quote(&flow.name));
        marks(&mut text, &diagram, index, None, 2);
        edges(&mut text, &diagram, index);
        text.push_str("  }\n");
        accesses(&mut text, &diagram, index, &mut resources);
    }
    for resource in resources {
        let shape = if matches!(resource, Resource::Shared(_)) { "cylinder" } else { "folder" };
        let label = quote(names::resource(&resource));
        let _ = writeln!(text, "  {} [shape={shape}, label={label}];", quote(&resource.to_string()));
    }
    text.push_str("}\n");
    text
}

fn marks(text: &mut String, diagram: &Diagram, flow: usize, parent: Option<MarkId>, depth: usize) {
    let indent = "  ".repeat(depth);
    for id in diagram.inside(parent) {
        let mark = &diagram.marks[id];
        if mark.kind.is_frame() {
            let _ = writeln!(
                text,
                "{indent}subgraph cluster_f{flow}m{id} {{\n{indent}  label={}; style=dashed;",
                quote(&label(mark))
            );
            // Edges to the frame end at this point, because DOT has no edges to clusters.
            let _ = writeln!(text, "{indent}  f{flow}m{id} [shape=point, label=\"\"];");
            marks(text, diagram, flow, Some(id), depth + 1);
            let _ = writeln!(text, "{indent}}}");
        } else {
            let _ = writeln!(text, "{indent}f{flow}m{id} [{}, label={}];", shape(mark.kind), quote(&label(mark)));
        }
    }
}

fn shape(kind: MarkKind) -> &'static str {
    match kind {
        MarkKind::Entry => "shape=box, style=\"rounded,filled\", fillcolor=\"#dbe7fb\"",
        MarkKind::Call => "shape=box",
        MarkKind::Prim => "shape=plaintext",
        MarkKind::Fork => "shape=diamond",
        MarkKind::Answer => "shape=box, style=rounded, color=\"#16794c\"",
        MarkKind::Failure => "shape=box, style=rounded, color=\"#b8322a\"",
        MarkKind::Repeat | MarkKind::Step | MarkKind::Fn => "shape=point",
    }
}

fn label(mark: &DiagramMark) -> String {
    let question = if mark.fallible { "?" } else { "" };
    match (mark.kind, mark.over.as_str()) {
        (MarkKind::Call, module) if !module.is_empty() => format!("{module}.{}{question}", mark.title),
        (MarkKind::Entry, parameters) if !parameters.is_empty() => format!("{}\n{parameters}", mark.title),
        _ => format!("{}{question}", mark.title),
    }
}

fn edges(text: &mut String, diagram: &Diagram, flow: usize) {
    for edge in &diagram.edges {
        let attributes = match &edge.label {
            EdgeLabel::Choice(label) => format!(" [label={}]", quote(label)),
            EdgeLabel::Value => String::new(),
            EdgeLabel::Order => " [style=dotted]".into(),
        };
        let _ = writeln!(text, "    f{flow}m{} -> f{flow}m{}{attributes};", edge.from, edge.to);
    }
}

fn accesses(text: &mut String, diagram: &Diagram, flow: usize, resources: &mut BTreeSet<Resource>) {
    for (id, mark) in diagram.marks.iter().enumerate() {
        for (resource, mode) in &mark.uses {
            let name = quote(&resource.to_string());
            let _ = match mode {
                Mode::Read => writeln!(text, "  {name} -> f{flow}m{id} [color=\"#0b7f86\", constraint=false];"),
                Mode::Write => writeln!(text, "  f{flow}m{id} -> {name} [color=\"#c46a08\", constraint=false];"),
            };
            resources.insert(resource.clone());
        }
    }
}

/// Quotes a text for DOT: escapes quotes and backslashes, and writes line breaks as `\n`.
fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
