//! Iterations of a `map` that wait for gathered calls alone, of which each makes several, while they are under way.
//!
//! Iterations that have come equally far are a *group*, and share a frame. The frame has the progress of all of them: the steps that
//! have run, the arms that were chosen, and the calls that are out. An iteration has only its slots, which are in columns
//! (`columns.rs`), and in the frame only while a step runs that needs more than these. The calls that a step makes for all iterations are one member of their batch, with
//! one waker and one list of answers. A group advances in *waves* (`group_waves.rs`): a wave takes the answers that are there and runs
//! the steps that depend on no other call, up to the first that chooses an arm, each for all iterations before the next
//! (`group_steps.rs`).
//!
//! Iterations do not stay equal. A group *parts* (`group_parts.rs`) when some of them choose another arm, or when their calls get into
//! different batches. An iteration that ends the flow, or stops in the middle of a step, goes on *alone*: its slots are in its frame,
//! which runs like any other.
//!
//! The calls of a member are in the order of the iterations of its group, also when both have parted.
//!
//! The type of frames is a parameter, `F`, because a frame that waits holds the iterations that run in it.

use smallvec::SmallVec;
use weir_host::{Elements, Outcome, Value};

use super::columns::IterationSlots;
use super::exit::FlowExit;
use super::step_locks::AtomicScope;

/// Several iterations at a time, in groups.
pub(super) struct GroupedRun<F> {
    pub list: Elements,
    pub captured: Vec<Value>,
    pub scopes: Vec<AtomicScope>,
    /// The iteration that begins next.
    pub next: usize,
    pub groups: Vec<IterationGroup<F>>,
    pub results: Vec<Value>,
    /// A wave that has ended, for the next one.
    pub spare: Option<Box<Wave<F>>>,
    /// The end of the flow by the earliest iteration so far that ends it. Earlier iterations go on.
    pub end: Option<(usize, FlowExit)>,
}

/// Iterations that have come equally far.
pub(super) struct IterationGroup<F> {
    pub frame: F,
    /// The iterations, in order.
    pub iterations: Vec<Iteration>,
    /// Their slots. If there is only one, and no wave of several was interrupted, its slots are in the frame.
    pub columns: IterationSlots,
    /// The wave that was interrupted, because the slice was over.
    pub wave: Option<Box<Wave<F>>>,
}

/// An iteration of a group.
#[derive(Clone, Copy)]
pub(super) struct Iteration {
    pub index: usize,
    /// True if it does not go on with the group behind the wave.
    pub leaves: bool,
}

/// The answers that a group of iterations takes, and the steps that it runs, between two looks at its calls.
pub(super) struct Wave<F> {
    /// The calls that are answered, in the order of the steps, each with the answers of the iterations that have not run yet.
    pub answered: SmallVec<[(usize, std::vec::IntoIter<Outcome>); 2]>,
    /// The steps that run.
    pub nodes: SmallVec<[usize; 8]>,
    /// True if an arm may be chosen.
    pub decides: bool,
    /// The arms that were chosen before.
    pub before: Choices,
    /// The part of the wave that runs: the answers of each call, or those of all calls if they choose arms, and then each of the
    /// steps.
    pub part: usize,
    /// The place of the iteration that runs it next.
    pub next: usize,
    /// The arms that the first iteration has chosen.
    pub chosen: Option<Choices>,
    /// The cursor behind the last part.
    pub cursor: usize,
    /// The calls that are made.
    pub calls: CallsOfWave,
    /// The iterations that do not go on with the group.
    pub leaving: Vec<Leaving<F>>,
}

/// For each switch, the arm that was chosen.
pub(super) type Choices = SmallVec<[u32; 8]>;

/// The calls that a wave makes.
pub(super) type CallsOfWave = SmallVec<[CallsOfStep; 2]>;

/// The calls that a step makes.
pub(super) struct CallsOfStep {
    pub node: usize,
    pub calls: SmallVec<[EqualCalls; 1]>,
}

