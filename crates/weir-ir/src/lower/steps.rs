//! Lowering of atomic steps: the constraints that a step takes, and its `acquire` and `release` nodes.

use weir_host::{Mode, Text};

use super::GraphBuilder;
use super::uses::needs;
use crate::expr::{Atom, Block, Constraint, Let};
use crate::graph::{NodeKind, Operand};

impl GraphBuilder<'_> {
    pub(super) fn atomic(
        &mut self,
        (constraints, restores, cancellable): (&[Constraint], &[Text], bool),
        session: Option<&Atom>,
        body: &Block,
        binding: &Let,
    ) -> Operand {
        let taken = self.to_take(constraints, body);
        if taken.is_empty() && restores.is_empty() {
            return self.block(body);
        }
        let session = session.filter(|_| taken.iter().any(|constraint| constraint.per_session));
        let mut node = self.draft(
            NodeKind::Acquire { constraints: taken.clone(), restores: restores.to_vec(), cancellable },
            "acquire",
            session.map_or(&[], std::slice::from_ref),
            binding,
        );
        node.outputs.clear();
        let acquire = self.list_id(node);
        let outside = (self.within.replace(acquire), self.held.clone());
        let program_wide = taken.iter().filter(|constraint| !constraint.per_session);
        self.held.extend(program_wide.map(|constraint| (constraint.resource.clone(), constraint.mode)));
        let result = self.block(body);
        (self.within, self.held) = outside;
        let mut node = self.draft(NodeKind::Release { acquire }, "release", &[], binding);
        node.outputs.clear();
        self.list(node);
        result
    }

    /// Returns the constraints that are not held yet, each in the strongest mode that the step needs anywhere within.
    pub(super) fn to_take(&self, constraints: &[Constraint], body: &Block) -> Vec<Constraint> {
        let needed = needs(body, self.definitions.library);
        let mut taken: Vec<Constraint> = constraints.to_vec();
        for constraint in &mut taken {
            let inner = needed.get(&constraint.resource).copied().unwrap_or(Mode::Read);
            constraint.mode = constraint.mode.max(inner);
        }
        taken.retain(|constraint| self.held.get(&constraint.resource).is_none_or(|mode| *mode < constraint.mode));
        taken.sort();
        taken
    }
}
