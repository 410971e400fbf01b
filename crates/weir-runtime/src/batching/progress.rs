//! The progress of a flow at rest, from which its slack is computed: for each step of its bodies that may wait, how far it is.
//!
//! Each execution of a body has a *row*, with one element for each waiting step. Iterations of a `map` that have come equally
//! far share a row: mostly, that is one row for all of them. All rows are in a few lists, which the next flow at rest uses again,
//! so that looking at a flow allocates nothing.

use std::ops::Range;

use super::call_slack::CallSlack;
use super::slack::LatencyGraph;

/// The largest number of groups of iterations that have come equally far. Chosen by judgement: each iteration is compared with
/// each group.
pub(crate) const ALIKE_MAX: usize = 64;

/// The group of an iteration that is in none, because there are too many.
pub(crate) const NO_GROUP: u32 = u32::MAX;

/// The progress of a step in a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StepProgress {
    /// It has run, or will not run.
    Over,
    /// It waits for something that is not estimated.
    Waits,
    /// Its call was sent at this time.
    Sent(u64),
    /// Its call gathers. The place of its slack, once that is known.
    Gathers(Option<u32>),
    /// It has not begun.
    Ahead(StepCertainty),
    /// Iterations are under way: those of the `map` at this place.
    Iterates(u32),
}

/// The certainty that a step will begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StepCertainty {
    /// It is in an arm that is not chosen yet.
    Perhaps,
    /// It will, unless the flow fails or ends with an answer before.
    UnlessEnded,
    /// It will, unless the flow fails.
    UnlessFailed,
}

/// The progress of a `map` whose iterations overlap.
#[derive(Clone, Copy)]
pub(crate) struct MapProgress {
    /// The rows of the groups of iterations, by their places in the list of all groups.
    groups: (u32, u32),
    /// The group of each iteration under way, by their places in the list of all iterations.
    iterations: (u32, u32),
    /// True if there are further iterations, which begin when others have ended or which are left out here.
    pub more: bool,
}

/// The progress of a flow.
#[derive(Default)]
pub(crate) struct FlowProgress {
    steps: Vec<StepProgress>,
    maps: Vec<MapProgress>,
    /// The row of each group.
    groups: Vec<u32>,
    /// The group of each iteration, or [`NO_GROUP`].
    iterations: Vec<u32>,
    /// The slack of the calls that gather.
    pub(super) slack: Vec<CallSlack>,
}

/// The lengths of the lists, to return to.
#[derive(Clone, Copy)]
pub(crate) struct ProgressMark([usize; 4]);

impl FlowProgress {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.return_to(ProgressMark([0; 4]));
        self.slack.clear();
    }

    /// Returns the number of steps in all rows.
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    /// Adds a row with this progress of the steps; returns its place.
    pub(crate) fn add_row(&mut self, steps: impl Iterator<Item = StepProgress>) -> u32 {
        let row = self.steps.len() as u32;
        self.steps.extend(steps);
        row
    }

    /// Returns the progress of a step in a row.
    pub(crate) fn step(&self, row: u32, place: usize) -> StepProgress {
        self.steps[row as usize + place]
    }

    /// Sets the progress of a step in a row.
    pub(crate) fn set(&mut self, row: u32, place: usize, progress: StepProgress) {
        self.steps[row as usize + place] = progress;
    }

    /// Adds a `map`, with the rows of its groups and the group of each iteration under way.
    pub(crate) fn add_map(&mut self, groups: &[u32], iterations: &[u32], more: bool) -> StepProgress {
        let added = |list: &mut Vec<u32>, more: &[u32]| {
            let begin = list.len() as u32;
            list.extend_from_slice(more);
            (begin, list.len() as u32)
        };
        let (groups, iterations) = (added(&mut self.groups, groups), added(&mut self.iterations, iterations));
        self.maps.push(MapProgress { groups, iterations, more });
        StepProgress::Iterates(self.maps.len() as u32 - 1)
    }

    /// Returns the `map` at this place.
    pub(crate) fn map(&self, place: u32) -> MapProgress {
        self.maps[place as usize]
    }

    /// Returns the rows of the groups of a `map`.
    pub(crate) fn groups(&self, map: MapProgress) -> &[u32] {
        &self.groups[range(map.groups)]
    }

    /// Returns for each iteration of a `map` that is under way the row of its group; `None` if it is in none.
    pub(crate) fn rows_of_iterations(&self, map: MapProgress) -> impl Iterator<Item = Option<u32>> {
        let groups = self.groups(map);
        self.iterations[range(map.iterations)].iter().map(|group| groups.get(*group as usize).copied())
    }

    /// Returns the slack of a call that gathers.
    pub(crate) fn slack_at(&self, place: Option<u32>) -> CallSlack {
        place.and_then(|place| self.slack.get(place as usize)).copied().unwrap_or_default()
    }

    /// Returns true if two rows of this body are equal.
    pub(crate) fn are_alike(&self, body: &LatencyGraph, one: u32, other: u32) -> bool {
        (0..body.steps().len()).all(|place| match (self.step(one, place), self.step(other, place)) {
            (StepProgress::Iterates(one), StepProgress::Iterates(other)) => {
                let inner = body.steps()[place].latency.iterations();
                inner.is_some_and(|inner| self.are_maps_alike(inner, self.map(one), self.map(other)))
            }
            (one, other) => one == other,
        })
    }

    fn are_maps_alike(&self, body: &LatencyGraph, one: MapProgress, other: MapProgress) -> bool {
        let iterations = |map: MapProgress| &self.iterations[range(map.iterations)];
        let (groups, others) = (self.groups(one), self.groups(other));
        one.more == other.more
            && groups.len() == others.len()
            && iterations(one) == iterations(other)
            && groups.iter().zip(others).all(|(one, other)| self.are_alike(body, *one, *other))
    }

    /// Returns the lengths of the lists.
    pub(crate) fn mark(&self) -> ProgressMark {
        ProgressMark([self.steps.len(), self.maps.len(), self.groups.len(), self.iterations.len()])
    }

    /// Forgets what was added since the lists had these lengths.
    pub(crate) fn return_to(&mut self, ProgressMark([steps, maps, groups, iterations]): ProgressMark) {
        self.steps.truncate(steps);
        self.maps.truncate(maps);
        self.groups.truncate(groups);
        self.iterations.truncate(iterations);
    }
}

fn range((begin, end): (u32, u32)) -> Range<usize> {
    begin as usize..end as usize
}
