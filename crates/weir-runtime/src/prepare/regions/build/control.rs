//! Switches, arms and selects: control flow as jumps.
//!
//! A switch jumps to the label of the arm that it chooses. The code of the arms follows, in the order in which their
//! nodes are listed; each ends with the copies that the selects of the switch would make, and a jump to the end of the
//! last arm (the φ functions of static single assignment, resolved at the ends of the predecessors).

use weir_ir::graph::{ArmTest, NodeKind, Operand, SwitchArm, arms_of_truth};

use super::Builder;
use super::emitter::add;
use super::problem::{NodeObstacle, RegionProblem};
use super::scope::{CompiledSwitch, Scope, is_gate};
use crate::region::{Instruction, Register, Target};
use crate::region::{Scalar, WordShape, word_of};
use crate::region::{ValueArm, ValueSwitch};
use crate::step::{Action, Out};

impl<'a> Builder<'a> {
    /// Ends and begins arms, so that the code that follows belongs to the arms around this node.
    pub(super) fn enter_arms_of(&mut self, scope: &mut Scope<'a>, node: usize) -> Result<(), RegionProblem> {
        let arms = scope.arms_around(node);
        let is_open = |(open, arm): &(&CompiledSwitch, &weir_ir::graph::Control)| {
            open.switch == arm.switch.0 as usize && open.arm == Some(arm.arm)
        };
        let kept = scope.open.iter().zip(&arms).take_while(is_open).count();
        let is_same_switch =
            |(open, arm): (&CompiledSwitch, &weir_ir::graph::Control)| open.switch == arm.switch.0 as usize;
        let stays = scope.open.get(kept).zip(arms.get(kept)).is_some_and(is_same_switch);
        self.close_to(scope, kept + usize::from(stays))?;
        match arms.get(kept) {
            None => Ok(()),
            Some(arm) if stays && arms.len() == kept + 1 => self.begin_arm(scope, arm.arm),
            Some(_) => Err(RegionProblem::of(NodeObstacle::OutOfItsArm)),
        }
    }

    /// Ends all switches but the first ones.
    pub(super) fn close_to(&mut self, scope: &mut Scope<'a>, kept: usize) -> Result<(), RegionProblem> {
        while scope.open.len() > kept {
            self.end_arm(scope)?;
            let open = scope.open.last().expect("there are more open switches than are kept");
            let (labels, begun, join) = (open.labels.clone(), open.begun.clone(), open.join);
            for (arm, (label, begun)) in (0..).zip(labels.iter().zip(begun)) {
                if !begun {
                    self.emitter.bind(*label);
                    self.begin_code_of_arm(scope, arm)?;
                    self.end_arm(scope)?;
                }
            }
            self.emitter.bind(join);
            scope.open.pop();
        }
        Ok(())
    }

    fn begin_arm(&mut self, scope: &mut Scope<'a>, arm: u32) -> Result<(), RegionProblem> {
        self.end_arm(scope)?;
        let open = scope.open.last_mut().ok_or(RegionProblem::of(NodeObstacle::NoInstruction))?;
        let label = *open.labels.get(arm as usize).ok_or(RegionProblem::of(NodeObstacle::NoInstruction))?;
        if std::mem::replace(&mut open.begun[arm as usize], true) {
            return Err(RegionProblem::of(NodeObstacle::OutOfItsArm));
        }
        self.emitter.bind(label);
        self.begin_code_of_arm(scope, arm)
    }

    /// Emits the beginning of an arm: notes the choice for steps outside of the region, and loads the payload.
    fn begin_code_of_arm(&mut self, scope: &mut Scope<'a>, arm: u32) -> Result<(), RegionProblem> {
        let graph = scope.graph;
        let open = scope.open.last_mut().ok_or(RegionProblem::of(NodeObstacle::NoInstruction))?;
        open.arm = Some(arm);
        let switch = open.switch;
        if scope.is_outermost() && is_seen_outside(scope, switch) {
            let number = number_of_switch(scope, switch).ok_or(RegionProblem::of(NodeObstacle::NoInstruction))?;
            let chosen = self.emitter.constant(u64::from(arm));
            self.emitter.emit(Instruction::StoreChoice(number as u16, chosen));
        }
        let node = &graph.nodes[switch];
        let NodeKind::Switch { arms } = &node.kind else { return Err(RegionProblem::of(NodeObstacle::NoInstruction)) };
        let first = node.first_port(arm);
        for port in first..first + arms[arm as usize].payload {
            // A look-up has put it into a register.
            if scope.ports.contains_key(&(switch, port as usize)) {
                continue;
            }
            let shape = self.types.shape(&node.outputs[port as usize]);
            if let (Some(shape), Some(index)) = (shape, scope.slot_of_port(switch, port as usize)) {
                let registers = self.load(scope.base + index, &shape);
                scope.ports.insert((switch, port as usize), registers);
            }
        }
        Ok(())
    }

