//! Changes that an instruction makes at once: the update of an entry that a look-up finds (`entries`), and the rounds of a loop
//! of a single change (`rounds`).

use super::instruction::{FrameSlot, Register, RegisterAccess, TableIndex, Target};

/// The update of the entry that a look-up finds: all that the instructions behind it do, until they put it back.
#[derive(Clone)]
pub(crate) struct EntryUpdate {
    pub change: EntryChange,
    /// The slots that are not used afterwards.
    pub dead: Box<[u32]>,
    /// The instruction behind the replacement.
    pub behind: Target,
    /// True if the value of a missing key is 0 or an empty list before it is changed.
    pub begins_empty: bool,
}

/// A change of the value of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryChange {
    /// Adds an integer.
    AddInt(Register),
    /// Adds an integer, and adds it to the register of negative terms, which is the second one here, or else to that of
    /// positive ones, which follows. Only in the code for threads that run rounds of a `fold`.
    AddNotedInt(Register, Register),
    /// Adds a float, which is the second term.
    AddFloat(Register),
    /// Adds a scalar of the type `Scalar::ALL[scalar]` at the end of a list.
    Push(Register, u16),
    /// Moves a value to the end of a list.
    PushValue(FrameSlot),
}

impl EntryChange {
    /// Returns the register that the change reads.
    pub(crate) fn register_mut(&mut self) -> Option<&mut Register> {
        match self {
            EntryChange::AddInt(register)
            | EntryChange::AddNotedInt(register, _)
            | EntryChange::AddFloat(register)
            | EntryChange::Push(register, _) => Some(register),
            EntryChange::PushValue(_) => None,
        }
    }

    /// Returns the slot whose value is moved into the map.
    pub(crate) fn moved_slot(self) -> Option<FrameSlot> {
        if let EntryChange::PushValue(slot) = self { Some(slot) } else { None }
    }
}

/// A loop whose rounds may run at once.
#[derive(Clone, Copy)]
pub(crate) struct RoundsAtOnce {
    /// The row of the loop.
    pub row: TableIndex,
    pub effect: RoundEffect,
}

/// The effect of a round.
#[derive(Clone, Copy)]
pub(crate) enum RoundEffect {
    Store(StoredWord),
    Push(PushedWord),
    Call(PushedCall),
}

/// A round that stores a word in a list, and goes on with the next position until one is not less than the bound.
#[derive(Clone, Copy)]
pub(crate) struct StoredWord {
    pub list: FrameSlot,
    pub position: Register,
    pub word: Register,
    pub step: Register,
    pub bound: Register,
}

/// A round that adds a word to the results of a `for`.
#[derive(Clone, Copy)]
pub(crate) struct PushedWord {
    pub results: FrameSlot,
    pub word: Register,
}

/// A round that calls a function with registers, one of which is the element, and adds the word of its result, a scalar of the
/// type `Scalar::ALL[scalar]`, to the results of a `for`.
#[derive(Clone, Copy)]
pub(crate) struct PushedCall {
    pub call: TableIndex,
    pub element: Register,
    pub results: FrameSlot,
    pub scalar: u16,
}

impl RoundEffect {
    /// Calls `see` for each register that the rounds use.
    pub(crate) fn registers(&mut self, see: &mut dyn FnMut(&mut Register, RegisterAccess)) {
        match self {
            RoundEffect::Store(StoredWord { position, word, step, bound, .. }) => {
                [&mut position.clone(), word, step, bound]
                    .into_iter()
                    .for_each(|register| see(register, RegisterAccess::Read));
                see(position, RegisterAccess::Write);
            }
            RoundEffect::Push(PushedWord { word, .. }) => see(word, RegisterAccess::Read),
            RoundEffect::Call(PushedCall { element, .. }) => {
                see(&mut element.clone(), RegisterAccess::Read);
                see(element, RegisterAccess::Write);
            }
        }
    }
}
