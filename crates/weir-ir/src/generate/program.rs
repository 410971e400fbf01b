//! Generation of random programs: blocks of bindings, each of a requested type.
//!
//! Every binding is chosen by the type of its value, from what is in scope, so that a program is well typed by
//! construction. A budget bounds its size, a depth its nesting; lists and loops are short, so that it ends soon.

use std::collections::BTreeSet;

use weir_host::{Mode, Resource, Text, Type, Value};

use super::emphasis::Emphasis;
use super::functions::counter;
use super::recording::SHARED_FROM;
use super::values::{data_type, definitions, entry, has_updates, several, value};
use super::{Case, Random};
use crate::expr::{Atom, Block, Call, Constraint, Let, LoopExit, Op, Program, Var, Variable, round_type};
use crate::program::{Entry, Flow, InlinedCall, InlinedCallId, Origin, SharedValue};

/// The depth to which blocks nest.
pub(super) const DEPTH_MAX: usize = 4;

/// Returns the case of this seed, whose evaluation may be unbounded.
pub(super) fn generated(seed: u64, emphasis: Emphasis) -> Case {
    let mut random = Random::new(seed);
    let shared: Vec<Text> = (0..random.below(4)).map(|index| format!("counter{index}").into()).collect();
    let result = data_type(&mut random);
    let result = match emphasis {
        Emphasis::Independence => several(result),
        Emphasis::Updates => Type::Text,
        _ => result,
    };
    let mut generator = Generator {
        budget: 4 + random.below(40),
        scope: Vec::new(),
        per_session: shared.iter().filter(|_| random.chance(25)).cloned().collect(),
        own: BTreeSet::new(),
        in_step: false,
        session: Atom::Value(Value::Int(0)),
        shared: shared.clone(),
        random,
        rewritable: emphasis == Emphasis::Rewritable,
        computing: !matches!(emphasis, Emphasis::None | Emphasis::Rewritable | Emphasis::Batches | Emphasis::LeftLoops),
        batches: matches!(emphasis, Emphasis::Batches | Emphasis::LeftLoops),
        leaves_loops: emphasis == Emphasis::LeftLoops,
        reads_only: false,
        rounds: matches!(emphasis, Emphasis::Rounds | Emphasis::Batches | Emphasis::LeftLoops),
        independent: emphasis == Emphasis::Independence,
        elements: emphasis == Emphasis::Elements,
        arithmetic: emphasis == Emphasis::Arithmetic,
        result: result.clone(),
        variables: 0,
        sites: 0,
        depth: 0,
        block_from: 0,
    };
    generator.own = generator.per_session.iter().filter(|_| generator.random.chance(50)).cloned().collect();
    let parameters: Vec<Variable> = (0..1 + generator.random.below(4)).map(|_| generator.parameter()).collect();
    generator.scope.extend(parameters.iter().cloned());
    generator.session = generator.known_int();
    let is_of_updates = emphasis == Emphasis::Updates;
    let body = if is_of_updates { generator.block_of_updates() } else { generator.block(&result, false) };
    let (mut random, own) = (generator.random, generator.own);
    let rows = 1 + random.below(3);
    let row = |random: &mut Random| parameters.iter().map(|parameter| value(random, &parameter.ty)).collect();
    let inputs = (0..rows).map(|_| row(&mut random)).collect();
    let flow = Flow { name: "elements".into(), route: None, parameters, result, body, former_sites: Vec::new() };
    let shared = shared.into_iter().zip(SHARED_FROM..).map(|(name, number)| {
        let per_session = own.contains(&name);
        SharedValue { per_session, ..shared_counter(name, number) }
    });
    let arguments = Block { lets: Vec::new(), result: Atom::Value(Value::Record([Value::Int(0)].into())) };
    let entry = Entry { name: "test".into(), source: "a.elements".into(), arguments, ordered: true, flows: vec![flow] };
    Case {
        program: Program {
            types: definitions(),
            inlined_calls: inlined_calls(),
            shared: shared.collect(),
            entries: vec![entry],
        },
        inputs,
    }
}

fn shared_counter(name: Text, number: i64) -> SharedValue<Block> {
    let call = Call::new("count.new".into(), "count.new".into(), vec![Atom::Value(Value::Int(number))]);
    let bound = Variable { var: Var(0), name: "".into(), ty: counter() };
    let lets = vec![Let { bound, op: Op::Call(call), origin: Origin::default() }];
    SharedValue { name, ty: counter(), per_session: false, init: Block { lets, result: Atom::Var(Var(0)) } }
}

