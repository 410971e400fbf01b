//! The emitter: appends instructions, and hands out registers, slots, labels and rows of tables.

use std::collections::BTreeSet;

use indexmap::IndexMap;
use weir_host::Value;

use crate::region::{CodePlace, Tables};
use crate::region::{FrameSlot, Instruction, Register, TableIndex, Target};

/// The number of registers, slots, labels and instructions of a region: their numbers have 16 bits.
const SIZE_MAX: usize = u16::MAX as usize;

/// Code under construction.
#[derive(Default)]
pub(super) struct CodeEmitter {
    pub code: Vec<Instruction>,
    /// The instruction that each label stands before, once it is known.
    pub labels: Vec<Option<usize>>,
    /// The first instruction of each place.
    pub places: Vec<(usize, CodePlace)>,
    pub tables: Tables,
    /// Instructions that run before all others: loads of values that the region finds in the frame.
    pub prologue: Vec<Instruction>,
    /// The registers of constants, by their words.
    pub words: IndexMap<u64, Register>,
    pub constants: Vec<Value>,
    pub registers: usize,
    pub slots: usize,
    /// The slots that may hold values which can only be moved.
    pub move_only: BTreeSet<FrameSlot>,
}

impl CodeEmitter {
    pub(super) fn emit(&mut self, instruction: Instruction) {
        self.code.push(instruction);
    }

    /// Removes the instructions from this one on; returns false if a jump goes behind it, so that they have to stay.
    pub(super) fn retract(&mut self, from: usize) -> bool {
        let is_behind = |at: &usize| *at > from;
        if self.labels.iter().flatten().any(is_behind) || self.tables.fallible.iter().any(|(at, _)| *at >= from) {
            return false;
        }
        self.code.truncate(from);
        let behind = self.places.iter().position(|(first, _)| is_behind(first));
        if let Some((_, last)) = behind.and_then(|behind| self.places.drain(behind..).next_back()) {
            self.place(last);
        }
        true
    }

    /// Returns true if no jump goes behind this instruction.
    pub(super) fn is_straight_from(&self, at: usize) -> bool {
        !self.labels.iter().flatten().any(|label| *label > at)
    }

    /// Sets the place of the instructions that follow.
    pub(super) fn place(&mut self, place: CodePlace) {
        match self.places.last_mut() {
            Some((first, last)) if *first == self.code.len() => *last = place,
            Some((_, last)) if *last == place => {}
            _ => self.places.push((self.code.len(), place)),
        }
    }

    /// Returns the place of an instruction.
    pub(super) fn place_at(&self, at: usize) -> CodePlace {
        let after = self.places.partition_point(|(first, _)| *first <= at);
        self.places[after.saturating_sub(1)].1.clone()
    }

    pub(super) fn register(&mut self) -> Register {
        self.registers += 1;
        (self.registers - 1) as Register
    }

    /// Returns neighbouring slots behind all others.
    pub(super) fn slots(&mut self, count: usize) -> usize {
        self.slots += count;
        self.slots - count
    }

    pub(super) fn label(&mut self) -> Target {
        self.labels.push(None);
        (self.labels.len() - 1) as Target
    }

    pub(super) fn bind(&mut self, label: Target) {
        self.labels[usize::from(label)] = Some(self.code.len());
    }

    /// Returns the register of a constant, which has its word before the region begins.
    pub(super) fn constant(&mut self, word: u64) -> Register {
        if let Some(known) = self.words.get(&word) {
            return *known;
        }
        let register = self.register();
        self.words.insert(word, register);
        register
    }

    /// Returns the index of a constant that slots get.
    pub(super) fn constant_value(&mut self, value: &Value) -> u32 {
        self.constants.push(value.clone());
        (self.constants.len() - 1) as u32
    }

    /// Returns true if the numbers of everything have fit into 16 bits so far.
    pub(super) fn fits(&self) -> bool {
        let tables = &self.tables;
        let rows = [tables.scalars.len(), tables.records.len(), tables.prims.len(), tables.calls.len()];
        let sizes = [self.code.len() + self.prologue.len(), self.labels.len(), self.registers, self.slots];
        rows.iter().chain(&sizes).all(|size| *size < SIZE_MAX) && self.constants.len() < SIZE_MAX
    }
}

/// Adds a row to a table and returns its index.
pub(super) fn add<T>(table: &mut Vec<T>, row: T) -> TableIndex {
    table.push(row);
    (table.len() - 1) as TableIndex
}

/// Returns the slot as an operand of an instruction.
pub(super) fn slot(index: u32) -> FrameSlot {
    index as FrameSlot
}
