//! The code of vectors: calls on columns of words, which are gathered from the slots of several flows before, and scattered
//! afterwards.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use smallvec::SmallVec;
use weir_host::{Argument, Failure, WordCode};

use super::job::PooledJob;
use crate::platform::Platform;
use crate::region::{Scalar, word_of};
use crate::step::{Action, Body, NONE, PreparedStep, SimpleStep, VectorCall};

/// The number of flows in a vector. Chosen by judgement: two chains of a hundred instructions fill the window in which a
/// processor finds independent ones, and shorter calls need some more.
pub(super) const LANES: usize = 4;
/// The number of calls below which a vector does not pay.
const CALLS_MIN: usize = 4;
/// The most calls between two looks at the clock. The first look is behind the first call, which may take long, and then their
/// distance doubles.
const CALLS_PER_LOOK: usize = 64;
/// The time after which the flows of a vector go on alone: results of the first one are so much later at most.
const VECTOR_NS_MAX: u64 = 1_000_000;

/// Consecutive calls of a body, each on columns: a column has a word for each flow.
pub(super) struct VectorCode {
    /// The steps of the calls.
    pub(super) steps: Range<usize>,
    calls: Box<[ColumnCall]>,
    /// The columns: one for each slot that occurs, and one for each constant.
    columns: usize,
    /// The slots whose words are gathered, and their columns.
    inputs: Box<[(usize, usize)]>,
    /// The columns of constants, and their words.
    constants: Box<[(usize, u64)]>,
    /// The slots that the calls change and that are used behind them.
    results: Box<[LiveSlot]>,
}

/// A call whose arguments and result are columns.
struct ColumnCall {
    code: WordCode,
    arguments: Box<[usize]>,
    out: usize,
    result: LiveSlot,
    /// The slots that are not used behind the call.
    dead: Box<[usize]>,
}

/// A slot that a call has filled.
#[derive(Clone, Copy)]
struct LiveSlot {
    slot: usize,
    column: usize,
    scalar: Scalar,
}

/// The columns of slots and constants, while code is made.
#[derive(Default)]
struct SlotColumns {
    of_slots: BTreeMap<usize, usize>,
    constants: Vec<(usize, u64)>,
    inputs: Vec<(usize, usize)>,
}

impl SlotColumns {
    fn len(&self) -> usize {
        self.of_slots.len() + self.constants.len()
    }

    fn of_slot(&mut self, slot: usize) -> usize {
        let next = self.len();
        *self.of_slots.entry(slot).or_insert(next)
    }

    /// Returns the column of an argument, which is an input if no call before has filled it.
    fn of_argument(&mut self, argument: Argument, body: &Body) -> Option<usize> {
        match argument {
            Argument::Slot { index, .. } => {
                let (slot, is_new) = (index as usize, !self.of_slots.contains_key(&(index as usize)));
                let column = self.of_slot(slot);
                self.inputs.extend(is_new.then_some((slot, column)));
                Some(column)
            }
            Argument::Constant(index) => {
                let column = self.len();
                self.constants.push((column, word_of(&body.constants[index as usize])));
                Some(column)
            }
            Argument::Shared(_) => None,
        }
    }
}

impl VectorCode {
    /// Returns the code of the calls at the beginning of these steps of a body; `None` if they are too few.
    pub(super) fn of(body: &Body, steps: Range<usize>) -> Option<Arc<VectorCode>> {
        let mut columns = SlotColumns::default();
        let call = |step: &PreparedStep| column_call(step, body, &mut columns);
        let calls: Box<[ColumnCall]> = body.steps[steps.clone()].iter().map_while(call).collect();
        if calls.len() < CALLS_MIN {
            return None;
        }
        Some(Arc::new(VectorCode {
            steps: steps.start..steps.start + calls.len(),
            columns: columns.len(),
            inputs: columns.inputs.into(),
            constants: columns.constants.into(),
            results: live_behind(&calls).into(),
            calls,
        }))
    }

    /// Makes the calls for these flows, at most [`LANES`], each for all of them before the next one; returns the number of calls
    /// made. A flow that ends, or for which the time is over, is left at the step that it has reached. A flow that does not begin
    /// with the first of the calls takes no part.
    pub(super) fn run(&self, flows: &mut [Box<PooledJob>], body: &Body, platform: &dyn Platform) -> usize {
        let mut lanes = Lanes {
            words: vec![[0; LANES]; self.columns],
            has_left: [true; LANES],
            call: 0,
            lane: 0,
            made: 0,
            next_look: 1,
            until_ns: platform.now_ns().saturating_add(VECTOR_NS_MAX),
        };
        self.constants.iter().for_each(|(column, word)| lanes.words[*column] = [*word; LANES]);
        for (lane, pooled) in flows.iter_mut().enumerate() {
            let Some(frame) = pooled.job().flow.frame_before(self.steps.start) else { continue };
            self.inputs.iter().for_each(|(slot, column)| lanes.words[*column][lane] = word_of(&frame.slots[*slot]));
            lanes.has_left[lane] = false;
        }
        while lanes.call < self.calls.len() {
            match catch_unwind(AssertUnwindSafe(|| self.advance(&mut lanes, flows, platform))) {
                Ok(true) => {}
                Ok(false) => break,
                Err(panic) => {
                    let (lane, step) = (lanes.lane, self.steps.start + lanes.call);
                    if let Some(frame) = flows[lane].job().flow.frame_before(self.steps.start) {
                        frame.panic_at(step, body, &*panic);
                    }
                    lanes.leave();
                }
            }
        }
        self.scatter(&lanes, flows);
        lanes.made
    }

