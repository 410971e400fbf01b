//! Strips: a `map` makes the rows of a long list piece by piece, and the `fold` that takes them goes over each piece before the next
//! one is made (strip-mining). So neither all rows are in memory, nor are those made that nobody needs because the `fold` ends the flow.
//!
//! 1. The `map` begins with the first strip of its list. The rest stays in the frame, with the values that the rounds capture.
//! 2. When the `fold` has gone over the rows of a strip and further elements are left, its run stays in the frame too, and both
//!    steps count as steps that have not begun ([`Frame::reopen`]).
//! 3. The scan begins the `map` once more. It waits like any step: what depends on it or on the `fold` waits, and everything else
//!    goes on.
//! 4. The `fold` goes on with its states and the new rows.
//!
//! Preparation decides which pairs may do so (`prepare/strips.rs`). A list of at most one strip costs nothing, and the `fold` is
//! part of a region then.

use weir_host::{Elements, Value};

use super::repeat::{Run, Strips};
use super::{AtomicScope, Frame};
use crate::instance::Env;
use crate::step::{Body, RepeatStep, StripRole};

impl Strips {
    /// Takes the elements of the next strip.
    fn next(&mut self, length: u32) -> Elements {
        let from = self.begun;
        self.begun = self.list.len().min(from.saturating_add(length as usize));
        self.list.range(from, self.begun)
    }
}

impl Frame {
    /// Returns the first strip of a list, which is the whole list if it is short or if the step is not the `map` of strips.
    pub(super) fn first_strip(
        &mut self,
        step: &RepeatStep,
        list: Elements,
        (captured, scopes): (&[Value], &[AtomicScope]),
    ) -> Elements {
        let StripRole::Rows { map, fold, length } = step.strip else { return list };
        // A flow does not go back to an earlier section.
        let is_in_other_section = fold as usize >= self.until;
        if list.len() <= length as usize || is_in_other_section {
            return list;
        }
        let (captured, scopes) = (captured.to_vec(), scopes.to_vec());
        let mut strips = Strips { map, list, begun: 0, captured, scopes, fold: None };
        let first = strips.next(length);
        self.strips.push(strips);
        first
    }

    /// Returns the run of a repetition that goes on with its next strip; `None` if it has not begun.
    #[inline]
    pub(super) fn next_strip(&mut self, step: &RepeatStep, body: &Body, env: Env<'_>) -> Option<Run> {
        if self.strips.is_empty() { None } else { self.run_of_next_strip(step, body, env) }
    }

    #[cold]
    fn run_of_next_strip(&mut self, step: &RepeatStep, body: &Body, env: Env<'_>) -> Option<Run> {
        match step.strip {
            StripRole::None => None,
            StripRole::Rows { map, length, .. } => {
                let strips = self.strips_of(map)?;
                let (list, captured, scopes) = (strips.next(length), strips.captured.clone(), strips.scopes.clone());
                Some(Run::overlapping(list, (captured, scopes), step, env))
            }
            StripRole::Folds { map, .. } => {
                let mut run = *self.strips_of(map)?.fold.take()?;
                let Value::List(rows) = self.value(body, step.inputs[0]) else { return None };
                if let Run::Sequential(sequence) = &mut run {
                    sequence.go_on_with(rows);
                }
                Some(run)
            }
        }
    }

    /// Returns true if a `fold`, which has yielded these states, has to go over further strips.
    #[inline]
    pub(super) fn has_further_strip(&mut self, step: &RepeatStep, states: &Value) -> bool {
        !self.strips.is_empty() && self.goes_on(step, states)
    }

    #[cold]
    fn goes_on(&mut self, step: &RepeatStep, states: &Value) -> bool {
        let StripRole::Folds { map, may_be_left } = step.strip else { return false };
        let is_left = may_be_left && matches!(states, Value::Variant(Value::ERR, _));
        !is_left && self.strips_of(map).is_some_and(|strips| strips.begun < strips.list.len())
    }

    /// Keeps the run of a `fold`, which has yielded these states, until the rows of the next strip are there. Returns the index of the
    /// step that makes them.
    pub(super) fn keep_for_next_strip(&mut self, mut run: Box<Run>, states: Value, step: &RepeatStep) -> u32 {
        let StripRole::Folds { map, .. } = step.strip else { unreachable!("only a `fold` goes over strips") };
        if let Run::Sequential(sequence) = &mut *run {
            sequence.take_back(states, step.repeat);
        }
        if let Some(strips) = self.strips_of(map) {
            strips.fold = Some(run);
        }
        map
    }

    /// Forgets the list of a `fold` that has ended.
    #[inline]
    pub(super) fn forget_strips(&mut self, step: &RepeatStep) {
        if let StripRole::Folds { map, .. } = step.strip {
            self.strips.retain(|strips| strips.map != map);
        }
    }

    /// Makes a `map` and the `fold` over its rows steps that have not begun. Returns the index of the `map`.
    #[cold]
    pub(super) fn reopen(&mut self, map: u32, fold: usize, body: &Body) -> usize {
        let map = map as usize;
        if self.seen.is_empty() {
            // The scan was straight: everything before the `fold` has run or was skipped.
            self.seen.resize(body.steps.len().div_ceil(64), 0);
            (0..fold).for_each(|index| self.see(index));
        }
        for index in [map, fold] {
            self.seen[index / 64] &= !(1 << (index % 64));
        }
        self.low = self.low.min(map);
        map
    }

    fn strips_of(&mut self, map: u32) -> Option<&mut Strips> {
        self.strips.iter_mut().find(|strips| strips.map == map)
    }
}
