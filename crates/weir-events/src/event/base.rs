//! The base events that need no peer: `always` and `never`.

use super::node::{Node, Shape, Stake};
use super::placing::Placing;
use super::settlement::Settlement;

/// `always(value)`.
pub(crate) struct Always<T>(pub(crate) T);

impl<T: Clone + Send + Sync> Node<T> for Always<T> {
    fn shape(&self) -> Shape {
        Shape::LEAF
    }

    fn attempt(&self, _: usize, settlement: &mut Settlement) -> Option<T> {
        settlement.settle();
        Some(self.0.clone())
    }

    fn place(&self, _: usize, placing: &mut Placing<'_>) -> Option<Stake> {
        placing.party.commit_alone(placing.leaf);
        None
    }

    fn redeem(&self, _: usize, _: Option<Stake>) -> T {
        self.0.clone()
    }
}

/// `never()`: no leaf at all.
pub(crate) struct Never;

impl<T> Node<T> for Never {
    fn shape(&self) -> Shape {
        Shape { leaves: 0, ..Shape::LEAF }
    }

    fn attempt(&self, _: usize, _: &mut Settlement) -> Option<T> {
        None
    }

    fn place(&self, _: usize, _: &mut Placing<'_>) -> Option<Stake> {
        None
    }

    fn redeem(&self, _: usize, _: Option<Stake>) -> T {
        unreachable!("an event without leaves never takes effect")
    }
}
