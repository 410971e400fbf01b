//! Steps that wait or were interrupted: how a frame stores them, and goes on with them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Poll};

use weir_host::EarlierReads;
use weir_trace::{Detail, EventKind};

use super::action::{Ran, Stage};
use super::{Frame, SPARE_STAGES_MAX, Wait, record_ran};
use crate::flow_section::CallQueue;
use crate::instance::Env;
use crate::step::{Action, Body, PreparedStep};

impl PreparedStep {
    /// Returns the iteration orders that the step, which waits in this stage, has left before its end.
    #[inline]
    fn left_orders(&self, stage: &Stage) -> u64 {
        match stage {
            Stage::Batched(_) => self.placed_orders,
            Stage::Function(..) if self.placed_orders != 0 && self.is_in_queue() => self.placed_orders,
            Stage::Body(run) => match self.action.uncut().form() {
                Action::Repeat(repeat) => run.left_orders(&repeat.early_orders),
                _ => 0,
            },
            _ => 0,
        }
    }

    /// Returns true if the step is a call whose order is that of a queue of its section.
    fn is_in_queue(&self) -> bool {
        let Action::Call(call) = self.action.uncut().form() else { return false };
        call.section.is_some_and(|section| section.queue != CallQueue::Any)
    }
}

impl Frame {
    /// Resumes a frame that has yielded: polls the steps that wait, and the suspended step last. Returns true if one has
    /// advanced. If that one has ended the flow, the steps behind it, such as the suspended one, were not polled.
    #[cold]
    pub(super) fn resume(&mut self, body: &Body, env: Env<'_>, context: &mut Context<'_>) -> bool {
        assert!(self.low <= self.until, "a frame does not stop before a step that it has passed");
        self.yielded = false;
        self.waits.iter_mut().for_each(|wait| wait.is_polled = false);
        self.poll_waits(body, env, context)
    }

    /// Polls every pending step; returns true if one has advanced. Sets `yielded` if the slice is over.
    pub(super) fn poll_waits(&mut self, body: &Body, env: Env<'_>, context: &mut Context<'_>) -> bool {
        let mut progressed = false;
        let mut index = 0;
        while index < self.waits.len() {
            let node = self.waits[index].node;
            if std::mem::take(&mut self.waits[index].is_polled) {
                index += 1;
                continue;
            }
            let left_orders = self.waits[index].left_orders;
            let polled = catch_unwind(AssertUnwindSafe(|| self.poll_wait(index, body, env, context)));
            let ran = match polled {
                Ok(Some(ran)) => ran,
                Ok(None) => {
                    index += 1;
                    continue;
                }
                Err(panic) => Ran::Ends(Box::new(self.exit_of_panic(node, body, &*panic))),
            };
            self.yielded |= matches!(ran, Ran::Yields(_));
            if let Ran::Waits(stage) | Ran::Yields(Some(stage)) = ran {
                let left = body.steps[node].left_orders(&stage) & !left_orders;
                self.signal(left);
                self.waits[index].left_orders |= left;
                self.waits[index].stage = Some(stage);
                index += 1;
                continue;
            }
            progressed = true;
            let since_ns = self.waits[index].since_ns;
            drop(if index + 1 == self.waits.len() { self.waits.pop() } else { Some(self.waits.remove(index)) });
            record_ran(body, env, node, since_ns);
            // A region has moved the cursor to the last node that it has run.
            self.see_region(node, body, env);
            if let Ran::Again(map) = ran {
                self.suspended.take_if(|suspended| *suspended == node);
                self.reopen(map, node, body);
                continue;
            }
            if self.suspended == Some(node) {
                self.pass_suspended(if matches!(ran, Ran::Ends(_)) { self.cursor } else { self.cursor + 1 });
            }
            if let Ran::Ends(end) = ran {
                self.record_end(self.cursor, *end);
                return true;
            }
            let step = &body.steps[node];
            self.pass_ticket_gates(step, env);
            self.signal(step.signals_orders & !left_orders);
        }
        progressed
    }

