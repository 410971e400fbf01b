//! The order in which the branches of a choice are tried: fair, cheap, and reproducible from a seed.

use std::cell::Cell;

/// The order in which one synchronisation tries its base events.
pub(crate) enum TryOrder {
    /// `base event = (start + i * step) mod count`, with a step that is coprime to the count. Of two base events,
    /// either comes first in exactly half of all pairs of start and step, because a step and its negation are equally
    /// likely. Nothing is allocated.
    Stride { next: usize, step: usize, left: usize, count: usize },
    /// An explicit order, used if a biased choice is involved.
    List(std::vec::IntoIter<usize>),
}

impl TryOrder {
    /// Returns a fair order.
    pub(crate) fn fair(count: usize) -> Self {
        match count {
            0 | 1 => TryOrder::Stride { next: 0, step: 0, left: count, count },
            _ => TryOrder::Stride { next: below(count), step: stride(count), left: count, count },
        }
    }
}

impl Iterator for TryOrder {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        match self {
            TryOrder::List(list) => list.next(),
            TryOrder::Stride { left: 0, .. } => None,
            TryOrder::Stride { next, step, left, count } => {
                let base = *next;
                *left -= 1;
                *next += *step;
                if *next >= *count {
                    *next -= *count;
                }
                Some(base)
            }
        }
    }
}

/// Returns a random step in `1..count` that visits every base event.
fn stride(count: usize) -> usize {
    if count.is_power_of_two() {
        return below(count) | 1;
    }
    loop {
        let step = 1 + below(count - 1);
        if greatest_common_divisor(step, count) == 1 {
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
/// Without a seed, the first choice of a thread depends only on the number of threads that have chosen before it.
pub fn seed_choices(seed: u64) {
    STATE.with(|state| state.set(mix(seed) | 1));
}

/// Returns a random number below `limit`, which is not 0 (xorshift64*, Vigna 2016; the bias of the reduction is below
/// 2^-32 for any count that fits into memory).
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
    fn every_base_event_is_visited_once() {
        for count in 0..50 {
            let mut order: Vec<_> = TryOrder::fair(count).collect();
            order.sort_unstable();
            assert_eq!(order, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_order() {
        let orders = || {
            seed_choices(7);
            (0..20).map(|_| TryOrder::fair(9).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        assert_eq!(orders(), orders());
    }

    #[test]
    fn an_interleaving_keeps_each_order() {
        let merged = interleave(vec![vec![0, 1, 2], vec![3, 4], vec![5]]);
        let of = |range: std::ops::Range<usize>| merged.iter().copied().filter(move |base| range.contains(base));
        assert!(of(0..3).eq(0..3) && of(3..5).eq(3..5) && merged.len() == 6);
    }
}
