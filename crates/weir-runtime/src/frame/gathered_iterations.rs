//! Iterations of a `map` that share a frame, because each waits for nothing but one gathered call (`gathered.rs`).

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};

use smallvec::SmallVec;
use weir_host::{Elements, Outcome, Value};

use super::exit::FlowExit;
use crate::batching::{Gatherer, Member};
use crate::operations::element;

/// Iterations that share a frame.
pub(super) struct GatheredIterations {
    list: Elements,
    /// The iteration that begins next.
    next: usize,
    /// The iterations that have come to their call and have not gone on.
    suspended: VecDeque<SuspendedIteration>,
    /// The number of iterations that have gone on.
    resumed: usize,
    calls: CollectedCalls,
    pub activity: Activity,
    pub results: Elements,
    /// The end of the flow by an iteration before its call. Iterations before it may still end the flow earlier.
    pub end: Option<FlowExit>,
}

/// The present use of the frame.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Activity {
    /// Nothing.
    Free,
    /// The steps before the call of the iteration that has begun last.
    BeforeCall,
    /// The steps behind the call of the iteration that was resumed last.
    AfterCall,
}

/// An iteration at its call.
pub(super) struct SuspendedIteration {
    /// The call; none if it is not placed yet, or if the iteration has skipped it.
    pub member: Option<Member>,
    /// The step with which the iteration goes on.
    pub continues_at: usize,
    /// The values of the frame, without the captured ones.
    pub values: SmallVec<[Value; 3]>,
    /// The arms that the switches of the iteration have chosen.
    pub choices: SmallVec<[u32; 2]>,
}

/// The arguments of a call: the one that is gathered, and the others.
pub(super) type GatheredArguments = (Value, SmallVec<[Value; 2]>);

/// The calls that are not placed yet: those with the same other arguments are placed together.
#[derive(Default)]
struct CollectedCalls {
    /// The arguments that are gathered, each with its iteration.
    gathered: Vec<(usize, Value)>,
    common: SmallVec<[Value; 2]>,
}

impl GatheredIterations {
    pub(super) fn new(list: Elements) -> GatheredIterations {
        GatheredIterations {
            list,
            next: 0,
            suspended: VecDeque::new(),
            resumed: 0,
            calls: CollectedCalls::default(),
            activity: Activity::Free,
            results: Elements::default(),
            end: None,
        }
    }

    /// Returns true if another iteration may begin while `overlap_max` may be under way.
    pub(super) fn has_next(&self, overlap_max: u32) -> bool {
        self.suspended.len() < overlap_max as usize && self.end.is_none() && self.next < self.list.len()
    }

    /// Returns the element of the next iteration.
    pub(super) fn next_element(&mut self) -> Value {
        self.next += 1;
        element(&mut self.list, self.next - 1)
    }

    /// Adds an iteration that has come to its call, with the arguments of the call, or has skipped it.
    pub(super) fn suspend(
        &mut self,
        iteration: SuspendedIteration,
        arguments: Option<GatheredArguments>,
        gatherer: &Arc<Gatherer>,
    ) {
        if let Some((gathered, common)) = arguments {
            if self.calls.common != common {
                self.place_calls(gatherer);
                self.calls.common = common;
            }
            self.calls.gathered.push((self.resumed + self.suspended.len(), gathered));
        }
        self.suspended.push_back(iteration);
    }

    /// Places the calls in batches that are not placed yet.
    pub(super) fn place_calls(&mut self, gatherer: &Arc<Gatherer>) {
        if self.calls.gathered.is_empty() {
            return;
        }
        let GatheredIterations { calls, suspended, resumed, .. } = self;
        let (iterations, gathered): (Vec<usize>, Vec<Value>) = calls.gathered.drain(..).unzip();
        let mut iterations = iterations.into_iter();
        gatherer.join_all(gathered.into_iter(), &calls.common, |member| {
            let iteration = iterations.next().expect("each call has its iteration");
            suspended[iteration - *resumed].member = Some(member);
        });
    }

    /// Takes the first iteration, with the answer of its call; none if all have gone on.
    pub(super) fn take_first(
        &mut self,
        gatherer: &Arc<Gatherer>,
        context: &Context<'_>,
    ) -> Poll<Option<(SuspendedIteration, Option<Outcome>)>> {
        self.place_calls(gatherer);
        let Some(first) = self.suspended.front_mut() else { return Poll::Ready(None) };
        let answer = match &mut first.member {
            Some(member) => match member.poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(answer) => Some(answer),
            },
            None => None,
        };
        self.resumed += 1;
        Poll::Ready(self.suspended.pop_front().map(|first| (first, answer)))
    }
}
