//! In which order the leaves of a choice are tried: fair, cheap, and the same for the same seed.

use std::cell::Cell;

/// The leaves in the order of one synchronisation.
pub(crate) enum Order {
    /// `leaf = (start + i * step) mod leaves`, with a step that shares no factor with the number of leaves. Of two
    /// leaves either comes first in exactly half of all pairs of start and step, because a step and its negation are
    /// equally likely; and nothing is allocated.
    Stride { next: usize, step: usize, left: usize, leaves: usize },
    /// Written out, where a biased choice is in it.
    List(std::vec::IntoIter<usize>),
}

impl Order {
    /// A fair order.
    pub(crate) fn fair(leaves: usize) -> Self {
        match leaves {
            0 | 1 => Order::Stride { next: 0, step: 0, left: leaves, leaves },
            _ => Order::Stride { next: below(leaves), step: stride(leaves), left: leaves, leaves },
        }
    }
}

impl Iterator for Order {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        match self {
            Order::List(list) => list.next(),
            Order::Stride { left: 0, .. } => None,
            Order::Stride { next, step, left, leaves } => {
                let leaf = *next;
                *left -= 1;
                *next += *step;
                if *next >= *leaves {
                    *next -= *leaves;
                }
                Some(leaf)
            }
        }
    }
}

/// A random step in `1..leaves` that visits every leaf.
fn stride(leaves: usize) -> usize {
    if leaves.is_power_of_two() {
        return below(leaves) | 1;
    }
    loop {
        let step = 1 + below(leaves - 1);
        if greatest_common_divisor(step, leaves) == 1 {
            return step;
        }
    }
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Merges several orders at random, each keeping its own order: all interleavings are equally likely.
pub(crate) fn interleave(orders: Vec<Vec<usize>>) -> Vec<usize> {
    let turns = orders.iter().enumerate().flat_map(|(number, order)| std::iter::repeat_n(number, order.len()));
    let mut turns: Vec<usize> = turns.collect();
    for last in (1..turns.len()).rev() {
        turns.swap(last, below(last + 1));
    }
    let mut orders: Vec<_> = orders.into_iter().map(Vec::into_iter).collect();
    turns.into_iter().filter_map(|number| orders[number].next()).collect()
}

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// Seeds the choices of the calling thread, so that a simulation can be repeated.
///
/// Without a seed a thread begins with one that depends only on how many threads have chosen before it.
pub fn seed_choices(seed: u64) {
    STATE.with(|state| state.set(mix(seed) | 1));
}

/// A random number below `limit`, which is not 0 (xorshift64*, Vigna 2016; the bias of the reduction is below 2^-32
/// for any number of leaves that fits into memory).
pub(crate) fn below(limit: usize) -> usize {
    STATE.with(|state| {
        let mut x = match state.get() {
            0 => unseeded(),
            x => x,
        };
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        state.set(x);
        let high = x.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        ((high * limit as u64) >> 32) as usize
    })
}

#[cfg(not(loom))]
fn unseeded() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    static THREADS: AtomicU64 = AtomicU64::new(0);
    mix(THREADS.fetch_add(1, Relaxed)) | 1
}

/// The model repeats executions, so it always begins with the same number.
#[cfg(loom)]
fn unseeded() -> u64 {
    1
}

/// SplitMix64's finaliser.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_leaf_is_visited_once() {
        for leaves in 0..50 {
            let mut order: Vec<_> = Order::fair(leaves).collect();
            order.sort_unstable();
            assert_eq!(order, (0..leaves).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_order() {
        let orders = || {
            seed_choices(7);
            (0..20).map(|_| Order::fair(9).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        assert_eq!(orders(), orders());
    }

    #[test]
    fn an_interleaving_keeps_each_order() {
        let merged = interleave(vec![vec![0, 1, 2], vec![3, 4], vec![5]]);
        let of = |range: std::ops::Range<usize>| merged.iter().copied().filter(move |leaf| range.contains(leaf));
        assert!(of(0..3).eq(0..3) && of(3..5).eq(3..5) && merged.len() == 6);
    }
}
