//! One-shot and watch channels, semaphores, mutexes, pairs of sender and receiver, and actions that run once.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::{TOO_LONG, on_one_thread, poll_once, until};
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use weir_events::*;

#[test]
fn a_oneshot_gives_its_value_once_and_reports_a_dropped_side() {
    let (sender, receiver) = oneshot();
    let waiting = receiver.recv();
    sender.send(String::from("value")).unwrap();
    assert_eq!((waiting.sync(), waiting.sync()), (Ok("value".to_owned()), Err(Closed)));
    let (sender, receiver) = oneshot::<u8>();
    let mut waiting = receiver.recv().synchronise();
    assert!(poll_once(&mut waiting).is_pending() && !sender.is_closed());
    drop(sender);
    assert_eq!(poll_once(&mut waiting), Poll::Ready(Err(Closed)));
    let (sender, receiver) = oneshot();
    let kept = receiver.recv();
    drop(receiver);
    assert!(sender.is_closed());
    assert_eq!((sender.send(7), kept.sync()), (Err(SendError(7)), Err(Closed)));
}

#[test]
fn a_oneshot_value_that_nobody_received_is_dropped_with_the_receiver() {
    let value = Arc::new(());
    let (sender, receiver) = oneshot();
    let kept = receiver.recv();
    sender.send(value.clone()).unwrap();
    drop(receiver);
    assert_eq!(Arc::strong_count(&value), 1);
    drop(kept);
}

#[test]
fn a_watcher_sees_the_latest_value_and_each_change_wakes_it() {
    let (sender, mut watcher) = watch(0);
    let other = watcher.clone();
    let watching = thread::spawn(move || {
        let mut all = vec![*watcher.get()];
        while watcher.changed().sync().is_ok() {
            all.push(*watcher.get_and_mark());
        }
        all
    });
    for value in 1..=100 {
        sender.set(value);
        thread::yield_now();
    }
    assert_eq!(other.changed().sync().map(|value| *value), Ok(100));
    drop(sender);
    let all = watching.join().unwrap();
    assert!(all.is_sorted() && all.last() == Some(&100), "{all:?}");
    assert_eq!((other.changed().sync().is_ok(), *other.get()), (true, 100), "an unseen value can still be seen");
}

#[test]
fn a_watcher_that_waits_as_a_task_is_woken_by_a_change_and_by_the_end() {
    let (sender, mut watcher) = watch('a');
    let mut waiting = watcher.changed().synchronise();
    assert!(poll_once(&mut waiting).is_pending());
    sender.set('b');
    assert_eq!(poll_once(&mut waiting), Poll::Ready(Ok(Arc::new('b'))));
    watcher.get_and_mark();
    let mut waiting = watcher.changed().synchronise();
    assert!(poll_once(&mut waiting).is_pending());
    drop(sender);
    assert_eq!(poll_once(&mut waiting), Poll::Ready(Err(Closed)));
}

#[test]
fn a_semaphore_never_grants_more_than_its_permits() {
    let semaphore = Semaphore::new(2);
    let acquire = semaphore.acquire();
    let first = acquire.sync();
    let (_second, mut third) = (acquire.sync(), acquire.synchronise());
    assert!(poll_once(&mut third).is_pending());
    drop(first);
    let third = poll_once(&mut third);
    assert!(third.is_ready() && semaphore.available() == 0);
    let Poll::Ready(third) = third else { return };
    third.forget();
    assert!(acquire.poll().is_none());
    semaphore.add(1);
    assert!(acquire.poll().is_some() && semaphore.available() == 1);
}

#[test]
fn an_acquisition_that_was_granted_and_dropped_holds_nothing() {
    let (semaphore, mutex) = (Semaphore::new(1), EventMutex::new(1));
    let (permit, guard) = (semaphore.acquire().sync(), mutex.lock().sync());
    let (mut waiting, mut locking) = (semaphore.acquire().synchronise(), mutex.lock().synchronise());
    assert!(poll_once(&mut waiting).is_pending() && poll_once(&mut locking).is_pending());
    drop((permit, guard));
    drop((waiting, locking));
    assert!(semaphore.acquire().poll().is_some() && mutex.lock().poll().is_some());
}

