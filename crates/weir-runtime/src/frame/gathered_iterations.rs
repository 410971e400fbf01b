//! Iterations of a `map` that share a frame, because each waits for nothing but one gathered call (`gathered.rs`).
//!
//! Iterations at their calls are kept in columns, because there may be thousands, most of which have nothing to keep: where
//! they go on, the values that they need then, and the arms that they have chosen.

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
    pub suspended: SuspendedIterations,
    pub calls: IterationCalls,
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

/// The use of the frame after it was free.
pub(super) enum NextActivity {
    /// An iteration begins: as many may as there are here.
    Begin(usize),
    /// The first suspended iteration, which has made its call, goes on with this answer.
    Answered(Outcome),
    /// The first suspended iteration, which has skipped its call, goes on at this step.
    Skipped(usize),
    /// The first suspended iteration waits for its answer, and no other may begin.
    Wait,
    /// All iterations have ended.
    End,
}

/// The iterations that have come to their call and have not gone on, in order.
#[derive(Default)]
pub(super) struct SuspendedIterations {
    count: usize,
    places: VecDeque<SuspendedAt>,
    /// The values of each that it needs behind its call.
    values: VecDeque<Value>,
    /// The arms that the switches of each have chosen.
    choices: VecDeque<u32>,
}

/// The place of suspended iterations.
#[derive(Clone, Copy)]
pub(super) enum SuspendedAt {
    /// So many are at their calls, which are made.
    Calls(usize),
    /// One is behind the call, which it has skipped, before this step.
    Behind(usize),
}

/// The arguments of a call: the one that is gathered, and the others.
pub(super) type GatheredArguments = (Value, SmallVec<[Value; 2]>);

/// The calls of the suspended iterations, in order: those that are answered, those in batches, and those that are not placed
/// yet.
#[derive(Default)]
pub(super) struct IterationCalls {
    answers: std::vec::IntoIter<Outcome>,
    placed: VecDeque<Member>,
    /// The arguments that are gathered of the calls that are not placed yet: those with the same other arguments are placed
    /// together.
    collected: Vec<Value>,
    /// The other arguments.
    common: SmallVec<[Value; 2]>,
    /// True if the first call is known to wait, and the flow is woken when it is answered.
    first_waits: bool,
}

impl GatheredIterations {
    pub(super) fn new(list: Elements) -> GatheredIterations {
        GatheredIterations {
            list,
            next: 0,
            suspended: SuspendedIterations::default(),
            calls: IterationCalls::default(),
            activity: Activity::Free,
            results: Elements::default(),
            end: None,
        }
    }

    /// Returns true if there are iterations that have not begun.
    pub(super) fn has_more(&self) -> bool {
        self.end.is_none() && self.next < self.list.len()
    }

    /// Returns the next use of the frame, while `overlap_max` iterations may be under way. Iterations go on before others
    /// begin.
    pub(super) fn next(&mut self, overlap_max: u32, gatherer: &Arc<Gatherer>, context: &Context<'_>) -> NextActivity {
        let first = self.suspended.places.front().copied();
        match first {
            Some(SuspendedAt::Behind(step)) => {
                self.suspended.pass_first();
                return NextActivity::Skipped(step);
            }
            Some(SuspendedAt::Calls(_)) => {
                if let Poll::Ready(answer) = self.calls.poll_first(context) {
                    self.suspended.pass_first();
                    return NextActivity::Answered(answer);
                }
            }
            None => {}
        }
        let room = (overlap_max as usize).saturating_sub(self.suspended.count);
        let left = if self.end.is_none() { self.list.len() - self.next } else { 0 };
        if room > 0 && left > 0 {
            return NextActivity::Begin(room.min(left));
        }
        if first.is_none() {
            return NextActivity::End;
        }
        if self.calls.place(gatherer) { self.next(overlap_max, gatherer, context) } else { NextActivity::Wait }
    }

    /// Takes the next answer, which is a value and is there already, for the first suspended iteration, which goes on.
    pub(super) fn next_value(&mut self) -> Option<Value> {
        if !matches!(self.suspended.places.front(), Some(SuspendedAt::Calls(_))) {
            return None;
        }
        let Some(Outcome::Value(_)) = self.calls.answers.as_slice().first() else { return None };
        let Some(Outcome::Value(value)) = self.calls.answers.next() else { return None };
        self.suspended.pass_first();
        Some(value)
    }

