//! `choose` and `choose_biased`: exactly one of several events takes effect.

use super::forcing::Forcing;
use super::node::{Event, Node, Shape, Stake};
use super::order;
use super::placing::Placing;
use super::settlement::Settlement;

/// Which of several leaves that could take effect now is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preference {
    /// Any, with equal chances.
    Fair,
    /// The one named first.
    First,
}

/// `choose(branches)`.
pub(crate) struct Choose<T> {
    branches: Vec<Event<T>>,
    /// Where each branch's leaves begin.
    starts: Vec<usize>,
    shape: Shape,
    preference: Preference,
}

impl<T> Choose<T> {
    pub(crate) fn new(branches: Vec<Event<T>>, preference: Preference) -> Self {
        let mut shape = Shape { biased: preference == Preference::First, ..Shape::default() };
        let mut starts = Vec::with_capacity(branches.len());
        for branch in &branches {
            starts.push(shape.leaves);
            shape = shape.beside(branch.node.shape());
        }
        Choose { branches, starts, shape, preference }
    }

    /// The branch of a leaf, and the leaf's number in it.
    #[inline]
    fn branch(&self, leaf: usize) -> (&Event<T>, usize) {
        let one_leaf_each = self.shape.leaves == self.branches.len() && self.starts[leaf] == leaf;
        let branch = if one_leaf_each { leaf } else { self.starts.partition_point(|&start| start <= leaf) - 1 };
        (&self.branches[branch], leaf - self.starts[branch])
    }
}

impl<T: 'static> Node<T> for Choose<T> {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn force(&self, first: usize, forcing: &mut Forcing) -> Option<Event<T>> {
        if !self.shape.guarded {
            return None;
        }
        let mut next = first;
        let mut branches = Vec::with_capacity(self.branches.len());
        for branch in &self.branches {
            let forced = branch.node.force(next, forcing).unwrap_or_else(|| branch.clone());
            next += forced.node.shape().leaves;
            branches.push(forced);
        }
        Some(Event::of(Choose::new(branches, self.preference)))
    }

    fn attempt(&self, leaf: usize, settlement: &mut Settlement) -> Option<T> {
        let (branch, leaf) = self.branch(leaf);
        branch.node.attempt(leaf, settlement)
    }

    fn place(&self, leaf: usize, placing: &mut Placing<'_>) -> Option<Stake> {
        let (branch, leaf) = self.branch(leaf);
        branch.node.place(leaf, placing)
    }

    fn withdraw(&self, leaf: usize, stake: Stake) {
        let (branch, leaf) = self.branch(leaf);
        branch.node.withdraw(leaf, stake);
    }

    fn retract(&self, leaf: usize, stake: Option<Stake>) -> bool {
        let (branch, leaf) = self.branch(leaf);
        branch.node.retract(leaf, stake)
    }

    fn redeem(&self, leaf: usize, stake: Option<Stake>) -> T {
        let (branch, leaf) = self.branch(leaf);
        branch.node.redeem(leaf, stake)
    }

    fn look(&self, leaf: usize, placing: &mut Placing<'_>) {
        let (branch, leaf) = self.branch(leaf);
        branch.node.look(leaf, placing);
    }

    fn arrange(&self, first: usize) -> Vec<usize> {
        let orders = self.branches.iter().zip(&self.starts).map(|(branch, start)| branch.node.arrange(first + start));
        match self.preference {
            Preference::First => orders.flatten().collect(),
            Preference::Fair => order::interleave(orders.collect()),
        }
    }
}
