//! Markers: instructions that stand where parts begin and end.

use crate::prepare::regions::build::emitter::CodeEmitter;
use crate::region::{Instruction, RegionPart, TableIndex, Target};

/// Inserts the markers of parts, which name instructions. Behind that the code before a part is named by a label.
pub(super) fn insert(emitter: &mut CodeEmitter, mut parts: Vec<RegionPart>) {
    let mut markers = Vec::new();
    for (index, part) in (0..).zip(&mut parts) {
        markers.push((part.end, Instruction::EndPart(index)));
        markers.push((part.begin, Instruction::BeginPart(index)));
        emitter.labels.push(Some(part.from.into()));
        part.from = (emitter.labels.len() - 1) as Target;
    }
    // One part ends before another one begins.
    markers.sort_by_key(|(at, marker)| (*at, matches!(marker, Instruction::BeginPart(_))));
    shift(emitter, &markers);
    emitter.tables.parts = parts;
}

/// Makes room for markers. A jump to an instruction goes to the markers before it.
fn shift(emitter: &mut CodeEmitter, markers: &[(usize, Instruction)]) {
    let before = |at: usize| markers.partition_point(|(other, _)| *other < at);
    let up_to = |at: usize| markers.partition_point(|(other, _)| *other <= at);
    emitter.labels.iter_mut().flatten().for_each(|at| *at += before(*at));
    emitter.places.iter_mut().for_each(|(first, _)| *first += before(*first));
    emitter.tables.fallible.iter_mut().for_each(|(at, _)| *at += up_to(*at));
    let old = std::mem::take(&mut emitter.code);
    let mut rest = markers.iter().peekable();
    for (at, instruction) in old.into_iter().enumerate() {
        while let Some((_, marker)) = rest.next_if(|(marked, _)| *marked == at) {
            emitter.code.push(*marker);
        }
        emitter.code.push(instruction);
    }
}

/// Returns the positions of the markers of a part.
pub(in crate::prepare::regions::build) fn positions(code: &[Instruction], part: TableIndex) -> Option<(usize, usize)> {
    let begin = code.iter().position(|code| *code == Instruction::BeginPart(part))?;
    let end = code.iter().position(|code| *code == Instruction::EndPart(part))?;
    Some((begin, end))
}