    /// Adds the result of an iteration.
    #[inline]
    pub(super) fn push_result(&mut self, result: Value) {
        self.results.push_expecting(result, self.list.len());
    }

    /// Takes the element of the iteration that begins.
    pub(super) fn take_element(&mut self) -> Value {
        self.next += 1;
        element(&mut self.list, self.next - 1)
    }

    /// Begins so many iterations that make their calls with their elements at once, and with the other arguments of the last
    /// call. The elements are kept if they are among the values that are `live` behind the call.
    pub(super) fn begin_at_call(&mut self, count: usize, live: &[u32]) {
        self.calls.collected.reserve(count);
        for _ in 0..count {
            let element = self.take_element();
            live.iter().for_each(|_| self.suspended.values.push_back(element.clone()));
            self.calls.collected.push(element);
        }
        self.suspended.add(SuspendedAt::Calls(count));
    }
}

impl SuspendedIterations {
    /// Adds an iteration, with the values of these slots.
    pub(super) fn push(&mut self, at: SuspendedAt, live: &[u32], slots: &mut [Value], choices: &[u32]) {
        self.add(at);
        live.iter().for_each(|slot| self.values.push_back(slots[*slot as usize].take()));
        choices.iter().for_each(|choice| self.choices.push_back(*choice));
    }

    /// Adds iterations behind the others.
    fn add(&mut self, at: SuspendedAt) {
        match (self.places.back_mut(), at) {
            (Some(SuspendedAt::Calls(count)), SuspendedAt::Calls(more)) => *count += more,
            _ => self.places.push_back(at),
        }
        self.count += if let SuspendedAt::Calls(more) = at { more } else { 1 };
    }

    /// Passes the first iteration, which goes on.
    fn pass_first(&mut self) {
        self.count -= 1;
        match self.places.front_mut() {
            Some(SuspendedAt::Calls(count)) if *count > 1 => *count -= 1,
            _ => drop(self.places.pop_front()),
        }
    }

    /// Drops so many values and choices of the iteration that goes on.
    pub(super) fn forget(&mut self, values: usize, choices: usize) {
        if values + choices > 0 {
            self.values.drain(..values);
            self.choices.drain(..choices);
        }
    }

    /// Puts the values and choices of the iteration back that goes on.
    pub(super) fn take_back(&mut self, live: &[u32], slots: &mut [Value], choices: &mut [u32]) {
        let values = std::iter::from_fn(|| self.values.pop_front());
        live.iter().zip(values).for_each(|(slot, value)| slots[*slot as usize].put(value));
        let chosen = std::iter::from_fn(|| self.choices.pop_front());
        choices.iter_mut().zip(chosen).for_each(|(choice, chosen)| *choice = chosen);
    }
}

impl IterationCalls {
    /// Adds a call.
    pub(super) fn add(&mut self, (gathered, common): GatheredArguments, gatherer: &Arc<Gatherer>) {
        if self.common != common {
            self.place(gatherer);
            self.common = common;
        }
        self.collected.push(gathered);
    }

    /// Places the calls in batches that are not placed yet; returns true if there were any.
    pub(super) fn place(&mut self, gatherer: &Arc<Gatherer>) -> bool {
        if self.collected.is_empty() {
            return false;
        }
        gatherer.join_all(self.collected.drain(..), &self.common, None, |member| self.placed.push_back(member));
        true
    }

    /// Returns the batches in which the calls are that are placed and not answered yet.
    pub(super) fn members(&self) -> impl Iterator<Item = &Member> {
        self.placed.iter()
    }

    /// Forgets that the first call waits, because the flow was woken.
    pub(super) fn reconsider(&mut self) {
        self.first_waits = false;
    }

    /// Takes the answer of the first call; it is pending if the call is not placed or not answered.
    fn poll_first(&mut self, context: &Context<'_>) -> Poll<Outcome> {
        loop {
            if let Some(answer) = self.answers.next() {
                return Poll::Ready(answer);
            }
            match self.placed.front_mut() {
                Some(first) if !self.first_waits => match first.poll(context) {
                    Poll::Ready(answers) => {
                        self.placed.pop_front();
                        self.answers = answers.into_vec().into_iter();
                    }
                    Poll::Pending => {
                        self.first_waits = true;
                        return Poll::Pending;
                    }
                },
                _ => return Poll::Pending,
            }
        }
    }
}
