//! The commit protocol under the loom model checker, for two and three waiters, with faults that the model must find.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p weir-events --release --test model`
#![cfg(loom)]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use loom::thread;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use weir_events::{
    Channel, Closed, Event, Mutant, Parcel, SendError, TryRecvError, a_send, activate, choose, choose_biased,
    from_future,
};

/// One model at a time: which fault is on is one value for the process.
static ONE: Mutex<()> = Mutex::new(());

/// Runs every interleaving with at most `preemptions` forced switches; true if none failed.
fn holds(mutant: Mutant, preemptions: usize, model: fn()) -> bool {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    activate(mutant);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    let result = catch_unwind(AssertUnwindSafe(|| builder.check(model)));
    activate(Mutant::None);
    result.is_ok()
}

/// A biased choice: the model explores schedules, not random numbers.
fn swap(first: &Channel<u8>, second: &Channel<u8>, own: u8) -> Event<Result<Option<u8>, Closed>> {
    choose_biased([first.send(own).wrap(|sent| sent.map(|()| None)), second.recv().wrap(|received| received.map(Some))])
}

/// Two threads, each offering to send and to receive on one channel.
fn symmetric_pair() {
    let channel = Channel::rendezvous();
    let other = channel.clone();
    let there = thread::spawn(move || swap(&other, &other, 1).sync().unwrap());
    let here = swap(&channel, &channel, 2).sync().unwrap();
    let pair = (here, there.join().unwrap());
    assert!(pair == (Some(1), None) || pair == (None, Some(2)), "{pair:?}");
    assert!(channel.is_empty() && channel.receivers_len() == 0);
}

/// Two threads that offer on two channels in opposite order, so that both are published when they meet.
fn crossed_pair() {
    let (a, b) = (Channel::rendezvous(), Channel::rendezvous());
    let (x, y) = (a.clone(), b.clone());
    let there = thread::spawn(move || swap(&x, &y, 1).sync().unwrap());
    let here = swap(&b, &a, 2).sync().unwrap();
    let pair = (here, there.join().unwrap());
    assert!(pair == (Some(1), None) || pair == (None, Some(2)), "{pair:?}");
    assert!(a.is_empty() && b.is_empty() && a.receivers_len() + b.receivers_len() == 0);
}

/// One sender between two receivers that choose between two channels: one gets it, the other a second value.
fn three_waiters() {
    let (a, b) = (Channel::rendezvous(), Channel::rendezvous());
    let receivers: Vec<_> = (0..2)
        .map(|_| {
            let (a, b) = (a.clone(), b.clone());
            thread::spawn(move || choose_biased([a.recv(), b.recv()]).sync().unwrap())
        })
        .collect();
    a.send(1).sync().unwrap();
    b.send(2).sync().unwrap();
    let sum: u8 = receivers.into_iter().map(|receiver| receiver.join().unwrap()).sum();
    assert_eq!(sum, 3);
    assert!(a.receivers_len() + b.receivers_len() == 0);
}

/// Two senders compete for one receiver's choice; a value is received exactly once and the loser keeps its own.
fn one_choice_two_peers() {
    let (a, b) = (Channel::rendezvous(), Channel::rendezvous());
    let senders: Vec<_> = [(&a, 1), (&b, 2)]
        .into_iter()
        .map(|(channel, value): (&Channel<u8>, u8)| {
            let (channel, parcel) = (channel.clone(), Parcel::new(value));
            thread::spawn(move || {
                let sent = channel.send_parcel(&parcel).sync();
                (sent, parcel.take())
            })
        })
        .collect();
    let received = choose_biased([a.recv(), b.recv()]).sync().unwrap();
    a.close();
    b.close();
    let kept: Vec<_> = senders.into_iter().map(|sender| sender.join().unwrap()).collect();
    let expected = |own| if own == received { (Ok(()), None) } else { (Err(Closed), Some(own)) };
    assert_eq!(kept, [expected(1), expected(2)]);
}

