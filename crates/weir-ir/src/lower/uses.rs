//! The resources that calls, blocks and bodies of nodes access, and the variables that blocks change or capture.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Library, Mode, Passing, Resource, Signature, World};

use crate::expr::{Atom, Block, Call, Op, Var};
use crate::graph::{Graph, ResourceUse};

/// Returns the resources of the barriers that a flow calls: each of its calls that is not pure reads them.
pub(crate) fn barriers(flow: &Block, library: &Library) -> BTreeSet<Resource> {
    let mut barriers = BTreeSet::new();
    flow.each_binding(&mut |binding| {
        let Op::Call(call) = &binding.op else { return };
        let function = library.function(&call.function).expect("the verifier has seen the function");
        if function.signature.effects.barrier {
            barriers.insert(Resource::World(function.signature.module.clone()));
        }
    });
    barriers
}

/// Returns the resources that a call accesses, in the canonical order: by the signature's `&` and `&mut`, its marks, the
/// shared values among the arguments, and the barriers of its flow.
pub(crate) fn call_uses(signature: &Signature, call: &Call, barriers: &BTreeSet<Resource>) -> Vec<ResourceUse> {
    let mut uses: BTreeMap<Resource, Mode> = BTreeMap::new();
    let mut touch = |resource, mode: Mode| {
        let entry = uses.entry(resource).or_insert(mode);
        *entry = (*entry).max(mode);
    };
    for (argument, parameter) in call.arguments.iter().zip(&signature.parameters) {
        if let Atom::Shared(name) = argument {
            let change = parameter.passing == Passing::Change;
            touch(Resource::Shared(name.clone()), if change { Mode::Write } else { Mode::Read });
        }
    }
    match signature.effects.world {
        World::Pure => {}
        World::Reads => touch(Resource::World(signature.module.clone()), Mode::Read),
        World::Writes => touch(Resource::World(signature.module.clone()), Mode::Write),
    }
    if let Some(state) = &signature.state {
        touch(Resource::State(call.site.clone()), state.mode);
    }
    if !uses.is_empty() {
        barriers.iter().for_each(|barrier| _ = uses.entry(barrier.clone()).or_insert(Mode::Read));
    }
    uses.into_iter().map(|(resource, mode)| ResourceUse { resource, mode, held: false }).collect()
}

/// Returns all that bodies access, each resource once in its strongest mode, held if all accesses are held.
pub(crate) fn body_uses(bodies: &[Graph]) -> Vec<ResourceUse> {
    let mut uses: BTreeMap<Resource, ResourceUse> = BTreeMap::new();
    let nodes = || bodies.iter().flat_map(|body| &body.nodes);
    let constraints = nodes().flat_map(|node| node.kind.constraints());
    let acquired = constraints.map(|constraint| ResourceUse {
        resource: constraint.resource.clone(),
        mode: constraint.mode,
        held: false,
    });
    let all = nodes().flat_map(|node| node.uses.iter().cloned()).chain(acquired);
    for usage in all {
        let entry = uses.entry(usage.resource.clone()).or_insert_with(|| usage.clone());
        entry.mode = entry.mode.max(usage.mode);
        entry.held &= usage.held;
    }
    uses.into_values().collect()
}

/// Returns the strongest mode in which a block accesses each resource, inner steps included.
pub(crate) fn needs(block: &Block, library: &Library) -> BTreeMap<Resource, Mode> {
    let mut needed: BTreeMap<Resource, Mode> = BTreeMap::new();
    block.each_binding(&mut |binding| {
        let mut touch = |resource: &Resource, mode: Mode| {
            let entry = needed.entry(resource.clone()).or_insert(mode);
            *entry = (*entry).max(mode);
        };
        if let Op::Call(call) = &binding.op {
            let function = library.function(&call.function).expect("the verifier has seen the function");
            call_uses(&function.signature, call, &BTreeSet::new())
                .iter()
                .for_each(|usage| touch(&usage.resource, usage.mode));
        } else if let Op::Atomic { constraints, .. } = &binding.op {
            constraints.iter().for_each(|held| touch(&held.resource, held.mode));
        }
    });
    needed
}

/// Returns the variables that any call in the block takes by `&mut`.
pub(crate) fn changed_variables(block: &Block, library: &Library) -> BTreeSet<Var> {
    let mut changed = BTreeSet::new();
    block.each_binding(&mut |binding| {
        let Op::Call(call) = &binding.op else { return };
        let function = library.function(&call.function).expect("the verifier has seen the function");
        for (argument, parameter) in call.arguments.iter().zip(&function.signature.parameters) {
            if let (Atom::Var(var), Passing::Change) = (argument, parameter.passing) {
                changed.insert(*var);
            }
        }
    });
    changed
}
