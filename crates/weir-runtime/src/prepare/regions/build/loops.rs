//! Loops: repeated bodies that do not wait, as loops of the bytecode.
//!
//! ```text
//!       (list, count)      the list moves to a slot of its own
//!       first …, out       the first element, or out
//! head: body
//!       next …, head       a safe point: the next element, and back
//! out:  clear              the slots of the body
//! ```
//!
//! Behind the end of a `for` or `fold` whose rounds may run on several threads stands `end_for`, where the rounds of other
//! threads are joined.
//!
//! A `loop` has no list: `again_unless done, head` ends a round. For states see `states.rs`.
//!
//! A captured value stays in its slot: the body refers to it there. A value that the body changes moves into a slot of
//! the body and back, as it does between frames in the step form.

use weir_host::{Argument, Type};
use weir_ir::graph::Graph;

use super::Builder;
use super::emitter::{add, slot};
use super::problem::{NodeObstacle, RegionProblem};
use super::scope::Scope;
use crate::prepare::regions::splits::obstacle;
use crate::region::WordShape;
use crate::region::{FoldObstacle, MapReduction, ReducedMap, ReducedState, ReductionKind, Reductions};
use crate::region::{Instruction, Register, TableIndex, Target};
use crate::region::{LoopOutcome, LoopRow, SPLITS_MAX, SplitLoop};
use crate::step::{Action, Repeat, RepeatStep};

/// A loop under construction.
pub(super) struct LoopParts<'a, 's> {
    pub step: &'a RepeatStep,
    pub graph: &'a Graph,
    /// The slot of the list, behind it that of the results, and behind that those for the next states.
    pub first_slot: u32,
    pub inner: Scope<'a>,
    pub outer: &'s mut Scope<'a>,
    pub node: usize,
    /// The slots of captured values, which the body only reads.
    pub captured: Vec<u32>,
}

impl<'a> Builder<'a> {
    /// Compiles a `for`, `fold` or `loop`.
    pub(super) fn repeat(&mut self, scope: &mut Scope<'a>, node: usize) -> Result<(), RegionProblem> {
        let (graph, body) = (scope.graph, scope.body);
        let Action::Repeat(step) = body.steps[node].action.form() else {
            return Err(RegionProblem::of(NodeObstacle::NoInstruction));
        };
        let [inner_graph] = graph.nodes[node].bodies() else {
            return Err(RegionProblem::of(NodeObstacle::NoInstruction));
        };
        let before = 2 + step.repeat.states() as u32;
        let count = before + step.body.slots;
        let first_slot = self.emitter.slots(count as usize) as u32;
        let inner = Scope::new(inner_graph, &step.body, first_slot + before, Some(scope.place(node)));
        self.note_move_only_of_loop(first_slot, &inner);
        let mut parts =
            LoopParts { step, graph: inner_graph, first_slot, inner, outer: scope, node, captured: Vec::new() };
        let captured = self.capture(&mut parts)?;
        match step.repeat {
            Repeat::Map => self.map(&mut parts)?,
            Repeat::Fold { .. } => self.fold(&mut parts)?,
            Repeat::Loop { at_most, .. } => self.rounds(&mut parts, at_most)?,
        }
        for instruction in captured {
            self.emitter.emit(instruction);
        }
        self.emitter.emit(Instruction::Clear(slot(first_slot), count as u16));
        Ok(())
    }

    /// Makes the captured values available to the body; returns the instructions that end this.
    fn capture(&mut self, parts: &mut LoopParts<'a, '_>) -> Result<Vec<Instruction>, RegionProblem> {
        let own = parts.outer.graph.nodes[parts.node].kind.own().inputs;
        let inputs = &parts.outer.graph.nodes[parts.node].inputs;
        let mut after = Vec::new();
        for (index, input) in inputs.iter().enumerate().skip(own) {
            let parameter = index - own + parts.outer.graph.nodes[parts.node].kind.own().parameters;
            if self.types.shape(&parts.graph.parameters[parameter]).is_some() && !parts.step.body.handed[parameter] {
                parts.inner.parameters[parameter] = Some(self.words(parts.outer, input)?);
                continue;
            }
            if self.types.shape(&parts.graph.parameters[parameter]).is_some() {
                // A number that a call changes in place: rare, and left to the step form.
                return Err(RegionProblem::of(NodeObstacle::NoInstruction));
            }
            let from = self.argument(parts.outer, parts.step.inputs[index], input)?;
            let to = parts.inner.base + parameter as u32;
            match from {
                Argument::Slot { index, last } if parts.step.body.handed[parameter] => {
                    self.emitter.emit(Instruction::TakeValue(slot(to), slot(index)));
                    if !last {
                        after.push(Instruction::TakeValue(slot(index), slot(to)));
                    }
                }
                Argument::Slot { index, last } => {
                    parts.inner.captured[parameter] = Some(Argument::Slot { index, last: false });
                    parts.captured.push(index);
                    if last {
                        after.push(Instruction::Clear(slot(index), 1));
                    }
                }
                Argument::Constant(_) if parts.step.body.handed[parameter] => self.put(to, from),
                other => parts.inner.captured[parameter] = Some(other),
            }
        }
        Ok(after)
    }

