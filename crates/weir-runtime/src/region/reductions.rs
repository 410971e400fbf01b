//! Reductions: the states of a `fold` to which its rounds only add, or of which they keep the least, the greatest, or the truth.
//!
//! A thread that runs rounds of such a loop begins with the identity of each state, and its partial results are joined to the
//! states of the thread that has given them away. A sum must fail where the sum of the rounds in their order fails,
//! so a partial sum comes with the least and the greatest value that it had ([`Instruction::AddSum`]): only if the
//! state plus each of them is in range are the rounds as good as run in their order.

use weir_host::Value;

use super::instruction::{Instruction, Register};
use super::place::CodePlace;
use super::reduced_maps::ReducedMap;

/// The states of a `fold`, whose partial results can be joined.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reductions {
    pub states: Box<[ReducedState]>,
    pub maps: Box<[ReducedMap]>,
}

/// The states of a thread that has run rounds of a `fold`.
pub(crate) struct PartialStates<'a> {
    pub words: &'a mut [u64],
    pub slots: &'a mut [Value],
}

/// The reason why the rounds of a `fold` run one after the other.
#[derive(Clone, Debug)]
pub(crate) enum FoldObstacle {
    /// A state is neither a number nor a truth value nor a map.
    State,
    /// This place does something else with a state that is a word.
    Uses(CodePlace),
    /// This place does something else with a state than what stands before it.
    Mixes(CodePlace),
    /// This place adds floats.
    AddsFloats(CodePlace),
    /// This place does something else with a state that is a map.
    UsesMap(CodePlace),
    /// This place adds to something for a missing key that is not empty.
    Begins(CodePlace),
    /// The elements can only be moved.
    MovesElements,
}

impl FoldObstacle {
    /// Describes the obstacle, with these names of places.
    pub(crate) fn described(&self, name: impl Fn(&CodePlace) -> String) -> String {
        match self {
            FoldObstacle::State => "a state is neither a number nor a truth value nor a map".to_owned(),
            FoldObstacle::Uses(place) => format!(
                "`{}` does not only add to the state, or keep the least, the greatest or a truth value",
                name(place)
            ),
            FoldObstacle::Mixes(place) => {
                format!("`{}` joins the state in another way than the code before it", name(place))
            }
            FoldObstacle::AddsFloats(place) => {
                format!("`{}` adds `Float`s, whose sum depends on their order", name(place))
            }
            FoldObstacle::UsesMap(place) => {
                format!("`{}` does not only add to the integer or the list under a key of the map", name(place))
            }
            FoldObstacle::Begins(place) => {
                format!("`{}` does not begin with `0` or `[]` for a missing key", name(place))
            }
            FoldObstacle::MovesElements => "their elements can only be moved".to_owned(),
        }
    }
}

impl Reductions {
    /// Sets all states to their identities.
    pub(crate) fn begin(&self, states: &mut PartialStates<'_>) {
        self.states.iter().for_each(|state| state.begin(states.words));
        self.maps.iter().for_each(|map| map.begin(states.words, states.slots));
    }

    /// Joins partial results to the states; returns false, and changes nothing, if the rounds have to run in their order.
    pub(crate) fn join(&self, to: &mut PartialStates<'_>, partial: PartialStates<'_>) -> bool {
        let fits = self.states.iter().all(|state| state.fits(to.words, partial.words))
            && self.maps.iter().all(|map| map.fits(to.slots, (partial.words, partial.slots)));
        if fits {
            self.states.iter().for_each(|state| state.join(to.words, partial.words));
            self.maps.iter().for_each(|map| map.join(to.words, to.slots, (partial.words, partial.slots)));
        }
        fits
    }
}

/// A state whose partial results can be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReducedState {
    pub state: Register,
    pub kind: ReductionKind,
}

/// The operation of the rounds on a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReductionKind {
    /// They leave it as it is.
    Kept,
    /// They add to it. The register of the least value that a partial sum had; that of the greatest one follows.
    Sum(Register),
    Least,
    Greatest,
    And,
    Or,
}

impl ReducedState {
    /// Sets the state to its identity.
    fn begin(self, words: &mut [u64]) {
        let identity = match self.kind {
            ReductionKind::Kept => return,
            ReductionKind::Sum(least) => {
                words[usize::from(least)..usize::from(least) + 2].fill(0);
                0
            }
            ReductionKind::Least => i64::MAX,
            ReductionKind::Greatest => i64::MIN,
            ReductionKind::And => 1,
            ReductionKind::Or => 0,
        };
        words[usize::from(self.state)] = identity.cast_unsigned();
    }

    /// Returns true if no sum on the way leaves the range when the partial result is joined.
    fn fits(self, words: &[u64], partial: &[u64]) -> bool {
        let ReductionKind::Sum(least) = self.kind else { return true };
        let state = words[usize::from(self.state)].cast_signed();
        let bounds = [least, least + 1].map(|bound| partial[usize::from(bound)].cast_signed());
        bounds.into_iter().all(|bound| state.checked_add(bound).is_some())
    }

    /// Joins the partial result, which fits.
    fn join(self, words: &mut [u64], partial: &[u64]) {
        let at = usize::from(self.state);
        let (state, other) = (words[at].cast_signed(), partial[at].cast_signed());
        let joined = match self.kind {
            ReductionKind::Kept => state,
            ReductionKind::Sum(least) => {
                let bounds = [least, least + 1].map(usize::from);
                let [lowest, highest] = bounds.map(|bound| state.wrapping_add(partial[bound].cast_signed()));
                let [low, high] = bounds.map(|bound| words[bound].cast_signed());
                words[bounds[0]] = low.min(lowest).cast_unsigned();
                words[bounds[1]] = high.max(highest).cast_unsigned();
                state.wrapping_add(other)
            }
            ReductionKind::Least => state.min(other),
            ReductionKind::Greatest => state.max(other),
            ReductionKind::And => state & other,
            ReductionKind::Or => state | other,
        };
        words[at] = joined.cast_unsigned();
    }
}

/// Returns the kind of reduction that an instruction is of a state; `None` if it does something else with it.
pub(crate) fn kind(instruction: Instruction, state: Register) -> Option<ReductionKind> {
    use Instruction::{AddInt, And, GreatestInt, LeastInt, Or};
    let of = |out: Register, a: Register, b: Register| out == state && (a == state) != (b == state);
    match instruction {
        AddInt(out, a, b) if of(out, a, b) => Some(ReductionKind::Sum(0)),
        LeastInt(out, a, b) if of(out, a, b) => Some(ReductionKind::Least),
        GreatestInt(out, a, b) if of(out, a, b) => Some(ReductionKind::Greatest),
        And(out, a, b) if of(out, a, b) => Some(ReductionKind::And),
        Or(out, a, b) if of(out, a, b) => Some(ReductionKind::Or),
        _ => None,
    }
}
