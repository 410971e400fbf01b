//! Preparation of `within` and `race`.

use std::sync::Arc;

use weir_ir::graph::NodeId;

use super::error::PrepareError;
use super::part::NodePart;
use super::steps::Assembly;
use crate::step::TimedStep;

impl Assembly<'_> {
    pub(super) fn timed(&self, id: NodeId, part: NodePart) -> Result<TimedStep, PrepareError> {
        let node = self.graph.node(id);
        let mut inputs = self.arguments(id.0 as usize)?.into_vec();
        let limit = (node.kind.own().inputs > 0).then(|| inputs.remove(0));
        let mut captures = inputs.into_iter();
        let bodies = part.timed.into_iter().map(|body| {
            let own = captures.by_ref().take(body.handed.len()).collect();
            (body, own)
        });
        let bodies = bodies.collect();
        Ok(TimedStep {
            name: Arc::from(&*node.name),
            limit,
            bodies,
            is_last_effect: self.is_last_effect(id),
            within: self.within(id),
            out: self.layout.port(id, 0),
        })
    }
}
