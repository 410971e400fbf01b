//! Constraints: who goes with whom, who goes first, and what is left by who leaves.

use std::task::Waker;

use super::*;

fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn ticket(lock: &Lock, mode: Mode) -> Ticket {
    match lock.ask(mode) {
        Asked::Queued(ticket) => ticket,
        Asked::Granted => panic!("granted at once"),
    }
}

#[test]
fn readers_go_together_and_a_writer_alone() {
    let lock = Lock::default();
    assert!(lock.try_take(Mode::Read) && lock.try_take(Mode::Read) && !lock.try_take(Mode::Write));
    lock.give_back(Mode::Read);
    lock.give_back(Mode::Read);
    assert!(lock.try_take(Mode::Write) && !lock.try_take(Mode::Read) && !lock.try_take(Mode::Write));
}

#[test]
fn nobody_overtakes_a_waiting_writer() {
    let lock = Lock::default();
    assert!(lock.try_take(Mode::Read));
    let writer = ticket(&lock, Mode::Write);
    assert!(!lock.try_take(Mode::Read));
    let reader = ticket(&lock, Mode::Read);
    lock.give_back(Mode::Read);
    assert!(lock.poll(writer, &mut context()).is_ready());
    assert!(lock.poll(reader, &mut context()).is_pending());
    lock.give_back(Mode::Write);
    assert!(lock.poll(reader, &mut context()).is_ready());
}

#[test]
fn all_readers_up_to_the_next_writer_are_granted_at_once() {
    let lock = Lock::default();
    assert!(lock.try_take(Mode::Write));
    let first = ticket(&lock, Mode::Read);
    let second = ticket(&lock, Mode::Read);
    let writer = ticket(&lock, Mode::Write);
    let third = ticket(&lock, Mode::Read);
    lock.give_back(Mode::Write);
    let ready = [first, second, writer, third].map(|ticket| lock.poll(ticket, &mut context()).is_ready());
    assert_eq!(ready, [true, true, false, false]);
}

#[test]
fn a_writer_that_leaves_the_queue_lets_the_readers_behind_it_go() {
    let lock = Lock::default();
    assert!(lock.try_take(Mode::Read));
    let writer = ticket(&lock, Mode::Write);
    let reader = ticket(&lock, Mode::Read);
    lock.leave(writer, Mode::Write);
    assert!(lock.poll(reader, &mut context()).is_ready());
}

#[test]
fn a_grant_that_nobody_took_is_given_back_when_its_owner_leaves() {
    let lock = Lock::default();
    assert!(lock.try_take(Mode::Write));
    let given_up = ticket(&lock, Mode::Write);
    lock.give_back(Mode::Write);
    assert!(!lock.try_take(Mode::Read));
    lock.leave(given_up, Mode::Write);
    assert!(lock.try_take(Mode::Write));
}

#[test]
fn a_session_is_there_while_somebody_uses_it() {
    let sessions = Arc::new(Sessions::default());
    let handles = || [(Handle::session(&sessions, Value::Int(1)), Mode::Write)];
    let Poll::Ready(held) = Acquiring::new(handles()).poll(&mut context()) else { panic!("the lock is free") };
    let mut waiting = Acquiring::new(handles());
    assert!(waiting.poll(&mut context()).is_pending());
    let other = Handle::session(&sessions, Value::Int(2));
    assert_eq!(sessions.len(), 2);
    drop((other, waiting));
    assert_eq!(sessions.len(), 1);
    drop(held);
    assert_eq!(sessions.len(), 0);
}
