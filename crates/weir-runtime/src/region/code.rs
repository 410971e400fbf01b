//! Prepared regions: the code, the tables that it refers to, and the place in the program of each instruction.

use std::ops::Range;
use std::sync::Arc;

use weir_host::{Argument, ImmediateCode, WordCode};
use weir_ir::graph::{ArmTest, ResourceUse};
use weir_ir::prim::Prim;

use super::changes::{EntryUpdate, PushedCall, RoundEffect, RoundsAtOnce};
use super::instruction::{FrameSlot, Instruction, Register, RegisterAccess, TableIndex, Target};
use super::parts::{ComputationOrder, PartCost, RegionPart, RoundCost, SlowLoops};
use super::place::CodePlace;
use super::reductions::{FoldObstacle, ReducedState, Reductions};
use super::shapes::{Scalar, WordShape};
use crate::constant_copies::ConstantCopies;
use crate::operations::{KeptFailure, Out, PrimStep};

/// A region of a body: neighbouring nodes that neither wait nor meet a turn nor take a lock, compiled to bytecode.
pub(crate) struct Region {
    /// The nodes of the body that it consists of.
    pub(crate) nodes: Range<usize>,
    /// The number of slots that a frame of the body needs to run it.
    pub(crate) slots: usize,
    pub(crate) code: Box<[Instruction]>,
    /// The code for threads that run rounds of a `fold`; empty if no `fold` allows that.
    pub(crate) reducing_code: Box<[Instruction]>,
    pub(crate) tables: Tables,
    /// The number of registers.
    pub(crate) registers: usize,
    /// The registers that hold constants, with their words.
    pub(crate) words: Box<[(Register, u64)]>,
    /// The constants that slots get.
    pub(crate) constants: ConstantCopies,
    /// The loops whose rounds may run on several threads, each before those inside of it.
    pub(crate) splits: Box<[SplitLoop]>,
    /// The loops of `splits` that are in no other one: a set of bits.
    pub(crate) outer_splits: u64,
    /// The time that a round of each of them takes.
    pub(crate) round_costs: Box<[RoundCost]>,
    /// The loops whose rounds may be slow.
    pub(crate) slow_loops: SlowLoops,
    /// The parts that may run on another thread.
    pub(crate) parts: Box<[RegionPart]>,
    /// The time that each of them took when it ran on another thread.
    pub(crate) part_costs: Box<[PartCost]>,
    /// The order of computations, for people.
    pub(crate) computations: Box<[ComputationOrder]>,
    /// The places of instructions: the first instruction of each, in ascending order.
    pub(crate) places: Box<[(usize, CodePlace)]>,
}

/// The tables of a region.
#[derive(Default)]
pub(crate) struct Tables {
    /// Primitives of scalars. An instruction of its own that fails has a row too, which makes the failure's text.
    pub scalars: Vec<ScalarPrim>,
    /// The rows of `scalars` for instructions that may fail, by instruction, in ascending order.
    pub fallible: Vec<(usize, usize)>,
    /// Records that are loaded from slots or lists, or stored there.
    pub records: Vec<RecordTransfer>,
    /// Primitives on slots.
    pub prims: Vec<PrimStep>,
    /// Calls with slots.
    pub calls: Vec<SlotCall>,
    /// Calls with registers.
    pub word_calls: Vec<WordCall>,
    /// Replacements of elements.
    pub replacements: Vec<ElementReplacement>,
    /// Switches on values.
    pub switches: Vec<ValueSwitch>,
    /// Targets by the number of an arm.
    pub jumps: Vec<Vec<Target>>,
    /// Loops.
    pub loops: Vec<LoopRow>,
    /// Loops whose rounds may run on several threads.
    pub splits: Vec<SplitLoop>,
    /// The places of `fold`s whose rounds run one after the other, for people.
    pub folds_in_turn: Vec<(CodePlace, FoldObstacle)>,
    /// Parts that may run on another thread.
    pub parts: Vec<RegionPart>,
    /// The order of computations.
    pub computations: Vec<ComputationOrder>,
    /// Loops whose rounds may run at once.
    pub rounds: Vec<RoundsAtOnce>,
    /// Fields that are loaded from the current element of a loop.
    pub element_words: Vec<ElementWords>,
    /// Answers and failures with which the flow ends.
    pub arguments: Vec<Argument>,
}