    /// Polls a pending step; returns `None` if it is a batched call that is not answered, or a read that begins behind others, which stays
    /// where it is.
    #[inline]
    fn poll_wait(&mut self, index: usize, body: &Body, env: Env<'_>, context: &mut Context<'_>) -> Option<Ran> {
        let node = self.waits[index].node;
        if let Some(Stage::Batched(member)) = self.waits[index].stage.as_deref_mut() {
            let Poll::Ready(answers) = member.poll(context) else { return None };
            self.cursor = node;
            self.end_stage(index);
            return Some(self.take_answers(answers, &body.steps[node]).spend_call(&env));
        }
        let is_early = self.awaits_reads(index, body);
        if is_early && matches!(self.waits[index].stage.as_deref(), Some(Stage::Locks(_))) {
            return None;
        }
        let _earlier = is_early.then(EarlierReads::unanswered);
        let stage = self.take_stage(index)?;
        self.cursor = node;
        Some(self.go_on(node, stage, body, env, context))
    }

    /// Takes the stage of a step that waits, and keeps its box for the next one.
    fn take_stage(&mut self, index: usize) -> Option<Stage> {
        let stage = self.waits[index].stage.as_deref_mut().map(|stage| std::mem::replace(stage, Stage::Moves))?;
        self.end_stage(index);
        Some(stage)
    }

    /// Drops the stage of a step that waits, and keeps its box for the next one.
    pub(super) fn end_stage(&mut self, index: usize) {
        let Some(mut boxed) = self.waits[index].stage.take() else { return };
        if self.spare_stages.len() < SPARE_STAGES_MAX {
            *boxed = Stage::Moves;
            self.spare_stages.push(boxed);
        }
    }

    /// Waits in this stage.
    pub(super) fn waits_in(&mut self, stage: Stage) -> Ran {
        match self.spare_stages.pop() {
            Some(mut boxed) => {
                *boxed = stage;
                Ran::Waits(boxed)
            }
            None => Ran::wait(stage),
        }
    }

    /// Returns true if the frame waits for batched calls alone, of which none is answered; the task is woken when one is.
    pub(crate) fn awaits_batches(&self, context: &Context<'_>) -> bool {
        let waits =
            |wait: &Wait| matches!(wait.stage.as_deref(), Some(Stage::Batched(member)) if member.waits(context));
        !self.yielded && self.suspended.is_none() && !self.waits.is_empty() && self.waits.iter().all(waits)
    }

    /// Stores a step that waits.
    pub(super) fn wait(&mut self, node: usize, stage: Box<Stage>, body: &Body, env: Env<'_>) {
        self.see(node);
        let left_orders = body.steps[node].left_orders(&stage);
        self.signal(left_orders);
        if env.records_nodes {
            let name = || Arc::clone(&body.names[node]);
            env.instance.record(Detail::Nodes, || EventKind::NodeWaits { flow: env.key, node: name() });
        }
        let since_ns = if env.records_nodes { env.instance.platform.now_ns() } else { 0 };
        // A call of the simplest kind that takes long begins elsewhere, and is polled later.
        let is_simple = matches!(body.steps[node].action.uncut().form(), Action::Simple(_));
        let is_polled = match *stage {
            Stage::Function(..) => !is_simple,
            // It has registered the task when it was placed.
            Stage::Batched(_) => true,
            _ => false,
        };
        self.waits.push(Wait { node, stage: Some(stage), since_ns, left_orders, is_polled });
    }

    /// Stores a step that was interrupted, or that waits without a bit: for a call that takes long.
    pub(super) fn suspend(&mut self, node: usize, stage: Box<Stage>, body: &Body, env: Env<'_>) {
        if body.steps[node].wait_number.is_none() {
            self.suspended = Some(node);
        }
        let since_ns = if env.records_nodes { env.instance.platform.now_ns() } else { 0 };
        self.waits.push(Wait { node, stage: Some(stage), since_ns, left_orders: 0, is_polled: false });
    }

    /// Goes on with this step: the suspended one has run.
    fn pass_suspended(&mut self, next: usize) {
        self.suspended = None;
        if self.seen.is_empty() {
            self.low = next;
        }
    }
}
