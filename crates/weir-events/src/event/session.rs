//! One synchronisation from its guards to its end, the same for threads and tasks.
//!
//! The steps are numbered in the crate's documentation; this file is steps 1 to 6.

use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use super::forcing::Forcing;
use super::node::{Event, Stake};
use super::order::Order;
use super::placing::{Placing, Wishes};
use super::settlement::Settlement;
use crate::party::{Party, pool};

/// A synchronisation that has run its guards and has no result yet. Dropping it gives it up.
pub(crate) struct Session<T: 'static> {
    event: Event<T>,
    settlement: Settlement,
    published: Option<Published>,
}

/// What others can see of it.
struct Published {
    party: Arc<Party>,
    stakes: Vec<(usize, Stake)>,
    wishes: Wishes,
}

impl<T: 'static> Session<T> {
    /// Step 1: runs all guards.
    pub(crate) fn begin(event: &Event<T>) -> Self {
        let mut forcing = Forcing::default();
        let event = event.node.force(0, &mut forcing).unwrap_or_else(|| event.clone());
        Session { event, settlement: forcing.settlement, published: None }
    }

    /// Step 2: tries every leaf once, without publishing anything.
    pub(crate) fn attempt(&mut self) -> Option<T> {
        attempt(&self.event, &mut self.settlement)
    }

    /// Step 3: places a stake for every leaf, until one is found to take effect.
    pub(crate) fn publish(&mut self, party: Arc<Party>) {
        let order = order(&self.event);
        let published = Published { party, stakes: Vec::new(), wishes: Wishes::default() };
        let published = self.published.insert(published);
        let leaves = self.event.shape().leaves.min(64);
        for leaf in order {
            let mut placing = Placing { party: &published.party, leaf, wishes: &mut published.wishes };
            if let Some(stake) = self.event.node.place(leaf, &mut placing) {
                // Not before there is one: a timer alone has none.
                if published.stakes.is_empty() {
                    published.stakes.reserve(leaves);
                }
                published.stakes.push((leaf, stake));
            }
            if published.party.outcome().is_some() {
                break;
            }
        }
    }

    /// The waiting party and the leaf of its timer, for a clock that rings while nobody looks.
    pub(crate) fn alarm(&self) -> Option<(Instant, Arc<Party>, usize)> {
        let published = self.published.as_ref()?;
        published.wishes.timer.map(|(instant, leaf)| (instant, published.party.clone(), leaf))
    }

    /// Says whom to tell, unless there is no need any more.
    pub(crate) fn listen(&self, waker: &Waker) {
        if let Some(published) = &self.published
            && published.party.outcome().is_none()
        {
            published.party.listen(waker);
        }
    }

    /// Whether it is certain, without looking at any leaf, that nothing has taken effect yet.
    pub(crate) fn is_waiting(&self) -> bool {
        let waits = |published: &Published| published.wishes.watched.is_empty() && published.party.outcome().is_none();
        self.published.as_ref().is_some_and(waits)
    }

    /// Step 4, on each turn: whether a leaf has taken effect by now.
    pub(crate) fn is_committed(&mut self) -> bool {
        let Some(published) = &mut self.published else { return false };
        for number in 0..published.wishes.watched.len() {
            if published.party.outcome().is_some() {
                return true;
            }
            let leaf = published.wishes.watched[number];
            let mut again = Wishes::default();
            self.event.node.look(leaf, &mut Placing { party: &published.party, leaf, wishes: &mut again });
        }
        if let Some((instant, leaf)) = published.wishes.timer
            && instant <= Instant::now()
        {
            published.party.commit_alone(leaf);
        }
        published.party.outcome().is_some()
    }

    /// Step 4, for threads: waits until there is something to look at.
    pub(crate) fn wait(&self, deadline: Option<Instant>) {
        if let Some(published) = &self.published {
            let timer = published.wishes.timer.map(|(instant, _)| instant);
            let until = match (deadline, timer) {
                (Some(deadline), Some(timer)) => Some(deadline.min(timer)),
                (deadline, timer) => deadline.or(timer),
            };
            published.party.wait(until);
        }
    }

    /// Steps 5 and 6: takes the losers back, fires their nacks, and gives the winner's value.
    pub(crate) fn conclude(mut self) -> T {
        let published = self.published.take().expect("only a published session waits for its result");
        let leaf = published.party.outcome().expect("a session is concluded after its commit");
        let stake = self.withdraw_losers(published.stakes, leaf);
        self.settlement.consider(leaf);
        self.settlement.settle();
        let value = self.event.node.redeem(leaf, stake);
        pool::put_back(published.party);
        value
    }

    /// Gives up if nothing has taken effect; otherwise the session must be concluded.
    pub(crate) fn give_up(&mut self) -> bool {
        let Some(published) = &self.published else { return true };
        if !published.party.abandon() {
            return false;
        }
        if let Some(published) = self.published.take() {
            published.stakes.into_iter().rev().for_each(|(leaf, stake)| self.event.node.withdraw(leaf, stake));
            pool::put_back(published.party);
        }
        true
    }

    /// Takes all stakes back but the winner's, which it returns. The latest goes first: it is the last in its queue.
    fn withdraw_losers(&self, stakes: Vec<(usize, Stake)>, winner: usize) -> Option<Stake> {
        let mut won = None;
        for (leaf, stake) in stakes.into_iter().rev() {
            if leaf == winner {
                won = Some(stake);
            } else {
                self.event.node.withdraw(leaf, stake);
            }
        }
        won
    }
}

impl<T: 'static> Drop for Session<T> {
    fn drop(&mut self) {
        if self.give_up() {
            return;
        }
        let Some(published) = self.published.take() else { return };
        let Some(leaf) = published.party.outcome() else { return };
        // Taken before anybody could look: what can be undone without a loss is undone, anything else stands.
        let stake = self.withdraw_losers(published.stakes, leaf);
        let undone = self.event.node.retract(leaf, stake);
        if !undone {
            self.settlement.consider(leaf);
            self.settlement.settle();
        }
    }
}

/// Steps 1 and 2 of an event without guards, for which no session is needed yet.
pub(crate) fn attempt_unguarded<T: 'static>(event: &Event<T>) -> Option<T> {
    if event.shape().guarded {
        return None;
    }
    attempt(event, &mut Settlement::default())
}

fn attempt<T: 'static>(event: &Event<T>, settlement: &mut Settlement) -> Option<T> {
    for leaf in order(event) {
        settlement.consider(leaf);
        let value = event.node.attempt(leaf, settlement);
        if value.is_some() {
            return value;
        }
    }
    None
}

fn order<T: 'static>(event: &Event<T>) -> Order {
    let shape = event.node.shape();
    if shape.biased { Order::List(event.node.arrange(0).into_iter()) } else { Order::fair(shape.leaves) }
}
