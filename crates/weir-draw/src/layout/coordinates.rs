//! Coordinate assignment: the four alignments of Brandes and Köpf, and their balance.
//!
//! An alignment joins boxes and bends of adjacent layers to vertical *blocks*: each aligns with the median of its
//! neighbours in the previous layer, unless that would cross another block or a long edge. Blocks are compacted by
//! longest paths. The compaction of the paper can overlap if blocks of several classes meet (the authors' erratum of
//! 2020); longest paths cannot. The four alignments go up or down, and left or right; a coordinate is the mean of the
//! middle two.

use std::collections::BTreeSet;

use super::layers::Layers;
use super::{GAP_BEND, GAP_X, LayoutInput, half_width};

/// Returns the x coordinate of the centre of every box and bend.
pub(crate) fn coordinates(layers: &Layers, input: &LayoutInput) -> Vec<f64> {
    let conflicts = conflicts(layers);
    let directions = [(false, false), (false, true), (true, false), (true, true)];
    let mut candidates: Vec<Vec<f64>> = directions
        .iter()
        .map(|&(upwards, leftwards)| one_sided(layers, input, &conflicts, upwards, leftwards))
        .collect();
    line_up(&mut candidates, layers, input);
    let balanced: Vec<f64> = (0..layers.rank_of.len()).map(|index| middle(&candidates, index)).collect();
    let left = extent(&balanced, layers, input).0;
    balanced.into_iter().map(|x| x - left).collect()
}

/// Returns the edges, as upper and lower end, that must not be aligned because they cross the straight part of a long
/// edge.
fn conflicts(layers: &Layers) -> BTreeSet<(usize, usize)> {
    let positions = layers.positions();
    let is_bend = |index: usize| index >= layers.boxes;
    let mut conflicts = BTreeSet::new();
    for rank in &layers.ranks {
        let edges = |inner: bool| {
            rank.iter()
                .flat_map(move |&upper| layers.below[upper].iter().map(move |&lower| (upper, lower)))
                .filter(move |&(upper, lower)| (is_bend(upper) && is_bend(lower)) == inner)
        };
        for (upper, lower) in edges(true) {
            let crossing = edges(false).filter(|&(other_upper, other_lower)| {
                (positions[other_upper] < positions[upper]) != (positions[other_lower] < positions[lower])
                    && other_upper != upper
                    && other_lower != lower
            });
            conflicts.extend(crossing);
        }
    }
    conflicts
}

fn one_sided(
    layers: &Layers,
    input: &LayoutInput,
    conflicts: &BTreeSet<(usize, usize)>,
    upwards: bool,
    leftwards: bool,
) -> Vec<f64> {
    let mut ranks = layers.ranks.clone();
    if upwards {
        ranks.reverse();
    }
    if leftwards {
        ranks.iter_mut().for_each(|rank| rank.reverse());
    }
    let before = if upwards { &layers.below } else { &layers.above };
    let roots =
        align(&ranks, before, |one, other| conflicts.contains(&if upwards { (one, other) } else { (other, one) }));
    let x = compact(&ranks, &roots, |left, right| separation(input, left, right));
    if leftwards { x.into_iter().map(|x| -x).collect() } else { x }
}

/// Returns the first element of the block of each box and bend.
fn align(ranks: &[Vec<usize>], before: &[Vec<usize>], conflicts: impl Fn(usize, usize) -> bool) -> Vec<usize> {
    let mut positions = vec![0; before.len()];
    for rank in ranks {
        rank.iter().enumerate().for_each(|(position, &index)| positions[index] = position);
    }
    let mut roots: Vec<usize> = (0..before.len()).collect();
    let mut joined = vec![false; before.len()];
    for rank in ranks {
        let mut free_from = 0;
        for &index in rank {
            let mut neighbours = before[index].clone();
            neighbours.sort_by_key(|&neighbour| positions[neighbour]);
            neighbours.dedup();
            for neighbour in medians(&neighbours) {
                let free = positions[neighbour] >= free_from && !joined[neighbour];
                if roots[index] == index && free && !conflicts(index, neighbour) {
                    roots[index] = roots[neighbour];
                    joined[neighbour] = true;
                    free_from = positions[neighbour] + 1;
                }
            }
        }
    }
    roots
}

fn medians(sorted: &[usize]) -> impl Iterator<Item = usize> {
    let length = sorted.len();
    let both = if length == 0 { &sorted[..0] } else { &sorted[(length - 1) / 2..=length / 2] };
    both.iter().copied()
}

/// Places every block as far left as possible, then as far right as its neighbours allow, so that blocks are close
/// together.
fn compact(ranks: &[Vec<usize>], roots: &[usize], separation: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    let mut right_of: Vec<Vec<(usize, f64)>> = vec![Vec::new(); roots.len()];
    let mut waiting_for = vec![0; roots.len()];
    for pair in ranks.iter().flat_map(|rank| rank.windows(2)) {
        right_of[roots[pair[0]]].push((roots[pair[1]], separation(pair[0], pair[1])));
        waiting_for[roots[pair[1]]] += 1;
    }
    let mut x = vec![0.0_f64; roots.len()];
    let mut sorted: Vec<usize> =
        (0..roots.len()).filter(|&index| roots[index] == index && waiting_for[index] == 0).collect();
    let mut next = 0;
    while let Some(&block) = sorted.get(next) {
        next += 1;
        for &(right, distance) in &right_of[block] {
            x[right] = x[right].max(x[block] + distance);
            waiting_for[right] -= 1;
            if waiting_for[right] == 0 {
                sorted.push(right);
            }
        }
    }
    for &block in sorted.iter().rev() {
        let room = right_of[block].iter().map(|&(right, distance)| x[right] - distance).fold(f64::INFINITY, f64::min);
        if room.is_finite() {
            x[block] = x[block].max(room);
        }
    }
    roots.iter().map(|&root| x[root]).collect()
}

fn separation(input: &LayoutInput, left: usize, right: usize) -> f64 {
    let boxes = input.boxes.len();
    let gap = if left >= boxes && right >= boxes { GAP_BEND } else { GAP_X };
    half_width(input, left) + half_width(input, right) + gap
}

fn extent(x: &[f64], layers: &Layers, input: &LayoutInput) -> (f64, f64) {
    (0..layers.rank_of.len()).fold((f64::INFINITY, f64::NEG_INFINITY), |(left, right), index| {
        let half = half_width(input, index);
        (left.min(x[index] - half), right.max(x[index] + half))
    })
}

/// Aligns the candidates with the narrowest: those compacted to the left by their left border, the others by their
/// right.
fn line_up(candidates: &mut [Vec<f64>], layers: &Layers, input: &LayoutInput) {
    let extents: Vec<(f64, f64)> = candidates.iter().map(|x| extent(x, layers, input)).collect();
    let narrowest = extents.iter().copied().min_by(|a, b| (a.1 - a.0).total_cmp(&(b.1 - b.0))).unwrap_or_default();
    for (index, x) in candidates.iter_mut().enumerate() {
        let shift = if index % 2 == 0 { narrowest.0 - extents[index].0 } else { narrowest.1 - extents[index].1 };
        x.iter_mut().for_each(|x| *x += shift);
    }
}

fn middle(candidates: &[Vec<f64>], index: usize) -> f64 {
    let mut places: Vec<f64> = candidates.iter().map(|x| x[index]).collect();
    places.sort_by(f64::total_cmp);
    (places[1] + places[2]) / 2.0
}
