//! One synchronisation from its guards to its end, for threads and tasks alike.
//!
//! This file is steps 1 to 6 of the commit protocol in the crate's documentation.

use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use super::guard_context::GuardContext;
use super::nacks::NackSet;
use super::node::{Event, Registration};
use super::registration::{RegistrationContext, WakeRequests};
use super::try_order::TryOrder;
use crate::telemetry::WaitReport;
use crate::waiter::{Waiter, pool};

/// A synchronisation that has run its guards and has no result yet. Dropping it abandons it.
pub(crate) struct PendingSync<T: 'static> {
    event: Event<T>,
    nacks: NackSet,
    published: Option<PublishedOffers>,
}

/// The part of a synchronisation that peers can see.
struct PublishedOffers {
    waiter: Arc<Waiter>,
    registrations: Vec<(usize, Registration)>,
    wake_requests: WakeRequests,
    report: WaitReport,
}

impl<T: 'static> PendingSync<T> {
    /// Step 1: runs all guards.
    pub(crate) fn begin(event: &Event<T>) -> Self {
        let mut context = GuardContext::default();
        let event = event.node.force_guards(0, &mut context).unwrap_or_else(|| event.clone());
        PendingSync { event, nacks: context.nacks, published: None }
    }

    /// Step 2: tries every base event once, without publishing anything.
    pub(crate) fn attempt(&mut self) -> Option<T> {
        attempt(&self.event, &mut self.nacks)
    }

    /// Step 3: registers every base event, until one takes effect.
    pub(crate) fn publish(&mut self, waiter: Arc<Waiter>) {
        let order = order(&self.event);
        let published = self.published.insert(PublishedOffers {
            waiter,
            registrations: Vec::new(),
            wake_requests: WakeRequests::default(),
            report: WaitReport::begin(),
        });
        let base_events = self.event.shape().base_events.min(64);
        for base in order {
            let mut context =
                RegistrationContext { waiter: &published.waiter, base, wake_requests: &mut published.wake_requests };
            if let Some(registration) = self.event.node.register(base, &mut context) {
                // A timer alone has no registration, so none is reserved for it.
                if published.registrations.is_empty() {
                    published.registrations.reserve(base_events);
                }
                published.registrations.push((base, registration));
            }
            if published.waiter.outcome().is_some() {
                break;
            }
        }
    }

    /// Returns the earliest timer: its instant, the waiter, and its base event.
    pub(crate) fn timer(&self) -> Option<(Instant, Arc<Waiter>, usize)> {
        let published = self.published.as_ref()?;
        published.wake_requests.timer.map(|(instant, base)| (instant, published.waiter.clone(), base))
    }

    /// Sets the waker, unless a base event has already taken effect.
    pub(crate) fn listen(&self, waker: &Waker) {
        let Some(published) = &self.published else { return };
        if published.waiter.outcome().is_none() {
            published.waiter.listen(waker);
        }
    }

    /// Returns true if certainly no base event has taken effect yet, without checking any of them.
    pub(crate) fn is_waiting(&self) -> bool {
        let waits = |published: &PublishedOffers| {
            published.wake_requests.watched.is_empty() && published.waiter.outcome().is_none()
        };
        self.published.as_ref().is_some_and(waits)
    }

    /// Step 4, after each wake-up: returns true if a base event has taken effect.
    pub(crate) fn is_committed(&mut self) -> bool {
        let Some(published) = &mut self.published else { return false };
        for number in 0..published.wake_requests.watched.len() {
            if published.waiter.outcome().is_some() {
                return true;
            }
            let base = published.wake_requests.watched[number];
            let mut again = WakeRequests::default();
            self.event
                .node
                .recheck(base, &mut RegistrationContext { waiter: &published.waiter, base, wake_requests: &mut again });
        }
        let is_due = |(instant, _): &(Instant, usize)| *instant <= Instant::now();
        if let Some((_, base)) = published.wake_requests.timer.filter(is_due) {
            published.waiter.commit_alone(base);
        }
        published.waiter.outcome().is_some()
    }

    /// Step 4, for threads: waits until there may be something to check.
    pub(crate) fn wait(&self, deadline: Option<Instant>) {
        if let Some(published) = &self.published {
            let timer = published.wake_requests.timer.map(|(instant, _)| instant);
            let until = match (deadline, timer) {
                (Some(deadline), Some(timer)) => Some(deadline.min(timer)),
                (deadline, timer) => deadline.or(timer),
            };
            published.waiter.wait(until);
        }
    }

    /// Steps 5 and 6: withdraws the losers, fires their nacks, and returns the winner's value.
    pub(crate) fn conclude(mut self) -> T {
        let published = self.published.take().expect("only a published synchronisation waits for its result");
        let base = published.waiter.outcome().expect("a synchronisation is concluded after its commit");
        let registration = self.withdraw_losers(published.registrations, base);
        self.nacks.set_candidate(base);
        self.nacks.fire_losers();
        let value = self.event.node.complete(base, registration);
        published.report.committed(base);
        pool::put_back(published.waiter);
        value
    }

    /// Abandons the synchronisation and returns true, unless a base event has taken effect; then it must be concluded.
    pub(crate) fn give_up(&mut self) -> bool {
        let Some(published) = &self.published else { return true };
        if !published.waiter.abandon() {
            return false;
        }
        if let Some(published) = self.published.take() {
            published
                .registrations
                .into_iter()
                .rev()
                .for_each(|(base, registration)| self.event.node.withdraw(base, registration));
            published.report.given_up();
            pool::put_back(published.waiter);
        }
        true
    }

    /// Withdraws all registrations but the winner's, which it returns. The latest goes first, because it is the last in
    /// its queue.
    fn withdraw_losers(&self, registrations: Vec<(usize, Registration)>, winner: usize) -> Option<Registration> {
        let mut won = None;
        for (base, registration) in registrations.into_iter().rev() {
            if base == winner {
                won = Some(registration);
            } else {
                self.event.node.withdraw(base, registration);
            }
        }
        won
    }
}

impl<T: 'static> Drop for PendingSync<T> {
    fn drop(&mut self) {
        if self.give_up() {
            return;
        }
        let Some(published) = self.published.take() else { return };
        let Some(base) = published.waiter.outcome() else { return };
        // The commit stands although its owner never observed it: the peer has already acted on it.
        let registration = self.withdraw_losers(published.registrations, base);
        self.nacks.set_candidate(base);
        self.nacks.fire_losers();
        self.event.node.discard(base, registration);
    }
}

/// Steps 1 and 2 of an event without guards, which needs no [`PendingSync`] yet.
pub(crate) fn attempt_unguarded<T: 'static>(event: &Event<T>) -> Option<T> {
    if event.shape().guarded {
        return None;
    }
    attempt(event, &mut NackSet::default())
}

fn attempt<T: 'static>(event: &Event<T>, nacks: &mut NackSet) -> Option<T> {
    for base in order(event) {
        nacks.set_candidate(base);
        let value = event.node.attempt(base, nacks);
        if value.is_some() {
            return value;
        }
    }
    None
}

fn order<T: 'static>(event: &Event<T>) -> TryOrder {
    let shape = event.node.shape();
    if shape.biased { TryOrder::List(event.node.try_order(0).into_iter()) } else { TryOrder::fair(shape.base_events) }
}
