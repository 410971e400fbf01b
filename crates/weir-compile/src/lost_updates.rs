//! The lost-update lint: warns of a write to a shared value that depends on an earlier read, outside one atomic step.
//!
//! Another flow may write between the read and the write, and one of the two updates is lost. The lint follows data and
//! control dependences from each read through the expression IR. A read and a write inside one `atomic` of the value
//! are one step; a call that takes the value by `&mut` is one by itself.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Passing, Resource, Text};
use weir_ir::expr::{Atom, Block, Call, Op, Origin, Var};
use weir_syntax::{Code, Diagnostic};

use crate::context::CheckContext;

/// Checks one body.
pub(crate) fn check(body: &Block, context: &mut CheckContext<'_>) {
    let mut updates =
        LostUpdateLint { depends: BTreeMap::new(), decides: BTreeSet::new(), steps: Vec::new(), count: 0, context };
    updates.block(body);
}

/// One read of a shared value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SharedRead {
    shared: Text,
    at: (u32, u32),
    /// The atomic step around the read; 0 if there is none.
    step: usize,
}

struct LostUpdateLint<'a, 'c> {
    /// The reads that each variable depends on.
    depends: BTreeMap<Var, BTreeSet<SharedRead>>,
    /// The reads that the current block is control dependent on.
    decides: BTreeSet<SharedRead>,
    /// The atomic steps around the current operation, outermost first, with the shared values that they hold.
    steps: Vec<(usize, Vec<Text>)>,
    count: usize,
    context: &'a mut CheckContext<'c>,
}

impl LostUpdateLint<'_, '_> {
    /// Returns the reads that the block's result depends on.
    fn block(&mut self, block: &Block) -> BTreeSet<SharedRead> {
        for binding in &block.lets {
            let reads = self.op(&binding.op, binding.origin);
            if !reads.is_empty() {
                self.depends.insert(binding.bound.var, reads);
            }
        }
        self.reads_of(&block.result)
    }

    fn reads_of(&self, atom: &Atom) -> BTreeSet<SharedRead> {
        match atom {
            Atom::Var(var) => self.depends.get(var).cloned().unwrap_or_default(),
            Atom::Value(_) | Atom::Shared(_) => BTreeSet::new(),
        }
    }

    fn reads_of_all<'b>(&self, atoms: impl IntoIterator<Item = &'b Atom>) -> BTreeSet<SharedRead> {
        atoms.into_iter().flat_map(|atom| self.reads_of(atom)).collect()
    }

    fn op(&mut self, op: &Op, origin: Origin) -> BTreeSet<SharedRead> {
        match op {
            Op::Call(call) => self.call(call, origin),
            Op::Switch { subject, arms } => {
                let decided = self.reads_of(subject);
                let outer = self.decides.clone();
                self.decides.extend(decided.iter().cloned());
                let mut reads = decided.clone();
                for arm in arms {
                    for variable in &arm.payload {
                        self.depends.insert(variable.var, decided.clone());
                    }
                    reads.extend(self.block(&arm.body));
                }
                self.decides = outer;
                reads
            }
            Op::Atomic { constraints, body, .. } => {
                let held = constraints.iter().filter_map(|constraint| match &constraint.resource {
                    Resource::Shared(name) => Some(name.clone()),
                    _ => None,
                });
                self.count += 1;
                self.steps.push((self.count, held.collect()));
                let reads = self.block(body);
                self.steps.pop();
                reads
            }
            // What ends the flow yields nothing that could be written.
            Op::Return(_) | Op::Fail(_) => BTreeSet::new(),
            op => {
                let of = self.reads_of_all(op.operands());
                let mut reads = of.clone();
                for scope in op.scopes() {
                    self.depends.extend(scope.variables().map(|variable| (variable.var, of.clone())));
                    reads.extend(self.block(scope.block));
                }
                reads
            }
        }
    }

    fn call(&mut self, call: &Call, origin: Origin) -> BTreeSet<SharedRead> {
        let mut reads = self.reads_of_all(&call.arguments);
        let parameters = self.context.parameters(&call.function);
        let mut own = BTreeSet::new();
        for (atom, parameter) in call.arguments.iter().zip(parameters) {
            let Atom::Shared(name) = atom else { continue };
            let step = self.step_of(name);
            if parameter.passing == Passing::Change {
                self.written(name, step, &reads, origin);
            } else {
                own.insert(SharedRead { shared: name.clone(), at: (origin.start, origin.end), step });
            }
        }
        reads.extend(own);
        reads
    }

    /// Returns the outermost atomic step that holds the shared value; 0 if there is none.
    fn step_of(&self, shared: &Text) -> usize {
        self.steps.iter().find(|(_, held)| held.contains(shared)).map_or(0, |(step, _)| *step)
    }

    fn written(&mut self, shared: &Text, step: usize, arguments: &BTreeSet<SharedRead>, origin: Origin) {
        let lost = arguments.iter().chain(&self.decides);
        let lost = lost.filter(|read| read.shared == *shared && (read.step == 0 || read.step != step)).min();
        let Some(read) = lost else { return };
        let at = self.context.span(Origin { start: read.at.0, end: read.at.1 });
        let diagnostic = Diagnostic::new(
            Code::LostUpdate,
            format!("another flow may change `{shared}` between this read and this write"),
        )
        .at(self.context.span(origin), "this write depends on the read")
        .because(at, "read here")
        .hint(format!("make it one step: `atomic {shared} {{ … }}` around both"));
        self.context.report_once(diagnostic);
    }
}
