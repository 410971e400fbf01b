//! The model check of a batch: every interleaving of a sender with members that wait for their answers and members that
//! leave, by loom. A member that leaves holds nobody up (I11 of "The frame" in `ARCHITECTURE.md`).
//!
//! The files under test are compiled a second time here, over loom's primitives instead of the system's. Every mutant
//! leaves out one step of the protocol, and must be caught.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use foldhash::fast::FixedState;
use loom::thread;
use weir_host::{Outcome, Value};

use super::{CallSlack, batch_flows, call_slack, requests};
use batch::{AnswersCost, GatheredBatch, Member};
use batch_state::{BatchState, JoiningFlow};
use sync::{BatchMutant, MUTANT};

#[path = "batch.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
#[expect(dead_code, reason = "the model uses a part of it")]
mod batch;

#[path = "batch_state.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
#[expect(dead_code, reason = "the model uses a part of it")]
mod batch_state;

#[path = "member.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
#[expect(dead_code, reason = "the model uses a part of it")]
mod member;

/// Loom's primitives under the names of those in `super::sync`.
mod sync {
    use std::cell::Cell;

    pub(crate) use super::super::sync::BatchMutant;
    pub(crate) use crate::loom_support::ModelMutex as Mutex;

    thread_local! {
        /// The mutant under test. All threads of a model run on one thread of the system.
        pub(crate) static MUTANT: Cell<Option<BatchMutant>> = const { Cell::new(None) };
    }

    pub(crate) fn is(mutant: BatchMutant) -> bool {
        MUTANT.get() == Some(mutant)
    }
}

/// Wakes a thread of the model.
struct UnparkWaker(thread::Thread);

impl Wake for UnparkWaker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls until there is a result, and parks the thread in between.
fn wait<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let waker = Waker::from(Arc::new(UnparkWaker(thread::current())));
    loop {
        if let Poll::Ready(result) = poll(&mut Context::from_waker(&waker)) {
            return result;
        }
        thread::park();
    }
}

/// Returns an empty batch.
fn empty(merges: Option<FixedState>) -> Arc<GatheredBatch> {
    Arc::new(GatheredBatch::new(Box::default(), BatchState::new(merges, 0, 0), 0))
}

/// Returns a batch, and two calls whose flows are at rest.
fn joined(merges: Option<FixedState>, values: [i64; 2]) -> (Arc<GatheredBatch>, [Member; 2]) {
    let batch = empty(merges);
    let members = values.map(|value| join(&batch, value, 10));
    values.iter().for_each(|_| batch.end_run());
    (batch, members)
}

fn join(batch: &Arc<GatheredBatch>, value: i64, at_most: usize) -> Member {
    GatheredBatch::join(batch, &mut std::iter::once(Value::Int(value)), at_most, JoiningFlow::default()).member
}

/// Sends a batch to a function that returns its arguments.
fn send(batch: &GatheredBatch) {
    let mut sent = batch.send(0).requests;
    let answers = std::mem::take(&mut sent.values).into_iter().map(Outcome::Value).collect();
    batch.answer(&sent, answers, AnswersCost::default(), || panic!("each request is answered"));
}

fn answer(member: &mut Member) -> Outcome {
    wait(|context| member.poll(context)).pop().expect("a member with a call")
}

/// One member waits and the other one leaves, while a flow comes to rest.
fn members_that_wait_are_answered() {
    let batch = empty(None);
    let [mut stays, leaves] = [1, 2].map(|value| join(&batch, value, 10));
    batch.end_run();
    let sender = {
        let batch = Arc::clone(&batch);
        thread::spawn(move || {
            wait(|context| batch.poll_rest(context));
            send(&batch);
        })
    };
    let other = thread::spawn(move || {
        batch.end_run();
        drop(leaves);
    });
    assert_eq!(answer(&mut stays), Outcome::Value(Value::Int(1)));
    sender.join().unwrap();
    other.join().unwrap();
}

