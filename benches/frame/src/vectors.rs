//! Vectors: one flow through all instructions before the next, and a batch of flows through each instruction.
//!
//! The program is straight: a chain of 100 dependent multiplications and additions, as a section of short calls has it.

use crate::Row;

/// Instructions of the chain.
const CHAIN: usize = 100;
/// Flows of one measurement.
const FLOWS: usize = 2_048;
/// Flows in a vector.
const VECTOR: usize = 64;

/// The rows of this module.
pub(crate) fn rows() -> Vec<Row> {
    let units = (FLOWS * CHAIN) as u64;
    vec![
        Row::new("one flow after the other through 100 instructions, per instruction", units, one_by_one),
        Row::new("vectors of 64 flows through each instruction, per instruction", units, by_vectors),
        Row::new("vectors of 8 flows through each instruction, per instruction", units, by_small_vectors),
    ]
}

/// An instruction of the chain. It is chosen at run time, as the next instruction of an interpreter is.
#[derive(Clone, Copy)]
enum Link {
    Multiply(f64),
    Add(f64),
}

fn chain() -> Vec<Link> {
    (0..CHAIN).map(|index| if index % 2 == 0 { Link::Multiply(1.000_1) } else { Link::Add(0.5) }).collect()
}

#[inline(never)]
fn one_by_one() -> u64 {
    let chain = std::hint::black_box(chain());
    let mut sum = 0.0;
    for flow in 0..FLOWS {
        let mut value = flow as f64;
        for link in &chain {
            value = match *link {
                Link::Multiply(factor) => value * factor,
                Link::Add(term) => value + term,
            };
        }
        sum += value;
    }
    sum.to_bits()
}

#[inline(never)]
fn by_vectors() -> u64 {
    in_vectors::<VECTOR>()
}

#[inline(never)]
fn by_small_vectors() -> u64 {
    in_vectors::<8>()
}

#[inline(always)]
fn in_vectors<const WIDTH: usize>() -> u64 {
    let chain = std::hint::black_box(chain());
    let mut sum = 0.0;
    for first in (0..FLOWS).step_by(WIDTH) {
        let mut values: [f64; WIDTH] = std::array::from_fn(|index| (first + index) as f64);
        for link in &chain {
            match *link {
                Link::Multiply(factor) => values.iter_mut().for_each(|value| *value *= factor),
                Link::Add(term) => values.iter_mut().for_each(|value| *value += term),
            }
        }
        sum += values.iter().sum::<f64>();
    }
    sum.to_bits()
}