/// A receiver gives up while a sender sends: either it has the value, or the sender still does.
fn giving_up() {
    let channel = Channel::rendezvous();
    let (sender, parcel) = (channel.clone(), Parcel::new(5u8));
    let kept = parcel.clone();
    let sending = thread::spawn(move || sender.send_parcel(&kept).poll());
    let received = channel.recv().sync_timeout(std::time::Duration::ZERO);
    let sent = sending.join().unwrap();
    assert_eq!(received.is_some(), sent.is_some());
    assert_eq!(parcel.take().is_some(), received.is_none());
}

/// A sender gives up while a receiver looks: the value is in one place.
fn giving_up_to_send() {
    let channel = Channel::rendezvous();
    let (receiver, parcel) = (channel.clone(), Parcel::new(5u8));
    let receiving = thread::spawn(move || receiver.try_recv().is_ok());
    let sent = channel.send_parcel(&parcel).sync_timeout(std::time::Duration::ZERO).is_some();
    assert_eq!((sent, parcel.take().is_some()), (receiving.join().unwrap(), !sent));
}

/// A task is dropped while a peer sends to it: the value is with the next receiver, or was never sent.
fn dropping() {
    let channel = Channel::rendezvous();
    let mut future = channel.recv().synchronise();
    let polled = std::pin::Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(polled, Poll::Pending);
    let sender = channel.clone();
    let sending = thread::spawn(move || sender.try_send(5u8).is_ok());
    drop(future);
    let sent = sending.join().unwrap();
    let expected = if sent { Ok(5) } else { Err(TryRecvError::Empty) };
    assert_eq!(channel.try_recv(), expected);
}

/// The same of a task that waits in the channel.
fn dropping_who_only_receives() {
    let channel = Channel::rendezvous();
    let mut future = channel.recv_async();
    let polled = std::pin::Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop()));
    assert_eq!(polled, Poll::Pending);
    let sender = channel.clone();
    let sending = thread::spawn(move || sender.try_send(5u8).is_ok());
    drop(future);
    let sent = sending.join().unwrap();
    let expected = if sent { Ok(5) } else { Err(TryRecvError::Empty) };
    assert_eq!(channel.try_recv(), expected);
    assert_eq!(channel.receivers_len(), 0);
}

/// Two tasks are dropped while a peer sends to them: the values keep their order.
fn dropping_two() {
    let channel = Channel::rendezvous();
    let (mut first, mut second) = (channel.recv_async(), channel.recv().synchronise());
    let mut context = Context::from_waker(Waker::noop());
    assert!(std::pin::Pin::new(&mut first).poll(&mut context).is_pending());
    assert!(std::pin::Pin::new(&mut second).poll(&mut context).is_pending());
    let sender = channel.clone();
    let sending = thread::spawn(move || (1..=2u8).filter(|value| sender.try_send(*value).is_ok()).collect::<Vec<_>>());
    drop(second);
    drop(first);
    let sent = sending.join().unwrap();
    let received: Vec<_> = std::iter::from_fn(|| channel.try_recv().ok()).collect();
    assert_eq!(received, sent);
}

/// An offer that waits for its receipt loses its choice while a receiver comes: it was received, or nothing was.
fn giving_up_a_receipt() {
    let channel = Channel::bounded(2);
    channel.try_send(1u8).unwrap();
    let receiver = channel.clone();
    let mut sending = a_send(&channel, 2u8).a_trans().synchronise();
    let mut poll = || std::pin::Pin::new(&mut sending).poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll().is_pending());
    let receiving = thread::spawn(move || [receiver.try_recv().ok(), receiver.try_recv().ok()]);
    let first = poll();
    drop(sending);
    let received = receiving.join().unwrap();
    assert_eq!(received[0], Some(1));
    assert!(received[1] == Some(2) || (received[1].is_none() && first.is_pending()));
    assert!(channel.is_empty());
}

