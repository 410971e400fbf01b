//! `wrap`: what is done with the value of an event once it has taken effect.

use std::sync::Arc;

use super::forcing::Forcing;
use super::node::{Event, Node, Shape, Stake};
use super::placing::Placing;
use super::settlement::Settlement;

/// `wrap(event, action)`.
pub(crate) struct Wrap<A, F> {
    inner: Event<A>,
    action: Arc<F>,
}

impl<A, F> Wrap<A, F> {
    pub(crate) fn new(inner: Event<A>, action: F) -> Self {
        Wrap { inner, action: Arc::new(action) }
    }
}

impl<A, B, F> Node<B> for Wrap<A, F>
where
    A: 'static,
    F: Fn(A) -> B + Send + Sync + 'static,
    B: 'static,
{
    fn shape(&self) -> Shape {
        Shape { acts: true, ..self.inner.node.shape() }
    }

    fn force(&self, first: usize, forcing: &mut Forcing) -> Option<Event<B>> {
        let inner = self.inner.node.force(first, forcing)?;
        Some(Event::of(Wrap { inner, action: self.action.clone() }))
    }

    fn attempt(&self, leaf: usize, settlement: &mut Settlement) -> Option<B> {
        self.inner.node.attempt(leaf, settlement).map(&*self.action)
    }

    fn place(&self, leaf: usize, placing: &mut Placing<'_>) -> Option<Stake> {
        self.inner.node.place(leaf, placing)
    }

    fn withdraw(&self, leaf: usize, stake: Stake) {
        self.inner.node.withdraw(leaf, stake);
    }

    fn retract(&self, leaf: usize, stake: Option<Stake>) -> bool {
        self.inner.node.retract(leaf, stake)
    }

    fn redeem(&self, leaf: usize, stake: Option<Stake>) -> B {
        (self.action)(self.inner.node.redeem(leaf, stake))
    }

    fn look(&self, leaf: usize, placing: &mut Placing<'_>) {
        self.inner.node.look(leaf, placing);
    }

    fn arrange(&self, first: usize) -> Vec<usize> {
        self.inner.node.arrange(first)
    }
}
