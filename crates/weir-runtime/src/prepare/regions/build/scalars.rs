//! Primitives of words.

use weir_ir::graph::NodeKind;
use weir_ir::prim::Prim;

use super::Builder;
use super::emitter::add;
use super::problem::{NodeObstacle, RegionProblem};
use super::scope::Scope;
use crate::region::ScalarPrim;
use crate::region::{Instruction, Register};
use crate::region::{Scalar, WordShape};

impl<'a> Builder<'a> {
    /// Compiles a primitive whose operands and result are words; returns false if it is none.
    pub(super) fn word_prim(&mut self, scope: &mut Scope<'a>, node: usize) -> Result<bool, RegionProblem> {
        let graph = scope.graph;
        let NodeKind::Prim(prim) = graph.nodes[node].kind else { return Ok(false) };
        let inputs = &graph.nodes[node].inputs;
        let shapes: Option<Vec<WordShape>> = inputs.iter().map(|input| self.shape_of(scope, input)).collect();
        let (Some(shapes), Some(_)) = (shapes, self.types.shape(&graph.nodes[node].outputs[0])) else {
            return Ok(false);
        };
        let mut words = Vec::new();
        match (prim, &shapes[..]) {
            (Prim::Copy, [_]) => words = self.words(scope, &inputs[0])?,
            (Prim::Record, _) => {
                for input in inputs {
                    words.extend(self.words(scope, input)?);
                }
            }
            (Prim::Field(index) | Prim::DetachField(index), [shape]) => {
                let (first, count) =
                    shape.field(index as usize).ok_or(RegionProblem::of(NodeObstacle::NoInstruction))?;
                words.extend_from_slice(&self.words(scope, &inputs[0])?[first..first + count]);
            }
            (Prim::WithField(index), [shape, _]) => {
                let (first, count) =
                    shape.field(index as usize).ok_or(RegionProblem::of(NodeObstacle::NoInstruction))?;
                words = self.words(scope, &inputs[0])?;
                let field = self.words(scope, &inputs[1])?;
                words.splice(first..first + count, field);
            }
            (_, shapes) if shapes.iter().all(|shape| matches!(shape, WordShape::Scalar(_))) => {
                self.scalar_prim(scope, node)?;
                return Ok(true);
            }
            _ => return Ok(false),
        }
        scope.ports.insert((node, 0), words);
        Ok(true)
    }

    /// Compiles a primitive of scalars.
    pub(super) fn scalar_prim(&mut self, scope: &mut Scope<'a>, node: usize) -> Result<(), RegionProblem> {
        let graph = scope.graph;
        let NodeKind::Prim(prim) = graph.nodes[node].kind else {
            return Err(RegionProblem::of(NodeObstacle::NoInstruction));
        };
        let mut operands = Vec::new();
        for input in &graph.nodes[node].inputs {
            let Some(WordShape::Scalar(scalar)) = self.shape_of(scope, input) else {
                return Err(RegionProblem::of(NodeObstacle::NoInstruction));
            };
            operands.push((self.word(scope, input)?, scalar));
        }
        let out = self.emitter.register();
        let row = ScalarPrim { prim, operands: operands.clone().into(), out };
        match instruction(prim, out, &operands) {
            Some(instruction) => {
                if prim.may_fail() {
                    let row = add(&mut self.emitter.tables.scalars, row);
                    self.emitter.tables.fallible.push((self.emitter.code.len(), row.into()));
                }
                self.emitter.emit(instruction);
            }
            None => {
                let row = add(&mut self.emitter.tables.scalars, row);
                self.emitter.emit(Instruction::Scalars(row));
            }
        }
        scope.ports.insert((node, 0), vec![out]);
        Ok(())
    }
}

/// Returns the instruction of a primitive of scalars; `None` if it has none of its own.
fn instruction(prim: Prim, out: Register, operands: &[(Register, Scalar)]) -> Option<Instruction> {
    match *operands {
        [(a, Scalar::Bool)] if prim == Prim::Not => Some(Instruction::Not(out, a)),
        [(a, Scalar::Bool), (b, Scalar::Bool)] => match prim {
            Prim::And => Some(Instruction::And(out, a, b)),
            Prim::Or => Some(Instruction::Or(out, a, b)),
            prim => compared(prim, out, a, b),
        },
        [(a, Scalar::Float), (b, Scalar::Float)] => of_floats(prim, out, a, b),
        [(a, one), (b, other)] => of_integers(prim, out, (a, one), (b, other)),
        _ => None,
    }
}

fn of_floats(prim: Prim, out: Register, a: Register, b: Register) -> Option<Instruction> {
    Some(match prim {
        Prim::Add => Instruction::AddFloat(out, a, b),
        Prim::Subtract => Instruction::SubtractFloat(out, a, b),
        Prim::Multiply => Instruction::MultiplyFloat(out, a, b),
        Prim::Divide => Instruction::DivideFloat(out, a, b),
        Prim::Equal => Instruction::EqualFloat(out, a, b),
        Prim::NotEqual => Instruction::NotEqualFloat(out, a, b),
        Prim::Less => Instruction::LessFloat(out, a, b),
        Prim::LessOrEqual => Instruction::LessOrEqualFloat(out, a, b),
        Prim::Greater => Instruction::LessFloat(out, b, a),
        Prim::GreaterOrEqual => Instruction::LessOrEqualFloat(out, b, a),
        _ => return None,
    })
}

/// Returns the instruction for words that are signed integers, times and durations; sizes have equality only.
fn of_integers(prim: Prim, out: Register, one: (Register, Scalar), other: (Register, Scalar)) -> Option<Instruction> {
    use Scalar::{Duration, Int, Time};
    let ((a, one), (b, other)) = (one, other);
    let signed = |scalar| matches!(scalar, Int | Time | Duration);
    if !signed(one) || !signed(other) {
        return if one == other && matches!(prim, Prim::Equal | Prim::NotEqual) {
            compared(prim, out, a, b)
        } else {
            None
        };
    }
    Some(match prim {
        Prim::Add => Instruction::AddInt(out, a, b),
        Prim::Subtract => Instruction::SubtractInt(out, a, b),
        Prim::Multiply => Instruction::MultiplyInt(out, a, b),
        Prim::Divide => Instruction::DivideInt(out, a, b),
        Prim::Remainder if (one, other) == (Int, Int) => Instruction::RemainderInt(out, a, b),
        prim if one == other => return compared(prim, out, a, b),
        _ => return None,
    })
}

fn compared(prim: Prim, out: Register, a: Register, b: Register) -> Option<Instruction> {
    Some(match prim {
        Prim::Equal => Instruction::EqualWords(out, a, b),
        Prim::NotEqual => Instruction::NotEqualWords(out, a, b),
        Prim::Less => Instruction::LessInt(out, a, b),
        Prim::LessOrEqual => Instruction::LessOrEqualInt(out, a, b),
        Prim::Greater => Instruction::LessInt(out, b, a),
        Prim::GreaterOrEqual => Instruction::LessOrEqualInt(out, b, a),
        _ => return None,
    })
}