/// A full channel: the receiver refills the buffer from a sender that is publishing another choice at that moment.
fn refilling() {
    let (full, other) = (Channel::bounded(1), Channel::<u8>::rendezvous());
    full.try_send(1).unwrap();
    let (sender, idle) = (full.clone(), other.clone());
    let sending = thread::spawn(move || {
        choose_biased([idle.recv().wrap(drop), sender.send(2).wrap(drop)]).sync();
    });
    assert_eq!(full.recv().sync(), Ok(1));
    assert_eq!(full.recv().sync(), Ok(2));
    sending.join().unwrap();
    assert_eq!(other.receivers_len(), 0);
}

/// A value that comes between the attempt of a receiver and its offer is found.
fn coming_in_between() {
    let channel = Channel::rendezvous();
    comes_to(&channel, channel.recv().synchronise());
}

/// The same of a task that only receives.
fn coming_before_who_only_receives() {
    let channel = Channel::rendezvous();
    comes_to(&channel, channel.recv_async());
}

/// A value is sent while a task receives it.
fn comes_to(channel: &Channel<u8>, mut future: impl Future<Output = Result<u8, Closed>> + Unpin) {
    let sender = channel.clone();
    let sending = thread::spawn(move || _ = sender.post(5u8));
    let mut poll = || std::pin::Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop()));
    let mut received = poll();
    sending.join().unwrap();
    if received.is_pending() {
        received = poll();
    }
    drop(future);
    assert_eq!(received, Poll::Ready(Ok(5)));
}

/// A choice that finds a task waiting on one channel is taken on the other: it sends or receives, never both.
fn taken_before_a_waiting_task() {
    let (a, b) = (Channel::rendezvous(), Channel::rendezvous());
    let choosing = {
        let choice = choose_biased([b.recv().wrap(|value| value.ok()), a.send(1u8).wrap(|_| None)]);
        thread::spawn(move || choice.sync())
    };
    let sending = {
        let b = b.clone();
        thread::spawn(move || b.try_send(2u8).is_ok())
    };
    let mut future = a.recv_async();
    let mut poll = || std::pin::Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop()));
    let first = poll();
    let (chosen, sent) = (choosing.join().unwrap(), sending.join().unwrap());
    let received = if first.is_pending() { poll() } else { first };
    drop(future);
    let expected = if sent { (Some(2), Poll::Pending) } else { (None, Poll::Ready(Ok(1))) };
    assert_eq!((chosen, received), expected);
}

/// A channel closes while a receiver takes from a task that waits to send: the value is in one place.
fn closing_before_a_waiting_task() {
    let channel = Channel::rendezvous();
    let (closer, receiver) = (channel.clone(), channel.clone());
    let mut future = channel.send_async(5u8);
    let mut poll = || std::pin::Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop()));
    assert!(poll().is_pending());
    let closing = thread::spawn(move || closer.close());
    let receiving = thread::spawn(move || receiver.try_recv());
    closing.join().unwrap();
    let received = receiving.join().unwrap();
    let expected = if received == Ok(5) { Ok(()) } else { Err(SendError(5)) };
    assert_eq!(poll(), Poll::Ready(expected));
}

/// A receiver comes between the glance of a task that sends and its offer.
fn going_past_each_other() {
    let channel = Channel::rendezvous();
    let receiver = channel.clone();
    let receiving = thread::spawn(move || {
        let mut receiving = receiver.recv().synchronise();
        let received = std::pin::Pin::new(&mut receiving).poll(&mut Context::from_waker(Waker::noop()));
        (receiving, received)
    });
    let mut sending = channel.send_async(5u8);
    let mut poll = || std::pin::Pin::new(&mut sending).poll(&mut Context::from_waker(Waker::noop()));
    let mut sent = poll();
    let (mut receiving, mut received) = receiving.join().unwrap();
    if sent.is_pending() {
        sent = poll();
    }
    if received.is_pending() {
        received = std::pin::Pin::new(&mut receiving).poll(&mut Context::from_waker(Waker::noop()));
    }
    drop((sending, receiving));
    assert_eq!((sent.is_ready(), received), (true, Poll::Ready(Ok(5))));
}

