//! Random cases, by the constructs that they have more of.

use super::emphasis::Emphasis;
use super::program::generated;
use super::{Case, is_bounded};

/// Returns the case of this seed.
#[must_use]
pub fn case(seed: u64) -> Case {
    bounded(seed, Emphasis::None)
}

/// Returns the case of this seed, which computes more than it waits: nested loops over numbers and lists, and functions
/// that return at once, with a few calls and steps that wait in between.
#[must_use]
pub fn computing_case(seed: u64) -> Case {
    bounded(seed, Emphasis::Computing)
}

/// Returns the case of this seed, which computes, and most of all reads, adds and replaces elements of lists and maps.
#[must_use]
pub fn elements_case(seed: u64) -> Case {
    bounded(seed, Emphasis::Elements)
}

/// Returns the case of this seed, which computes, and has more choices between numbers and sums of products.
#[must_use]
pub fn arithmetic_case(seed: u64) -> Case {
    bounded(seed, Emphasis::Arithmetic)
}

/// Returns the case of this seed, which computes, and most of all in the rounds of `for`s, many of which have no order.
#[must_use]
pub fn rounds_case(seed: u64) -> Case {
    bounded(seed, Emphasis::Rounds)
}

/// Returns the case of this seed, which computes, and many of whose loops and calls need nothing of those before them.
#[must_use]
pub fn independent_case(seed: u64) -> Case {
    bounded(seed, Emphasis::Independence)
}

/// Returns the case of this seed, with loops that only change entries of maps, elements of lists, and results.
#[must_use]
pub fn updating_case(seed: u64) -> Case {
    bounded(seed, Emphasis::Updates)
}

/// Returns the case of this seed, with much for passes to rewrite; calls of it may fault, which engines do not order.
#[must_use]
pub fn rewritable_case(seed: u64) -> Case {
    bounded(seed, Emphasis::Rewritable)
}

/// Returns the case of this seed, which mostly calls functions whose calls are gathered into batches.
#[must_use]
pub fn batched_case(seed: u64) -> Case {
    bounded(seed, Emphasis::Batches)
}

/// Returns the case of this seed, which does so in loops that failures leave, too.
#[must_use]
pub fn left_loops_case(seed: u64) -> Case {
    bounded(seed, Emphasis::LeftLoops)
}

/// Returns the first case of this seed and of those that follow from it whose evaluation is bounded: loops nest, and what they
/// join may double in each round.
fn bounded(seed: u64, emphasis: Emphasis) -> Case {
    let cases = (0..).map(|attempt: u64| generated(seed ^ attempt.rotate_right(8), emphasis));
    cases.into_iter().find(is_bounded).expect("most cases are")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_whose_values_double_in_nested_loops_is_replaced() {
        let (seed, emphasis) = (2_670, Emphasis::Batches);
        assert!(!is_bounded(&generated(seed, emphasis)), "seed {seed} needs no bound any more");
        let replaced = bounded(seed, emphasis);
        assert!(is_bounded(&replaced) && replaced == bounded(seed, emphasis), "seed {seed}");
        assert_eq!(bounded(7, Emphasis::Rounds), generated(7, Emphasis::Rounds));
    }
}
