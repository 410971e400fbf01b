//! Reductions by key: states of a `fold` that are maps, of which each round adds to the number under a key, or to the list there.
//!
//! A thread that runs rounds of such a loop begins with an empty map. Its entries are joined in their order to those of the
//! thread that has given the rounds away: a key that this one has keeps its place, and others come last, so that keys stand in
//! the order of the rounds that come to them first. Additions must fail where those of the rounds in their order fail. So a
//! partial map of sums comes with the sum of all its negative terms and that of all positive ones, between which every sum
//! under a key lies at any time ([`EntryChange::AddNotedInt`](super::changes::EntryChange)): only if each number that is there
//! plus each of them is in range are the rounds as good as run in their order.

use weir_host::{Entries, Value};

use super::instruction::{FrameSlot, Register};

/// A state that is a map whose partial results can be joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReducedMap {
    pub slot: FrameSlot,
    pub kind: MapReduction,
}

/// The operation of the rounds on the value under a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapReduction {
    /// They add to the integer. The register of the sum of negative terms; that of the positive ones follows.
    Sums(Register),
    /// They append to the list.
    Lists,
}

impl ReducedMap {
    /// Sets the state to an empty map.
    pub(super) fn begin(self, words: &mut [u64], slots: &mut [Value]) {
        slots[usize::from(self.slot)] = Value::Map(Entries::default());
        if let MapReduction::Sums(negative) = self.kind {
            words[usize::from(negative)..usize::from(negative) + 2].fill(0);
        }
    }

    /// Returns the number of entries of the state.
    pub(crate) fn len(self, slots: &[Value]) -> usize {
        let Value::Map(entries) = &slots[usize::from(self.slot)] else { return 0 };
        entries.len()
    }

    /// Returns true if no sum on the way leaves the range when the partial result is joined.
    pub(super) fn fits(self, slots: &[Value], (words, partial): (&[u64], &[Value])) -> bool {
        let MapReduction::Sums(negative) = self.kind else { return true };
        let at = usize::from(self.slot);
        let (Value::Map(entries), Value::Map(more)) = (&slots[at], &partial[at]) else { return false };
        let bounds = [negative, negative + 1].map(|bound| words[usize::from(bound)].cast_signed());
        let fits = |key: &Value| match entries.get(key) {
            Some(Value::Int(sum)) => bounds.iter().all(|bound| sum.checked_add(*bound).is_some()),
            _ => true,
        };
        more.keys().all(fits)
    }

    /// Joins the partial result, which fits.
    pub(super) fn join(self, words: &mut [u64], slots: &mut [Value], (other, partial): (&[u64], &mut [Value])) {
        let at = usize::from(self.slot);
        let (Value::Map(entries), Value::Map(more)) = (&mut slots[at], partial[at].take()) else { return };
        match self.kind {
            MapReduction::Sums(negative) => {
                more.into_iter().for_each(|(key, sum)| add(entries, key, sum));
                for bound in [negative, negative + 1].map(usize::from) {
                    let both = words[bound].cast_signed().saturating_add(other[bound].cast_signed());
                    words[bound] = both.cast_unsigned();
                }
            }
            MapReduction::Lists => more.into_iter().for_each(|(key, list)| append(entries, key, list)),
        }
    }
}

/// Adds to the number under a key, which is in range.
fn add(entries: &mut Entries, key: Value, added: Value) {
    let Value::Int(number) = added else { return };
    match entries.entry_to_change(&key) {
        Some(Some(Value::Int(sum))) => *sum = sum.wrapping_add(number),
        _ => {
            let sum = if let Some(Value::Int(sum)) = entries.get(&key) { *sum } else { 0 };
            entries.insert(key, Value::Int(sum.wrapping_add(number)));
        }
    }
}

/// Appends to the list under a key.
fn append(entries: &mut Entries, key: Value, added: Value) {
    let Value::List(more) = added else { return };
    if let Some(Some(Value::List(list))) = entries.entry_to_change(&key) {
        return list.append(more);
    }
    let mut list = match entries.take(&key) {
        Some(Value::List(list)) => list,
        _ => return drop(entries.insert(key, Value::List(more))),
    };
    list.append(more);
    entries.insert(key, Value::List(list));
}