/// A member has joined with its waker, and does not poll before it is woken.
fn a_member_may_wait_since_it_has_joined() {
    let batch = empty(None);
    let waker = Waker::from(Arc::new(UnparkWaker(thread::current())));
    let flow = JoiningFlow { waker: Some(&waker), ..JoiningFlow::default() };
    let mut member = GatheredBatch::join(&batch, &mut std::iter::once(Value::Int(1)), 10, flow).member;
    batch.end_run();
    let sender = thread::spawn(move || send(&batch));
    thread::park();
    assert!(member.poll(&Context::from_waker(Waker::noop())).is_ready(), "it is woken when it is answered");
    sender.join().unwrap();
}

/// A member sees no answers, and then the batch is answered: its flow was woken, but not one that does not wait.
fn an_answer_wakes_the_flows_that_wait() {
    let (batch, [mut waits, computes]) = joined(None, [1, 2]);
    let sender = thread::spawn(move || send(&batch));
    let polled = waits.poll(&Context::from_waker(Waker::noop()));
    sender.join().unwrap();
    assert_eq!((waits.is_woken(), computes.is_woken()), (polled.is_pending(), false));
}

/// A member parts while its batch is answered, and the calls that it has kept leave: the others are woken and have their answers.
fn calls_that_part_are_answered() {
    let batch = empty(None);
    let waker = Waker::from(Arc::new(UnparkWaker(thread::current())));
    let mut values = [1, 2, 3].map(Value::Int).into_iter();
    let flow = JoiningFlow { waker: Some(&waker), ..JoiningFlow::default() };
    let mut leaves = GatheredBatch::join(&batch, &mut values, 10, flow).member;
    batch.end_run();
    let sender = {
        let batch = Arc::clone(&batch);
        thread::spawn(move || send(&batch))
    };
    let mut stays = leaves.split_off(&[true, false, true]);
    drop(leaves);
    thread::park();
    let Poll::Ready(answers) = stays.poll(&Context::from_waker(Waker::noop())) else { panic!("it is woken too early") };
    assert_eq!(answers[..], [1, 3].map(|number| Outcome::Value(Value::Int(number))));
    sender.join().unwrap();
}

/// Two members have made the same request, and one of them leaves.
fn a_request_stays_as_long_as_a_member_makes_it() {
    let (batch, [mut stays, leaves]) = joined(Some(FixedState::default()), [5, 5]);
    let other = thread::spawn(move || drop(leaves));
    let sender = thread::spawn(move || send(&batch));
    assert_eq!(answer(&mut stays), Outcome::Value(Value::Int(5)));
    sender.join().unwrap();
    other.join().unwrap();
}

