//! The slots of the iterations of a group, in columns: for each slot, the values of all iterations.
//!
//! A step that only computes, an answer and a gathered argument are a column, which is read, made or moved as a whole. For any other
//! step, the values of one iteration, its *row*, are swapped with the slots of the frame, and back.

use smallvec::SmallVec;
use weir_host::{Argument, Value};
use weir_ir::prim::Prim;

use crate::operations::PrimStep;

/// The slots of several iterations.
#[derive(Default)]
pub(super) struct IterationSlots {
    /// For each slot, the value of each iteration, in their order; empty if no iteration has one.
    columns: Vec<Vec<Value>>,
    /// The number of iterations.
    rows: usize,
    /// Empty lists, for the next columns.
    spare: Vec<Vec<Value>>,
}

/// An operand of a step for all iterations.
#[derive(Clone, Copy)]
enum ColumnOperand<'a> {
    Column(&'a [Value]),
    Constant(&'a Value),
}

impl<'a> ColumnOperand<'a> {
    /// Returns the operand of an iteration.
    #[inline]
    fn at(self, row: usize) -> &'a Value {
        match self {
            ColumnOperand::Column(column) => &column[row],
            ColumnOperand::Constant(constant) => constant,
        }
    }
}

impl IterationSlots {
    /// Returns the empty slots, so many, of so many iterations.
    pub(super) fn new(slots: usize, rows: usize) -> IterationSlots {
        IterationSlots { columns: std::iter::repeat_with(Vec::new).take(slots).collect(), rows, spare: Vec::new() }
    }

    /// Returns an empty list with room for a column.
    pub(super) fn list(&mut self) -> Vec<Value> {
        self.spare.pop().unwrap_or_else(|| Vec::with_capacity(self.rows))
    }

    /// Sets the values of a slot.
    pub(super) fn set(&mut self, slot: u32, column: Vec<Value>) {
        let before = std::mem::replace(&mut self.columns[slot as usize], column);
        self.keep(before);
    }

    /// Sets the values of a slot to copies of this one.
    pub(super) fn fill(&mut self, slot: u32, value: &Value) {
        let column = vec![value.clone(); self.rows];
        self.set(slot, column);
    }

    /// Moves the values of a slot out.
    pub(super) fn take(&mut self, slot: u32) -> Vec<Value> {
        std::mem::take(&mut self.columns[slot as usize])
    }

    /// Returns the values of an argument, moved out if this is its last use.
    pub(super) fn value(&mut self, argument: Argument, constants: &[Value]) -> Vec<Value> {
        match argument {
            Argument::Slot { index, last: true } => self.take(index),
            Argument::Slot { index, last: false } => self.columns[index as usize].clone(),
            Argument::Constant(index) => vec![constants[index as usize].clone(); self.rows],
            Argument::Shared(_) => Vec::new(),
        }
    }

    /// Drops the values of slots.
    pub(super) fn forget(&mut self, dead: &[u32]) {
        for slot in dead {
            let column = self.take(*slot);
            self.keep(column);
        }
    }

    fn keep(&mut self, mut column: Vec<Value>) {
        if column.capacity() > 0 {
            column.clear();
            self.spare.push(column);
        }
    }

    /// Swaps the values of an iteration with these slots, of which those are empty that have values here.
    pub(super) fn swap_row(&mut self, row: usize, slots: &mut [Value]) {
        for (column, slot) in self.columns.iter_mut().zip(slots) {
            match column.get_mut(row) {
                Some(value) => std::mem::swap(value, slot),
                None if matches!(slot, Value::Absent) => {}
                None => {
                    column.resize(self.rows, Value::Absent);
                    column[row] = slot.take();
                }
            }
        }
    }