/// A primitive of scalars.
pub(crate) struct ScalarPrim {
    pub prim: Prim,
    pub operands: Box<[(Register, Scalar)]>,
    pub out: Register,
}

/// A record in a slot or in the list of a slot, and its words in registers.
pub(crate) struct RecordTransfer {
    pub slot: FrameSlot,
    pub registers: Box<[Register]>,
    pub shape: WordShape,
}

/// A call with slots.
pub(crate) struct SlotCall {
    pub code: Arc<ImmediateCode>,
    pub path: Arc<str>,
    pub arguments: Box<[Argument]>,
    /// The slots that are not used afterwards, and that the function only borrows.
    pub dead: Box<[u32]>,
    /// The destination of the answer. A decided switch is named by the register of its choice.
    pub out: Out,
    /// If its failure is an answer, the form of that.
    pub kept_failure: Option<KeptFailure>,
    pub effects: CallEffects,
}

/// The effects of a call, which decide what may run beside it.
#[derive(Default)]
pub(crate) struct CallEffects {
    /// The resources that it touches.
    pub uses: Box<[ResourceUse]>,
    /// The slots of arguments that it changes.
    pub changed: Box<[u32]>,
    /// True if it may take long, and then declares its units.
    pub declares_units: bool,
}

/// A call with registers.
pub(crate) struct WordCall {
    pub code: WordCode,
    pub path: Arc<str>,
    pub arguments: Box<[Register]>,
    pub effects: CallEffects,
}

/// A call of a function whose result is its first argument with one element replaced. An element that the list or map has
/// is replaced without the call.
pub(crate) struct ElementReplacement {
    /// The slot of the list or map, which is changed in place.
    pub whole: FrameSlot,
    pub key: RegionOperand,
    pub value: RegionOperand,
    pub call: SlotCall,
}

/// An operand that is a word or a value.
#[derive(Clone, Copy)]
pub(crate) enum RegionOperand {
    /// A word, and the slot in which a call finds it after it is stored there.
    Word(Register, Scalar, FrameSlot),
    /// A value of a slot or a constant.
    Value(Argument),
    /// A field of the current element of a loop, which stays in its list.
    Field(FieldOperand),
}

/// A field of the current element of a loop.
#[derive(Clone, Copy)]
pub(crate) struct FieldOperand {
    /// The slot of the list.
    pub list: FrameSlot,
    /// The register of the number of elements taken.
    pub count: Register,
    pub field: u16,
    /// The slot in which a call finds the field after it is copied there.
    pub slot: FrameSlot,
}

/// A look-up in a map whose `Option` a switch takes apart at once, so that it is never made.
#[derive(Clone)]
pub(crate) struct LookUp {
    pub map: Argument,
    pub key: RegionOperand,
    /// True if nothing reads the entry afterwards, so that its value may be moved out.
    pub detaches: bool,
    /// The slots that are not used afterwards.
    pub dead: Box<[u32]>,
    /// The destination of the value that is found.
    pub output: LookUpOutput,
    /// The arm for a value that is found.
    pub some: Option<usize>,
    /// The arm for a missing key.
    pub none: Option<usize>,
    /// The update of the entry by the instructions behind the look-up, if the look-up can do it at once.
    pub update: Option<EntryUpdate>,
}

/// The destination of the value that a look-up finds.
#[derive(Clone, Copy)]
pub(crate) enum LookUpOutput {
    /// It is not used.
    Nothing,
    Word(Register),
    Slot(FrameSlot),
}

