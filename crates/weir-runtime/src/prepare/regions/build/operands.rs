//! Operands: brings words into registers, and into slots where an instruction needs values.

use weir_host::{Argument, Type, Value};
use weir_ir::graph::Operand;

use super::Builder;
use super::emitter::{add, slot};
use super::problem::{NodeObstacle, RegionProblem};
use super::scope::Scope;
use crate::region::RecordTransfer;
use crate::region::{FrameSlot, Instruction, Register};
use crate::region::{Scalar, WordShape};

impl<'a> Builder<'a> {
    /// Returns the type of an operand.
    pub(super) fn type_of(scope: &Scope<'_>, operand: &Operand) -> Option<Type> {
        match operand {
            Operand::Port(id, port) => scope.graph.node(*id).outputs.get(*port as usize).cloned(),
            Operand::Parameter(index) => scope.graph.parameters.get(*index as usize).cloned(),
            Operand::Constant(_) | Operand::Shared(_) | Operand::Never => None,
        }
    }

    /// Returns the shape of an operand that is stored as words.
    pub(super) fn shape_of(&self, scope: &Scope<'_>, operand: &Operand) -> Option<WordShape> {
        match operand {
            Operand::Constant(index) => shape_of_constant(&scope.graph.constants[*index as usize]),
            operand => self.types.shape(&Self::type_of(scope, operand)?),
        }
    }

    /// Returns the registers of an operand that is stored as words.
    pub(super) fn words(&mut self, scope: &mut Scope<'a>, operand: &Operand) -> Result<Vec<Register>, RegionProblem> {
        match operand {
            Operand::Port(id, port) => {
                let (node, port) = (id.0 as usize, *port as usize);
                if !scope.ports.contains_key(&(node, port)) && scope.is_part_of_condition(node) {
                    self.scalar_prim(scope, node)?;
                }
                if !scope.ports.contains_key(&(node, port)) {
                    let index =
                        scope.slot_of_port(node, port).ok_or(RegionProblem::of(NodeObstacle::ValueElsewhere))?;
                    let registers = self.found_in_frame(scope, operand, index)?;
                    scope.ports.insert((node, port), registers);
                }
                scope.ports.get(&(node, port)).cloned().ok_or(RegionProblem::of(NodeObstacle::ValueElsewhere))
            }
            Operand::Parameter(index) => {
                let parameter = *index as usize;
                if scope.parameters[parameter].is_none() {
                    scope.parameters[parameter] = Some(self.found_in_frame(scope, operand, *index)?);
                }
                scope.parameters[parameter].clone().ok_or(RegionProblem::of(NodeObstacle::ValueElsewhere))
            }
            Operand::Constant(index) => Ok(self.constant_words(&scope.graph.constants[*index as usize])),
            Operand::Shared(_) | Operand::Never => Err(RegionProblem::of(NodeObstacle::ValueElsewhere)),
        }
    }

    /// Returns the register of a scalar operand.
    pub(super) fn word(&mut self, scope: &mut Scope<'a>, operand: &Operand) -> Result<Register, RegionProblem> {
        self.words(scope, operand)?.first().copied().ok_or(RegionProblem::of(NodeObstacle::ValueElsewhere))
    }

    /// Loads a value that was computed before the region begins.
    fn found_in_frame(
        &mut self,
        scope: &Scope<'_>,
        operand: &Operand,
        index: u32,
    ) -> Result<Vec<Register>, RegionProblem> {
        let shape = self.shape_of(scope, operand).filter(|_| scope.is_outermost());
        let shape = shape.ok_or(RegionProblem::of(NodeObstacle::ValueElsewhere))?;
        let (registers, load) = self.load_of(scope.base + index, &shape);
        self.emitter.prologue.push(load);
        Ok(registers)
    }

    /// Returns new registers, and the instruction that loads them from a slot.
    fn load_of(&mut self, index: u32, shape: &WordShape) -> (Vec<Register>, Instruction) {
        let registers: Vec<Register> = shape.leaves().iter().map(|_| self.emitter.register()).collect();
        let load = match shape {
            WordShape::Scalar(_) => Instruction::Load(registers[0], slot(index)),
            WordShape::Record(_) => Instruction::LoadRecord(self.record(index, &registers, shape)),
        };
        (registers, load)
    }

    /// Loads a value of the frame's slot into new registers.
    pub(super) fn load(&mut self, index: u32, shape: &WordShape) -> Vec<Register> {
        let (registers, load) = self.load_of(index, shape);
        self.emitter.emit(load);
        registers
    }

    /// Stores words as a value in the frame's slot.
    pub(super) fn store(&mut self, index: u32, registers: &[Register], shape: &WordShape) {
        let store = match shape {
            WordShape::Scalar(scalar) => Instruction::Store(slot(index), registers[0], number(*scalar)),
            WordShape::Record(_) => Instruction::StoreRecord(self.record(index, registers, shape)),
        };
        self.emitter.emit(store);
    }

