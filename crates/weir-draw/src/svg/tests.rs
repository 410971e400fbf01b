//! Properties of every SVG, on random programs.

use weir_ir::generate::{Recording, case};
use weir_ir::graph::{Graph, NodeKind, Program};

use super::placed_diagram::{PlacedDiagram, Rect};
use super::style;
use crate::diagram::{Diagram, MarkId};
use crate::looks::MarkKind;
use crate::{DetailLevel, Drawing, svg};

/// The number of programs.
const PROGRAMS: u64 = 150;

fn drawn(test: impl Fn(u64, &Diagram, &Program, DetailLevel)) {
    let library = Recording::new(0).library();
    for seed in 0..PROGRAMS {
        let program = weir_ir::lower(&case(seed).program, &library);
        for detail in [DetailLevel::FoldedFns, DetailLevel::Folded, DetailLevel::Everything] {
            let drawing = Drawing { program: &program, library: Some(&library), plan: None, detail };
            test(seed, &Diagram::of(&drawing, &program.entries[0].flows[0]), &program, detail);
        }
    }
}

fn holders(diagram: &Diagram, mark: MarkId) -> Vec<MarkId> {
    std::iter::successors(diagram.marks[mark].parent, |&holder| diagram.marks[holder].parent).collect()
}

fn overlap(a: &Rect, b: &Rect) -> bool {
    a.x < b.right() - 0.1 && b.x < a.right() - 0.1 && a.y < b.bottom() - 0.1 && b.y < a.bottom() - 0.1
}

fn holds(outer: &Rect, inner: &Rect) -> bool {
    let (right, bottom) = (inner.right() <= outer.right() + 0.1, inner.bottom() <= outer.bottom() + 0.1);
    outer.x <= inner.x + 0.1 && outer.y <= inner.y + 0.1 && right && bottom
}

#[test]
fn marks_lie_apart_or_inside_their_frames() {
    drawn(|seed, diagram, _, _| {
        let picture = PlacedDiagram::of(diagram);
        for one in 0..diagram.marks.len() {
            let around = holders(diagram, one);
            assert!(around.iter().all(|&frame| diagram.marks[frame].kind.is_frame()));
            assert!(
                around.iter().all(|&frame| holds(&picture.rects[frame], &picture.rects[one])),
                "seed {seed}, mark {one}"
            );
            for other in (0..one).filter(|other| !around.contains(other)) {
                let (a, b) = (&picture.rects[one], &picture.rects[other]);
                assert!(!overlap(a, b), "seed {seed}: marks {one} and {other} overlap");
            }
        }
    });
}

#[test]
fn every_call_body_and_step_is_shown() {
    drawn(|seed, diagram, program, detail| {
        if detail == DetailLevel::FoldedFns {
            return;
        }
        let wanted = count(&program.entries[0].flows[0].body);
        let kinds = |wanted: MarkKind| diagram.marks.iter().filter(|mark| mark.kind == wanted).count();
        assert_eq!([kinds(MarkKind::Call), kinds(MarkKind::Repeat), kinds(MarkKind::Step)], wanted, "seed {seed}");
    });
}

/// Counts the calls, nodes with bodies, and atomic steps of a graph and its bodies.
fn count(graph: &Graph) -> [usize; 3] {
    let mut counts = [0; 3];
    for node in &graph.nodes {
        counts[0] += usize::from(matches!(node.kind, NodeKind::Call { .. }));
        counts[1] += usize::from(!node.bodies().is_empty());
        counts[2] += usize::from(matches!(node.kind, NodeKind::Acquire { .. }));
        for body in node.bodies() {
            count(body).iter().zip(&mut counts).for_each(|(more, count)| *count += more);
        }
    }
    counts
}

#[test]
fn every_edge_points_forward_and_every_mark_is_reached() {
    drawn(|seed, diagram, _, _| {
        for edge in &diagram.edges {
            assert!(edge.from < edge.to, "seed {seed}: {edge:?} points backwards");
            assert_eq!(diagram.marks[edge.from].parent, diagram.marks[edge.to].parent, "seed {seed}: {edge:?}");
        }
        for (id, mark) in diagram.marks.iter().enumerate().skip(1).filter(|(_, mark)| mark.kind != MarkKind::Entry) {
            let parent = mark.parent.map(|parent| diagram.marks[parent].kind);
            let begins = matches!(parent, Some(MarkKind::Step | MarkKind::Fn));
            let reached = diagram.edges.iter().any(|edge| edge.to == id);
            assert!(reached || begins, "seed {seed}: nothing leads to mark {id}, {mark:?}");
        }
    });
}

#[test]
fn the_document_has_as_many_ends_as_beginnings() {
    let library = Recording::new(0).library();
    for seed in 0..PROGRAMS {
        let program = weir_ir::lower(&case(seed).program, &library);
        let drawing = Drawing { program: &program, library: Some(&library), plan: None, detail: DetailLevel::Folded };
        let text = svg(&drawing).expect("generated programs are small");
        for (begin, end) in [("<g", "</g>"), ("<text", "</text>"), ("<title", "</title>"), ("<svg", "</svg>")] {
            assert_eq!(text.matches(begin).count(), text.matches(end).count(), "seed {seed}: {begin}");
        }
    }
}

#[test]
fn every_shape_has_its_colours_without_the_style_sheet() {
    let library = Recording::new(0).library();
    for seed in 0..PROGRAMS {
        let program = weir_ir::lower(&case(seed).program, &library);
        let drawing =
            Drawing { program: &program, library: Some(&library), plan: None, detail: DetailLevel::Everything };
        let text = svg(&drawing).expect("generated programs are small");
        let (_, drawn) = text.split_once("</style>").expect("the style sheet comes first");
        let mut shapes = 0;
        for tag in drawn.split('<').skip(1).map(|part| part.split('>').next().unwrap_or_default()) {
            if ["rect", "path", "circle"].iter().any(|shape| tag.starts_with(shape)) {
                assert!(tag.contains(" fill=\"#") || tag.contains(" stroke=\"#"), "seed {seed}: {tag}");
                shapes += 1;
            }
            for class in tag.split("class=\"").skip(1).flat_map(|rest| rest.split('"').next().unwrap_or("").split(' '))
            {
                assert!(style::class_names().any(|known| known == class), "seed {seed}: no such class `{class}`");
            }
        }
        assert!(shapes > 0 && !text.contains("var("), "seed {seed}");
    }
}
