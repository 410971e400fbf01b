//! The model check of the hand-over of a fork: every interleaving of the thread that joins with helpers that begin, end and hand
//! back its piece, by loom.
//!
//! The file under test is compiled a second time here, over loom's primitives instead of the system's. Every mutant leaves out
//! one step of the protocol, and must be caught: a thread then waits for ever, or a piece is never dropped.

use std::sync::Arc as SystemArc;
use std::task::{Wake, Waker};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

use hand_over::{HandOver, JoinedPiece};
use sync::{HandOverMutant, MUTANT};

#[path = "hand_over.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
mod hand_over;

/// Loom's primitives under the names of those in `super::sync`.
mod sync {
    use std::cell::Cell;

    pub(crate) use loom::sync::Condvar;
    use loom::sync::MutexGuard;
    pub(crate) use loom::sync::atomic::{AtomicBool, Ordering};

    pub(crate) use super::super::sync::HandOverMutant;
    pub(crate) use crate::loom_support::ModelMutex as Mutex;

    thread_local! {
        /// The mutant under test. All threads of a model run on one thread of the system.
        pub(crate) static MUTANT: Cell<Option<HandOverMutant>> = const { Cell::new(None) };
    }

    pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        condvar.wait(guard).expect("nobody panics")
    }

    pub(crate) fn is(mutant: HandOverMutant) -> bool {
        MUTANT.get() == Some(mutant)
    }
}

/// A piece of some rounds, each of which counts itself.
struct ModelPiece {
    left: usize,
    rounds: Arc<AtomicUsize>,
    /// True if the next round is a long call, which only helpers make.
    is_long: bool,
    /// The fork of the piece itself, as forks that it has offered hold it.
    offered_by: Option<Arc<ModelFork>>,
    /// A fork that the piece waits for before its next round.
    inner: Option<Arc<ModelFork>>,
}

/// The end of a piece is the number of rounds that have run.
type ModelFork = HandOver<ModelPiece, usize>;

/// The number of rounds of a piece.
const ROUNDS: usize = 2;

/// Wakes a thread of the model.
struct UnparkWaker(thread::Thread);

impl Wake for UnparkWaker {
    fn wake(self: SystemArc<Self>) {
        self.0.unpark();
    }
}

fn waker() -> Waker {
    Waker::from(SystemArc::new(UnparkWaker(thread::current())))
}

fn piece(rounds: usize) -> ModelPiece {
    ModelPiece { left: rounds, rounds: Arc::new(AtomicUsize::new(0)), is_long: false, offered_by: None, inner: None }
}

fn offer(piece: ModelPiece) -> Arc<ModelFork> {
    Arc::new(HandOver::new(piece))
}

impl ModelPiece {
    /// Runs one round; returns the number of all if it was the last one.
    fn run(&mut self) -> Option<usize> {
        let before = self.rounds.fetch_add(1, Ordering::Relaxed);
        self.left -= 1;
        (self.left == 0).then_some(before + 1)
    }
}

/// A helper that runs so many rounds of a piece, and hands back what is left.
fn help(fork: &ModelFork, rounds: usize) {
    let Some(mut piece) = fork.begin() else { return };
    if let Some(inner) = piece.inner.take() {
        block_on(&inner);
    }
    for _ in 0..rounds {
        if fork.is_given_up() {
            return fork.end(0);
        }
        piece.is_long = false;
        if let Some(all) = piece.run() {
            return fork.end(all);
        }
    }
    fork.hand_back(piece, None);
}

/// Joins a fork on a helper, which blocks.
fn block_on(fork: &ModelFork) -> usize {
    loop {
        match fork.join(Waker::noop(), |_| false) {
            JoinedPiece::Here(mut piece) => match piece.run() {
                Some(all) => return all,
                None => fork.hand_back(piece, None),
            },
            JoinedPiece::Ended(all) => return all,
            JoinedPiece::UnderWay => fork.wait(),
        }
    }
}

/// Joins a fork as a flow does: it goes on with what was handed back, one round after the other, and waits without blocking.
fn join(fork: &ModelFork) -> usize {
    let waker = waker();
    loop {
        match fork.join(&waker, |piece| piece.is_long) {
            JoinedPiece::Here(mut piece) => {
                assert!(!piece.is_long, "a long call is a helper's");
                if let Some(inner) = piece.inner.take() {
                    match inner.join(&waker, |_| false) {
                        JoinedPiece::Here(mut own) => drop(own.run()),
                        JoinedPiece::Ended(_) => {}
                        JoinedPiece::UnderWay => {
                            piece.inner = Some(inner);
                            fork.hand_back(piece, Some(waker.clone()));
                            thread::park();
                            continue;
                        }
                    }
                }
                match piece.run() {
                    Some(all) => return all,
                    None => fork.hand_back(piece, None),
                }
            }
            JoinedPiece::Ended(all) => return all,
            JoinedPiece::UnderWay => thread::park(),
        }
    }
}

