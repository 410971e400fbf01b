//! Crossing reduction: orders each layer by the medians of its neighbours, sweeping down and up.

use super::layers::Layers;

/// The number of sweeps; more sweeps gain little.
const SWEEPS: usize = 12;

/// Reorders the layers so that few edges cross.
pub(crate) fn reduce(layers: &mut Layers) {
    let mut best = layers.ranks.clone();
    let mut fewest = crossings(layers);
    for sweep in 0..SWEEPS {
        if fewest == 0 {
            break;
        }
        if sweep % 2 == 0 {
            (1..layers.ranks.len()).for_each(|rank| by_medians(layers, rank, NeighbourSide::Above));
        } else {
            (0..layers.ranks.len().saturating_sub(1))
                .rev()
                .for_each(|rank| by_medians(layers, rank, NeighbourSide::Below));
        }
        transpose(layers);
        let count = crossings(layers);
        if count < fewest {
            fewest = count;
            best.clone_from(&layers.ranks);
        }
    }
    layers.ranks = best;
}

/// The neighbours that determine the order.
#[derive(Clone, Copy)]
enum NeighbourSide {
    Above,
    Below,
}

fn by_medians(layers: &mut Layers, rank: usize, side: NeighbourSide) {
    let positions = layers.positions();
    let neighbours = match side {
        NeighbourSide::Above => &layers.above,
        NeighbourSide::Below => &layers.below,
    };
    let mut keyed: Vec<(f64, usize)> = layers.ranks[rank]
        .iter()
        .map(|&index| (median(&neighbours[index], &positions).unwrap_or(positions[index] as f64), index))
        .collect();
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
    layers.ranks[rank] = keyed.into_iter().map(|(_, index)| index).collect();
}

fn median(neighbours: &[usize], positions: &[usize]) -> Option<f64> {
    let mut places: Vec<usize> = neighbours.iter().map(|&neighbour| positions[neighbour]).collect();
    places.sort_unstable();
    let middle = places.len() / 2;
    match places.len() {
        0 => None,
        length if length % 2 == 1 => Some(places[middle] as f64),
        _ => Some((places[middle - 1] + places[middle]) as f64 / 2.0),
    }
}

/// Swaps adjacent elements if that removes crossings.
fn transpose(layers: &mut Layers) {
    let positions = layers.positions();
    for rank in 0..layers.ranks.len() {
        for left in 0..layers.ranks[rank].len().saturating_sub(1) {
            let (a, b) = (layers.ranks[rank][left], layers.ranks[rank][left + 1]);
            let cost = |first: usize, second: usize| {
                crossings_of(&layers.above[first], &layers.above[second], &positions)
                    + crossings_of(&layers.below[first], &layers.below[second], &positions)
            };
            if cost(b, a) < cost(a, b) {
                layers.ranks[rank].swap(left, left + 1);
            }
        }
    }
}

fn crossings_of(left: &[usize], right: &[usize], positions: &[usize]) -> usize {
    left.iter().map(|l| right.iter().filter(|r| positions[*l] > positions[**r]).count()).sum()
}

/// Returns the number of pairs of edges that cross.
fn crossings(layers: &Layers) -> usize {
    let positions = layers.positions();
    let between = layers.ranks.iter().map(|rank| {
        let mut ends: Vec<usize> = Vec::new();
        let mut count = 0;
        for &index in rank {
            let mut targets: Vec<usize> = layers.below[index].iter().map(|&below| positions[below]).collect();
            targets.sort_unstable();
            for target in &targets {
                count += ends.len() - ends.partition_point(|end| end <= target);
            }
            for target in targets {
                ends.insert(ends.partition_point(|end| *end <= target), target);
            }
        }
        count
    });
    between.sum()
}
