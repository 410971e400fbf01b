//! Keys of maps that are fields of the current element of a loop: they are read where they are, instead of in a copy.

use weir_host::Argument;

use crate::prepare::regions::build::emitter::CodeEmitter;
use crate::region::{FieldOperand, FrameSlot, Instruction, LookUpOutput, RegionOperand, StateLocation};

/// Removes the copies of fields that are only keys of look-ups and replacements. Until the next element is taken, neither the
/// element nor its number changes.
pub(super) fn read_keys_in_place(emitter: &mut CodeEmitter) {
    for at in 0..emitter.code.len() {
        let (Instruction::ElementField(slot, row, field) | Instruction::TakeElementField(slot, row, field)) =
            emitter.code[at]
        else {
            continue;
        };
        let Some(uses) = uses_as_key(emitter, at, slot) else { continue };
        let row = emitter.tables.loops[usize::from(row)];
        let operand = FieldOperand { list: row.list, count: row.count, field, slot };
        uses.into_iter().for_each(|use_at| read_in_place(emitter, use_at, operand));
        emitter.code[at] = Instruction::Nothing;
    }
}

/// Returns the instructions that read a slot, if each does so for a key alone, and if only this instruction fills it. The slot
/// must be one that the region clears: nothing outside reads it.
fn uses_as_key(emitter: &mut CodeEmitter, filled_at: usize, slot: FrameSlot) -> Option<Vec<usize>> {
    let (mut uses, mut is_cleared) = (Vec::new(), false);
    for at in 0..emitter.code.len() {
        let mut has_access = false;
        emitter
            .tables
            .accesses(emitter.code[at], &mut |location, _| has_access |= location == StateLocation::Slot(slot));
        match emitter.code[at] {
            _ if !has_access || at == filled_at => {}
            Instruction::Clear(..) => is_cleared |= at > filled_at,
            _ if at > filled_at && is_key_alone(emitter, at, slot) => uses.push(at),
            _ => return None,
        }
    }
    is_cleared.then_some(uses)
}

/// Returns true if an instruction uses a slot as the key of a map, and for nothing else.
fn is_key_alone(emitter: &CodeEmitter, at: usize, slot: FrameSlot) -> bool {
    let is_it = |argument: &Argument| matches!(argument, Argument::Slot { index, .. } if *index == u32::from(slot));
    let is_operand = |operand: &RegionOperand| match operand {
        RegionOperand::Word(_, _, stored) => *stored == slot,
        RegionOperand::Value(argument) => is_it(argument),
        RegionOperand::Field(field) => field.slot == slot || field.list == slot,
    };
    let is_key = |operand: &RegionOperand| matches!(operand, RegionOperand::Value(argument) if is_it(argument));
    match emitter.code[at] {
        Instruction::Switch(row) => {
            let row = &emitter.tables.switches[usize::from(row)];
            let fills = row.arms.iter().any(|arm| arm.ports.contains(&slot.into()));
            row.look_up.as_ref().is_some_and(|look_up| {
                let fills = fills || matches!(look_up.output, LookUpOutput::Slot(output) if output == slot);
                is_key(&look_up.key) && !is_it(&look_up.map) && !fills
            })
        }
        Instruction::Replace(row) => {
            let row = &emitter.tables.replacements[usize::from(row)];
            is_key(&row.key) && row.whole != slot && !is_operand(&row.value)
        }
        _ => false,
    }
}

/// Makes the key of a look-up or replacement the field itself.
fn read_in_place(emitter: &mut CodeEmitter, at: usize, field: FieldOperand) {
    let without = |dead: &[u32]| dead.iter().copied().filter(|dead| *dead != u32::from(field.slot)).collect();
    match emitter.code[at] {
        Instruction::Switch(row) => {
            if let Some(look_up) = &mut emitter.tables.switches[usize::from(row)].look_up {
                look_up.key = RegionOperand::Field(field);
                look_up.dead = without(&look_up.dead);
            }
        }
        Instruction::Replace(row) => {
            emitter.tables.replacements[usize::from(row)].key = RegionOperand::Field(field);
        }
        _ => {}
    }
}