/// Starts a helper for a fork.
fn helper(fork: &Arc<ModelFork>, rounds: usize) -> thread::JoinHandle<()> {
    let fork = Arc::clone(fork);
    thread::spawn(move || help(&fork, rounds))
}

/// Checks a model of three threads. The number of preemptions is bounded, because more would take minutes.
fn interleaved(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// A helper runs a fork to its end, or not at all.
fn a_fork_that_a_helper_runs_is_joined() {
    loom::model(|| {
        let fork = offer(piece(ROUNDS));
        let helper = helper(&fork, ROUNDS);
        assert_eq!(join(&fork), ROUNDS, "each round has run once");
        helper.join().unwrap();
    });
}

/// A helper hands a fork back, which is offered once more; each of the two may be too late.
fn a_fork_that_is_handed_back_goes_on() {
    interleaved(|| {
        let fork = offer(piece(ROUNDS));
        let first = helper(&fork, 1);
        let second = fork.is_to_be_offered_again().then(|| helper(&fork, ROUNDS));
        assert_eq!(join(&fork), ROUNDS, "each round has run once");
        first.join().unwrap();
        second.into_iter().for_each(|second| second.join().unwrap());
    });
}

/// A flow waits for a fork inside the piece that it goes on with, and a late helper begins that piece.
fn a_flow_that_waits_inside_a_piece_is_woken() {
    interleaved(|| {
        let inner = offer(piece(1));
        let fork = offer(ModelPiece { inner: Some(Arc::clone(&inner)), ..piece(ROUNDS) });
        let threads = [helper(&inner, 1), helper(&fork, ROUNDS)];
        drop(inner);
        assert_eq!(join(&fork), ROUNDS, "each round has run once");
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// A helper blocks until another one has ended a fork, or has handed it back.
fn a_helper_that_blocks_is_woken() {
    for rounds in [1, ROUNDS] {
        loom::model(move || {
            let fork = offer(piece(ROUNDS));
            let helper = helper(&fork, rounds);
            assert_eq!(block_on(&fork), ROUNDS, "each round has run once");
            helper.join().unwrap();
        });
    }
}

/// A flow leaves a long call to a helper.
fn a_long_call_is_left_to_a_helper() {
    loom::model(|| {
        let fork = offer(piece(ROUNDS));
        let Some(mut long) = fork.begin() else { panic!("nobody has begun it") };
        long.is_long = true;
        fork.leave_to_helper(long, waker());
        let helper = helper(&fork, 1);
        assert_eq!(join(&fork), ROUNDS, "each round has run once");
        helper.join().unwrap();
    });
}

/// A piece is given up while a helper hands it back. It holds its own fork, so that loom reports the fork if nobody drops it.
fn a_piece_that_is_given_up_is_dropped() {
    loom::model(|| {
        let fork = offer(piece(ROUNDS));
        let Some(mut begun) = fork.begin() else { panic!("nobody has begun it") };
        begun.offered_by = Some(Arc::clone(&fork));
        fork.hand_back(begun, None);
        let helper = helper(&fork, 1);
        fork.give_up();
        drop(fork);
        helper.join().unwrap();
    });
}

fn caught(mutant: HandOverMutant, model: fn()) -> bool {
    crate::loom_support::caught(&MUTANT, mutant, model)
}

#[test]
fn each_fork_comes_back_exactly_once() {
    a_fork_that_a_helper_runs_is_joined();
    a_fork_that_is_handed_back_goes_on();
    a_flow_that_waits_inside_a_piece_is_woken();
    a_helper_that_blocks_is_woken();
    a_long_call_is_left_to_a_helper();
    a_piece_that_is_given_up_is_dropped();
}

#[test]
fn every_mutant_of_the_hand_over_is_caught() {
    assert!(caught(HandOverMutant::LeavesAsleep, a_fork_that_a_helper_runs_is_joined));
    assert!(caught(HandOverMutant::LeavesBlocked, a_helper_that_blocks_is_woken));
    assert!(caught(HandOverMutant::ForgetsWaiter, a_flow_that_waits_inside_a_piece_is_woken));
    assert!(caught(HandOverMutant::ForgetsWaiter, a_long_call_is_left_to_a_helper));
    assert!(caught(HandOverMutant::KeepsGivenUp, a_piece_that_is_given_up_is_dropped));
    assert!(caught(HandOverMutant::MarksLate, a_piece_that_is_given_up_is_dropped));
}