    /// Adds a row to the table of loops.
    fn row(&mut self, parts: &LoopParts<'a, '_>, at_most: u64) -> (TableIndex, LoopRow) {
        let (list, count) = (slot(parts.first_slot), self.emitter.register());
        let units = parts.step.body.units;
        let head = self.emitter.label();
        let row = LoopRow { list, head, count, at_most, units, carry: None };
        (add(&mut self.emitter.tables.loops, row), row)
    }

    /// Binds the label of a loop's head, before a place for the instruction that runs rounds at once.
    fn begin_round(&mut self, head: Target) {
        self.emitter.bind(head);
        self.emitter.emit(Instruction::Nothing);
    }

    /// Moves an input, which is no word, to a slot.
    pub(super) fn input_to(
        &mut self,
        parts: &mut LoopParts<'a, '_>,
        input: usize,
        to: u32,
    ) -> Result<(), RegionProblem> {
        let operand = &parts.outer.graph.nodes[parts.node].inputs[input];
        let from = self.argument(parts.outer, parts.step.inputs[input], operand)?;
        self.put(to, from);
        Ok(())
    }

    fn map(&mut self, parts: &mut LoopParts<'a, '_>) -> Result<(), RegionProblem> {
        let (list, results) = (parts.first_slot, parts.first_slot + 1);
        self.input_to(parts, 0, list)?;
        self.emitter.emit(Instruction::BeginMap(slot(results)));
        let first = self.emitter.label();
        self.emitter.bind(first);
        let round = self.begin_list(parts, 0)?;
        let split = self.split(parts, first, round.row, LoopOutcome::List(slot(results)));
        self.nodes(&mut parts.inner)?;
        self.push_result(parts, results)?;
        self.end_list(parts, round);
        split.into_iter().for_each(|split| self.emitter.emit(Instruction::EndFor(split)));
        self.put(parts.outer.base + parts.step.out, Argument::Slot { index: results, last: true });
        Ok(())
    }

    /// Adds a row to the table of loops whose rounds may run on several threads, if those of this one may.
    fn split(
        &mut self,
        parts: &LoopParts<'a, '_>,
        first: Target,
        row: TableIndex,
        outcome: LoopOutcome,
    ) -> Option<TableIndex> {
        let splits = &mut self.emitter.tables.splits;
        if splits.len() == SPLITS_MAX || obstacle(&parts.outer.graph.nodes[parts.node], parts.step).is_some() {
            return None;
        }
        let captured = parts.captured.as_slice().into();
        Some(add(splits, SplitLoop { row, first, end: 0, outcome, captured }))
    }

    /// Does the same for a `fold` whose states are words and maps. Whether these are reductions is seen in the simplified code.
    fn split_of_fold(&mut self, parts: &LoopParts<'a, '_>, first: Target, row: TableIndex) -> Option<TableIndex> {
        let (mut states, mut maps) = (Vec::new(), Vec::new());
        for state in 0..parts.step.repeat.states() {
            let reduction = |state: &Register| ReducedState { state: *state, kind: ReductionKind::Kept };
            match (&parts.inner.parameters[state], &parts.graph.parameters[state]) {
                (Some(registers), _) => states.extend(registers.iter().map(reduction)),
                (None, Type::Map(..)) => {
                    let slot = slot(parts.inner.base + state as u32);
                    maps.push(ReducedMap { slot, kind: MapReduction::Lists });
                }
                (None, _) => {
                    let place = parts.outer.place(parts.node);
                    self.emitter.tables.folds_in_turn.push((place, FoldObstacle::State));
                    return None;
                }
            }
        }
        let reductions = Reductions { states: states.into(), maps: maps.into() };
        self.split(parts, first, row, LoopOutcome::Reductions(reductions))
    }

    /// Adds what a round yields to the results.
    fn push_result(&mut self, parts: &mut LoopParts<'a, '_>, results: u32) -> Result<(), RegionProblem> {
        let shape = self.shape_of(&parts.inner, &parts.graph.result);
        let instruction = match shape {
            Some(WordShape::Scalar(scalar)) => {
                let register = self.word(&mut parts.inner, &parts.graph.result)?;
                Instruction::Push(slot(results), register, super::operands::number(scalar))
            }
            Some(shape @ WordShape::Record(_)) => {
                let registers = self.words(&mut parts.inner, &parts.graph.result)?;
                Instruction::PushRecord(self.record(results, &registers, &shape))
            }
            None => {
                // Behind the parameters' slots there is always one that a round has used up: that of the element.
                let to = parts.inner.base;
                self.value_result(parts, to)?;
                Instruction::PushValue(slot(results), slot(to))
            }
        };
        self.emitter.emit(instruction);
        Ok(())
    }

