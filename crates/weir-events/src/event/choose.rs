//! `choose` and `choose_biased`: exactly one of several events takes effect.

use super::guard_context::GuardContext;
use super::nacks::NackSet;
use super::node::{Event, EventNode, EventShape, Registration};
use super::registration::RegistrationContext;
use super::try_order;

/// The choice among several base events that could take effect now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preference {
    /// Any of them, with equal chances.
    Fair,
    /// The first of them.
    First,
}

/// `choose(branches)`.
pub(crate) struct Choose<T> {
    branches: Vec<Event<T>>,
    /// Index of each branch's first base event.
    starts: Vec<usize>,
    shape: EventShape,
    preference: Preference,
    /// True if every branch is a single base event, so that the index of a base event is that of its branch.
    is_flat: bool,
}

impl<T> Choose<T> {
    pub(crate) fn new(branches: Vec<Event<T>>, preference: Preference) -> Self {
        let mut shape = EventShape { biased: preference == Preference::First, ..EventShape::default() };
        let mut starts = Vec::with_capacity(branches.len());
        for branch in &branches {
            starts.push(shape.base_events);
            shape = shape.beside(branch.node.shape());
        }
        let is_flat = branches.iter().all(|branch| branch.node.shape().base_events == 1);
        Choose { branches, starts, shape, preference, is_flat }
    }

    /// Returns the branch of a base event, and the index of the base event in it.
    #[inline]
    fn branch(&self, base: usize) -> (&Event<T>, usize) {
        // A branch without base events starts where the next one does; the last of equal starts has the base event.
        let branch = if self.is_flat { base } else { self.starts.partition_point(|&start| start <= base) - 1 };
        (&self.branches[branch], base - self.starts[branch])
    }
}

impl<T: 'static> EventNode<T> for Choose<T> {
    fn shape(&self) -> EventShape {
        self.shape
    }

    fn force_guards(&self, first: usize, context: &mut GuardContext) -> Option<Event<T>> {
        if !self.shape.guarded {
            return None;
        }
        let mut next = first;
        let mut branches = Vec::with_capacity(self.branches.len());
        for branch in &self.branches {
            let forced = branch.node.force_guards(next, context).unwrap_or_else(|| branch.clone());
            next += forced.node.shape().base_events;
            branches.push(forced);
        }
        Some(Event::of(Choose::new(branches, self.preference)))
    }

    fn attempt(&self, base: usize, nacks: &mut NackSet) -> Option<T> {
        let (branch, base) = self.branch(base);
        branch.node.attempt(base, nacks)
    }

    fn register(&self, base: usize, context: &mut RegistrationContext<'_>) -> Option<Registration> {
        let (branch, base) = self.branch(base);
        branch.node.register(base, context)
    }

    fn withdraw(&self, base: usize, registration: Registration) {
        let (branch, base) = self.branch(base);
        branch.node.withdraw(base, registration);
    }

    fn discard(&self, base: usize, registration: Option<Registration>) {
        let (branch, base) = self.branch(base);
        branch.node.discard(base, registration);
    }

    fn complete(&self, base: usize, registration: Option<Registration>) -> T {
        let (branch, base) = self.branch(base);
        branch.node.complete(base, registration)
    }

    fn recheck(&self, base: usize, context: &mut RegistrationContext<'_>) {
        let (branch, base) = self.branch(base);
        branch.node.recheck(base, context);
    }

    fn try_order(&self, first: usize) -> Vec<usize> {
        let orders = self.branches.iter().zip(&self.starts).map(|(branch, start)| branch.node.try_order(first + start));
        match self.preference {
            Preference::First => orders.flatten().collect(),
            Preference::Fair => try_order::interleave(orders.collect()),
        }
    }
}
