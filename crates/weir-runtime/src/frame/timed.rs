//! Bodies that may be given up on their way: `within` and `race`.
//!
//! Each body runs in a frame of its own, all of them driven by the one task that drives the flow, so that no two of them
//! ever run at the same moment.
//!
//! 1. The bodies are advanced in the order of the text. The first that gets to its end, by its result or by an end of the
//!    flow, decides; a body that comes later in the text does not even begin where an earlier one never waits.
//! 2. Only where all wait is the time looked at: a result that is there when the time is up is never lost.
//! 3. The frames of the others are given back. That drops the calls that they wait for, leaves the queues that they stand
//!    in and releases what they hold; what they have done stays done.
//!
//! A call that holds a thread has no point at which it could be given up: it runs to its end beside the flow, and keeps its
//! locks until then.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use weir_events::Synchronisation;
use weir_host::Value;

use super::action::{End, Ran, Stage};
use super::repeat::capture;
use super::{Ended, Finished, Frame};
use crate::live::Env;
use crate::step::{Body, TimedStep};

/// The bodies while they run. Dropping it gives them up.
pub(super) struct Timed {
    #[expect(clippy::vec_box, reason = "frames come boxed from the free list and go back so")]
    frames: Vec<Box<Frame>>,
    /// When the time is up; `None` for a race.
    due_ns: Option<u64>,
    /// Set where all bodies wait for the first time, so that what never waits costs no timer.
    timer: Option<Synchronisation<()>>,
}

impl Frame {
    /// Begins the bodies.
    pub(super) fn timed(&mut self, step: &TimedStep, body: &Body, env: Env<'_>, context: &mut Context<'_>) -> Ran {
        let limit_ns = step.limit.map(|limit| nanoseconds(&self.value(body, limit)));
        let due_ns = limit_ns.map(|limit_ns| env.live.machine.now_ns().saturating_add(limit_ns));
        let scopes = self.scopes_around(&step.within);
        let mut frames = Vec::with_capacity(step.bodies.len());
        for (inner, captures) in &step.bodies {
            let mut frame = Frame::take(inner, true);
            for ((input, handed), slot) in captures.iter().zip(&inner.handed).zip(0..) {
                frame.slots[slot] = capture(*input, *handed, self, body);
            }
            frame.inherited.extend_from_slice(&scopes);
            frames.push(frame);
        }
        self.timed_on(Timed { frames, due_ns, timer: None }, step, env, context)
    }

    /// Goes on with the bodies.
    pub(super) fn timed_on(
        &mut self,
        mut run: Timed,
        step: &TimedStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        match run.advance(step, env, context) {
            Poll::Pending => Ran::wait(Stage::Timed(Box::new(run))),
            Poll::Ready(Ok(value)) => {
                self.slots[step.out as usize] = value;
                Ran::Next
            }
            Poll::Ready(Err((ended, body))) => Ran::Ends(Box::new(End { within: ended.path(body), how: ended.how })),
        }
    }
}

impl Timed {
    fn advance<'s>(
        &mut self,
        step: &'s TimedStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Value, (Ended, &'s Body)>> {
        for (frame, (body, _)) in self.frames.iter_mut().zip(&step.bodies) {
            match frame.advance(body, env, None, context) {
                Poll::Pending => {}
                Poll::Ready(Finished::Stretch) => unreachable!("bodies are not cut"),
                Poll::Ready(Finished::Ended(ended)) => return Poll::Ready(Err((ended, body))),
                Poll::Ready(Finished::Value(value)) => {
                    let in_time = step.limit.is_some();
                    return Poll::Ready(Ok(if in_time { Value::some(value) } else { value }));
                }
            }
        }
        let Some(due_ns) = self.due_ns else { return Poll::Pending };
        let timer = self.timer.get_or_insert_with(|| env.live.machine.at(due_ns).synchronise());
        Pin::new(timer).poll(context).map(|()| Ok(Value::none()))
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        self.frames.drain(..).for_each(Frame::give_back);
    }
}

/// A `Duration` as a time limit; a negative one is over at once.
fn nanoseconds(value: &Value) -> u64 {
    match value {
        Value::Duration(nanoseconds) => u64::try_from(*nanoseconds).unwrap_or(0),
        other => unreachable!("the verifier has seen a duration, not {other}"),
    }
}