    /// Makes calls until all are made, or until the time is over and it returns false.
    fn advance(&self, lanes: &mut Lanes, flows: &mut [Box<PooledJob>], platform: &dyn Platform) -> bool {
        while let Some(call) = self.calls.get(lanes.call) {
            while lanes.lane < flows.len() {
                if !lanes.has_left[lanes.lane] {
                    match call.on(&lanes.words, lanes.lane) {
                        Ok(word) => lanes.words[call.out][lanes.lane] = word,
                        Err(failure) => {
                            if let Some(frame) = flows[lanes.lane].job().flow.frame_before(self.steps.start) {
                                frame.fail_at(self.steps.start + lanes.call, failure);
                            }
                            lanes.has_left[lanes.lane] = true;
                        }
                    }
                    lanes.made += 1;
                }
                lanes.lane += 1;
            }
            (lanes.call, lanes.lane) = (lanes.call + 1, 0);
            if lanes.is_over(platform) {
                return false;
            }
        }
        true
    }

    /// Stores what the calls have computed, and lets the flows that have not ended go on behind them.
    fn scatter(&self, lanes: &Lanes, flows: &mut [Box<PooledJob>]) {
        let is_through = lanes.call == self.calls.len();
        let made = &self.calls[..lanes.call];
        let early = if is_through { Vec::new() } else { live_behind(made) };
        let results = if is_through { &*self.results } else { &early };
        for (lane, pooled) in flows.iter_mut().enumerate().filter(|(lane, _)| !lanes.has_left[*lane]) {
            let Some(frame) = pooled.job().flow.frame_before(self.steps.start) else { continue };
            results
                .iter()
                .for_each(|live| live.scalar.store(lanes.words[live.column][lane], &mut frame.slots[live.slot]));
            frame.go_on_at(self.steps.start + made.len());
        }
    }
}

/// Flows that make calls together.
struct Lanes {
    /// The columns.
    words: Vec<[u64; LANES]>,
    /// For each flow, true if it takes no part any more.
    has_left: [bool; LANES],
    /// The call whose turn it is.
    call: usize,
    /// The flow whose turn it is.
    lane: usize,
    /// The number of calls made.
    made: usize,
    /// The number of calls behind which the clock is read next.
    next_look: usize,
    /// The time at which the flows go on alone.
    until_ns: u64,
}

impl Lanes {
    /// Lets the flow whose turn it is leave the others.
    fn leave(&mut self) {
        self.has_left[self.lane] = true;
        self.lane += 1;
    }

    /// Returns true if the time is over.
    #[inline]
    fn is_over(&mut self, platform: &dyn Platform) -> bool {
        if self.made < self.next_look {
            return false;
        }
        self.next_look = self.made + self.made.min(CALLS_PER_LOOK);
        platform.now_ns() >= self.until_ns
    }
}

impl ColumnCall {
    /// Calls the function for one flow.
    #[inline(always)]
    fn on(&self, words: &[[u64; LANES]], lane: usize) -> Result<u64, Box<Failure>> {
        match self.arguments[..] {
            [a] => (self.code)(&[words[a][lane]]),
            [a, b] => (self.code)(&[words[a][lane], words[b][lane]]),
            _ => (self.code)(&self.arguments.iter().map(|a| words[*a][lane]).collect::<SmallVec<[u64; 4]>>()),
        }
    }
}

/// Returns a step as a call on columns, if it is certain to run and its call has such a form.
fn column_call(step: &PreparedStep, body: &Body, columns: &mut SlotColumns) -> Option<ColumnCall> {
    let Action::Simple(simple) = &step.action else { return None };
    let SimpleStep { arguments, dead, vector: Some(VectorCall { code, result }), out, .. } = &**simple else {
        return None;
    };
    if step.switch != NONE || !step.ticket_gates.is_empty() {
        return None;
    }
    let taken = arguments.iter().filter_map(|argument| match argument {
        Argument::Slot { index, last: true } => Some(*index as usize),
        _ => None,
    });
    let dead = taken.chain(dead.iter().map(|slot| *slot as usize)).collect();
    let arguments = arguments.iter().map(|argument| columns.of_argument(*argument, body)).collect::<Option<_>>()?;
    let (slot, scalar) = (*out as usize, *result);
    let column = columns.of_slot(slot);
    Some(ColumnCall { code: *code, arguments, out: column, result: LiveSlot { slot, column, scalar }, dead })
}

/// Returns the slots that these calls have filled and that are used behind them.
fn live_behind(calls: &[ColumnCall]) -> Vec<LiveSlot> {
    let mut live = BTreeMap::new();
    for call in calls {
        call.dead.iter().for_each(|slot| _ = live.remove(slot));
        live.insert(call.result.slot, call.result);
    }
    live.into_values().collect()
}
