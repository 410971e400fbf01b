//! Layered layout: boxes in layers, edges downwards, few crossings, long edges straight.
//!
//! Sugiyama's method in three steps: layer assignment by longest path, which splits long edges with a *bend* in each
//! layer that they pass ([`layers`]); crossing reduction by medians ([`crossings`]); and coordinate assignment (Brandes
//! and Köpf, "Fast and Simple Horizontal Coordinate Assignment", 2001; [`coordinates`]).

mod coordinates;
mod crossings;
mod layers;
#[cfg(test)]
mod tests;

use layers::Layers;

/// The distance between boxes in a layer, in pixels.
const GAP_X: f64 = 28.0;
/// The distance between bends.
const GAP_BEND: f64 = 18.0;
/// The distance between layers, in which edges curve.
const GAP_Y: f64 = 44.0;

/// A width and a height, in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Extent {
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// A point, in pixels from the upper left.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// The input of the layout: the sizes of the boxes, and the edges between them. Edges point to later boxes.
#[derive(Debug, Default)]
pub(crate) struct LayoutInput {
    pub(crate) boxes: Vec<Extent>,
    pub(crate) edges: Vec<(usize, usize)>,
}

/// The result of the layout.
#[derive(Clone, Debug, Default)]
pub(crate) struct LayeredLayout {
    /// The centre of each box.
    pub(crate) centres: Vec<Point>,
    /// The route of each edge: from the lower border of a box, straight down through layers, to the upper border of
    /// another.
    pub(crate) routes: Vec<Vec<Point>>,
    pub(crate) size: Extent,
}

/// Computes a layered layout.
pub(crate) fn layered(input: &LayoutInput) -> LayeredLayout {
    if input.boxes.is_empty() {
        return LayeredLayout::default();
    }
    let mut layers = layers::layers(input);
    crossings::reduce(&mut layers);
    let x = coordinates::coordinates(&layers, input);
    let heights: Vec<f64> = layers.ranks.iter().map(|rank| rank_height(rank, input)).collect();
    let tops: Vec<f64> = heights
        .iter()
        .scan(0.0, |y, height| {
            let top = *y;
            *y += height + GAP_Y;
            Some(top)
        })
        .collect();
    let centre =
        |index: usize| Point { x: x[index], y: tops[layers.rank_of[index]] + heights[layers.rank_of[index]] / 2.0 };
    let centres: Vec<Point> = (0..input.boxes.len()).map(centre).collect();
    let routes = routes(input, &layers, &centres, &x, &tops, &heights);
    let width = (0..layers.rank_of.len()).map(|index| x[index] + half_width(input, index)).fold(0.0, f64::max);
    let height = tops.last().zip(heights.last()).map_or(0.0, |(top, height)| top + height);
    LayeredLayout { centres, routes, size: Extent { width, height } }
}

fn rank_height(rank: &[usize], input: &LayoutInput) -> f64 {
    rank.iter().filter_map(|&index| input.boxes.get(index)).map(|size| size.height).fold(0.0, f64::max)
}

/// Returns half the width of a box; 0 for a bend.
fn half_width(input: &LayoutInput, index: usize) -> f64 {
    input.boxes.get(index).map_or(0.0, |size| size.width / 2.0)
}

fn routes(
    input: &LayoutInput,
    layers: &Layers,
    centres: &[Point],
    x: &[f64],
    tops: &[f64],
    heights: &[f64],
) -> Vec<Vec<Point>> {
    let ports = ports(input, layers, x);
    let route = |(index, &(from, to)): (usize, &(usize, usize))| {
        let start = Point { x: ports[index].0, y: centres[from].y + input.boxes[from].height / 2.0 };
        let end = Point { x: ports[index].1, y: centres[to].y - input.boxes[to].height / 2.0 };
        let rank_bottom = |rank: usize| tops[rank] + heights[rank];
        let mut route = vec![start, Point { x: start.x, y: rank_bottom(layers.rank_of[from]) }];
        for &bend in &layers.bends[index] {
            let rank = layers.rank_of[bend];
            route.push(Point { x: x[bend], y: tops[rank] });
            route.push(Point { x: x[bend], y: rank_bottom(rank) });
        }
        route.push(Point { x: end.x, y: tops[layers.rank_of[to]] });
        route.push(end);
        route
    };
    input.edges.iter().enumerate().map(route).collect()
}

/// Returns the x coordinates at which each edge leaves and reaches its boxes. Edges leave side by side in the order of
/// their targets, so that they do not cross at the border.
fn ports(input: &LayoutInput, layers: &Layers, x: &[f64]) -> Vec<(f64, f64)> {
    let mut ports: Vec<(f64, f64)> = input.edges.iter().map(|&(from, to)| (x[from], x[to])).collect();
    for (index, size) in input.boxes.iter().enumerate() {
        let mut leaving: Vec<usize> = (0..input.edges.len()).filter(|&edge| input.edges[edge].0 == index).collect();
        leaving.sort_by(|a, b| next(layers, input, x, *a).total_cmp(&next(layers, input, x, *b)));
        let targets: Vec<f64> = leaving.iter().map(|&edge| next(layers, input, x, edge)).collect();
        for (edge, offset) in leaving.into_iter().zip(spread(&targets, x[index], size.width)) {
            ports[edge].0 += offset;
        }
    }
    ports
}

fn next(layers: &Layers, input: &LayoutInput, x: &[f64], edge: usize) -> f64 {
    x[layers.bends[edge].first().copied().unwrap_or(input.edges[edge].1)]
}

/// Returns offsets from the middle of a border for edges to these x coordinates, in ascending order. An edge that goes
/// straight down leaves in the middle.
fn spread(targets: &[f64], middle: f64, width: f64) -> Vec<f64> {
    let step = (width / 2.0 / (targets.len() as f64)).min(22.0);
    let straight = targets.iter().position(|target| (target - middle).abs() < 1.0);
    let pivot = straight.map_or((targets.len() as f64 - 1.0) / 2.0, |index| index as f64);
    (0..targets.len()).map(|index| (index as f64 - pivot) * step).collect()
}
