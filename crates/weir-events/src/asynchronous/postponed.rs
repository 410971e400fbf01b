//! An event whose wraps run in the implicit thread: the synchronous side of `a_trans(s_trans(event))`.

use std::sync::Arc;
use std::time::Instant;

use crate::event::Event;
use crate::event::forcing::Forcing;
use crate::event::node::{Node, Shape, Stake};
use crate::event::placing::{Placing, Wishes};
use crate::event::settlement::Settlement;
use crate::implicit::{self, Place, Then};
use crate::party::Party;

/// Takes effect when `inner` does, and leaves the rest to an implicit thread.
pub(crate) struct Postponed<B> {
    pub(crate) inner: Event<B>,
    pub(crate) then: Then<B>,
}

impl<B: Send + 'static> Postponed<B> {
    fn finish(&self, leaf: usize, stake: Option<Stake>) {
        if self.then.is_nothing() && !self.inner.node.shape().acts {
            self.inner.node.redeem(leaf, stake);
            return;
        }
        let (inner, then) = (self.inner.clone(), self.then.clone());
        implicit::run(move || then.run_at(inner.node.redeem(leaf, stake), Place::Implicit));
    }
}

impl<B: Send + 'static> Node<()> for Postponed<B> {
    fn shape(&self) -> Shape {
        Shape { acts: true, ..self.inner.node.shape() }
    }

    fn force(&self, first: usize, forcing: &mut Forcing) -> Option<Event<()>> {
        let inner = self.inner.node.force(first, forcing)?;
        Some(Event::of(Postponed { inner, then: self.then.clone() }))
    }

    /// An attempt of `inner` would run its wraps here and now; so it is placed for a moment instead.
    fn attempt(&self, leaf: usize, settlement: &mut Settlement) -> Option<()> {
        let party = Arc::new(Party::of_thread());
        let mut wishes = Wishes::default();
        let stake = self.inner.node.place(leaf, &mut Placing { party: &party, leaf, wishes: &mut wishes });
        if wishes.timer.is_some_and(|(instant, _)| instant <= Instant::now()) {
            party.commit_alone(leaf);
        }
        if party.abandon() {
            if let Some(stake) = stake {
                self.inner.node.withdraw(leaf, stake);
            }
            return None;
        }
        settlement.settle();
        self.finish(leaf, stake);
        Some(())
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

    fn redeem(&self, leaf: usize, stake: Option<Stake>) {
        self.finish(leaf, stake);
    }

    fn look(&self, leaf: usize, placing: &mut Placing<'_>) {
        self.inner.node.look(leaf, placing);
    }

    fn arrange(&self, first: usize) -> Vec<usize> {
        self.inner.node.arrange(first)
    }
}