    fn fold(&mut self, parts: &mut LoopParts<'a, '_>) -> Result<(), RegionProblem> {
        self.input_to(parts, 0, parts.first_slot)?;
        self.begin_states(parts, 1)?;
        let first = self.emitter.label();
        self.emitter.bind(first);
        let round = self.begin_list(parts, parts.step.repeat.states())?;
        let split = self.split_of_fold(parts, first, round.row);
        self.nodes(&mut parts.inner)?;
        self.next_states(parts)?;
        self.end_list(parts, round);
        split.into_iter().for_each(|split| self.emitter.emit(Instruction::EndFor(split)));
        self.end_states(parts)
    }

    fn rounds(&mut self, parts: &mut LoopParts<'a, '_>, at_most: u64) -> Result<(), RegionProblem> {
        self.begin_states(parts, 0)?;
        let (row, LoopRow { head, count, .. }) = self.row(parts, at_most);
        let none = self.emitter.constant(0);
        self.emitter.emit(Instruction::Move(count, none));
        self.begin_round(head);
        self.nodes(&mut parts.inner)?;
        let done = self.next_states(parts)?.ok_or(RegionProblem::of(NodeObstacle::NoInstruction))?;
        self.emitter.place(parts.outer.place(parts.node));
        self.emitter.emit(Instruction::AgainUnless(row, done));
        self.end_states(parts)
    }

    /// Emits the beginning of a loop over a list, whose elements are this parameter.
    fn begin_list(&mut self, parts: &mut LoopParts<'a, '_>, parameter: usize) -> Result<Round, RegionProblem> {
        let (row, LoopRow { head, .. }) = self.row(parts, u64::MAX);
        let out = self.emitter.label();
        let shape = self.types.shape(&parts.graph.parameters[parameter]);
        // A scalar has no fields: nothing reads it, as in `for _ in numbers { … }`.
        let may_stay =
            matches!(shape, Some(WordShape::Scalar(_))) || self.is_record(&parts.graph.parameters[parameter]);
        if may_stay && parts.inner.reads_only_fields(parameter) {
            self.emitter.emit(Instruction::FirstElement(row, out));
            self.begin_round(head);
            parts.inner.elements[parameter] = Some(row);
            return Ok(Round { row, next: Instruction::NextElement(row, head), out });
        }
        if let Some(fields) = shape.as_ref().and_then(WordShape::scalar_fields) {
            self.emitter.emit(Instruction::FirstElement(row, out));
            self.begin_round(head);
            let registers = (0..fields).map(|field| {
                let register = self.emitter.register();
                self.emitter.emit(Instruction::ElementWord(register, row, field as u16));
                register
            });
            parts.inner.parameters[parameter] = Some(registers.collect());
            return Ok(Round { row, next: Instruction::NextElement(row, head), out });
        }
        let index = parts.inner.base + parameter as u32;
        let word = match &shape {
            Some(WordShape::Scalar(_)) => Some(self.emitter.register()),
            _ => None,
        };
        self.emitter.emit(match word {
            Some(word) => Instruction::FirstWord(row, word, out),
            None => Instruction::FirstValue(row, slot(index), out),
        });
        self.begin_round(head);
        parts.inner.parameters[parameter] = match (word, &shape) {
            (Some(word), _) => Some(vec![word]),
            (None, Some(shape)) => Some(self.load(index, shape)),
            (None, None) => None,
        };
        let next = match word {
            Some(word) => Instruction::NextWord(row, word, head),
            None => Instruction::NextValue(row, slot(index), head),
        };
        Ok(Round { row, next, out })
    }

    /// Returns true if values of the type have fields.
    fn is_record(&self, ty: &Type) -> bool {
        matches!(ty, Type::Tuple(_)) || self.types.is_record(ty)
    }

    fn end_list(&mut self, parts: &LoopParts<'a, '_>, round: Round) {
        self.emitter.place(parts.outer.place(parts.node));
        self.emitter.emit(round.next);
        self.emitter.bind(round.out);
    }

    /// Moves the value that a round yields, which is no word, to a slot.
    pub(super) fn value_result(&mut self, parts: &mut LoopParts<'a, '_>, to: u32) -> Result<(), RegionProblem> {
        let argument = parts.inner.body.result.ok_or(RegionProblem::of(NodeObstacle::NoInstruction))?;
        let from = self.argument(&mut parts.inner, argument, &parts.graph.result)?;
        self.put(to, from);
        Ok(())
    }
}

/// The parts of a loop over a list that its end refers to.
struct Round {
    /// The row of the loop.
    row: TableIndex,
    /// The instruction that goes on with the next element.
    next: Instruction,
    /// The label behind the loop.
    out: Target,
}
