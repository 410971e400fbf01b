//! Preparation of `within` and `race`.

use std::sync::Arc;

use weir_ir::graph::{Node, NodeId, NodeKind};

use super::steps::Assembly;
use super::{NodePart, PrepareError};
use crate::step::{Body, TimedStep};

/// Returns the body that captures this input of a `within` or `race`, and its parameter there.
pub(super) fn captured<'b>(node: &Node, bodies: &'b [Body], input: usize) -> Option<(&'b Body, usize)> {
    let mut index = input.checked_sub(own_inputs(node))?;
    for body in bodies {
        match index.checked_sub(body.handed.len()) {
            Some(rest) => index = rest,
            None => return Some((body, index)),
        }
    }
    None
}

/// Returns the number of inputs before the captured ones.
fn own_inputs(node: &Node) -> usize {
    usize::from(matches!(node.kind, NodeKind::Within { .. }))
}

impl Assembly<'_> {
    pub(super) fn timed(&self, id: NodeId, part: NodePart) -> Result<TimedStep, PrepareError> {
        let node = self.graph.node(id);
        let mut inputs = self.arguments(id.0 as usize)?.into_vec();
        let limit = matches!(node.kind, NodeKind::Within { .. }).then(|| inputs.remove(0));
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
            within: self.within(id),
            out: self.layout.port(id, 0),
        })
    }
}