    /// Emits the end of the arm whose code is open: what the selects of the switch take, and the jump behind the arms.
    fn end_arm(&mut self, scope: &mut Scope<'a>) -> Result<(), RegionProblem> {
        let Some(open) = scope.open.last_mut() else { return Ok(()) };
        let Some(arm) = open.arm.take() else { return Ok(()) };
        let (switch, join) = (open.switch, open.join);
        for select in scope.selects(switch) {
            self.take_for_select(scope, select, arm)?;
        }
        self.emitter.emit(Instruction::Jump(join));
        Ok(())
    }

    fn take_for_select(&mut self, scope: &mut Scope<'a>, select: usize, arm: u32) -> Result<(), RegionProblem> {
        let (graph, body) = (scope.graph, scope.body);
        let operand = &graph.nodes[select].inputs[arm as usize];
        if *operand == Operand::Never {
            // The arm ends the flow.
            self.emitter.emit(Instruction::Never);
            return Ok(());
        }
        if let Some(shape) = self.types.shape(&graph.nodes[select].outputs[0]) {
            let from = self.words(scope, operand)?;
            let new = || shape.leaves().iter().map(|_| self.emitter.register()).collect();
            let to = scope.ports.entry((select, 0)).or_insert_with(new).clone();
            self.move_words(&to, &from);
            return Ok(());
        }
        let Action::Select { inputs, out, .. } = body.steps[select].action.form() else {
            return Err(RegionProblem::of(NodeObstacle::NoInstruction));
        };
        let from = inputs[arm as usize].ok_or(RegionProblem::of(NodeObstacle::NoInstruction))?;
        let from = self.argument(scope, from, operand)?;
        self.put(scope.base + out, from);
        Ok(())
    }

    /// Compiles a select whose switch stands outside of the region; the others are compiled with their arms.
    pub(super) fn select(&mut self, scope: &mut Scope<'a>, select: usize) -> Result<(), RegionProblem> {
        let NodeKind::Select { switch } = scope.graph.nodes[select].kind else {
            return Err(RegionProblem::of(NodeObstacle::NoInstruction));
        };
        let switch = switch.0 as usize;
        if scope.nodes.contains(&switch) {
            return if selects_follow_arms(scope, switch, select) {
                Ok(())
            } else {
                Err(RegionProblem::of(NodeObstacle::OutOfItsArm))
            };
        }
        let Action::Select { switch: number, .. } = scope.body.steps[select].action.form() else {
            return Err(RegionProblem::of(NodeObstacle::NoInstruction));
        };
        let choice = self.emitter.register();
        self.emitter.prologue.push(Instruction::LoadChoice(choice, *number as u16));
        let inputs = scope.graph.nodes[select].inputs.len() as u32;
        let labels: Vec<Target> = (0..inputs).map(|_| self.emitter.label()).collect();
        let row = add(&mut self.emitter.tables.jumps, labels.clone());
        self.emitter.emit(Instruction::JumpTable(choice, row));
        let join = self.emitter.label();
        for (arm, label) in (0..).zip(labels) {
            self.emitter.bind(label);
            self.take_for_select(scope, select, arm)?;
            self.emitter.emit(Instruction::Jump(join));
        }
        self.emitter.bind(join);
        Ok(())
    }

    /// Compiles a switch; its arms follow.
    pub(super) fn switch(&mut self, scope: &mut Scope<'a>, switch: usize) -> Result<(), RegionProblem> {
        let graph = scope.graph;
        let node = &graph.nodes[switch];
        let NodeKind::Switch { arms } = &node.kind else { return Err(RegionProblem::of(NodeObstacle::NoInstruction)) };
        let labels: Vec<Target> = arms.iter().map(|_| self.emitter.label()).collect();
        let is_decided = matches!(scope.body.steps[switch].action.form(), Action::Nothing);
        if is_decided {
            let choice = self.decided_choice(scope, switch)?;
            let row = add(&mut self.emitter.tables.jumps, labels.clone());
            self.emitter.emit(Instruction::JumpTable(choice, row));
        } else if !self.switch_on_word(scope, switch, arms, &labels)? {
            self.switch_on_value(scope, switch, &labels)?;
        }
        let (begun, join) = (vec![false; arms.len()], self.emitter.label());
        scope.open.push(CompiledSwitch { switch, labels, begun, arm: None, join });
        Ok(())
    }