/// Returns the calls that operations are said to be inlined from, two of them nested.
fn inlined_calls() -> Vec<InlinedCall> {
    let call = |function: &str, inlined_call| InlinedCall {
        function: function.into(),
        called_at: Origin { start: 1, end: 8, inlined_call },
    };
    vec![call("outer", None), call("inner", Some(InlinedCallId(0))), call("other", None)]
}

/// Returns the inlined call of the operation that binds a variable: that of a run of neighbours.
fn inlined_call(var: Var) -> Option<InlinedCallId> {
    [None, Some(InlinedCallId(0)), Some(InlinedCallId(1)), Some(InlinedCallId(2))][var.0 as usize / 4 % 4]
}

/// Generator of one flow's body.
pub(super) struct Generator {
    pub(super) random: Random,
    /// The variables in scope, innermost last.
    pub(super) scope: Vec<Variable>,
    /// The shared counters that may be touched: all, or within an atomic step those that it holds.
    pub(super) shared: Vec<Text>,
    /// The shared counters that steps hold per session; all steps hold a counter in the same way.
    per_session: BTreeSet<Text>,
    /// The shared counters that are declared per session: they are accessed within steps only.
    own: BTreeSet<Text>,
    /// True within an atomic step.
    in_step: bool,
    /// The session, the same in all steps.
    session: Atom,
    /// True if the program has much for passes to rewrite.
    pub(super) rewritable: bool,
    /// True if it prefers reads and updates of elements.
    pub(super) elements: bool,
    /// True if it prefers arithmetic whose primitives belong together.
    pub(super) arithmetic: bool,
    /// True if it prefers calls of batched functions.
    pub(super) batches: bool,
    /// True if it has loops that failures leave.
    pub(super) leaves_loops: bool,
    /// True within a loop whose calls of batched functions only read.
    pub(super) reads_only: bool,
    /// True if it prefers `for`s over lists.
    pub(super) rounds: bool,
    /// True if bindings often use nothing that their block has bound before.
    pub(super) independent: bool,
    /// True if the program computes more than it waits.
    pub(super) computing: bool,
    result: Type,
    /// The number of bindings that may still be made.
    pub(super) budget: usize,
    variables: u32,
    sites: u32,
    pub(super) depth: usize,
    /// The index in the scope at which the innermost block begins.
    pub(super) block_from: usize,
}

impl Generator {
    /// A shared counter that may be touched here.
    pub(super) fn shared_here(&mut self) -> Option<Text> {
        let here = self.shared.iter().filter(|name| self.in_step || !self.own.contains(*name));
        let here: Vec<Text> = here.cloned().collect();
        (!here.is_empty()).then(|| self.random.pick(&here).clone())
    }

    fn parameter(&mut self) -> Variable {
        let ty = data_type(&mut self.random);
        self.variable(ty)
    }

    pub(super) fn variable(&mut self, ty: Type) -> Variable {
        let var = Var(self.variables);
        self.variables += 1;
        let name = if self.random.chance(30) { "named".into() } else { Text::default() };
        Variable { var, name, ty }
    }

    pub(super) fn site(&mut self, function: &str) -> Text {
        self.sites += 1;
        format!("{function}#{}", self.sites).into()
    }

    /// Generates a block that yields a value of this type, or if `may_end`, that may end the flow instead.
    pub(super) fn block(&mut self, want: &Type, may_end: bool) -> Block {
        let (from, outer) = (self.scope.len(), self.block_from);
        self.block_from = from;
        self.depth += 1;
        let mut lets = Vec::new();
        for _ in 0..1 + self.random.below(if self.depth == 1 { 14 } else { 4 }) {
            if !self.of_independence(&mut lets) {
                self.any(&mut lets);
            }
        }
        let ends = may_end && self.random.chance(15);
        let result = match ends {
            true => self.end(&mut lets),
            false if self.independent && self.depth == 1 => self.of_all(want, &mut lets),
            false => self.operand(want, &mut lets),
        };
        self.depth -= 1;
        self.scope.truncate(from);
        self.block_from = outer;
        Block { lets, result }
    }

    /// Generates a block with parameters of its own.
    pub(super) fn body(&mut self, own: &[Variable], want: &Type, may_end: bool) -> Block {
        let from = self.scope.len();
        self.scope.extend(own.iter().cloned());
        let block = self.block(want, may_end);
        self.scope.truncate(from);
        block
    }

