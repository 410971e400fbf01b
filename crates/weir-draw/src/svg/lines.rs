//! Draws edges, the background of sections, and the lifelines of resources.

use std::fmt::Write as _;

use weir_host::{Mode, Resource, Text};
use weir_ir::graph::Program;

use super::placed_diagram::{PlacedDiagram, Rect};
use super::{escape, line, style};
use crate::diagram::{Diagram, DiagramMark, EdgeLabel, MarkId};
use crate::layout::Point;
use crate::names;

/// The space between the flow and its first resource.
const LIFE_GAP: f64 = 46.0;
/// The height of a resource's shape.
const STORE_HEIGHT: f64 = 38.0;
/// The distance at which a line passes a box.
const CLEARANCE: f64 = 11.0;

/// Tints the sections, if there is more than one.
pub(super) fn sections(text: &mut String, diagram: &Diagram, picture: &PlacedDiagram) {
    let last = diagram.marks.iter().map(|mark| mark.section).max().unwrap_or(0);
    if last == 0 {
        return;
    }
    for section in 0..=last {
        let tint = style::TINTS[section as usize % style::TINTS.len()];
        let _ = write!(text, r#"<g {}>"#, style::class("section"));
        let inside = |mark: MarkId| diagram.marks[mark].section == section && !diagram.marks[mark].kind.is_frame();
        for (_, rect) in picture.rects.iter().enumerate().filter(|(mark, _)| inside(*mark)) {
            line(
                text,
                format_args!(
                    r#"<rect x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}" rx="18" fill="{tint}"/>"#,
                    rect.x - 13.0,
                    rect.y - 13.0,
                    rect.width + 26.0,
                    rect.height + 26.0
                ),
            );
        }
        for (edge, route) in diagram.edges.iter().zip(&picture.routes) {
            if inside(edge.from) && inside(edge.to) {
                let class = style::class("section-way");
                line(text, format_args!(r#"<path {class} stroke="{tint}" d="{}"/>"#, curve(route)));
            }
        }
        text.push_str("</g>\n");
    }
}

/// Prints the name of each section of a plan at its first mark.
pub(super) fn section_names(text: &mut String, diagram: &Diagram, picture: &PlacedDiagram) {
    for (section, name) in diagram.sections.iter().enumerate() {
        let inside = |mark: &DiagramMark| mark.section as usize == section && !mark.kind.is_frame();
        let Some(first) = diagram.marks.iter().position(inside) else { continue };
        let (x, y) = (picture.rects[first].x - 9.0, picture.rects[first].y - 5.0);
        line(
            text,
            format_args!(
                r#"<text {} x="{x:.1}" y="{y:.1}">{}</text>"#,
                style::class("label section-name"),
                escape(name)
            ),
        );
    }
}

/// Draws the edges with their arrowheads.
pub(super) fn edges(text: &mut String, diagram: &Diagram, picture: &PlacedDiagram) {
    for (edge, route) in diagram.edges.iter().zip(&picture.routes) {
        let class = if edge.label == EdgeLabel::Order { "edge order" } else { "edge" };
        line(text, format_args!(r#"<path {} d="{}"/>"#, style::class(class), curve(route)));
        if let Some(end) = route.last() {
            line(
                text,
                format_args!(r#"<path {} d="M{:.1} {:.1}l-4 -8q4 2 8 0z"/>"#, style::class("head"), end.x, end.y),
            );
        }
    }
}

/// Draws the labels of edges on top: at the start of an edge or, if a switch has many, at its end.
pub(super) fn labels(text: &mut String, diagram: &Diagram, picture: &PlacedDiagram) {
    for (edge, route) in diagram.edges.iter().zip(&picture.routes) {
        let (EdgeLabel::Choice(label), [start, next, after, ..]) = (&edge.label, route.as_slice()) else { continue };
        let siblings = diagram.edges.iter().filter(|other| other.from == edge.from).count();
        let (x, y, anchor) =
            if siblings > 2 { (after.x + 7.0, after.y - 9.0, "start") } else { beside(*start, *next, *after) };
        line(
            text,
            format_args!(
                r#"<text {} x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#,
                style::class("label"),
                escape(label)
            ),
        );
    }
}

/// Returns the position beside the start of an edge, on the side that it turns to.
fn beside(start: Point, next: Point, after: Point) -> (f64, f64, &'static str) {
    let (anchor, side) = if after.x < next.x - 6.0 { ("end", -7.0) } else { ("start", 7.0) };
    (next.x + (after.x - next.x) * 0.08 + side, next.y.max(start.y) + 15.0, anchor)
}

/// Returns a route as a path: straight within ranks, curved between them.
fn curve(route: &[Point]) -> String {
    let Some(start) = route.first() else { return String::new() };
    let mut path = format!("M{:.1} {:.1}", start.x, start.y);
    for pair in route.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        if (from.x - to.x).abs() < 0.5 {
            if (from.y - to.y).abs() > 0.05 {
                path.push_str(&format!("L{:.1} {:.1}", to.x, to.y));
            }
        } else {
            let middle = (from.y + to.y) / 2.0;
            path.push_str(&format!("C{:.1} {middle:.1} {:.1} {middle:.1} {:.1} {:.1}", from.x, to.x, to.x, to.y));
        }
    }
    path
}

/// A resource beside its flow, and the calls that access it.
pub(super) struct Lifeline<'a> {
    resource: &'a Resource,
    /// True if each session has its own value.
    per_session: bool,
    store: Rect,
    accesses: Vec<DrawnAccess>,
    /// The y coordinate of the end of its line.
    pub(super) bottom: f64,
}

struct DrawnAccess {
    mode: Mode,
    route: Vec<Point>,
}

impl Lifeline<'_> {
    pub(super) fn right(&self) -> f64 {
        self.store.right()
    }
}

/// Places the lifelines of all resources that calls access, in the order of their first access. The private state of a
/// call site has none, because only one call accesses it.
pub(super) fn lifelines<'a>(diagram: &'a Diagram, picture: &PlacedDiagram) -> Vec<Lifeline<'a>> {
    let mut resources: Vec<&Resource> = Vec::new();
    for (resource, _) in diagram.marks.iter().flat_map(|mark| &mark.uses) {
        if !resources.contains(&resource) && !matches!(resource, Resource::State(_)) {
            resources.push(resource);
        }
    }
    let mut left = picture.size.width + LIFE_GAP;
    let mut lifelines = Vec::new();
    for resource in resources {
        let width = (names::resource(resource).chars().count() as f64 * 7.85).max(40.0) + 26.0;
        let store = Rect { x: left, y: 4.0, width, height: STORE_HEIGHT };
        lifelines.push(lifeline(diagram, picture, resource, store));
        left = store.right() + 22.0;
    }
    lifelines
}

/// Marks the lifelines of session-scoped values.
pub(super) fn tell_sessions(lifelines: &mut [Lifeline<'_>], program: &Program) {
    let own = |name: &Text| program.shared.iter().any(|shared| shared.per_session && shared.name == *name);
    for lifeline in lifelines {
        lifeline.per_session = matches!(lifeline.resource, Resource::Shared(name) if own(name));
    }
}

fn lifeline<'a>(diagram: &Diagram, picture: &PlacedDiagram, resource: &'a Resource, store: Rect) -> Lifeline<'a> {
    let x = store.middle().x;
    let mut accesses = Vec::new();
    for (mark, drawn) in diagram.marks.iter().enumerate() {
        if let Some(index) = drawn.uses.iter().position(|(used, _)| used == resource) {
            let route = route_to_lifeline(diagram, picture, mark, x, index);
            accesses.push(DrawnAccess { mode: drawn.uses[index].1, route });
        }
    }
    let bottom = accesses.iter().filter_map(|touch| touch.route.last()).map(|end| end.y).fold(store.bottom(), f64::max);
    Lifeline { resource, per_session: false, store, accesses, bottom: bottom + 12.0 }
}