/// A switch on a value.
#[derive(Clone)]
pub(crate) struct ValueSwitch {
    pub subject: Argument,
    /// The look-up of which the subject would be the result.
    pub look_up: Option<LookUp>,
    /// True if the payload may have to be moved.
    pub moves: bool,
    pub arms: Box<[ValueArm]>,
}

/// An arm of a switch on a value.
#[derive(Clone)]
pub(crate) struct ValueArm {
    pub test: ArmTest,
    /// The slots of the payload.
    pub ports: Box<[u32]>,
    pub target: Target,
}

/// A loop.
#[derive(Clone, Copy)]
pub(crate) struct LoopRow {
    /// The slot of the list; unused by a `loop`.
    pub list: FrameSlot,
    /// The first instruction of a round of a `loop`; a loop over a list has it in its instruction.
    pub head: Target,
    /// The register of the number of elements taken, or of rounds run.
    pub count: Register,
    /// The maximum number of rounds of a `loop`.
    pub at_most: u64,
    /// The units that each round costs: the number of nodes in the body.
    pub units: u32,
    /// The copy with which a round of a `loop` ends, to the first register: that of a state which was computed while its
    /// earlier word was still needed.
    pub carry: Option<(Register, Register)>,
}

/// The number of such loops in a region: a set of them is a word.
pub(crate) const SPLITS_MAX: usize = 64;

/// A loop over a list whose rounds may run on several threads: they have no order among each other.
#[derive(Clone)]
pub(crate) struct SplitLoop {
    /// The row of the loop.
    pub row: TableIndex,
    /// The instruction that begins the loop with its first element.
    pub first: Target,
    /// The [`Instruction::EndFor`] behind the last round.
    pub end: usize,
    pub outcome: LoopOutcome,
    /// The slots of captured values, which rounds only read.
    pub captured: Box<[u32]>,
}

/// The outcome of a loop whose rounds may run on several threads.
#[derive(Clone)]
pub(crate) enum LoopOutcome {
    /// The list in this slot, to which each round of a `for` adds its result.
    List(FrameSlot),
    /// The states of a `fold`.
    Reductions(Reductions),
}

/// Scalar fields of the record that is the current element of a loop, and their registers.
pub(crate) struct ElementWords {
    /// The row of the loop.
    pub row: TableIndex,
    pub fields: Box<[(Register, u16)]>,
}

impl Tables {
    /// Calls `see` for each target of a jump by the instruction: its own, and those in the row of a table that it names.
    pub(crate) fn targets(&mut self, instruction: &mut Instruction, see: &mut dyn FnMut(&mut Target)) {
        instruction.target().into_iter().for_each(&mut *see);
        match *instruction {
            Instruction::JumpTable(_, row) => self.jumps[usize::from(row)].iter_mut().for_each(see),
            Instruction::Switch(row) => {
                let row = &mut self.switches[usize::from(row)];
                row.arms.iter_mut().for_each(|arm| see(&mut arm.target));
                row.update_mut().into_iter().for_each(|update| see(&mut update.behind));
            }
            other => other.again().into_iter().for_each(|row| see(&mut self.loops[usize::from(row)].head)),
        }
    }

