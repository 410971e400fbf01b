//! The uses of shared values in one body, and the reads that each change depends on.
//!
//! A constraint that functions are bound to stands for what they use: a call that holds it as a reader is a read of it, any
//! other one a change.
//!
//! A graph of dependences has a node for each variable, each read, each change and each *control point*: a position that
//! is reached only if certain conditions hold. The arms of a `switch`, the rounds of a loop and everything behind an
//! exit have a control point, which depends on the values that decide about it. A change depends on the reads that its
//! node reaches.
//!
//! Failures of arithmetic (an overflow, a division by zero) are no exits here, and a call that changes a shared value and may
//! fail, such as a write of a table, is taken to succeed: no program decides by such failures.
//!
//! A `soft` table with limits may lose any row at any time. So whatever a flow does because a row is missing, it could have
//! done in any order of the flows: that part of a cache depends on no read.

use std::collections::BTreeMap;

use weir_host::{Library, Mode, Passing, Resource, Signature, Text, Value, World};
use weir_ir::expr::{Arm, ArmTest, Atom, Block, Call, Op, Origin, Runs, Var};
use weir_ir::prim::Prim;

use crate::bound_constraints::BoundConstraints;
use crate::declarations::Declarations;
use crate::lang_items::{COMMIT, PLACE_COMMIT, ROLL_BACK, TABLES};
use crate::typed_tree::TypedTree;

/// Returns whether a body uses a shared value or a bound constraint. Most bodies use none.
fn has_uses(body: &Block, bound: &BoundConstraints) -> bool {
    let mut found = false;
    body.each_binding(&mut |binding| {
        if let Op::Call(call) = &binding.op {
            found |= call.arguments.iter().any(|atom| matches!(atom, Atom::Shared(_)));
            found |= bound.held_by(&call.function).next().is_some();
        }
    });
    found
}

/// The number of uses that are considered in one body.
const USES_MAX: usize = 1000;

/// One use of a shared value by a call.
pub(super) struct SharedUse {
    pub(super) shared: Text,
    pub(super) kind: UseKind,
    /// The path of the function that uses the value.
    pub(super) function: Text,
    pub(super) origin: Origin,
    /// True for a change that commutes with others of its kind: the order of two of them leaves the same value.
    pub(super) commutes: bool,
    /// The reads that a change depends on, by index, in program order; empty for a read.
    pub(super) reads: Vec<usize>,
    node: DependenceNode,
    position: UsePosition,
}

impl SharedUse {
    /// Returns a use that commutes with none, and depends on no read yet.
    fn new(
        (shared, kind): (&Text, UseKind),
        (call, origin): (&Call, Origin),
        (node, position): (DependenceNode, UsePosition),
    ) -> Self {
        let (shared, function) = (shared.clone(), call.function.clone());
        SharedUse { shared, kind, function, origin, commutes: false, reads: Vec::new(), node, position }
    }
}

/// The kind of a use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UseKind {
    Read,
    Change,
}

/// The position of a use: what encloses it.
#[derive(Clone, Default)]
struct UsePosition {
    /// The atomic steps, outermost first.
    steps: Vec<usize>,
    /// The arms of `switch`es: the `switch` and the number of the arm.
    arms: Vec<(usize, usize)>,
    loops: Vec<usize>,
}

/// An atomic step: an `atomic`, or a statement on a table that reads before it writes, such as `update`.
struct AtomicStep {
    origin: Origin,
    /// The shared values that it holds.
    held: Vec<Text>,
}

/// The uses of shared values in one body, in program order.
#[derive(Default)]
pub(super) struct BodyUses {
    pub(super) uses: Vec<SharedUse>,
    steps: Vec<AtomicStep>,
    /// The calls that no transaction contains, each as the number of uses before it.
    outside_calls: Vec<usize>,
}

impl BodyUses {
    pub(super) fn of(body: &Block, typed: &TypedTree, library: &Library) -> BodyUses {
        if !has_uses(body, &typed.bound_constraints) {
            return BodyUses::default();
        }
        let mut collector = Collector {
            library,
            bound: &typed.bound_constraints,
            declarations: &typed.declarations,
            found: BodyUses::default(),
            edges: vec![Vec::new()],
            variables: BTreeMap::new(),
            control: DependenceNode(0),
            exits: Vec::new(),
            position: UsePosition::default(),
            count: 0,
        };
        collector.block(body);
        collector.found.uses.truncate(USES_MAX);
        collector.resolve();
        collector.found
    }

