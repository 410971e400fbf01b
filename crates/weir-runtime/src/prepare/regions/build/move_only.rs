//! Slots for values that can only be moved: two threads cannot both have such a value.

use super::Builder;
use super::emitter::slot;
use super::scope::Scope;
use crate::prepare::moves::MoveOnlyTypes;

impl Builder<'_> {
    /// Notes the slots of a scope that may hold such values.
    pub(super) fn note_move_only(&mut self, scope: &Scope<'_>) {
        let types = MoveOnlyTypes::new(self.types.types, self.types.library);
        let graph = scope.graph;
        let parameters = graph.parameters.iter().enumerate().filter(|(_, ty)| types.may(ty));
        let mut found: Vec<u32> = parameters.map(|(parameter, _)| parameter as u32).collect();
        for (node, of) in graph.nodes.iter().enumerate() {
            let ports = of.outputs.iter().enumerate().filter(|(_, ty)| types.may(ty));
            found.extend(ports.filter_map(|(port, _)| scope.slot_of_port(node, port)));
        }
        self.emitter.move_only.extend(found.into_iter().map(|index| slot(scope.base + index)));
    }

    /// Notes that the slots of a loop, in front of those of its body, may hold such values, if one of the body's own does.
    pub(super) fn note_move_only_of_loop(&mut self, first: u32, inner: &Scope<'_>) {
        self.note_move_only(inner);
        let is_of_body = |other: &u16| u32::from(*other) >= inner.base;
        if self.emitter.move_only.iter().any(is_of_body) {
            self.emitter.move_only.extend((first..inner.base).map(slot));
        }
    }
}
