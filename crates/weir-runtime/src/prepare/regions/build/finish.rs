//! The last stage of building: resolves labels to instructions, and assembles the region.

use std::ops::Range;

use super::emitter::CodeEmitter;
use super::parts::positions;
use super::problem::{NodeObstacle, RegionProblem};
use super::reductions::reducing_code;
use crate::constant_copies::ConstantCopies;
use crate::region::{
    Instruction, LARGE_WINDOW, PartCost, Region, RegionPart, RoundCost, SlowLoops, SplitLoop, TableIndex, Target,
};

/// Assembles the region of these nodes.
pub(super) fn finished(mut emitter: CodeEmitter, nodes: Range<usize>) -> Result<Region, RegionProblem> {
    if !emitter.fits() {
        return Err(RegionProblem::TooLarge);
    }
    let before = emitter.prologue.len();
    let targets: Vec<Target> = emitter.labels.iter().map(|at| (at.unwrap_or(0) + before) as Target).collect();
    let mut code = std::mem::take(&mut emitter.prologue);
    code.append(&mut emitter.code);
    let tables = &mut emitter.tables;
    let mut resolved = |label: &mut Target| *label = targets[usize::from(*label)];
    for instruction in &mut code {
        // Loops over lists have no label in their rows.
        tables.targets(instruction, &mut resolved);
    }
    let splits = std::mem::take(&mut tables.splits);
    let splits = (0..).zip(splits).map(|(index, split)| {
        // A loop that is never reached has no end, and is around no instruction.
        let end = code.iter().position(|code| *code == Instruction::EndFor(index)).unwrap_or(0);
        SplitLoop { first: targets[usize::from(split.first)], end, ..split }
    });
    let mut splits: Vec<SplitLoop> = splits.collect();
    if splits.iter().all(|split| split.end == 0) {
        splits.clear();
    }
    let reducing_code = reducing_code(&code, &mut splits, (&mut tables.switches, &mut emitter.registers));
    if emitter.registers > LARGE_WINDOW || tables.switches.len() > usize::from(TableIndex::MAX) {
        return Err(RegionProblem::TooLarge);
    }
    let parts: Vec<RegionPart> = std::mem::take(&mut tables.parts);
    let parts = (0..).zip(parts).map(|(index, part)| {
        let (begin, end) = positions(&code, index).ok_or(RegionProblem::of(NodeObstacle::NoInstruction))?;
        Ok(RegionPart { from: targets[usize::from(part.from)], begin, end, ..part })
    });
    let parts = parts.collect::<Result<Box<[RegionPart]>, RegionProblem>>()?;
    tables.fallible.iter_mut().for_each(|(at, _)| *at += before);
    let computations = std::mem::take(&mut tables.computations).into();
    Ok(Region {
        nodes,
        slots: emitter.slots,
        code: code.into(),
        reducing_code,
        tables: emitter.tables,
        registers: emitter.registers,
        words: emitter.words.into_iter().map(|(word, register)| (register, word)).collect(),
        outer_splits: Region::outermost(&splits),
        round_costs: splits.iter().map(|_| RoundCost::default()).collect(),
        slow_loops: SlowLoops::default(),
        splits: splits.into(),
        part_costs: parts.iter().map(|_| PartCost::default()).collect(),
        parts,
        computations,
        constants: ConstantCopies::new(&emitter.constants),
        places: emitter.places.into_iter().map(|(first, place)| (first + before, place)).collect(),
    })
}
