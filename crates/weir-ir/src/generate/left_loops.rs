//! Loops that a failure leaves, as a `for` or `fold` with a `?` in a `fn` that returns a `Result` becomes: a fold whose state is a
//! `Result`. Its rounds make reads that gather, one behind the other, and end where one of them fails. The rounds of others end the flow.

use weir_host::{Failure, Type, Value};

use super::functions::counter;
use super::program::{DEPTH_MAX, Generator};
use super::values::{fallible, value};
use crate::expr::{Arm, ArmTest, Atom, Block, Let, LoopExit, Op, Origin, Variable};
use crate::prim::Prim;

/// The functions of one integer that the rounds call.
const READS: [&str; 4] = ["gathered_look", "gathered_look", "fragile_look", "failing_look"];

/// The number of reads of a round of which each may leave the loop.
const TRIED_MAX: usize = 3;

impl Generator {
    /// Generates a loop that a failure leaves, and a value of this type from what it yields.
    pub(super) fn of_left_loops(&mut self, ty: &Type, nests: bool, lets: &mut Vec<Let>) -> Option<Op> {
        let is_list = *ty == Type::list(Type::Int);
        if self.leaves_loops && nests && *ty == Type::Int && self.random.chance(15) {
            return Some(self.fold_of_reads(lets));
        }
        if !self.leaves_loops || !nests || !(is_list || [Type::Int, fallible()].contains(ty)) || self.random.chance(45)
        {
            return None;
        }
        let of = if is_list { Type::list(ty.clone()) } else { Type::Int };
        let fold = self.left_fold(&of, lets);
        if *ty == fallible() {
            return Some(fold);
        }
        let left = self.bind(Type::result(of.clone(), Type::Failure), fold, lets);
        let (held, failure) = (self.variable(of), self.variable(Type::Failure));
        let mut flattened = Vec::new();
        let mut result = Atom::Var(held.var);
        let from = self.scope.len();
        if is_list {
            result = Atom::Var(self.bind(ty.clone(), Op::Prim(Prim::Flatten, vec![result]), &mut flattened));
        }
        self.scope.truncate(from);
        let otherwise = if is_list { Value::list(Vec::new()) } else { Value::Int(-1) };
        let going = Block { lets: flattened, result };
        let failed = Block { lets: Vec::new(), result: Atom::Value(otherwise) };
        Some(Op::Switch { subject: Atom::Var(left), arms: arms((held, going), (failure, failed)) })
    }

    /// Generates a fold whose state is `Ok` of this type until a round fails. Sometimes a `return` might have left it, too.
    fn left_fold(&mut self, of: &Type, lets: &mut Vec<Let>) -> Op {
        let ty = Type::result(of.clone(), Type::Failure);
        let list = self.operand(&Type::list(Type::Int), lets);
        let is_list = *of != Type::Int;
        let begin = if is_list { Value::list(Vec::new()) } else { Value::Int(3) };
        let init = Atom::Value(if self.random.chance(95) { Value::ok(begin) } else { failed("before") });
        let (state, element) = (self.variable(ty.clone()), self.variable(Type::Int));
        let (so_far, failure) = (self.variable(of.clone()), self.variable(Type::Failure));
        let outer = self.reads_only;
        self.reads_only |= self.random.chance(65);
        let tried = 1 + self.random.below(TRIED_MAX);
        self.depth += 1;
        let going = self.round((&ty, &so_far), &[so_far.clone(), element.clone()], tried);
        self.depth -= 1;
        self.reads_only = outer;
        let failed = self.inner_block(&[], |generator, lets| {
            let err = Op::Prim(Prim::Variant(Value::ERR), vec![Atom::Var(failure.var)]);
            Atom::Var(generator.bind(ty.clone(), err, lets))
        });
        let body = self.inner_block(&[], |generator, lets| {
            let op =
                Op::Switch { subject: Atom::Var(state.var), arms: arms((so_far, going), (failure.clone(), failed)) };
            Atom::Var(generator.bind(ty.clone(), op, lets))
        });
        let at = Origin { start: 3, end: 9, inlined_call: None };
        let exit = if self.random.chance(85) { LoopExit::Failure(at) } else { LoopExit::Return(at) };
        Op::Fold { list, init: vec![init], state: vec![state], element, body, exit }
    }

    /// Generates a fold of integers, each of whose rounds makes reads.
    fn fold_of_reads(&mut self, lets: &mut Vec<Let>) -> Op {
        let list = self.operand(&Type::list(Type::Int), lets);
        let (state, element) = (self.variable(Type::Int), self.variable(Type::Int));
        let outer = std::mem::replace(&mut self.reads_only, true);
        self.depth += 1;
        let body = self.inner_block(std::slice::from_ref(&element), |generator, lets| {
            for _ in 0..2 + generator.random.below(4) {
                generator.part_of_round(lets);
            }
            let operands = vec![Atom::Var(state.var), generator.operand(&Type::Int, lets)];
            Atom::Var(generator.bind(Type::Int, Op::Prim(Prim::Subtract, operands), lets))
        });
        self.depth -= 1;
        self.reads_only = outer;
        Op::Fold {
            list,
            init: vec![Atom::Value(Value::Int(3))],
            state: vec![state],
            element,
            body,
            exit: LoopExit::Never,
        }
    }