    /// Generates an end of the flow.
    fn end(&mut self, lets: &mut Vec<Let>) -> Atom {
        let op = if self.random.chance(60) {
            let want = self.result.clone();
            Op::Return(self.operand(&want, lets))
        } else {
            Op::Fail(self.operand(&Type::Failure, lets))
        };
        self.bind(Type::Never, op, lets);
        Atom::Value(Value::Unit)
    }

    /// Generates a binding of any type, if the budget allows one.
    fn any(&mut self, lets: &mut Vec<Let>) {
        let ty = if self.random.chance(8) { counter() } else { data_type(&mut self.random) };
        let ty = self.list_of_rounds(ty);
        if self.budget > 0 {
            self.compute(&ty, lets);
        }
    }

    /// Returns an operand of this type: a variable in scope, a constant, or a new binding.
    pub(super) fn operand(&mut self, ty: &Type, lets: &mut Vec<Let>) -> Atom {
        if *ty == counter() {
            return Atom::Var(self.own_counter(lets));
        }
        if self.budget > 0 && self.random.chance(20) {
            return Atom::Var(self.compute(ty, lets));
        }
        let seen: Vec<Var> = self.scope.iter().filter(|known| known.ty == *ty).map(|known| known.var).collect();
        if !seen.is_empty() && self.random.chance(80) {
            return Atom::Var(*self.random.pick(&seen));
        }
        Atom::Value(value(&mut self.random, ty))
    }

    /// Returns a counter to be moved: one that this block has created, or a new one.
    fn own_counter(&mut self, lets: &mut Vec<Let>) -> Var {
        let made = self.scope[self.block_from..].iter().rposition(|known| known.ty == counter());
        match made {
            Some(at) => self.scope.remove(self.block_from + at).var,
            None => self.compute(&counter(), lets),
        }
    }

    /// Generates a binding of this type.
    fn compute(&mut self, ty: &Type, lets: &mut Vec<Let>) -> Var {
        self.budget = self.budget.saturating_sub(1);
        if let Some(op) = self.again(ty, lets).or_else(|| self.around_a_change(ty, lets)) {
            return self.bind(ty.clone(), op, lets);
        }
        let nests = self.budget > 0 && self.depth < DEPTH_MAX;
        if let Some(op) = self.that_only_reads(ty, nests, lets) {
            return self.bind(ty.clone(), op, lets);
        }
        if let Some(op) = self.of_batches(ty, nests, lets) {
            return self.bind(ty.clone(), op, lets);
        }
        if let Some(op) = self.computing(ty, nests, lets) {
            return self.bind(ty.clone(), op, lets);
        }
        let op = match self.random.below(22) {
            0..=3 if nests => self.switch(ty, lets),
            4 if nests && *ty != counter() => self.fold(ty, lets),
            5 if nests && *ty != counter() => self.repeat(ty, lets),
            6 if nests && !self.shared.is_empty() => self.atomic(ty),
            20 if nests && *ty != counter() && self.random.chance(40) => self.transaction(ty),
            20 if nests && *ty != counter() => self.within(ty, lets),
            21 if nests && *ty != counter() => self.race(ty, lets),
            0..=6 if self.budget > 0 && self.depth < DEPTH_MAX && self.random.chance(30) => self.switch(ty, lets),
            _ => self.plain(ty, lets),
        };
        self.bind(ty.clone(), op, lets)
    }

    /// Generates an operation of a program that computes: most often a loop, a switch or a primitive.
    fn computing(&mut self, ty: &Type, nests: bool, lets: &mut Vec<Let>) -> Option<Op> {
        if !self.computing || *ty == counter() || self.random.chance(4) {
            return None;
        }
        if let Some(op) = self.of_elements(ty, lets) {
            return Some(op);
        }
        if let Some(op) = self.of_numbers(ty, lets).or_else(|| self.of_rounds(ty, nests, lets)) {
            return Some(op);
        }
        Some(match self.random.below(10) {
            0 | 1 if nests => self.switch(ty, lets),
            2 | 3 if nests => self.fold(ty, lets),
            4 | 5 if nests => self.repeat(ty, lets),
            _ => match ty {
                Type::List(element) if nests => self.map(element, lets),
                ty if self.random.chance(25) => self.quick_call(ty, lets).unwrap_or_else(|| self.prim(ty, lets)),
                ty => self.prim(ty, lets),
            },
        })
    }