/// All members leave a batch whose function never ends.
fn a_batch_that_all_have_left_is_given_up() {
    let (batch, [one, other]) = joined(None, [1, 2]);
    let leaving = [one, other].map(|member| thread::spawn(move || drop(member)));
    let sent = batch.send(0);
    assert!(sent.calls > 0 || sent.requests.values.is_empty(), "nothing is sent for nobody");
    wait(|context| if batch.is_abandoned(context) { Poll::Ready(()) } else { Poll::Pending });
    leaving.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Sends a batch once its members have no more time; the timer never expires.
fn send_when_due(batch: &GatheredBatch) {
    loop {
        wait(|context| batch.poll_rest(context));
        if batch.delay(0).is_none() {
            return send(batch);
        }
        wait(|context| batch.poll_delay(context));
    }
}

/// A batch waits for further calls, and one joins that makes it full.
fn a_batch_that_waits_leaves_when_it_is_full() {
    let batch = empty(None);
    // Not dropped: a call that leaves the batch while the deadlock of a mutant unwinds would end the process.
    let mut first = ManuallyDrop::new(join(&batch, 1, 2));
    batch.end_run();
    first.delay(CallSlack { latest_ns: 100, next_ns: Some(0) });
    let sender = {
        let batch = Arc::clone(&batch);
        thread::spawn(move || send_when_due(&batch))
    };
    let _second = ManuallyDrop::new(join(&batch, 2, 2));
    assert_eq!(answer(&mut first), Outcome::Value(Value::Int(1)));
    sender.join().unwrap();
}

/// A batch waits for further calls, and its member learns that it has no more time.
fn a_batch_that_waits_leaves_when_it_is_due() {
    let (batch, [first, second]) = joined(None, [1, 2]);
    let mut first = ManuallyDrop::new(first);
    first.delay(CallSlack { latest_ns: 100, next_ns: Some(0) });
    second.delay(CallSlack { latest_ns: 200, next_ns: None });
    let sender = {
        let batch = Arc::clone(&batch);
        thread::spawn(move || send_when_due(&batch))
    };
    drop(second);
    first.delay(CallSlack::default());
    assert_eq!(answer(&mut first), Outcome::Value(Value::Int(1)));
    sender.join().unwrap();
}

/// A batch waits for a call without a limit, and another batch needs its sender.
fn a_batch_that_waits_leaves_when_its_sender_is_needed() {
    let (batch, [first, second]) = joined(None, [1, 2]);
    let (mut first, second) = (ManuallyDrop::new(first), ManuallyDrop::new(second));
    [&first, &second].into_iter().for_each(|member| member.delay(CallSlack { latest_ns: u64::MAX, next_ns: Some(0) }));
    let sender = {
        let batch = Arc::clone(&batch);
        thread::spawn(move || send_when_due(&batch))
    };
    batch.leave_sender();
    assert_eq!(answer(&mut first), Outcome::Value(Value::Int(1)));
    sender.join().unwrap();
}

/// A batch waits for a call without a limit, and the flow that would make it is cancelled.
fn a_batch_that_waits_leaves_when_nothing_more_is_expected() {
    let (batch, [first, second]) = joined(None, [1, 2]);
    let mut first = ManuallyDrop::new(first);
    first.delay(CallSlack { latest_ns: 100, next_ns: None });
    second.delay(CallSlack { latest_ns: u64::MAX, next_ns: Some(0) });
    let sender = {
        let batch = Arc::clone(&batch);
        thread::spawn(move || send_when_due(&batch))
    };
    drop(second);
    assert_eq!(answer(&mut first), Outcome::Value(Value::Int(1)));
    sender.join().unwrap();
}

fn every_model() {
    loom::model(members_that_wait_are_answered);
    loom::model(a_member_may_wait_since_it_has_joined);
    loom::model(calls_that_part_are_answered);
    loom::model(an_answer_wakes_the_flows_that_wait);
    loom::model(a_request_stays_as_long_as_a_member_makes_it);
    loom::model(a_batch_that_all_have_left_is_given_up);
    loom::model(a_batch_that_waits_leaves_when_it_is_full);
    loom::model(a_batch_that_waits_leaves_when_it_is_due);
    loom::model(a_batch_that_waits_leaves_when_its_sender_is_needed);
    loom::model(a_batch_that_waits_leaves_when_nothing_more_is_expected);
}

#[test]
fn batches_answer_members_that_stay_and_forget_those_that_leave() {
    every_model();
}

#[test]
fn each_mutant_is_caught() {
    use BatchMutant::{ForgetsWoken, KeepsDelayed, KeepsDue, KeepsExpectation, KeepsSender, PartsAsleep};
    use BatchMutant::{KeepsAbandoned, KeepsAnswers, KeepsRestless, SendsAbandoned, TakesRequestAlong};
    let of_members = [KeepsAbandoned, KeepsRestless, KeepsAnswers, SendsAbandoned, TakesRequestAlong];
    for mutant in
        of_members.into_iter().chain([ForgetsWoken, KeepsDelayed, KeepsDue, KeepsSender, KeepsExpectation, PartsAsleep])
    {
        assert!(crate::loom_support::caught(&MUTANT, mutant, every_model), "{mutant:?} is not caught");
    }
}
