//! Tests of locks: sharing, order, and the state that cancelled flows leave behind.

use std::task::Waker;

use super::*;

fn context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn ticket(lock: &FairRwLock, mode: Mode) -> LockTicket {
    match lock.acquire(mode) {
        AcquireOutcome::Queued(ticket) => ticket,
        AcquireOutcome::Granted => panic!("granted at once"),
    }
}

#[test]
fn readers_go_together_and_a_writer_alone() {
    let lock = FairRwLock::default();
    assert!(lock.try_acquire(Mode::Read) && lock.try_acquire(Mode::Read) && !lock.try_acquire(Mode::Write));
    lock.release(Mode::Read);
    lock.release(Mode::Read);
    assert!(lock.try_acquire(Mode::Write) && !lock.try_acquire(Mode::Read) && !lock.try_acquire(Mode::Write));
}

#[test]
fn nobody_overtakes_a_waiting_writer() {
    let lock = FairRwLock::default();
    assert!(lock.try_acquire(Mode::Read));
    let writer = ticket(&lock, Mode::Write);
    assert!(!lock.try_acquire(Mode::Read));
    let reader = ticket(&lock, Mode::Read);
    lock.release(Mode::Read);
    assert!(lock.poll(writer, &mut context()).is_ready());
    assert!(lock.poll(reader, &mut context()).is_pending());
    lock.release(Mode::Write);
    assert!(lock.poll(reader, &mut context()).is_ready());
}

#[test]
fn all_readers_up_to_the_next_writer_are_granted_at_once() {
    let lock = FairRwLock::default();
    assert!(lock.try_acquire(Mode::Write));
    let first = ticket(&lock, Mode::Read);
    let second = ticket(&lock, Mode::Read);
    let writer = ticket(&lock, Mode::Write);
    let third = ticket(&lock, Mode::Read);
    lock.release(Mode::Write);
    let ready = [first, second, writer, third].map(|ticket| lock.poll(ticket, &mut context()).is_ready());
    assert_eq!(ready, [true, true, false, false]);
}

#[test]
fn a_writer_that_leaves_the_queue_lets_the_readers_behind_it_go() {
    let lock = FairRwLock::default();
    assert!(lock.try_acquire(Mode::Read));
    let writer = ticket(&lock, Mode::Write);
    let reader = ticket(&lock, Mode::Read);
    lock.cancel(writer, Mode::Write);
    assert!(lock.poll(reader, &mut context()).is_ready());
}

#[test]
fn a_grant_that_nobody_took_is_given_back_when_its_owner_leaves() {
    let lock = FairRwLock::default();
    assert!(lock.try_acquire(Mode::Write));
    let given_up = ticket(&lock, Mode::Write);
    lock.release(Mode::Write);
    assert!(!lock.try_acquire(Mode::Read));
    lock.cancel(given_up, Mode::Write);
    assert!(lock.try_acquire(Mode::Write));
}

#[test]
fn a_session_is_there_while_somebody_uses_it() {
    let sessions = Arc::new(SessionTable::default());
    let handles = || [(LockHandle::session(&sessions, Value::Int(1)), Mode::Write)];
    let Poll::Ready(held) = LockAcquisition::new(handles()).poll(&mut context()) else { panic!("the lock is free") };
    let mut waiting = LockAcquisition::new(handles());
    assert!(waiting.poll(&mut context()).is_pending());
    let other = LockHandle::session(&sessions, Value::Int(2));
    assert_eq!(sessions.len(), 2);
    drop((other, waiting));
    assert_eq!(sessions.len(), 1);
    drop(held);
    assert_eq!(sessions.len(), 0);
}