/// A receiver takes the whole buffer aside while a sender finds it full: the sender sees the place that becomes free.
fn taking_all_aside() {
    let full = Channel::bounded(2);
    full.try_send(1u8).unwrap();
    full.try_send(2).unwrap();
    let receiver = full.clone();
    let receiving = thread::spawn(move || receiver.try_recv());
    let mut future = full.send_async(3);
    let mut poll = || std::pin::Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop()));
    let mut sent = poll();
    let first = receiving.join().unwrap();
    if sent.is_pending() {
        sent = poll();
    }
    drop(future);
    assert_eq!((sent.is_ready(), first), (true, Ok(1)));
    assert!(full.try_send(4).is_err(), "what is set aside takes its places too");
    let rest = [full.try_recv(), full.try_recv(), full.try_recv()];
    assert_eq!(rest, [Ok(2), Ok(3), Err(TryRecvError::Empty)]);
}

/// Two receivers and a sender on one buffer: each value is received once, none is missed.
fn taking_aside_beside_another() {
    let channel = Channel::bounded(2);
    channel.try_send(1u8).unwrap();
    let (receiver, sender) = (channel.clone(), channel.clone());
    let receiving = thread::spawn(move || receiver.recv().sync().unwrap());
    let sending = thread::spawn(move || sender.blocking_send(2).unwrap());
    let here = channel.recv().sync().unwrap();
    sending.join().unwrap();
    let mut all = [here, receiving.join().unwrap()];
    all.sort_unstable();
    assert_eq!((all, channel.try_recv()), ([1, 2], Err(TryRecvError::Empty)));
}

/// Two synchronisations share a future, and one of them may be taken by another branch: the other one has the result.
fn sharing_a_future() {
    let (a, b) = (Channel::<u8>::rendezvous(), Channel::<u8>::rendezvous());
    let source = std::sync::Arc::new(loom::sync::Mutex::new((false, None::<Waker>)));
    let state = source.clone();
    let shared = from_future(std::future::poll_fn(move |context| {
        let mut state = state.lock().unwrap();
        if state.0 {
            return Poll::Ready(());
        }
        state.1 = Some(context.waker().clone());
        Poll::Pending
    }));
    let there = {
        let (a, b, shared) = (a.clone(), b.clone(), shared.clone());
        thread::spawn(move || {
            let has_result = choose_biased([shared.wrap(|()| true), a.recv().wrap(|_| false)]).sync();
            if has_result {
                b.close();
            }
            has_result
        })
    };
    let setting = thread::spawn(move || {
        a.close();
        let waker = {
            let mut state = source.lock().unwrap();
            state.0 = true;
            state.1.take()
        };
        waker.into_iter().for_each(Waker::wake);
    });
    let here = choose_biased([shared.wrap(|()| true), b.recv().wrap(|_| false)]).sync();
    setting.join().unwrap();
    assert_ne!(here, there.join().unwrap());
}

/// Closing wakes whoever waits, whenever it comes.
fn closing() {
    let channel = Channel::<u8>::rendezvous();
    let receiver = channel.clone();
    let receiving = thread::spawn(move || choose([receiver.recv()]).sync());
    channel.close();
    assert_eq!(receiving.join().unwrap(), Err(Closed));
}

#[test]
fn two_symmetric_waiters_always_pair() {
    assert!(holds(Mutant::None, 4, symmetric_pair));
}

#[test]
fn two_waiters_that_offer_in_opposite_order_always_pair() {
    assert!(holds(Mutant::None, 4, crossed_pair));
}

#[test]
fn three_waiters_lose_nothing() {
    assert!(holds(Mutant::None, 3, three_waiters));
}

#[test]
fn of_two_peers_exactly_one_is_taken() {
    assert!(holds(Mutant::None, 3, one_choice_two_peers));
}

#[test]
fn giving_up_loses_no_match() {
    assert!(holds(Mutant::None, 4, giving_up));
}

#[test]
fn giving_up_to_send_keeps_the_value() {
    assert!(holds(Mutant::None, 4, giving_up_to_send));
}