    /// Returns whether one atomic step contains both uses and holds both values.
    pub(super) fn in_one_step(&self, first: usize, second: usize) -> bool {
        let (first, second) = (&self.uses[first], &self.uses[second]);
        self.common_steps(first, second).any(|held| held.contains(&first.shared) && held.contains(&second.shared))
    }

    /// Returns whether another flow can use the values of both between the first use and the second.
    pub(super) fn is_split(&self, first: usize, second: usize) -> bool {
        let (one, other) = (&self.uses[first], &self.uses[second]);
        let held = |held: &Vec<Text>| held.contains(&one.shared) || held.contains(&other.shared);
        self.may_precede(first, second) && !self.common_steps(one, other).any(held)
    }

    fn common_steps<'b>(&'b self, one: &'b SharedUse, other: &'b SharedUse) -> impl Iterator<Item = &'b Vec<Text>> {
        let both = one.position.steps.iter().zip(&other.position.steps).take_while(|(one, other)| one == other);
        both.map(|(step, _)| &self.steps[*step].held)
    }

    /// Returns whether a call that waits, or has an effect outside of the program, stands between two uses.
    pub(super) fn have_outside_call_between(&self, first: usize, second: usize) -> bool {
        self.outside_calls.iter().any(|before| first < *before && *before <= second)
    }

    /// Returns whether a use is repeated by a loop or a `for`.
    pub(super) fn is_in_loop(&self, found: usize) -> bool {
        !self.uses[found].position.loops.is_empty()
    }

    /// Returns the atomic steps around one use that are not around another one, and the shared values that each holds.
    pub(super) fn steps_around_one(&self, of: usize, other: usize) -> impl Iterator<Item = (Origin, &[Text])> {
        let [of, other] = [of, other].map(|index| &self.uses[index].position.steps);
        let common = of.iter().zip(other).take_while(|(one, other)| one == other).count();
        let steps = of.iter().skip(common).map(|step| &self.steps[*step]);
        steps.map(|step| (step.origin, &*step.held))
    }

    /// Returns the changes that a step around two uses contains beside them: those between them, and those in the steps of which
    /// the two are parts.
    pub(super) fn changes_around(&self, first: usize, second: usize) -> impl Iterator<Item = &SharedUse> {
        let outermost = |index: usize| self.uses[index].position.steps.first();
        let parts = [first, second].into_iter().filter_map(outermost).collect::<Vec<_>>();
        let contained = self.uses.iter().enumerate().filter(move |(index, found)| {
            (first..=second).contains(index) || found.position.steps.first().is_some_and(|step| parts.contains(&step))
        });
        contained.map(|(_, found)| found).filter(|found| found.kind == UseKind::Change)
    }

    /// Returns true for a use by the function of a statement, such as `update`. The statement itself has the place of its step.
    pub(super) fn is_in_function(&self, found: &SharedUse) -> bool {
        found.position.steps.iter().any(|step| {
            let place = self.steps[*step].origin;
            let is_statement = |other: &SharedUse| other.origin == place && other.position.steps.contains(step);
            place != found.origin && self.uses.iter().any(is_statement)
        })
    }

    fn may_precede(&self, first: usize, second: usize) -> bool {
        self.in_one_loop(first, second) || (first < second && !self.are_exclusive(first, second))
    }

    /// Returns whether no execution of the flow makes both uses, because they are in two arms of one `switch`.
    pub(super) fn are_exclusive(&self, first: usize, second: usize) -> bool {
        let (one, other) = (&self.uses[first].position, &self.uses[second].position);
        let apart = one.arms.iter().zip(&other.arms).find(|(one, other)| one != other);
        !self.in_one_loop(first, second) && apart.is_some_and(|(one, other)| one.0 == other.0)
    }

    fn in_one_loop(&self, first: usize, second: usize) -> bool {
        let outermost = self.uses[first].position.loops.first();
        outermost.is_some() && outermost == self.uses[second].position.loops.first()
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct DependenceNode(usize);

/// The nodes of a value. The choice of a variant can depend on less than its payload does: in
/// `Ok(users.length())`, it depends on nothing.
#[derive(Clone, Copy, Default)]
struct ValueNodes {
    value: DependenceNode,
    variant: DependenceNode,
    /// The variant, if it is always the same.
    known: Option<u32>,
    /// True if the variant may be `None` whatever other flows have done.
    may_be_missing: bool,
}

impl ValueNodes {
    /// Returns the nodes of a value that is always this variant.
    fn of_variant(value: DependenceNode, variant: u32) -> Self {
        ValueNodes { value, variant: DependenceNode(0), known: Some(variant), may_be_missing: false }
    }
}

impl From<DependenceNode> for ValueNodes {
    fn from(value: DependenceNode) -> Self {
        ValueNodes { value, variant: value, known: None, may_be_missing: false }
    }
}

struct Collector<'a> {
    library: &'a Library,
    bound: &'a BoundConstraints,
    declarations: &'a Declarations,
    found: BodyUses,
    /// The nodes that each node depends on.
    edges: Vec<Vec<DependenceNode>>,
    variables: BTreeMap<Var, ValueNodes>,
    /// The control point of the current operation.
    control: DependenceNode,
    /// The control points of exits that the current operation may take.
    exits: Vec<DependenceNode>,
    position: UsePosition,
    /// The number of `switch`es and loops so far.
    count: usize,
}

