//! The hand-over of a piece: between the thread that has offered it and joins it, and the helpers that may run it.
//!
//! A piece is with one of three: in the hand-over, where anybody may take it out; with a helper; or with the thread that joins.
//!
//! 1. *Begin.* A helper takes the piece out, unless another thread has it. A piece may be offered several times, so that late
//!    helpers find none.
//! 2. *End, or hand back.* The helper stores the end, or the piece as it is, and wakes whoever waits: a thread that blocks, and
//!    the task that has registered itself.
//! 3. *Join.* The thread takes out the piece or the end. It registers itself in the critical section in which it finds that a
//!    helper has the piece, so that it is woken. A thread that runs the piece for a while puts it back, too, with the task that
//!    is woken if a helper begins it meanwhile.
//! 4. *Give up.* Nobody will join. What is in the hand-over is dropped, and a helper drops what it has, because it cannot put
//!    back a piece that may hold its own hand-over through hand-overs of its own: nobody would ever drop these.
//!
//! All state is behind one mutex but the mark of giving up. It is set before the mutex is taken, so that a helper that puts
//! something back behind that sees it; a helper that looks at it earlier, without the mutex, may miss it for a while.

use std::mem;
use std::task::Waker;

use super::sync::{AtomicBool, Condvar, HandOverMutant, Mutex, Ordering, is, wait};

/// The hand-over of a piece, which ends in an end.
pub(super) struct HandOver<P, E> {
    state: Mutex<HandOverState<P, E>>,
    /// Notified when the piece or its end is put back.
    returned: Condvar,
    given_up: AtomicBool,
}

enum HandOverState<P, E> {
    /// A piece that a helper is to run. The task that waits for its end, if one does.
    Offered(P, Option<Waker>),
    /// A helper has the piece. The task that waits for its end, if one does.
    UnderWay(Option<Waker>),
    /// A part of the piece has run, and nobody runs it. The task that waits for something that the piece needs, if one does.
    HandedBack(P, Option<Waker>),
    Ended(E),
    /// The thread that joins has taken out the piece or its end.
    Taken,
}

/// The outcome of joining.
pub(crate) enum JoinedPiece<P, E> {
    /// Nobody runs the piece, which is taken out.
    Here(P),
    /// It has ended.
    Ended(E),
    /// It is under way, or left to a helper. The task that joins is woken.
    UnderWay,
}

impl<P, E> HandOver<P, E> {
    /// Offers a piece.
    pub(super) fn new(piece: P) -> Self {
        HandOver {
            state: Mutex::new(HandOverState::Offered(piece, None)),
            returned: Condvar::new(),
            given_up: AtomicBool::new(false),
        }
    }

    /// Returns true if nobody will join; a hint for helpers.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Takes the piece out to run it on a helper; `None` if another thread has it.
    pub(super) fn begin(&self) -> Option<P> {
        let mut state = self.state.lock();
        match mem::replace(&mut *state, HandOverState::Taken) {
            HandOverState::Offered(piece, waiter) | HandOverState::HandedBack(piece, waiter) => {
                let waiter = waiter.filter(|_| !is(HandOverMutant::ForgetsWaiter));
                *state = HandOverState::UnderWay(waiter);
                Some(piece)
            }
            other => {
                *state = other;
                None
            }
        }
    }

    /// Notes the end of the piece, and wakes whoever waits for it.
    pub(super) fn end(&self, end: E) {
        self.put_back(HandOverState::Ended(end));
    }

    /// Puts back a piece of which a part has run, and wakes whoever waits for it. A helper that begins it nevertheless
    /// wakes `waiter` when it puts it back.
    pub(super) fn hand_back(&self, piece: P, waiter: Option<Waker>) {
        self.put_back(HandOverState::HandedBack(piece, waiter));
    }

    fn put_back(&self, returned: HandOverState<P, E>) {
        let mut state = self.state.lock();
        let is_kept = !self.given_up.load(Ordering::Relaxed) || is(HandOverMutant::KeepsGivenUp);
        let (next, dropped) = if is_kept { (returned, None) } else { (HandOverState::Taken, Some(returned)) };
        let before = mem::replace(&mut *state, next);
        drop(state);
        drop(dropped);
        if !is(HandOverMutant::LeavesBlocked) {
            self.returned.notify_all();
        }
        if let HandOverState::UnderWay(Some(waiter)) = before
            && !is(HandOverMutant::LeavesAsleep)
        {
            waiter.wake();
        }
    }

    /// Leaves a piece, which the thread that joins has taken out, to a helper; registers the task that is woken at its end.
    pub(super) fn leave_to_helper(&self, piece: P, waiter: Waker) {
        *self.state.lock() = HandOverState::Offered(piece, Some(waiter));
    }

    /// Returns true if the piece was handed back, and makes it one that is offered.
    pub(super) fn is_to_be_offered_again(&self) -> bool {
        let mut state = self.state.lock();
        match mem::replace(&mut *state, HandOverState::Taken) {
            HandOverState::HandedBack(piece, waiter) => *state = HandOverState::Offered(piece, waiter),
            other => {
                *state = other;
                return false;
            }
        }
        true
    }

    /// Takes out the end, or the piece if no helper has it; but a piece that is offered and that `is_left` to helpers stays. If
    /// there is neither, registers the task that is woken at the end. To be called by the thread that has offered the piece.
    pub(super) fn join(&self, waiter: &Waker, is_left: impl FnOnce(&P) -> bool) -> JoinedPiece<P, E> {
        let mut state = self.state.lock();
        *state = match mem::replace(&mut *state, HandOverState::Taken) {
            HandOverState::Offered(piece, _) if is_left(&piece) => HandOverState::Offered(piece, Some(waiter.clone())),
            HandOverState::Offered(piece, _) | HandOverState::HandedBack(piece, _) => return JoinedPiece::Here(piece),
            HandOverState::Ended(end) => return JoinedPiece::Ended(end),
            HandOverState::UnderWay(_) => HandOverState::UnderWay(Some(waiter.clone())),
            HandOverState::Taken => unreachable!("the thread that joins has put back what it has taken out"),
        };
        JoinedPiece::UnderWay
    }

    /// Blocks this thread while a helper has the piece.
    pub(super) fn wait(&self) {
        let mut state = self.state.lock();
        while matches!(*state, HandOverState::UnderWay(_)) {
            state = wait(&self.returned, state);
        }
    }

    /// Gives the piece up. To be called once, by the thread that would join.
    pub(super) fn give_up(&self) {
        let marks_late = is(HandOverMutant::MarksLate);
        if !marks_late {
            self.given_up.store(true, Ordering::Relaxed);
        }
        let mut state = self.state.lock();
        let dropped = match mem::replace(&mut *state, HandOverState::Taken) {
            HandOverState::UnderWay(_) => mem::replace(&mut *state, HandOverState::UnderWay(None)),
            other => other,
        };
        drop(state);
        drop(dropped);
        if marks_late {
            self.given_up.store(true, Ordering::Relaxed);
        }
    }
}