#[test]
fn a_mutex_excludes_threads_and_tasks() {
    let mutex = EventMutex::new(0);
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let mutex = mutex.clone();
            thread::spawn(move || (0..1000).for_each(|_| *mutex.lock().sync() += 1))
        })
        .collect();
    on_one_thread(async {
        for _ in 0..1000 {
            *mutex.lock().await += 1;
        }
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*mutex.lock().sync(), 4000);
}

#[test]
fn values_that_nobody_can_receive_are_dropped_with_the_last_receiver() {
    for capacity in [0, 1, 8, 100] {
        let (requests, server) = bounded(capacity);
        let other = server.clone();
        let answers: Vec<_> = (0..9)
            .map(|_| {
                let (reply, answer) = oneshot::<u8>();
                requests.post(reply).unwrap();
                answer
            })
            .collect();
        drop(other.try_recv());
        drop(other);
        assert!(answers[1].recv().poll().is_none(), "there is another receiver");
        drop(server);
        for answer in answers {
            assert_eq!(answer.recv().sync_timeout(TOO_LONG), Some(Err(Closed)), "the request has gone, and its reply");
        }
    }
}

#[test]
fn a_pair_closes_when_the_last_handle_of_a_side_is_dropped() {
    for (sender, receiver) in [bounded(0), bounded(2), unbounded()] {
        let other = sender.clone();
        let waiting = thread::spawn(move || std::iter::from_fn(|| receiver.blocking_recv().ok()).collect::<Vec<_>>());
        sender.blocking_send(1).unwrap();
        drop(sender);
        other.send(2).sync().unwrap();
        drop(other);
        assert_eq!(waiting.join().unwrap(), [1, 2]);
    }
    let (sender, receiver) = bounded(0);
    drop(receiver);
    assert!(sender.is_closed() && sender.blocking_send(1).is_err());
}

#[test]
fn an_action_that_runs_once_consumes_what_it_captured() {
    let (channel, captured) = (Channel::rendezvous(), String::from("captured"));
    let event = channel.recv().wrap_once(move |value: Result<u8, Closed>| (captured, value));
    assert_eq!(event.poll(), None, "a lost synchronisation leaves the action");
    assert_eq!(choose_biased([event.wrap(|_| 1), always(2)]).sync(), 2);
    channel.post(3).unwrap();
    assert_eq!(event.sync_timeout(TOO_LONG), Some(("captured".to_owned(), Ok(3))));
    channel.post(4).unwrap();
    assert_eq!((event.poll(), channel.len()), (None, 1), "after that it never takes effect");
}

#[test]
fn an_action_that_runs_once_belongs_to_one_synchronisation_at_a_time() {
    let channel = Channel::rendezvous();
    let event = channel.recv().wrap_once(|value: Result<u8, Closed>| value);
    let waiting = {
        let event = event.clone();
        thread::spawn(move || event.sync())
    };
    until(|| channel.receivers_len() == 1);
    assert_eq!(event.poll(), None);
    channel.post(1).unwrap();
    assert_eq!(waiting.join().unwrap(), Ok(1));
}

#[test]
fn branches_of_different_types_are_chosen_in_one_place() {
    let (numbers, words) = (Channel::unbounded(), Channel::unbounded());
    let event = choose! {
        number = numbers.recv() => format!("number {:?}", number.map(|number: i32| number + 1)),
        word = words.recv() => word.map_or_else(|closed| closed.to_string(), |word: &str| word.to_owned()),
        () = after(TOO_LONG) => unreachable!("something is there"),
    };
    numbers.post(1).unwrap();
    assert_eq!(event.sync(), "number Ok(2)");
    words.post("word").unwrap();
    assert_eq!(event.sync(), "word");
    words.close();
    assert_eq!(event.sync(), Closed.to_string());
}
