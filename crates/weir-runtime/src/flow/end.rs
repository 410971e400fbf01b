//! The end of a flow: its answer or failure is counted and recorded, and what it holds is released.

use weir_host::{Failure, PropagationSite, Value};
use weir_trace::{BacktraceEntry, Detail, EventKind};

use super::{FlowBatches, FlowState};
use crate::flow_sessions::FlowSessions;
use crate::frame::{Finished, FlowExit, Frame};
use crate::instance::{ProgramInstance, RouteCounters};

impl FlowState {
    /// Ends the flow with the outcome of its frame.
    #[inline]
    pub(super) fn end(&mut self, instance: &ProgramInstance, finished: Finished) -> Result<Value, Failure> {
        self.release(instance);
        let answer = match finished {
            Finished::Value(value) | Finished::Ended(FlowExit { how: Ok(value), .. }) => value,
            Finished::Ended(ended) => return Err(self.failure(instance, ended)),
            Finished::SegmentEnd => unreachable!("nothing stops it before its end"),
        };
        self.answered(instance);
        Ok(answer)
    }

    /// Counts and records that the flow has ended with an answer.
    #[inline]
    pub(super) fn answered(&self, instance: &ProgramInstance) {
        let counters = instance.counters(self.key);
        counters.queues.note_end(self.turns.level());
        counters.count_ended();
        self.measure(instance, counters);
        instance.record(Detail::Flows, || EventKind::FlowEnded { flow: self.key });
    }

    #[cold]
    pub(super) fn failure(&self, instance: &ProgramInstance, mut ended: FlowExit) -> Failure {
        let how = std::mem::replace(&mut ended.how, Ok(Value::Unit));
        let failure = how.err().map_or_else(|| Failure::function("no failure"), |failure| *failure);
        let counters = instance.counters(self.key);
        counters.queues.note_end(self.turns.level());
        counters.count(&counters.failed);
        self.measure(instance, counters);
        self.record_failure(instance, &ended, &failure);
        failure
    }

    /// Records the duration of a watched flow.
    fn measure(&self, instance: &ProgramInstance, counters: &RouteCounters) {
        if self.is_watched() && instance.recorder.wants(Detail::Sections) {
            counters.took.add(instance.platform.now_ns().saturating_sub(self.began_ns));
        }
    }

    fn record_failure(&self, instance: &ProgramInstance, ended: &FlowExit, failure: &Failure) {
        instance.record(Detail::Log, || {
            let flow = instance.flow(self.key);
            EventKind::FlowFailed {
                flow: self.key,
                path: format!("{}: {}", flow.name, ended.path(&flow.body)).into(),
                kind: failure.kind.name(),
                message: failure.message.as_str().into(),
                backtrace: failure.backtrace().iter().map(entry).collect(),
                position: failure.place(),
                trace_id: self.trace.context().map(|context| context.trace_id().into()),
            }
        });
    }

    /// Returns the frame to its pool, and announces that the flow will reach no further stateful call; returns false if
    /// the flow has ended already.
    #[inline]
    pub(super) fn release(&mut self, instance: &ProgramInstance) -> bool {
        let Some(frame) = self.frame.take() else { return false };
        self.claims = None;
        if self.batches == FlowBatches::Counted {
            instance.resources.in_batches.leave();
        }
        Frame::give_back(frame);
        self.sessions = FlowSessions::default();
        if self.computes {
            self.note_computing(instance, false);
        }
        for gate in &instance.flow(self.key).ticket_gates {
            instance.resources.ticket_gates[*gate].pass(self.key.sequence);
        }
        true
    }

    /// Cancels the flow unless it has ended, which releases everything that it holds.
    pub(crate) fn give_up(&mut self, instance: &ProgramInstance) {
        if self.release(instance) {
            let counters = instance.counters(self.key);
            counters.count(&counters.given_up);
            instance.record(Detail::Flows, || EventKind::FlowGivenUp { flow: self.key });
        }
    }
}

fn entry(site: &PropagationSite) -> BacktraceEntry {
    let (failed, function) = (site.failed.as_str().into(), site.function.as_str().into());
    BacktraceEntry { failed, function, position: site.position }
}