    /// Moves the values of the iterations that leave out.
    pub(super) fn split_off(&mut self, leaves: &[bool]) -> IterationSlots {
        let rows = leaves.iter().filter(|leaves| **leaves).count();
        self.rows -= rows;
        let columns = self.columns.iter_mut().map(|column| split(column, leaves, rows)).collect();
        IterationSlots { columns, rows, spare: Vec::new() }
    }

    /// Adds the results of arithmetic on two integers for one iteration after the other, up to the first for which it fails or
    /// that has other operands.
    pub(super) fn calculate(&self, step: &PrimStep, constants: &[Value], results: &mut Vec<Value>) {
        let [one, other] = &step.operands[..] else { return };
        let (Some(one), Some(other)) = (self.operand(one, constants), self.operand(other, constants)) else { return };
        let calculated = (0..self.rows).map_while(|row| match (one.at(row), other.at(row)) {
            (Value::Int(one), Value::Int(other)) => step.prim.calculate(*one, *other).map(Value::Int),
            _ => None,
        });
        results.extend(calculated);
    }

    /// Adds the results of a comparison for one iteration after the other, up to the first that has operands of other types.
    pub(super) fn compare(
        &self,
        prim: Prim,
        (one, other): (&Argument, &Argument),
        constants: &[Value],
        results: &mut SmallVec<[bool; 64]>,
    ) {
        if let (Some(one), Some(other)) = (self.operand(one, constants), self.operand(other, constants)) {
            results.extend((0..self.rows).map_while(|row| prim.decide(one.at(row), other.at(row))));
        }
    }

    /// Returns an operand; `None` if it has no values.
    fn operand<'a>(&'a self, argument: &Argument, constants: &'a [Value]) -> Option<ColumnOperand<'a>> {
        match *argument {
            Argument::Slot { index, .. } => {
                let column = &self.columns[index as usize];
                (column.len() == self.rows).then_some(ColumnOperand::Column(column))
            }
            Argument::Constant(index) => Some(ColumnOperand::Constant(&constants[index as usize])),
            Argument::Shared(_) => None,
        }
    }
}

/// Moves the values of the iterations that leave out of a column, so many.
fn split(column: &mut Vec<Value>, leaves: &[bool], rows: usize) -> Vec<Value> {
    if column.is_empty() {
        return Vec::new();
    }
    let (mut left, mut kept) = (Vec::with_capacity(rows), 0);
    for row in 0..column.len() {
        if leaves[row] {
            left.push(column[row].take());
        } else {
            column.swap(kept, row);
            kept += 1;
        }
    }
    column.truncate(kept);
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(numbers: &[i64]) -> Vec<Value> {
        numbers.iter().map(|number| Value::Int(*number)).collect()
    }

    #[test]
    fn a_row_is_swapped_with_slots_and_back() {
        let mut columns = IterationSlots::new(2, 3);
        columns.set(0, numbers(&[1, 2, 3]));
        let mut slots = vec![Value::Absent, Value::Absent];
        columns.swap_row(1, &mut slots);
        assert_eq!(slots, [Value::Int(2), Value::Absent]);
        slots[1] = Value::Int(20);
        columns.swap_row(1, &mut slots);
        assert_eq!(slots, [Value::Absent, Value::Absent]);
        assert_eq!(columns.take(0), numbers(&[1, 2, 3]));
        assert_eq!(columns.take(1), [Value::Absent, Value::Int(20), Value::Absent]);
    }

    #[test]
    fn iterations_that_leave_take_their_values_along() {
        let mut columns = IterationSlots::new(2, 4);
        columns.set(0, numbers(&[1, 2, 3, 4]));
        // A column of which the answers are taken has only the first rows.
        columns.set(1, numbers(&[10, 20]));
        let mut left = columns.split_off(&[false, true, false, true]);
        assert_eq!((columns.take(0), columns.take(1)), (numbers(&[1, 3]), numbers(&[10])));
        assert_eq!((left.take(0), left.take(1)), (numbers(&[2, 4]), numbers(&[20])));
    }
}
