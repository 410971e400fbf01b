//! Mailboxes and multicast: group 24 of the behaviour that must hold. The other patterns, groups 25 and 26, are the
//! examples `packetizing` and `file_reader`, with their tests.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::{on_one_thread, poll_once, until};
use std::thread;
use weir_events::*;

#[test]
fn a_mailbox_takes_letters_without_waiting_and_gives_them_in_order() {
    let mailbox = Mailbox::unbounded();
    (0..1000).for_each(|n| mailbox.send(n).sync().unwrap());
    let received: Vec<_> = (0..1000).map(|_| mailbox.recv().sync().unwrap()).collect();
    assert_eq!(received, (0..1000).collect::<Vec<_>>());
}

#[test]
fn a_bounded_mailbox_makes_senders_wait_and_lets_them_give_up() {
    let mailbox = Mailbox::bounded(2);
    assert_eq!(
        (mailbox.send(1).poll(), mailbox.send(2).poll(), mailbox.send(3).poll()),
        (Some(Ok(())), Some(Ok(())), None)
    );
    let sender = mailbox.clone();
    let sending = thread::spawn(move || sender.send(3).sync());
    assert_eq!(mailbox.recv().sync(), Ok(1));
    assert_eq!(sending.join().unwrap(), Ok(()));
    assert_eq!((mailbox.send(4).poll(), mailbox.len()), (None, 2));
    assert_eq!((mailbox.recv().sync(), mailbox.recv().sync()), (Ok(2), Ok(3)));
}

#[test]
fn a_mailbox_is_a_branch_of_a_choice_on_both_sides() {
    let (a, b) = (Mailbox::bounded(1), Mailbox::bounded(1));
    a.send(1).sync().unwrap();
    assert_eq!(choose([a.send(2).wrap(|_| "a"), b.send(2).wrap(|_| "b")]).sync(), "b");
    assert_eq!(a.recv().sync(), Ok(1));
    assert_eq!(choose([a.recv(), b.recv()]).sync(), Ok(2));
    assert!(a.is_empty() && b.is_empty());
}

#[test]
fn a_letter_whose_receiver_was_dropped_stays_in_the_mailbox() {
    let mailbox = Mailbox::bounded(1);
    on_one_thread(async {
        tokio::select! {
            biased;
            _ = mailbox.recv().synchronise() => unreachable!("it is empty"),
            sent = mailbox.send(5).synchronise() => assert_eq!(sent, Ok(())),
        }
    });
    assert_eq!((mailbox.send(6).poll(), mailbox.recv().sync()), (None, Ok(5)));
    assert_eq!(mailbox.send(6).poll(), Some(Ok(())));
}

#[test]
fn a_closed_mailbox_drains_and_wakes_its_senders() {
    let mailbox = Mailbox::bounded(1);
    mailbox.send(1).sync().unwrap();
    let sender = mailbox.clone();
    let sending = thread::spawn(move || sender.send(2).sync());
    mailbox.close();
    assert_eq!(sending.join().unwrap(), Err(Closed));
    assert_eq!((mailbox.recv().sync(), mailbox.recv().sync()), (Ok(1), Err(Closed)));
}

#[test]
fn the_actions_of_an_asynchronous_letter_run_when_it_is_received() {
    let (mailbox, read) = (Mailbox::unbounded(), Channel::rendezvous());
    let receipt = read.clone();
    mailbox.a_send("letter").a_wrap(move |sent| _ = receipt.post(sent)).a_sync();
    assert_eq!(read.recv().poll(), None);
    assert_eq!(mailbox.recv().sync(), Ok("letter"));
    assert_eq!(read.recv().sync(), Ok(Ok(())));
}

#[test]
fn a_port_sees_only_what_was_sent_after_it_was_made() {
    let multicast = Multicast::new();
    multicast.post(0).unwrap();
    let early = multicast.port();
    multicast.post(1).unwrap();
    let late = multicast.port();
    multicast.send(2).sync().unwrap();
    multicast.close();
    let all = |port: &MulticastPort<i32>| std::iter::from_fn(|| port.recv().sync().ok()).collect::<Vec<_>>();
    assert_eq!((all(&early), all(&late)), (vec![1, 2], vec![2]));
    assert_eq!(multicast.port().recv().sync(), Err(Closed));
}

