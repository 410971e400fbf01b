//! Preparation of `within`, `race` and transactions.

use std::sync::Arc;

use weir_ir::graph::{NodeId, NodeKind};

use super::error::{PrepareError, error};
use super::part::NodePart;
use super::steps::Assembly;
use crate::step::TimedStep;

impl Assembly<'_> {
    pub(super) fn timed(&self, id: NodeId, part: NodePart) -> Result<TimedStep, PrepareError> {
        let node = self.graph.node(id);
        let mut inputs = self.arguments(id.0 as usize)?.into_vec();
        let limit = (node.kind.own().inputs > 0).then(|| inputs.remove(0));
        let mut captures = inputs.into_iter();
        let is_transaction = matches!(node.kind, NodeKind::Transaction { .. });
        let own = node.kind.own().parameters;
        let mut bodies = Vec::with_capacity(part.timed.len());
        for body in part.timed {
            // Each attempt has the same values.
            if is_transaction && body.handed[own..].contains(&true) {
                return Err(error(&node.name, "the transaction changes or moves a value from outside".to_owned()));
            }
            let captured = captures.by_ref().take(body.handed.len() - own).collect();
            bodies.push((body, captured));
        }
        Ok(TimedStep {
            name: Arc::from(&*node.name),
            limit,
            is_transaction,
            bodies: bodies.into(),
            is_last_effect: self.is_last_effect(id),
            within: self.within(id),
            out: self.layout.port(id, 0),
        })
    }
}
