//! The place at which a frame has stopped, for the message of a flow that then has too much memory.

use weir_host::Failure;

use super::action::Stage;
use super::exit::path;
use super::{FlowExit, Frame};
use crate::region::CodePlace;
use crate::step::{Action, Body};

impl Frame {
    /// Returns the end of the flow by a failure where the frame stopped last: at the step that waits or has yielded, of a
    /// region at the safe point, and of a step with bodies where one of these stopped.
    #[cold]
    pub(crate) fn exit_where_stopped(&self, body: &Body, failure: Box<Failure>) -> FlowExit {
        let CodePlace { node, within } = self.stopped_at(body);
        FlowExit { node, within, how: Err(failure) }
    }

    /// Returns the place where the frame stopped last.
    fn stopped_at(&self, body: &Body) -> CodePlace {
        let node = self.suspended.unwrap_or(self.cursor);
        let stage = self.waits.iter().find(|wait| wait.node == node).and_then(|wait| wait.stage.as_deref());
        let action = body.steps.get(node).map(|step| step.action.uncut());
        let inner = match (stage, action) {
            (
                Some(Stage::Region(_, at) | Stage::RegionJoin(at) | Stage::RegionCall(_, at)),
                Some(Action::Region(step)),
            ) => return step.region.place(*at).clone(),
            (Some(Stage::Body(run)), Some(action)) => match action.form() {
                Action::Repeat(step) => run.stopped_frame().map(|frame| (frame, &step.body)),
                _ => None,
            },
            (Some(Stage::Timed(run)), Some(Action::Timed(step))) => run.stopped_frame(step),
            _ => None,
        };
        let within = inner.map_or_else(String::new, |(frame, body)| {
            let CodePlace { node, within } = frame.stopped_at(body);
            path(body, node, &within)
        });
        CodePlace { node, within }
    }

    /// Returns true if the frame has stopped within its body, and not before or behind it.
    pub(super) fn has_stopped(&self) -> bool {
        self.yielded || !self.waits.is_empty()
    }
}