impl Collector<'_> {
    fn node(&mut self, on: impl IntoIterator<Item = DependenceNode>) -> DependenceNode {
        self.edges.push(on.into_iter().filter(|node| *node != DependenceNode(0)).collect());
        DependenceNode(self.edges.len() - 1)
    }

    /// Returns the nodes of an operand. The root, node 0, stands for whatever depends on nothing.
    fn operand(&self, atom: &Atom) -> ValueNodes {
        match atom {
            Atom::Var(var) => self.variables.get(var).copied().unwrap_or_default(),
            Atom::Value(_) | Atom::Shared(_) => ValueNodes::default(),
        }
    }

    fn of(&self, atom: &Atom) -> DependenceNode {
        self.operand(atom).value
    }

    fn block(&mut self, block: &Block) -> ValueNodes {
        for binding in &block.lets {
            let exits = self.exits.len();
            let value = self.op(&binding.op, binding.origin);
            self.variables.insert(binding.bound.var, value);
            if self.exits.len() > exits {
                let taken: Vec<DependenceNode> = self.exits.drain(exits..).chain([self.control]).collect();
                self.control = self.node(taken);
                self.exits.push(self.control);
            }
        }
        self.operand(&block.result)
    }

    /// Visits a block whose execution depends on `on`, and restores the control point.
    fn controlled(&mut self, on: DependenceNode, block: &Block) -> ValueNodes {
        let outer = self.control;
        self.control = self.node([outer, on]);
        let result = self.block(block);
        self.control = outer;
        result
    }

    fn op(&mut self, op: &Op, origin: Origin) -> ValueNodes {
        match op {
            Op::Prim(prim, operands) => {
                let of = |atom| match prim {
                    Prim::IsVariant(_) => self.operand(atom).variant,
                    _ => self.of(atom),
                };
                let operands: Vec<DependenceNode> = operands.iter().map(of).collect();
                let value = self.node(operands);
                match prim {
                    Prim::Variant(variant) => ValueNodes::of_variant(value, *variant),
                    _ => value.into(),
                }
            }
            Op::Call(call) => self.call(call, origin),
            Op::Switch { subject, arms } => self.switch(subject, arms),
            Op::Atomic { constraints, body, .. } => {
                let held = constraints.iter().filter_map(|constraint| match &constraint.resource {
                    Resource::Shared(name) | Resource::Constraint(name) => Some(name.clone()),
                    Resource::World(_) | Resource::State(_) => None,
                });
                self.found.steps.push(AtomicStep { origin, held: held.collect() });
                self.position.steps.push(self.found.steps.len() - 1);
                let result = self.block(body);
                self.position.steps.pop();
                result
            }
            Op::Return(_) | Op::Fail(_) => {
                self.exits.push(self.control);
                ValueNodes::default()
            }
            op if op.runs() == Runs::Repeatedly => self.repeat(op).into(),
            op => self.run_once(op).into(),
        }
    }

    fn switch(&mut self, subject: &Atom, arms: &[Arm]) -> ValueNodes {
        let subject = self.operand(subject);
        let by_variant = arms.iter().all(|arm| !matches!(arm.test, ArmTest::Value(_)));
        let on = if by_variant { subject.variant } else { subject.value };
        let (mut values, mut variants, mut known) = (vec![on], vec![on], Vec::new());
        self.count += 1;
        let switch = self.count;
        for (number, arm) in arms.iter().enumerate() {
            for variable in &arm.payload {
                self.variables.insert(variable.var, subject.value.into());
            }
            self.position.arms.push((switch, number));
            let is_missing = subject.may_be_missing && matches!(arm.test, ArmTest::Tag(Value::NONE));
            let exits = self.exits.len();
            let result = self.controlled(if is_missing { DependenceNode(0) } else { on }, &arm.body);
            if is_missing && self.exits.len() > exits {
                // What follows is reached because the row is there.
                self.exits.push(on);
            }
            self.position.arms.pop();
            // The arms of another variant than the known one are not taken.
            if !matches!((subject.known, &arm.test), (Some(known), ArmTest::Tag(tag)) if known != *tag) {
                values.push(result.value);
                variants.push(result.variant);
                known.push(result.known);
            }
        }
        let value = self.node(values);
        match known.first() {
            Some(&Some(variant)) if known.iter().all(|other| *other == Some(variant)) => {
                ValueNodes::of_variant(value, variant)
            }
            _ => ValueNodes { value, variant: self.node(variants), known: None, may_be_missing: false },
        }
    }

    /// Visits an operation whose bodies run at most once, such as `within` and `race`.
    fn run_once(&mut self, op: &Op) -> DependenceNode {
        let operands: Vec<DependenceNode> = op.operands().map(|atom| self.of(atom)).collect();
        let on = self.node(operands);
        let results: Vec<DependenceNode> = op.blocks().map(|body| self.controlled(on, body).value).collect();
        self.node([on].into_iter().chain(results))
    }

    /// Visits a `map`, `fold` or `loop`, whose later rounds depend on the results and the exits of earlier ones.
    fn repeat(&mut self, op: &Op) -> DependenceNode {
        let operands: Vec<DependenceNode> = op.operands().map(|atom| self.of(atom)).collect();
        let on = self.node(operands);
        let round = self.node([on]);
        for variable in op.binders() {
            self.variables.insert(variable.var, round.into());
        }
        self.count += 1;
        self.position.loops.push(self.count);
        let exits = self.exits.len();
        for body in op.blocks() {
            let result = self.controlled(round, body).value;
            // The result of a `map`'s round is no input of the next.
            if matches!(op, Op::Map { .. }) {
                let element = self.node([on, result]);
                self.edges[round.0].extend_from_slice(&self.exits[exits..]);
                self.position.loops.pop();
                return element;
            }
            self.edges[round.0].push(result);
        }
        self.edges[round.0].extend_from_slice(&self.exits[exits..]);
        self.position.loops.pop();
        if matches!(op, Op::Loop { .. }) {
            self.exits.push(round);
        }
        round
    }

    fn call(&mut self, call: &Call, origin: Origin) -> ValueNodes {
        let arguments: Vec<DependenceNode> = call.arguments.iter().map(|atom| self.of(atom)).collect();
        let mut result = arguments.clone();
        let function = self.library.function(&call.function);
        let parameters = function.map_or(&[][..], |function| &function.signature.parameters);
        if function.is_some_and(|function| is_outside_call(&function.signature)) {
            self.found.outside_calls.push(self.found.uses.len());
        }
        for (atom, parameter) in call.arguments.iter().zip(parameters) {
            let Atom::Shared(name) = atom else { continue };
            // The end of a transaction changes no more than its statements do, which are uses of their own.
            let change = parameter.passing == Passing::Change;
            if ![COMMIT, PLACE_COMMIT, ROLL_BACK].contains(&call.function.as_str()) {
                let node = self.shared_use(name, change, &arguments, (call, origin));
                result.extend(node);
                if change && self.commutes(call, name) {
                    self.found.uses.last_mut().into_iter().for_each(|found| found.commutes = true);
                }
            }
        }
        let bound = self.bound;
        for (name, mode) in bound.held_by(&call.function) {
            result.extend(self.shared_use(name, mode == Mode::Write, &arguments, (call, origin)));
        }
        let result = self.node(result);
        for (atom, parameter) in call.arguments.iter().zip(parameters) {
            if let (Atom::Var(var), Passing::Change) = (atom, parameter.passing) {
                self.variables.insert(*var, result.into());
            }
        }
        let changes = parameters.iter().any(|parameter| parameter.passing == Passing::Change);
        match function.and_then(|function| function.signature.failure.as_ref()) {
            // Whether such a call fails does not depend on what other flows have done.
            Some(_) if changes || is_read_to_change(call) => ValueNodes::of_variant(result, Value::OK),
            _ => ValueNodes { may_be_missing: self.is_read_of_cache(call), ..result.into() },
        }
    }

    /// Returns `true` if calls of this function leave the shared value the same in whichever order they are executed. An insertion
    /// under a number that the table chooses does, up to the number, unless another column is unique.
    fn commutes(&self, call: &Call, name: &Text) -> bool {
        let function = self.library.function(&call.function);
        let is_new_row = || {
            let table = self.declarations.tables.get(name.as_str());
            let is_insert = call.function.strip_prefix(TABLES).is_some_and(|function| function == ".insert");
            is_insert && table.is_some_and(|table| table.auto && table.indexes.iter().all(|(_, unique)| !unique))
        };
        function.is_some_and(|function| function.signature.effects.commutes) || is_new_row()
    }

    /// Returns `true` for the read of one row of a table that may lose rows at any time.
    fn is_read_of_cache(&self, call: &Call) -> bool {
        let is_get = call.function.strip_prefix(TABLES).is_some_and(|name| name == ".get");
        is_get && matches!(call.arguments.first(), Some(Atom::Shared(name)) if self.declarations.may_lose_rows(name))
    }

    /// Adds a use of a shared value or a bound constraint, and returns the node of a read.
    fn shared_use(
        &mut self,
        name: &Text,
        change: bool,
        arguments: &[DependenceNode],
        (call, origin): (&Call, Origin),
    ) -> Option<DependenceNode> {
        let control = self.control;
        let on = arguments.iter().copied().chain([control]).filter(|_| change);
        let node = self.node(on);
        let kind = if change { UseKind::Change } else { UseKind::Read };
        self.found.uses.push(SharedUse::new((name, kind), (call, origin), (node, self.position.clone())));
        (!change).then_some(node)
    }

    /// Finds the reads that each change depends on.
    fn resolve(&mut self) {
        let reads = self.found.uses.iter().enumerate().filter(|(_, found)| found.kind == UseKind::Read);
        let reads: BTreeMap<usize, usize> = reads.map(|(index, read)| (read.node.0, index)).collect();
        for change in self.found.uses.iter_mut().filter(|found| found.kind == UseKind::Change) {
            let mut seen = vec![false; self.edges.len()];
            let mut open = vec![change.node];
            while let Some(node) = open.pop() {
                if !std::mem::replace(&mut seen[node.0], true) {
                    open.extend_from_slice(&self.edges[node.0]);
                    change.reads.extend(reads.get(&node.0));
                }
            }
            change.reads.sort_unstable();
        }
    }
}

/// Returns `true` for a function that no transaction calls: no statement, and it waits or has an effect outside of the program.
fn is_outside_call(signature: &Signature) -> bool {
    let effects = &signature.effects;
    let waits = effects.waits || effects.blocking || effects.leaves_thread;
    !signature.path().starts_with(TABLES) && (waits || effects.world == World::Writes)
}

/// Returns `true` for the read of a statement that writes the rows which it has read. It fails only if the database does.
fn is_read_to_change(call: &Call) -> bool {
    call.function.strip_prefix(TABLES).is_some_and(|name| name.ends_with("_to_change"))
}