#[test]
fn dropping_loses_no_value() {
    assert!(holds(Mutant::None, 4, dropping_who_only_receives));
    assert!(holds(Mutant::None, 4, dropping));
    assert!(holds(Mutant::None, 3, dropping_two));
}

#[test]
fn an_offer_that_waits_for_its_receipt_is_received_or_withdrawn() {
    assert!(holds(Mutant::None, 3, giving_up_a_receipt));
}

#[test]
fn a_buffer_is_refilled_from_whoever_waits() {
    assert!(holds(Mutant::None, 3, refilling));
}

#[test]
fn a_value_that_comes_in_between_is_found() {
    assert!(holds(Mutant::None, 4, coming_in_between));
    assert!(holds(Mutant::None, 4, going_past_each_other));
    assert!(holds(Mutant::None, 4, coming_before_who_only_receives));
}

#[test]
fn a_choice_that_is_taken_leaves_a_waiting_task_alone() {
    assert!(holds(Mutant::None, 3, taken_before_a_waiting_task));
}

#[test]
fn a_buffer_that_is_taken_aside_still_has_its_places() {
    assert!(holds(Mutant::None, 4, taking_all_aside));
    assert!(holds(Mutant::None, 3, taking_aside_beside_another));
}

#[test]
fn closing_wakes_whoever_waits() {
    assert!(holds(Mutant::None, 4, closing));
    assert!(holds(Mutant::None, 4, closing_before_a_waiting_task));
}

#[test]
fn a_shared_future_gives_its_result_to_one_of_two() {
    assert!(holds(Mutant::None, 2, sharing_a_future));
}

/// The models that must fail under each fault: at least one of them.
#[test]
fn every_mutant_is_caught() {
    let cases: [(Mutant, fn()); 16] = [
        (Mutant::CommitWithoutCompare, one_choice_two_peers),
        (Mutant::MatchWithoutClaim, taken_while_seeking),
        (Mutant::PairWithItself, symmetric_pair),
        (Mutant::NeitherClaimYields, crossed_pair),
        (Mutant::ForgetToWake, symmetric_pair),
        (Mutant::PublishWithoutLooking, coming_in_between),
        (Mutant::PublishWithoutLooking, going_past_each_other),
        (Mutant::TakeValueBeforeCommit, giving_up_to_send),
        (Mutant::PublishWithoutLooking, coming_before_who_only_receives),
        (Mutant::CommitSelfWithoutCheck, taken_before_a_waiting_task),
        (Mutant::DropWithoutReturn, dropping),
        (Mutant::DropWithoutReturn, dropping_who_only_receives),
        (Mutant::ReturnInAnyOrder, dropping_two),
        (Mutant::ForgetWantedPoll, sharing_a_future),
        (Mutant::IgnoreConsumerBuffer, taking_all_aside),
        (Mutant::ForgetConsumerBufferLen, taking_all_aside),
    ];
    for (mutant, model) in cases {
        assert!(!holds(mutant, 3, model), "{mutant:?} was not found");
    }
}

/// A waiter is taken by one peer while it seizes another.
fn taken_while_seeking() {
    let (a, b) = (Channel::rendezvous(), Channel::rendezvous());
    let parcel = Parcel::new(2u8);
    let offering = {
        let (b, parcel) = (b.clone(), parcel.clone());
        thread::spawn(move || b.send_parcel(&parcel).sync())
    };
    let taking = {
        let a = a.clone();
        thread::spawn(move || a.try_recv().ok())
    };
    let chosen = choose_biased([a.send(1u8).wrap(|_| None), b.recv().wrap(|value| value.ok())]).sync();
    b.close();
    let (offered, taken) = (offering.join().unwrap(), taking.join().unwrap());
    match chosen {
        None => assert_eq!((taken, offered, parcel.take()), (Some(1), Err(Closed), Some(2))),
        Some(value) => assert_eq!((value, taken, offered, parcel.take()), (2, None, Ok(()), None)),
    }
}

#[test]
fn a_third_waiter_never_breaks_a_pair() {
    assert!(holds(Mutant::None, 3, taken_while_seeking));
}