    /// Adds a row to the table of records.
    pub(super) fn record(&mut self, index: u32, registers: &[Register], shape: &WordShape) -> u16 {
        let (slot, registers, shape) = (slot(index), registers.into(), shape.clone());
        add(&mut self.emitter.tables.records, RecordTransfer { slot, registers, shape })
    }

    fn constant_words(&mut self, value: &Value) -> Vec<Register> {
        let Some(shape) = shape_of_constant(value) else { return Vec::new() };
        let mut words = Vec::new();
        shape.words(value, &mut |word| words.push(word));
        words.into_iter().map(|word| self.emitter.constant(word)).collect()
    }

    /// Returns the locations of a node's inputs in the frame, after storing those that are words.
    pub(super) fn arguments(
        &mut self,
        scope: &mut Scope<'a>,
        node: usize,
        arguments: &[Argument],
    ) -> Result<Box<[Argument]>, RegionProblem> {
        let inputs = scope.graph.nodes[node].inputs.iter();
        arguments.iter().zip(inputs).map(|(argument, input)| self.argument(scope, *argument, input)).collect()
    }

    /// Returns the location of an input in the frame, after storing it if it is in registers.
    pub(super) fn argument(
        &mut self,
        scope: &mut Scope<'a>,
        argument: Argument,
        input: &Operand,
    ) -> Result<Argument, RegionProblem> {
        if let Argument::Constant(index) = argument {
            return Ok(Argument::Constant(self.emitter.constant_value(&scope.body.constants[index as usize])));
        }
        let located = scope.located(argument);
        if let (Argument::Slot { index, .. }, Some(shape)) = (located, self.shape_of(scope, input))
            && !matches!(input, Operand::Constant(_))
        {
            let registers = self.words(scope, input)?;
            self.store(index, &registers, &shape);
        }
        Ok(located)
    }

    /// Puts the value of an argument, which is no word, into a slot.
    pub(super) fn put(&mut self, to: u32, from: Argument) {
        let instruction = match from {
            Argument::Slot { index, .. } if index == to => return,
            Argument::Slot { index, last: true } => match self.origin(slot(index)) {
                origin if origin == slot(to) => return,
                origin => Instruction::TakeValue(slot(to), origin),
            },
            Argument::Slot { index, last: false } => Instruction::CloneValue(slot(to), slot(index)),
            Argument::Constant(index) => Instruction::ConstantValue(slot(to), slot(index)),
            Argument::Shared(_) => Instruction::Clear(slot(to), 1),
        };
        self.emitter.emit(instruction);
    }

    /// Returns the slot from which a value came to this one, if the last instructions have moved it and done nothing else
    /// with slots. They are removed: the value goes on from where it was.
    fn origin(&mut self, mut slot: FrameSlot) -> FrameSlot {
        while let Some(found) = self.emitter.code.iter().rposition(|instruction| !instruction.is_on_words()) {
            match self.emitter.code[found] {
                Instruction::TakeValue(to, from) if to == slot && self.emitter.is_straight_from(found) => {
                    self.emitter.code[found] = Instruction::Nothing;
                    slot = from;
                }
                _ => break,
            }
        }
        slot
    }

    /// Copies words to other registers, as if all copies happened at once.
    pub(super) fn move_words(&mut self, to: &[Register], from: &[Register]) {
        let mut from = from.to_vec();
        for position in 0..to.len() {
            if to[position] != from[position] && to[..position].contains(&from[position]) {
                let saved = self.emitter.register();
                self.emitter.emit(Instruction::Move(saved, from[position]));
                from[position] = saved;
            }
        }
        for (to, from) in to.iter().zip(from).filter(|(to, from)| **to != *from) {
            self.emitter.emit(Instruction::Move(*to, from));
        }
    }
}

/// Returns the number of a scalar in an instruction.
pub(super) fn number(scalar: Scalar) -> u16 {
    Scalar::ALL.iter().position(|other| *other == scalar).unwrap_or(0) as u16
}

/// Returns the shape of a constant that can be words.
fn shape_of_constant(value: &Value) -> Option<WordShape> {
    Some(match value {
        Value::Unit => WordShape::Scalar(Scalar::Unit),
        Value::Bool(_) => WordShape::Scalar(Scalar::Bool),
        Value::Int(_) => WordShape::Scalar(Scalar::Int),
        Value::Float(_) => WordShape::Scalar(Scalar::Float),
        Value::Time(_) => WordShape::Scalar(Scalar::Time),
        Value::Duration(_) => WordShape::Scalar(Scalar::Duration),
        Value::Size(_) => WordShape::Scalar(Scalar::Size),
        Value::Record(fields) => WordShape::Record(fields.iter().map(shape_of_constant).collect::<Option<_>>()?),
        _ => return None,
    })
}
