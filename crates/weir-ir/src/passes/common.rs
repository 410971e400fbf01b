//! Common subexpressions: a pure operation that was evaluated before with the same operands is not evaluated again. A switch
//! whose arms only choose a value, such as `m[k] else { [] }`, is one.
//!
//! *Source.* Ohua thesis §4.2 (Ohua's expression IR keeps one binding for each I/O call; here the same holds for pure
//! calls); value numbering over the dominator tree, which structured control makes the nesting of blocks (Briggs, Cooper
//! and Simpson, SPE 1997, §3).
//!
//! *Law.* A pure operation yields the same result for the same operands. The earlier one stands before the later one in the
//! same block or in a block around it, so that it has been evaluated whenever the later one would be; if it failed or
//! faulted, the flow has ended there. Its operands and its result never change. The call site that goes is a
//! [`FormerSite`](crate::program::FormerSite) of the one that stays.

use std::collections::BTreeMap;

use weir_host::{Text, Type};

use super::facts::Facts;
use super::rewrite::{Simplified, Simplify, rewrite};
use crate::expr::{Arm, ArmTest, Atom, Block, Let, Op, Var};
use crate::prim::Prim;

pub(super) fn run(body: &mut Block, facts: &mut Facts<'_>) {
    rewrite(body, facts, &mut Available::default());
}

/// An operation and its operands.
type Key = (Operation, Vec<Atom>);

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Operation {
    Prim(Prim),
    Call(Text),
    /// A switch whose arms have no bindings: the test and the result of each arm.
    Choice(Vec<(ArmTest, Chosen)>),
}

/// The result of an arm without bindings.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Chosen {
    Payload(usize),
    Operand(Atom),
}

/// The operations that have been evaluated whenever this point is reached.
#[derive(Default)]
struct Available {
    evaluated: BTreeMap<Key, Evaluated>,
    /// The keys that each open block added, the innermost last.
    added: Vec<Vec<Key>>,
}

struct Evaluated {
    var: Var,
    ty: Type,
    /// The call site, if it is a call.
    site: Option<Text>,
}

impl Simplify for Available {
    fn simplify(&mut self, binding: &Let, facts: &mut Facts<'_>) -> Simplified {
        if !facts.never_changes(binding.bound.var) {
            return Simplified::Keep;
        }
        let (operation, site) = match &binding.op {
            Op::Call(call) if facts.is_pure(&binding.op) => {
                (Operation::Call(call.function.clone()), Some(call.site.clone()))
            }
            Op::Prim(prim, _) if facts.is_pure(&binding.op) => (Operation::Prim(*prim), None),
            Op::Switch { subject, arms } if facts.is_steady(subject) => match choice(arms, facts) {
                Some(choice) => (choice, None),
                None => return Simplified::Keep,
            },
            _ => return Simplified::Keep,
        };
        let key = (operation, binding.op.operands().cloned().collect());
        if let Some(earlier) = self.evaluated.get(&key) {
            // Operations without operands, such as the empty list, say nothing of their type.
            if earlier.ty != binding.bound.ty {
                return Simplified::Keep;
            }
            facts.removed(&binding.op, earlier.site.as_ref());
            return Simplified::Value(Atom::Var(earlier.var));
        }
        let evaluated = Evaluated { var: binding.bound.var, ty: binding.bound.ty.clone(), site };
        self.evaluated.insert(key.clone(), evaluated);
        self.added.last_mut().expect("a binding stands in a block").push(key);
        Simplified::Keep
    }

    fn enter(&mut self) {
        self.added.push(Vec::new());
    }

    fn leave(&mut self) {
        for key in self.added.pop().unwrap_or_default() {
            self.evaluated.remove(&key);
        }
    }
}

/// Returns a switch whose arms only choose among values that never change.
fn choice(arms: &[Arm], facts: &Facts<'_>) -> Option<Operation> {
    let chosen = |arm: &Arm| {
        let payload = arm.payload.iter().position(|field| arm.body.result == Atom::Var(field.var));
        let result = match payload {
            Some(index) => Chosen::Payload(index),
            None => Chosen::Operand(arm.body.result.clone()),
        };
        let is_steady = arm.body.lets.is_empty() && facts.is_steady(&arm.body.result);
        is_steady.then(|| (arm.test.clone(), result))
    };
    arms.iter().map(chosen).collect::<Option<_>>().map(Operation::Choice)
}
