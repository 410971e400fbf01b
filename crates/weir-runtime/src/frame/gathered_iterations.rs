//! Iterations of a `map` that share a frame, because each waits for nothing but one gathered call (`gathered.rs`).

use std::collections::VecDeque;
use std::task::{Context, Poll};

use smallvec::SmallVec;
use weir_host::{Elements, Outcome, Value};

use super::exit::FlowExit;
use crate::batching::Member;
use crate::operations::element;

/// Iterations that share a frame.
pub(super) struct GatheredIterations {
    list: Elements,
    /// The iteration that begins next.
    next: usize,
    /// The iterations whose calls are placed.
    pub placed: VecDeque<PlacedIteration>,
    pub activity: Activity,
    pub results: Elements,
    /// The end of the flow by an iteration whose call was not placed. Those before it may still end the flow earlier.
    pub end: Option<FlowExit>,
}

/// The present use of the frame.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Activity {
    /// Nothing.
    Free,
    /// The steps before the call of the iteration that has begun last.
    BeforeCall,
    /// The steps behind the call of the first iteration that had not ended.
    AfterCall,
}

/// An iteration whose call is placed, or was skipped.
pub(super) struct PlacedIteration {
    /// The call; none if the iteration has skipped it.
    pub member: Option<Member>,
    /// The step with which the iteration goes on.
    pub continues_at: usize,
    /// The values of the frame, without the captured ones.
    pub values: SmallVec<[Value; 3]>,
    /// The arms that the switches of the iteration have chosen.
    pub choices: SmallVec<[u32; 2]>,
}

impl GatheredIterations {
    pub(super) fn new(list: Elements) -> GatheredIterations {
        GatheredIterations {
            list,
            next: 0,
            placed: VecDeque::new(),
            activity: Activity::Free,
            results: Elements::default(),
            end: None,
        }
    }

    /// Returns true if another iteration may begin while `overlap_max` may be under way.
    pub(super) fn has_next(&self, overlap_max: u32) -> bool {
        self.placed.len() < overlap_max as usize && self.end.is_none() && self.next < self.list.len()
    }

    /// Returns the element of the next iteration.
    pub(super) fn next_element(&mut self) -> Value {
        self.next += 1;
        element(&mut self.list, self.next - 1)
    }

    /// Takes the first iteration, with the answer of its call; none if all iterations have ended.
    pub(super) fn take_first(&mut self, context: &Context<'_>) -> Poll<Option<(PlacedIteration, Option<Outcome>)>> {
        let Some(first) = self.placed.front_mut() else { return Poll::Ready(None) };
        let answer = match &mut first.member {
            Some(member) => match member.poll(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(answer) => Some(answer),
            },
            None => None,
        };
        Poll::Ready(self.placed.pop_front().map(|first| (first, answer)))
    }
}