    /// Calls `see` for each register in the row of a table that the instruction names.
    pub(crate) fn registers(&mut self, instruction: Instruction, see: &mut dyn FnMut(&mut Register, RegisterAccess)) {
        match instruction {
            Instruction::Scalars(row) => self.scalars[usize::from(row)].registers(see),
            Instruction::LoadRecord(row) => self.records[usize::from(row)].registers(RegisterAccess::Write, see),
            Instruction::LoadElement(row, _) => self.records[usize::from(row)].registers(RegisterAccess::Write, see),
            Instruction::StoreRecord(row) | Instruction::PushRecord(row) => {
                self.records[usize::from(row)].registers(RegisterAccess::Read, see);
            }
            Instruction::Call(row) => self.calls[usize::from(row)].registers(see),
            Instruction::CallWords(_, row) => self.word_calls[usize::from(row)].registers(see),
            Instruction::Switch(row) => self.switches[usize::from(row)].registers(see),
            Instruction::Replace(row) => self.replacements[usize::from(row)].registers(see),
            // A finished region has them itself.
            Instruction::EndFor(split) => {
                self.splits.get_mut(usize::from(split)).into_iter().for_each(|split| split.registers(see));
            }
            Instruction::Rounds(rounds) => {
                let rounds = &mut self.rounds[usize::from(rounds)];
                rounds.effect.registers(see);
                if let RoundEffect::Call(PushedCall { call, .. }) = rounds.effect {
                    self.word_calls[usize::from(call)].registers(see);
                }
                let mut count = self.loops[usize::from(rounds.row)].count;
                see(&mut count, RegisterAccess::Read);
                see(&mut self.loops[usize::from(rounds.row)].count, RegisterAccess::Write);
            }
            Instruction::ElementWords(loads) => {
                let loads = &mut self.element_words[usize::from(loads)];
                see(&mut self.loops[usize::from(loads.row)].count, RegisterAccess::Read);
                loads.fields.iter_mut().for_each(|(register, _)| see(register, RegisterAccess::Write));
            }
            Instruction::ElementWord(_, row, _)
            | Instruction::ElementField(_, row, _)
            | Instruction::TakeElementField(_, row, _) => {
                see(&mut self.loops[usize::from(row)].count, RegisterAccess::Read);
            }
            Instruction::FirstWord(row, ..) | Instruction::FirstValue(row, ..) | Instruction::FirstElement(row, ..) => {
                see(&mut self.loops[usize::from(row)].count, RegisterAccess::Write);
            }
            Instruction::NextWord(row, ..) | Instruction::NextValue(row, ..) | Instruction::NextElement(row, ..) => {
                self.loops[usize::from(row)].registers(see);
            }
            other => other.again().into_iter().for_each(|row| self.loops[usize::from(row)].registers(see)),
        }
    }

    /// Calls `change` for each register of each row.
    pub(crate) fn all_registers(&mut self, change: &mut dyn FnMut(&mut Register)) {
        let mut see = |register: &mut Register, _: RegisterAccess| change(register);
        self.scalars.iter_mut().for_each(|row| row.registers(&mut see));
        self.records.iter_mut().for_each(|row| row.registers(RegisterAccess::Read, &mut see));
        self.calls.iter_mut().for_each(|row| row.registers(&mut see));
        self.word_calls.iter_mut().for_each(|row| row.registers(&mut see));
        self.switches.iter_mut().for_each(|row| row.registers(&mut see));
        self.replacements.iter_mut().for_each(|row| row.registers(&mut see));
        self.loops.iter_mut().for_each(|row| row.registers(&mut see));
        self.rounds.iter_mut().for_each(|row| row.effect.registers(&mut see));
        self.splits
            .iter_mut()
            .flat_map(SplitLoop::reductions_mut)
            .for_each(|of| see(&mut of.state, RegisterAccess::Write));
        let loaded = self.element_words.iter_mut().flat_map(|row| &mut row.fields);
        loaded.for_each(|(register, _)| see(register, RegisterAccess::Write));
    }
}

/// A function that sees a register and the use that is made of it, and may change the register.
type SeeRegister<'f> = dyn FnMut(&mut Register, RegisterAccess) + 'f;

impl ScalarPrim {
    fn registers(&mut self, see: &mut SeeRegister<'_>) {
        self.operands.iter_mut().for_each(|(register, _)| see(register, RegisterAccess::Read));
        see(&mut self.out, RegisterAccess::Write);
    }
}

impl RecordTransfer {
    fn registers(&mut self, access: RegisterAccess, see: &mut SeeRegister<'_>) {
        self.registers.iter_mut().for_each(|register| see(register, access));
    }
}

impl SlotCall {
    fn registers(&mut self, see: &mut SeeRegister<'_>) {
        if let Out::OfResult { switch, .. } | Out::OfOption { switch, .. } = &mut self.out {
            let mut register = *switch as Register;
            see(&mut register, RegisterAccess::Write);
            *switch = register.into();
        }
    }
}

