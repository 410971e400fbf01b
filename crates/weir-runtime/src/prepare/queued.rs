//! Calls that take their turns in the queue of their section: the next one follows before they have returned.

use crate::flow_section::CallQueue;
use crate::step::{Action, Body};

/// A call that takes its turns in the queue of its section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuedCall {
    /// The name of its flow.
    pub flow: String,
    /// The name of its node.
    pub call: String,
}

/// Adds the calls in a body of this flow that take their turns in a queue to a list.
pub(crate) fn queued_calls_of(flow: &str, body: &Body, found: &mut Vec<QueuedCall>) {
    for (step, name) in body.steps.iter().zip(&body.names) {
        match step.action.uncut().form() {
            Action::Call(call) if call.section.is_some_and(|section| section.queue != CallQueue::Any) => {
                found.push(QueuedCall { flow: flow.to_owned(), call: name.to_string() });
            }
            Action::Repeat(repeat) => queued_calls_of(flow, &repeat.body, found),
            Action::Timed(timed) => timed.bodies.iter().for_each(|(body, _)| queued_calls_of(flow, body, found)),
            _ => {}
        }
    }
}
