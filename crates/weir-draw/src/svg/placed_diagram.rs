//! A diagram with coordinates: the rectangle of every mark and the route of every edge.

use super::sizes::size;
use crate::diagram::{Diagram, MarkId};
use crate::layout::{Extent, LayeredLayout, LayoutInput, Point, layered};

/// The padding inside a frame, and the space for its title.
const FRAME: f64 = 18.0;
const FRAME_TITLE: f64 = 20.0;

/// A rectangle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rect {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Rect {
    pub(super) fn right(&self) -> f64 {
        self.x + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.y + self.height
    }

    pub(super) fn middle(&self) -> Point {
        Point { x: self.x + self.width / 2.0, y: self.y + self.height / 2.0 }
    }
}

/// The rectangles of a flow's marks and the routes of its edges, by their index in the diagram.
#[derive(Debug, Default)]
pub(super) struct PlacedDiagram {
    pub(super) rects: Vec<Rect>,
    pub(super) routes: Vec<Vec<Point>>,
    pub(super) size: Extent,
}

impl PlacedDiagram {
    pub(super) fn of(diagram: &Diagram) -> PlacedDiagram {
        let sizes = vec![Extent::default(); diagram.marks.len()];
        let mut measuring = DiagramPlacement { diagram, sizes, layouts: vec![None; diagram.marks.len()] };
        measuring.own_sizes();
        // A mark precedes its contents, so that the last frame is the innermost.
        for frame in (0..diagram.marks.len()).rev() {
            if diagram.marks[frame].kind.is_frame() {
                let layout = measuring.layout(Some(frame));
                let wanted = measuring.sizes[frame];
                measuring.sizes[frame] = Extent {
                    width: wanted.width.max(layout.size.width + 2.0 * FRAME),
                    height: layout.size.height + 2.0 * FRAME + FRAME_TITLE,
                };
                measuring.layouts[frame] = Some(layout);
            }
        }
        let outermost = measuring.layout(None);
        measuring.picture(&outermost)
    }
}

struct DiagramPlacement<'a> {
    diagram: &'a Diagram,
    sizes: Vec<Extent>,
    layouts: Vec<Option<LayeredLayout>>,
}

impl DiagramPlacement<'_> {
    fn own_sizes(&mut self) {
        for (own, mark) in self.sizes.iter_mut().zip(&self.diagram.marks) {
            *own = size(mark);
        }
    }

    fn layout(&self, parent: Option<MarkId>) -> LayeredLayout {
        let inside = self.diagram.inside(parent);
        let local = |mark: MarkId| inside.binary_search(&mark).ok();
        let edges = self.edges(parent).filter_map(|index| {
            let edge = &self.diagram.edges[index];
            Some((local(edge.from)?, local(edge.to)?))
        });
        layered(&LayoutInput { boxes: inside.iter().map(|&mark| self.sizes[mark]).collect(), edges: edges.collect() })
    }

    fn edges(&self, parent: Option<MarkId>) -> impl Iterator<Item = usize> {
        let edges = self.diagram.edges.iter().enumerate();
        edges.filter(move |(_, edge)| self.diagram.marks[edge.from].parent == parent).map(|(index, _)| index)
    }

    fn picture(&self, outermost: &LayeredLayout) -> PlacedDiagram {
        let mut picture = PlacedDiagram {
            rects: vec![Rect::default(); self.sizes.len()],
            routes: vec![Vec::new(); self.diagram.edges.len()],
            size: outermost.size,
        };
        self.put(&mut picture, None, outermost, Point::default());
        for (frame, layout) in self.layouts.iter().enumerate() {
            if let Some(layout) = layout {
                let rect = picture.rects[frame];
                let corner =
                    Point { x: rect.x + (rect.width - layout.size.width) / 2.0, y: rect.y + FRAME + FRAME_TITLE };
                self.put(&mut picture, Some(frame), layout, corner);
            }
        }
        picture
    }

    fn put(&self, picture: &mut PlacedDiagram, parent: Option<MarkId>, layout: &LayeredLayout, corner: Point) {
        for (mark, centre) in self.diagram.inside(parent).into_iter().zip(&layout.centres) {
            let size = self.sizes[mark];
            picture.rects[mark] = Rect {
                x: corner.x + centre.x - size.width / 2.0,
                y: corner.y + centre.y - size.height / 2.0,
                width: size.width,
                height: size.height,
            };
        }
        for (edge, route) in self.edges(parent).zip(&layout.routes) {
            picture.routes[edge] =
                route.iter().map(|point| Point { x: corner.x + point.x, y: corner.y + point.y }).collect();
        }
    }
}