    /// Generates the rest of a round, in which so many further reads may fail.
    fn round(&mut self, (ty, so_far): (&Type, &Variable), own: &[Variable], tried: usize) -> Block {
        self.inner_block(own, |generator, lets| {
            for _ in 0..generator.random.below(3) {
                generator.part_of_round(lets);
            }
            if tried == 0 {
                return generator.next_state((ty, so_far), lets);
            }
            let argument = generator.operand(&Type::Int, lets);
            let call = generator.call_in_a_world("try_gathered", vec![argument]);
            let result = Atom::Var(generator.bind(fallible(), call, lets));
            let (held, failure) = (generator.variable(Type::Int), generator.variable(Type::Failure));
            let going = generator.round((ty, so_far), std::slice::from_ref(&held), tried - 1);
            let failed = generator.inner_block(&[], |generator, lets| {
                let err = Op::Prim(Prim::Variant(Value::ERR), vec![Atom::Var(failure.var)]);
                Atom::Var(generator.bind(ty.clone(), err, lets))
            });
            let op = Op::Switch { subject: result, arms: arms((held, going), (failure.clone(), failed)) };
            Atom::Var(generator.bind(ty.clone(), op, lets))
        })
    }

    /// Generates an operation of a loop that only reads, and in which all others only read too.
    pub(super) fn that_only_reads(&mut self, ty: &Type, nests: bool, lets: &mut Vec<Let>) -> Option<Op> {
        if !self.reads_only || *ty == counter() {
            return None;
        }
        if let Some(op) = self.of_left_loops(ty, nests, lets) {
            return Some(op);
        }
        let argument = self.operand(&Type::Int, lets);
        Some(match ty {
            Type::Int => {
                let function = *self.random.pick(&READS);
                self.call_in_a_world(function, vec![argument])
            }
            ty if *ty == fallible() => self.call_in_a_world("try_gathered", vec![argument]),
            ty if *ty == Type::list(Type::Int) => Op::Prim(Prim::List, vec![argument, Atom::Value(Value::Int(2))]),
            ty => Op::Prim(Prim::Copy, vec![Atom::Value(value(&mut self.random, ty))]),
        })
    }

    /// Generates a binding of a round: a read, a primitive that may fail, a choice between reads, a read that may end the flow, or
    /// anything.
    fn part_of_round(&mut self, lets: &mut Vec<Let>) {
        self.budget = self.budget.saturating_sub(1);
        let (one, two) = (self.operand(&Type::Int, lets), self.operand(&Type::Int, lets));
        let op = match self.random.below(14) {
            0..=3 => {
                let function = *self.random.pick(&READS);
                self.call_in_a_world(function, vec![one])
            }
            4 => self.call_in_a_world("look_by", vec![one, two]),
            5 => Op::Prim(*self.random.pick(&[Prim::Add, Prim::Multiply, Prim::Divide]), vec![one, two]),
            6 | 7 if self.depth < DEPTH_MAX => self.switch(&Type::Int, lets),
            8 if self.depth < DEPTH_MAX && self.budget > 0 => {
                let list = self.map(&Type::Int, lets);
                self.bind(Type::list(Type::Int), list, lets);
                return;
            }
            9 => Op::Prim(Prim::Index, vec![self.operand(&Type::list(Type::Int), lets), one]),
            10 | 11 if self.depth < DEPTH_MAX => self.or_fail(lets),
            12 => Op::Prim(*self.random.pick(&[Prim::Subtract, Prim::Remainder]), vec![one, two]),
            _ => Op::Prim(Prim::Copy, vec![two]),
        };
        self.bind(Type::Int, op, lets);
    }

    /// Generates the state behind a round that did not fail.
    fn next_state(&mut self, (ty, so_far): (&Type, &Variable), lets: &mut Vec<Let>) -> Atom {
        let value = self.operand(&Type::Int, lets);
        let op = if so_far.ty == Type::Int {
            let prim = *self.random.pick(&[Prim::Add, Prim::Subtract]);
            Op::Prim(prim, vec![Atom::Var(so_far.var), value])
        } else {
            Op::Prim(Prim::Collect, vec![Atom::Var(so_far.var), value])
        };
        let next = self.bind(so_far.ty.clone(), op, lets);
        Atom::Var(self.bind(ty.clone(), Op::Prim(Prim::Variant(Value::OK), vec![Atom::Var(next)]), lets))
    }

    /// Generates a block with parameters of its own.
    fn inner_block(&mut self, own: &[Variable], fill: impl FnOnce(&mut Self, &mut Vec<Let>) -> Atom) -> Block {
        let (from, outer) = (self.scope.len(), self.block_from);
        self.scope.extend(own.iter().cloned());
        self.block_from = self.scope.len();
        let mut lets = Vec::new();
        let result = fill(self, &mut lets);
        self.scope.truncate(from);
        self.block_from = outer;
        Block { lets, result }
    }
}

fn failed(message: &str) -> Value {
    Value::err(Value::Failure(Box::new(Failure::function(message))))
}

/// Returns the arms of a switch on a `Result`.
fn arms((held, going): (Variable, Block), (failure, failed): (Variable, Block)) -> Vec<Arm> {
    vec![
        Arm { test: ArmTest::Tag(Value::OK), payload: vec![held], body: going },
        Arm { test: ArmTest::Tag(Value::ERR), payload: vec![failure], body: failed },
    ]
}