/// The calls of a step whose arguments are the same but for the one that is gathered.
pub(super) struct EqualCalls {
    pub common: SmallVec<[Value; 2]>,
    pub gathered: Vec<Value>,
    /// The iterations that make them, in order.
    pub of: Vec<usize>,
}

/// An iteration that does not go on with its group.
pub(super) struct Leaving<F> {
    pub index: usize,
    pub choices: Choices,
    pub cursor: usize,
    /// If the iteration goes on alone because of the outcome of a step, the number of steps of the wave that have run, and a frame
    /// that has stopped there, with its slots.
    pub stopped: Option<(usize, F)>,
}

impl<F> GroupedRun<F> {
    pub(super) fn new(list: Elements, captured: Vec<Value>, scopes: Vec<AtomicScope>) -> GroupedRun<F> {
        let results = vec![Value::Absent; list.len()];
        GroupedRun { list, captured, scopes, next: 0, groups: Vec::new(), results, spare: None, end: None }
    }
}

impl<F> Default for Wave<F> {
    fn default() -> Wave<F> {
        Wave {
            answered: SmallVec::new(),
            nodes: SmallVec::new(),
            decides: false,
            before: Choices::new(),
            part: 0,
            next: 0,
            chosen: None,
            cursor: 0,
            calls: CallsOfWave::new(),
            leaving: Vec::new(),
        }
    }
}

impl<F> Wave<F> {
    /// Returns true if answers choose arms: then they are taken together, and the wave has no steps.
    pub(super) fn decides_by_answers(&self) -> bool {
        self.decides && self.nodes.is_empty()
    }

    /// Returns the number of parts in which answers are taken.
    pub(super) fn parts_of_answers(&self) -> usize {
        if self.decides_by_answers() { 1 } else { self.answered.len() }
    }

    /// Returns the step that runs, by its place in the wave; `None` while answers are taken.
    pub(super) fn step(&self) -> Option<usize> {
        self.part.checked_sub(self.parts_of_answers())
    }

    /// Forgets the iterations behind this one, which are dropped.
    pub(super) fn drop_behind(&mut self, last: usize) {
        self.leaving.retain(|leaving| leaving.index <= last);
        for calls in self.calls.iter_mut().flat_map(|of_step| &mut of_step.calls) {
            let kept = calls.of.partition_point(|index| *index <= last);
            calls.of.truncate(kept);
            calls.gathered.truncate(kept);
        }
    }
}

/// Takes the calls of these iterations out.
pub(super) fn take_calls(calls: &mut [CallsOfStep], of: &[usize]) -> CallsOfWave {
    let take = |calls: &mut CallsOfStep| {
        let taken = calls.calls.iter_mut().map(|calls| calls.take(of)).filter(|taken| !taken.of.is_empty());
        CallsOfStep { node: calls.node, calls: taken.collect() }
    };
    calls.iter_mut().map(take).collect()
}

impl CallsOfStep {
    /// Adds the call of an iteration, of which there are at most so many.
    pub(super) fn add(&mut self, index: usize, (gathered, common): (Value, SmallVec<[Value; 2]>), at_most: usize) {
        if let Some(calls) = self.calls.iter_mut().find(|calls| calls.common == common) {
            calls.gathered.push(gathered);
            calls.of.push(index);
            return;
        }
        let (mut values, mut of) = (Vec::with_capacity(at_most), Vec::with_capacity(at_most));
        values.push(gathered);
        of.push(index);
        self.calls.push(EqualCalls { common, gathered: values, of });
    }
}

impl EqualCalls {
    /// Takes the calls of these iterations out.
    fn take(&mut self, of: &[usize]) -> EqualCalls {
        let common = self.common.clone();
        let calls = std::mem::take(&mut self.of).into_iter().zip(std::mem::take(&mut self.gathered));
        let (taken, kept): (Vec<_>, Vec<_>) = calls.partition(|(index, _)| of.binary_search(index).is_ok());
        (self.of, self.gathered) = kept.into_iter().unzip();
        let (of, gathered) = taken.into_iter().unzip();
        EqualCalls { common, gathered, of }
    }
}
