//! Queues of waiting senders: taking the value of one, and waking all.

use super::effects::MatchEffects;
use super::entry::{Offer, QueuedValue, SendEntry, WakeTarget};
use crate::queue::{OfferQueue, QueueTicket};
use crate::waiter::{Initiator, MatchOutcome};

/// Takes the value of one sender. A task or a buffered offer always supplies it.
pub(super) fn collect_from<T: 'static>(
    senders: &mut OfferQueue<SendEntry<T>>,
    ticket: QueueTicket,
    initiator: Initiator<'_>,
    effects: &mut MatchEffects<T>,
) -> Result<QueuedValue<T>, MatchOutcome> {
    let in_parcel = match senders.get(ticket) {
        Some(SendEntry::Offer(offer, payload)) => {
            let in_parcel = payload.commit_peer(offer, initiator)?;
            initiator.commit_self();
            in_parcel
        }
        _ if initiator.try_commit_self() => None,
        _ => return Err(MatchOutcome::Taken),
    };
    let entry = match senders.get(ticket) {
        Some(SendEntry::Buffered(_)) => senders.remove(ticket),
        _ => senders.finish(ticket, SendEntry::Finished(Ok(()))),
    };
    match entry {
        Some(SendEntry::Buffered(item)) => Ok(item),
        Some(SendEntry::Task(value, waker)) => {
            effects.wake(WakeTarget::Task(waker));
            Ok(QueuedValue::of(value))
        }
        Some(SendEntry::Offer(offer, payload)) => {
            effects.wake(WakeTarget::Owner(offer.waiter));
            in_parcel.or_else(|| payload.value()).map(QueuedValue::of).ok_or(MatchOutcome::Stale)
        }
        Some(SendEntry::Finished(_)) | None => Err(MatchOutcome::Stale),
    }
}

/// Wakes the owners of all offers and tasks, with the result that the channel is closed.
pub(super) fn close_senders<T: 'static>(senders: &mut OfferQueue<SendEntry<T>>, all: &mut Vec<MatchEffects<T>>) {
    let mut next = senders.first();
    while let Some(ticket) = next {
        next = senders.after(ticket);
        all.extend(close_sender(senders, ticket));
    }
}

fn close_sender<T: 'static>(senders: &mut OfferQueue<SendEntry<T>>, ticket: QueueTicket) -> Option<MatchEffects<T>> {
    let mut effects = MatchEffects::default();
    match senders.get(ticket)? {
        SendEntry::Buffered(_) => return None,
        SendEntry::Offer(offer, _) if offer.commit_peer(Initiator::Private).is_err() => _ = senders.detach(ticket),
        _ => {
            let slot = senders.detach(ticket)?;
            match std::mem::replace(slot, SendEntry::Finished(Ok(()))) {
                SendEntry::Offer(Offer { waiter, .. }, payload) => {
                    *slot = SendEntry::Finished(Err(payload.value()));
                    effects.wake(WakeTarget::Owner(waiter));
                }
                SendEntry::Task(value, waker) => {
                    *slot = SendEntry::Finished(Err(Some(value)));
                    effects.wake(WakeTarget::Task(waker));
                }
                entry => *slot = entry,
            }
        }
    }
    Some(effects)
}