impl WordCall {
    fn registers(&mut self, see: &mut SeeRegister<'_>) {
        self.arguments.iter_mut().for_each(|register| see(register, RegisterAccess::Read));
    }
}

impl ValueSwitch {
    fn registers(&mut self, see: &mut SeeRegister<'_>) {
        let Some(look_up) = &mut self.look_up else { return };
        look_up.key.registers(see);
        if let LookUpOutput::Word(register) = &mut look_up.output {
            see(register, RegisterAccess::Write);
        }
        let read = look_up.update.as_mut().and_then(|update| update.change.register_mut());
        read.into_iter().for_each(|register| see(register, RegisterAccess::Read));
    }

    fn update_mut(&mut self) -> Option<&mut EntryUpdate> {
        self.look_up.as_mut()?.update.as_mut()
    }
}

impl ElementReplacement {
    fn registers(&mut self, see: &mut SeeRegister<'_>) {
        self.key.registers(see);
        self.value.registers(see);
        self.call.registers(see);
    }
}

impl RegionOperand {
    fn registers(&mut self, see: &mut SeeRegister<'_>) {
        match self {
            RegionOperand::Word(register, ..) => see(register, RegisterAccess::Read),
            RegionOperand::Field(field) => see(&mut field.count, RegisterAccess::Read),
            RegionOperand::Value(_) => {}
        }
    }
}

impl SplitLoop {
    /// Returns the states, if the loop is a `fold`.
    pub(crate) fn reductions(&self) -> Option<&Reductions> {
        if let LoopOutcome::Reductions(reductions) = &self.outcome { Some(reductions) } else { None }
    }

    fn reductions_mut(&mut self) -> &mut [ReducedState] {
        if let LoopOutcome::Reductions(reductions) = &mut self.outcome { &mut reductions.states } else { &mut [] }
    }

    /// The states are read and then written, where those of several threads are joined.
    fn registers(&mut self, see: &mut SeeRegister<'_>) {
        for reduction in self.reductions_mut() {
            let mut read = reduction.state;
            see(&mut read, RegisterAccess::Read);
            see(&mut reduction.state, RegisterAccess::Write);
        }
    }
}

impl LoopRow {
    /// The number of rounds is read and then written.
    fn registers(&mut self, see: &mut SeeRegister<'_>) {
        let mut read = self.count;
        see(&mut read, RegisterAccess::Read);
        see(&mut self.count, RegisterAccess::Write);
        if let Some((to, from)) = &mut self.carry {
            see(from, RegisterAccess::Read);
            see(to, RegisterAccess::Write);
        }
    }
}

impl Region {
    /// Returns true if other threads may run pieces of the region.
    pub(crate) fn may_fork(&self) -> bool {
        !self.splits.is_empty() || !self.parts.is_empty()
    }

    /// Returns the reason why the rounds of the `fold` at this place run one after the other, if its code is one.
    pub(crate) fn fold_obstacle(&self, place: &CodePlace) -> Option<&FoldObstacle> {
        self.tables.folds_in_turn.iter().find(|(at, _)| at == place).map(|(_, obstacle)| obstacle)
    }

    /// Returns the place of an instruction.
    pub(crate) fn place(&self, at: usize) -> &CodePlace {
        let after = self.places.partition_point(|(first, _)| *first <= at);
        &self.places[after.saturating_sub(1)].1
    }

    /// Returns the path of the function that an instruction calls, if it calls one.
    pub(crate) fn called(&self, at: usize) -> Option<&str> {
        match self.code.get(at)? {
            Instruction::Call(row) => Some(&self.tables.calls[usize::from(*row)].path),
            Instruction::CallWords(_, row) => Some(&self.tables.word_calls[usize::from(*row)].path),
            Instruction::Replace(row) => Some(&self.tables.replacements[usize::from(*row)].call.path),
            _ => None,
        }
    }
}
