//! The constraints that host functions are bound to, by the paths of the functions.

use std::collections::BTreeMap;

use weir_host::{Mode, Text};

/// For each host function, the constraints that its calls hold, and how.
#[derive(Default)]
pub(crate) struct BoundConstraints(BTreeMap<Text, BTreeMap<Text, Mode>>);

impl BoundConstraints {
    /// Returns the constraints of a function, to be changed.
    pub(crate) fn of(&mut self, function: Text) -> &mut BTreeMap<Text, Mode> {
        self.0.entry(function).or_default()
    }

    /// Returns the constraints that a call of the function holds, by name.
    pub(crate) fn held_by(&self, function: &str) -> impl Iterator<Item = (&Text, Mode)> {
        self.0.get(function).into_iter().flatten().map(|(constraint, mode)| (constraint, *mode))
    }
}