/// Returns the route from the right border of a mark to `x`: straight if nothing is in the way, otherwise between the
/// ranks.
fn route_to_lifeline(diagram: &Diagram, picture: &PlacedDiagram, mark: MarkId, x: f64, index: usize) -> Vec<Point> {
    let rect = picture.rects[mark];
    let offset = index as f64 * 7.0;
    let holders: Vec<MarkId> = std::iter::successors(Some(mark), |&mark| diagram.marks[mark].parent).collect();
    let free = |y: f64| {
        picture.rects.iter().enumerate().all(|(other, obstacle)| {
            holders.contains(&other)
                || obstacle.right() < rect.right()
                || y < obstacle.y - CLEARANCE / 2.0
                || y > obstacle.bottom() + CLEARANCE / 2.0
        })
    };
    let straight = rect.middle().y + offset;
    if free(straight) {
        return vec![Point { x: rect.right(), y: straight }, Point { x, y: straight }];
    }
    let bands = picture.rects.iter().flat_map(|rect| [rect.bottom() + CLEARANCE + offset, rect.y - CLEARANCE - offset]);
    let y = bands
        .filter(|&y| free(y))
        .min_by(|a, b| (a - straight).abs().total_cmp(&(b - straight).abs()))
        .unwrap_or(rect.bottom() + CLEARANCE);
    let turn = rect.right() + 9.0 + offset;
    vec![Point { x: rect.right(), y: straight }, Point { x: turn, y: straight }, Point { x: turn, y }, Point { x, y }]
}