    /// Returns the register with the choice of a switch that a call has decided, in the region or before it.
    fn decided_choice(&mut self, scope: &Scope<'a>, switch: usize) -> Result<Register, RegionProblem> {
        if let Some(choice) = scope.choices[switch] {
            return Ok(choice);
        }
        let number = number_of_switch(scope, switch).filter(|_| scope.is_outermost());
        let number = number.ok_or(RegionProblem::of(NodeObstacle::NoInstruction))?;
        let choice = self.emitter.register();
        self.emitter.prologue.push(Instruction::LoadChoice(choice, number as u16));
        Ok(choice)
    }

    fn switch_on_value(
        &mut self,
        scope: &mut Scope<'a>,
        switch: usize,
        labels: &[Target],
    ) -> Result<(), RegionProblem> {
        let body = scope.body;
        let Action::Switch(step) = body.steps[switch].action.form() else {
            return Err(RegionProblem::of(NodeObstacle::NoInstruction));
        };
        let subject = self.argument(scope, step.subject, &scope.graph.nodes[switch].inputs[0])?;
        let look_up = self.look_up(scope, switch, step, subject);
        let located = |port: &u32| scope.base + port;
        let arms = step.arms.iter().zip(labels);
        let arms = arms.map(|((test, ports), label)| ValueArm {
            test: test.clone(),
            ports: ports.iter().map(located).collect(),
            target: *label,
        });
        let row = ValueSwitch { subject, look_up, moves: step.moves, arms: arms.collect() };
        let row = add(&mut self.emitter.tables.switches, row);
        self.emitter.emit(Instruction::Switch(row));
        Ok(())
    }

    /// Compiles a switch on a scalar; returns false if it tests something else.
    fn switch_on_word(
        &mut self,
        scope: &mut Scope<'a>,
        switch: usize,
        arms: &[SwitchArm],
        labels: &[Target],
    ) -> Result<bool, RegionProblem> {
        let subject = &scope.graph.nodes[switch].inputs[0];
        let Some(WordShape::Scalar(scalar)) = self.shape_of(scope, subject) else { return Ok(false) };
        let is_test = |arm: &SwitchArm| arm.payload == 0 && !matches!(arm.test, ArmTest::Tag(_));
        // The order of floats that matches use is not that of the instructions.
        if scalar == Scalar::Float || !arms.iter().all(is_test) {
            return Ok(false);
        }
        let register = self.word(scope, subject)?;
        if let Some([when_false, when_true]) = arms_of_truth(arms).filter(|_| scalar == Scalar::Bool) {
            let (when_false, when_true) = (labels[when_false as usize], labels[when_true as usize]);
            // The arm that is listed first follows at once.
            if when_false < when_true {
                self.emitter.emit(Instruction::JumpIf(register, when_true));
                self.emitter.emit(Instruction::Jump(when_false));
            } else {
                self.emitter.emit(Instruction::JumpUnless(register, when_false));
                self.emitter.emit(Instruction::Jump(when_true));
            }
            return Ok(true);
        }
        for (arm, label) in arms.iter().zip(labels) {
            if let ArmTest::Value(value) = &arm.test {
                let constant = self.emitter.constant(word_of(value));
                self.emitter.emit(Instruction::JumpIfEqual(register, constant, *label));
            } else {
                self.emitter.emit(Instruction::Jump(*label));
                return Ok(true);
            }
        }
        // The tests of a switch cover every value.
        self.emitter.emit(Instruction::Never);
        Ok(true)
    }
}

/// Returns the number of a switch among those of its body.
fn number_of_switch(scope: &Scope<'_>, switch: usize) -> Option<u32> {
    match scope.body.steps[switch].action.form() {
        Action::Switch(step) => Some(step.switch),
        Action::Condition(step) => Some(step.switch),
        Action::Nothing => {
            let [Operand::Port(call, _)] = scope.graph.nodes[switch].inputs[..] else { return None };
            match scope.body.steps[call.0 as usize].action.form() {
                Action::Call(step) => match step.out {
                    Out::OfResult { switch, .. } | Out::OfOption { switch, .. } => Some(switch),
                    _ => None,
                },
                _ => None,
            }
        }
        _ => None,
    }
}

/// Returns true if a step outside of the region needs the choice of this switch.
fn is_seen_outside(scope: &Scope<'_>, switch: usize) -> bool {
    scope.users.of_choice(switch).iter().any(|user| !scope.nodes.contains(user))
}

/// Returns true if only selects of the same switch, and gates, stand between the arms of a switch and this select, so that what the
/// select takes can be copied at the ends of the arms.
fn selects_follow_arms(scope: &Scope<'_>, switch: usize, select: usize) -> bool {
    let is_in_arm = |node: usize| scope.arms_around(node).iter().any(|arm| arm.switch.0 as usize == switch);
    let selects = scope.selects(switch);
    let is_gate = |node: usize| is_gate(scope.graph, scope.body, node);
    (switch + 1..select).all(|node| is_in_arm(node) || selects.contains(&node) || is_gate(node))
}
