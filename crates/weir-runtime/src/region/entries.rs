//! Updates of map entries: `m.with(key, (m[key] else { 0 }) + 1)` and `m.with(key, (m[key] else { [] }) + [x])`.
//!
//! Such an expression looks its key up twice, and moves the value out of the map and back. The look-up does all of it at
//! once instead, where the value lies in the map, and jumps behind the replacement. Whenever that takes more than changing
//! this value, because the map is shared or the sum has no result, nothing is changed, and the instructions behind the
//! look-up do the same in their way.

use weir_host::{Argument, Elements, Value};

use super::changes::{EntryChange, EntryUpdate};
use super::code::{LookUp, RegionOperand};
use super::outcome::{Outside, r};
use super::shapes::Scalar;
use super::stop::After;
use crate::operations::forget;
use crate::units;

/// The state of an entry after an update was tried.
pub(super) enum EntryState {
    Updated,
    /// The map does not have the key.
    Missing,
    /// Nothing was changed; the entry may exist.
    Unknown,
}

/// Changes the entry that a look-up finds.
#[inline(never)]
pub(super) fn update_entry(
    look_up: &LookUp,
    update: &EntryUpdate,
    words: &mut [u64],
    slots: &mut [Value],
) -> EntryState {
    match update.change {
        EntryChange::AddInt(added) => {
            let added = words[r(added)].cast_signed();
            change_entry(look_up, words, slots, |value| add_int(value, added))
        }
        EntryChange::AddNotedInt(added, negative) => {
            let added = words[r(added)].cast_signed();
            let bound = r(negative) + usize::from(added > 0);
            words[bound] = words[bound].cast_signed().saturating_add(added).cast_unsigned();
            change_entry(look_up, words, slots, |value| add_int(value, added))
        }
        EntryChange::AddFloat(added) => {
            let added = f64::from_bits(words[r(added)]);
            change_entry(look_up, words, slots, |value| add_float(value, added))
        }
        EntryChange::Push(word, scalar) => change_entry(look_up, words, slots, |value| {
            let Value::List(elements) = value else { return None };
            push_word(elements, words[r(word)], scalar);
            Some(())
        }),
        EntryChange::PushValue(from) => push_value(look_up, words, slots, r(from)),
    }
}

#[inline(always)]
fn add_int(value: &mut Value, added: i64) -> Option<()> {
    let Value::Int(number) = value else { return None };
    *number = number.checked_add(added)?;
    Some(())
}

#[inline(always)]
fn add_float(value: &mut Value, added: f64) -> Option<()> {
    let Value::Float(number) = value else { return None };
    *number += added;
    Some(())
}

/// Moves a value from a slot to the end of the list that a look-up finds.
fn push_value(look_up: &LookUp, words: &[u64], slots: &mut [Value], from: usize) -> EntryState {
    let mut moved = slots[from].take();
    let state = change_entry(look_up, words, slots, |value| {
        let Value::List(elements) = value else { return None };
        elements.push(moved.take());
        Some(())
    });
    if !matches!(state, EntryState::Updated) {
        slots[from].put(moved);
    }
    state
}

/// Changes the value of the entry that a look-up finds, unless `change` returns `None` and changes nothing.
#[inline(always)]
fn change_entry(
    look_up: &LookUp,
    words: &[u64],
    slots: &mut [Value],
    change: impl FnOnce(&mut Value) -> Option<()>,
) -> EntryState {
    let Argument::Slot { index: map, .. } = look_up.map else { return EntryState::Unknown };
    let map = map as usize;
    match look_up.key {
        RegionOperand::Word(register, scalar, _) => {
            change_under(&mut slots[map], &scalar.value(words[r(register)]), change)
        }
        RegionOperand::Value(Argument::Slot { index: key, .. }) => {
            let Ok([map, key]) = slots.get_disjoint_mut([map, key as usize]) else { return EntryState::Unknown };
            change_under(map, key, change)
        }
        RegionOperand::Field(field) => {
            let Ok([map, list]) = slots.get_disjoint_mut([map, r(field.list)]) else { return EntryState::Unknown };
            change_under(map, field.of(list, words), change)
        }
        RegionOperand::Value(_) => EntryState::Unknown,
    }
}

#[inline(always)]
fn change_under(map: &mut Value, key: &Value, change: impl FnOnce(&mut Value) -> Option<()>) -> EntryState {
    let Value::Map(entries) = map else { return EntryState::Unknown };
    match entries.entry_to_change(key) {
        Some(Some(value)) => change(value).map_or(EntryState::Unknown, |()| EntryState::Updated),
        Some(None) => EntryState::Missing,
        None => EntryState::Unknown,
    }
}

/// Goes on behind the replacement, whose call costs as much as if it had been made.
#[inline]
pub(super) fn updated(update: &EntryUpdate, outside: &mut Outside<'_>) -> After {
    forget(&update.dead, outside.slots);
    if outside.spend(units::CALL) {
        let behind = r(update.behind);
        return After::Stop(outside.yields(behind - 1, behind));
    }
    After::Jump(update.behind)
}

/// Adds a scalar of the type `Scalar::ALL[scalar]` at the end of a list.
#[inline(always)]
pub(super) fn push_word(elements: &mut Elements, word: u64, scalar: u16) {
    if !elements.push_word(word) {
        push_scalar(elements, word, scalar);
    }
}

#[cold]
#[inline(never)]
fn push_scalar(elements: &mut Elements, word: u64, scalar: u16) {
    elements.push(Scalar::ALL[r(scalar)].value(word));
}