/// Draws the lifelines.
pub(super) fn draw_lifelines(text: &mut String, lifelines: &[Lifeline<'_>]) {
    for lifeline in lifelines {
        let x = lifeline.store.middle().x;
        line(
            text,
            format_args!(
                r#"<path {} d="M{x:.1} {:.1}V{:.1}"/>"#,
                style::class("life"),
                lifeline.store.bottom(),
                lifeline.bottom
            ),
        );
        store(text, lifeline);
    }
    for touch in lifelines.iter().flat_map(|lifeline| &lifeline.accesses) {
        draw_touch(text, touch);
    }
}

fn draw_touch(text: &mut String, touch: &DrawnAccess) {
    let class = if touch.mode == Mode::Read { "read" } else { "write" };
    let (Some(start), Some(end)) = (touch.route.first(), touch.route.last()) else { return };
    line(text, format_args!(r#"<path {} d="{}"/>"#, style::class(class), cornered(&touch.route)));
    line(
        text,
        format_args!(
            r#"<circle {} cx="{:.1}" cy="{:.1}" r="3"/>"#,
            style::class(&format!("{class}-head")),
            end.x,
            end.y
        ),
    );
    let (head, direction) = if touch.mode == Mode::Read { (start, 1.0) } else { (end, -1.0) };
    let tip = head.x + if touch.mode == Mode::Read { 0.0 } else { -2.0 };
    line(
        text,
        format_args!(
            r#"<path {} d="M{tip:.1} {:.1}l{:.1} -4q{:.1} 4 0 8z"/>"#,
            style::class(&format!("{class}-head")),
            head.y,
            8.0 * direction,
            -2.0 * direction
        ),
    );
}

/// Returns a route as a path with rounded corners.
fn cornered(route: &[Point]) -> String {
    let mut path = format!("M{:.1} {:.1}", route[0].x, route[0].y);
    for three in route.windows(3) {
        let (before, corner, after) = (three[0], three[1], three[2]);
        let near = towards(corner, before);
        let far = towards(corner, after);
        path.push_str(&format!(
            "L{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}",
            near.x, near.y, corner.x, corner.y, far.x, far.y
        ));
    }
    let end = route[route.len() - 1];
    path.push_str(&format!("L{:.1} {:.1}", end.x, end.y));
    path
}

/// Returns the point a few pixels from `from` towards `to`, on a horizontal or vertical line.
fn towards(from: Point, to: Point) -> Point {
    let reach = |distance: f64| distance.clamp(-6.0, 6.0);
    Point { x: from.x + reach(to.x - from.x), y: from.y + reach(to.y - from.y) }
}

fn store(text: &mut String, lifeline: &Lifeline<'_>) {
    let rect = lifeline.store;
    let (kind, hint) = match lifeline.resource {
        Resource::Shared(_) if lifeline.per_session => ("per session", "each session has its own"),
        Resource::Shared(_) => ("shared", "one value for all flows"),
        Resource::Constraint(_) => ("constraint", "stands for something outside the program"),
        Resource::World(_) => ("world", "the library's part of the outside world"),
        Resource::State(_) => ("state", "private to its call site"),
    };
    text.push_str("<g>");
    line(text, format_args!("<title>{hint}</title>"));
    match lifeline.resource {
        Resource::Shared(_) => cylinder(text, &rect),
        _ => line(
            text,
            format_args!(
                r#"<rect {} x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}" rx="5" stroke-dasharray="4 3"/>"#,
                style::class("store"),
                rect.x,
                rect.y,
                rect.width,
                rect.height
            ),
        ),
    }
    let x = rect.middle().x;
    line(
        text,
        format_args!(
            r#"<text {} x="{x:.1}" y="{:.1}" text-anchor="middle">{kind}</text>"#,
            style::class("over"),
            rect.y + 16.0
        ),
    );
    let name = escape(&names::shorten(names::resource(lifeline.resource)));
    line(
        text,
        format_args!(
            r#"<text {} x="{x:.1}" y="{:.1}" text-anchor="middle">{name}</text>"#,
            style::class("title code"),
            rect.y + 31.0
        ),
    );
    text.push_str("</g>\n");
}

fn cylinder(text: &mut String, rect: &Rect) {
    let (x, y, width) = (rect.x, rect.y, rect.width);
    let height = rect.height - 6.0;
    let half = width / 2.0;
    line(
        text,
        format_args!(
            r#"<path {} d="M{x:.1} {y:.1}a{half:.1} 5 0 0 1 {width:.1} 0v{height:.1}a{half:.1} 5 0 0 1 -{width:.1} 0z"/>"#,
            style::class("store")
        ),
    );
    line(
        text,
        format_args!(
            r#"<path {} fill-opacity="0" d="M{x:.1} {y:.1}a{half:.1} 5 0 0 0 {width:.1} 0"/>"#,
            style::class("store")
        ),
    );
}