#[test]
fn all_ports_see_the_same_order_whoever_sends() {
    let multicast = Multicast::new();
    let ports: Vec<_> = (0..3).map(|_| multicast.port()).collect();
    let senders: Vec<_> = (0..3)
        .map(|sender| {
            let multicast = multicast.clone();
            thread::spawn(move || (0..200).for_each(|n| multicast.post((sender, n)).unwrap()))
        })
        .collect();
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    let seen: Vec<Vec<_>> = ports.iter().map(|port| (0..600).map(|_| port.recv().sync().unwrap()).collect()).collect();
    assert!(seen.iter().all(|order| *order == seen[0]));
}

#[test]
fn a_port_that_is_dropped_is_forgotten_and_one_that_waits_is_served_in_a_choice() {
    let (multicast, other) = (Multicast::new(), Channel::rendezvous());
    let (kept, dropped) = (multicast.port(), multicast.port());
    drop(dropped);
    assert_eq!(format!("{multicast:?}"), "Multicast { ports: 1 }");
    let event = choose([kept.recv(), other.recv()]);
    let waiting = thread::spawn(move || event.sync());
    until(|| other.receivers_len() == 1);
    multicast.post(7).unwrap();
    assert_eq!(waiting.join().unwrap(), Ok(7));
}

#[test]
fn letters_beside_the_bound_add_no_room_to_a_mailbox() {
    let mailbox = Mailbox::bounded(2);
    for letter in 0..10 {
        match letter % 2 {
            0 => mailbox.post(letter).unwrap(),
            _ => mailbox.a_send(letter).a_sync(),
        }
    }
    (0..10).for_each(|letter| assert_eq!(mailbox.recv().sync(), Ok(letter)));
    let taken = (0..20).filter(|letter| mailbox.send(*letter).poll().is_some()).count();
    assert_eq!((taken, mailbox.len()), (2, 2));
}

#[test]
fn a_post_that_races_with_the_close_of_a_mailbox_is_received_or_refused() {
    for mailbox in (0..60).map(|round| if round % 2 == 0 { Mailbox::unbounded() } else { Mailbox::bounded(3) }) {
        let sender = mailbox.clone();
        let posting = thread::spawn(move || (0..2000).take_while(|letter| sender.post(*letter).is_ok()).count());
        until(|| !mailbox.is_empty());
        mailbox.close();
        let posted = posting.join().unwrap();
        assert_eq!(std::iter::from_fn(|| mailbox.recv().sync().ok()).count(), posted);
        assert_eq!(mailbox.post(7), Err(SendError(7)));
    }
}

#[test]
fn a_multicast_that_is_closed_refuses_values() {
    for multicast in [Multicast::new(), Multicast::bounded(1)] {
        let port = multicast.port();
        let mut waits = choose([multicast.send(1), multicast.send(1)]).synchronise();
        let _ = poll_once(&mut waits);
        let waiting = multicast.clone();
        let sending = thread::spawn(move || while waiting.send(2).sync().is_ok() {});
        multicast.close();
        sending.join().unwrap();
        assert_eq!((multicast.post(3), multicast.send(4).sync()), (Err(SendError(3)), Err(Closed)));
        while port.recv().sync().is_ok() {}
    }
}

#[test]
fn a_bounded_multicast_waits_for_its_slowest_port() {
    let multicast = Multicast::bounded(2);
    let (fast, slow) = (multicast.port(), multicast.port());
    let send = |value| multicast.send(value).poll().is_some();
    assert_eq!((send(1), send(2), send(3)), (true, true, false));
    assert_eq!((fast.recv().sync(), send(3)), (Ok(1), false));
    assert_eq!((slow.recv().sync(), send(3), send(4)), (Ok(1), true, false));
    multicast.post(4).unwrap();
    drop(slow);
    assert_eq!((fast.recv().sync(), send(5), send(6)), (Ok(2), true, false), "a dropped port holds up nobody");
    let rest: Vec<_> = std::iter::from_fn(|| fast.recv().poll()).map(Result::unwrap).collect();
    assert_eq!(rest, [3, 4, 5]);
    let none = Multicast::bounded(1);
    assert!((0..10).all(|value| none.send(value).poll().is_some()), "without ports nobody is waited for");
}

#[test]
fn a_sender_of_a_bounded_multicast_is_woken_by_the_last_port() {
    let multicast = Multicast::bounded(1);
    let ports = [multicast.port(), multicast.port(), multicast.port()];
    let sender = multicast.clone();
    let sending = thread::spawn(move || (0..300).for_each(|value| sender.send(value).sync().unwrap()));
    let receiving = ports.map(|port| thread::spawn(move || (0..300).all(|value| port.recv().sync() == Ok(value))));
    sending.join().unwrap();
    assert!(receiving.into_iter().all(|thread| thread.join().unwrap()));
}
