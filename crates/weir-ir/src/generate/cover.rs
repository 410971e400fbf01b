//! Coverage of random programs: counts the constructs of a program, so that tests can check that all of them occur.

use std::collections::BTreeMap;

use crate::expr::{ArmTest, Atom, Block, Op, Program};

/// Counts how often each construct occurs: operations, primitives, functions and tests.
#[must_use]
pub fn constructs(program: &Program) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for flow in program.entries.iter().flat_map(|entry| &entry.flows) {
        block(&flow.body, &mut counts);
    }
    counts
}

fn block(of: &Block, counts: &mut BTreeMap<String, usize>) {
    for binding in &of.lets {
        for name in names(&binding.op) {
            *counts.entry(name).or_default() += 1;
        }
        binding.op.blocks().for_each(|inner| block(inner, counts));
    }
}

fn names(op: &Op) -> Vec<String> {
    match op {
        Op::Prim(prim, _) => vec![format!("prim {}", prim.name())],
        Op::Call(call) => {
            let shared = call.arguments.iter().any(|atom| matches!(atom, Atom::Shared(_)));
            vec![format!("call {}{}", call.function, if shared { " shared" } else { "" })]
        }
        Op::Switch { arms, .. } => arms.iter().map(|arm| format!("switch {}", test(&arm.test))).collect(),
        Op::Atomic { session, .. } => vec![format!("atomic{}", if session.is_some() { " session" } else { "" })],
        op => vec![op.word().into()],
    }
}

fn test(test: &ArmTest) -> &'static str {
    match test {
        ArmTest::Tag(_) => "tag",
        ArmTest::Value(_) => "value",
        ArmTest::Otherwise => "otherwise",
    }
}