    pub(super) fn bind(&mut self, ty: Type, op: Op, lets: &mut Vec<Let>) -> Var {
        let bound = self.variable(ty);
        let var = bound.var;
        let start = u32::try_from(self.random.below(100)).unwrap_or(0);
        let origin = if self.random.chance(50) {
            Origin { start, end: start + 7, inlined_call: inlined_call(var) }
        } else {
            Origin::default()
        };
        if bound.ty != Type::Never {
            self.scope.push(bound.clone());
        }
        lets.push(Let { bound, op, origin });
        var
    }

    /// Generates an operation without blocks, or a map if a list is requested.
    fn plain(&mut self, ty: &Type, lets: &mut Vec<Let>) -> Op {
        let nests = self.budget > 0 && self.depth < DEPTH_MAX;
        match ty {
            Type::List(element) if nests && self.random.chance(60) => self.map(element, lets),
            _ if self.budget > 0 && has_updates(ty) && self.random.chance(60) => self.update(ty, lets),
            _ if self.random.chance(60) => self.call(ty, lets).unwrap_or_else(|| self.prim(ty, lets)),
            _ => self.prim(ty, lets),
        }
    }

    pub(super) fn map(&mut self, to: &Type, lets: &mut Vec<Let>) -> Op {
        let ty = if self.elements && self.random.chance(50) {
            entry()
        } else {
            self.random.pick(&[Type::Int, Type::Int, Type::Text]).clone()
        };
        let list = self.long_list(&ty).unwrap_or_else(|| self.operand(&Type::list(ty.clone()), lets));
        let element = self.variable(ty);
        let body = self.body_of_elements(std::slice::from_ref(&element), &element, to);
        Op::Map { list, element, body }
    }

    pub(super) fn fold(&mut self, ty: &Type, lets: &mut Vec<Let>) -> Op {
        let of = if self.elements && self.random.chance(50) { entry() } else { Type::Int };
        let list = self.operand(&Type::list(of.clone()), lets);
        let (init, state) = self.states(ty, lets);
        let element = self.variable(of);
        let own: Vec<Variable> = state.iter().chain([&element]).cloned().collect();
        let body = self.carried(&own, &state, ty).unwrap_or_else(|| self.body_of_elements(&own, &element, ty));
        Op::Fold { list, init, state, element, body, exit: LoopExit::Never }
    }

    /// Returns the initial states and the states of a loop that yields this type: of a tuple, one for each part, or one in
    /// all.
    fn states(&mut self, ty: &Type, lets: &mut Vec<Let>) -> (Vec<Atom>, Vec<Variable>) {
        let types = match ty {
            Type::Tuple(parts) if self.random.chance(50) => parts.to_vec(),
            _ => vec![ty.clone()],
        };
        let init = types.iter().map(|ty| self.operand(ty, lets)).collect();
        (init, types.into_iter().map(|ty| self.variable(ty)).collect())
    }

    pub(super) fn repeat(&mut self, ty: &Type, lets: &mut Vec<Let>) -> Op {
        let (init, state) = self.states(ty, lets);
        let types: Vec<Type> = state.iter().map(|state| state.ty.clone()).collect();
        let round = round_type(&types);
        let mut body = self.carried(&state, &state, &round).unwrap_or_else(|| self.body(&state, &round, false));
        if let Atom::Value(Value::Record(round)) = &mut body.result {
            // With the constant `false`, the loop would never be done.
            let states = round.iter().take(types.len()).cloned();
            *round = states.chain([Value::Bool(true)]).collect();
        }
        let at_most = 1 + u64::try_from(self.random.below(5)).unwrap_or(0);
        Op::Loop { init, state, body, at_most }
    }

    /// Generates a step that holds some of the counters; only those are accessed in it.
    fn atomic(&mut self, ty: &Type) -> Op {
        let outside = self.shared.clone();
        let first = self.random.below(outside.len());
        self.shared.retain(|_| self.random.chance(50));
        if self.shared.is_empty() {
            self.shared.push(outside[first].clone());
        }
        let constraint = |name: &Text| Constraint {
            resource: Resource::Shared(name.clone()),
            mode: Mode::Write,
            per_session: self.per_session.contains(name),
        };
        let mut constraints: Vec<Constraint> = self.shared.iter().map(constraint).collect();
        if self.random.chance(30) {
            constraints[0].mode = Mode::Read;
        }
        let narrows = constraints.iter().any(|constraint| constraint.per_session);
        let session = narrows.then(|| self.session.clone());
        let outer = std::mem::replace(&mut self.in_step, true);
        let body = self.block(ty, false);
        self.in_step = outer;
        self.shared = outside;
        let cancellable = self.random.chance(20);
        Op::Atomic { constraints, restores: Vec::new(), session, cancellable, body }
    }
}
