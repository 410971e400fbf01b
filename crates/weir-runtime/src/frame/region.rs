//! Regions within a frame: running them, yielding in the middle, and the place of a panic.
//!
//! A region runs as its first step does. When it has run, the cursor stands at its last node, and when it ends the flow, at
//! the node that did. It may run rounds of its loops on other threads ([`forks`](crate::forks)), and waits for them.

use std::any::Any;
use std::task::{Context, Poll};

use weir_host::{Failure, Pending, Value};

use super::action::{Ran, Stage, StepExit};
use super::{Frame, path_of};
use crate::forks::region_run::{ForkScene, RegionRan, RegionRun};
use crate::instance::Env;
use crate::operations::panicked;
use crate::region::CodePlace;
use crate::step::{Action, Body, RegionStep};

impl Frame {
    /// Returns true if a region runs as one piece: nobody records its nodes, the frame does not stop inside of it, and no `fold` in
    /// it may have to wait for a further strip.
    #[inline]
    pub(super) fn runs_regions(&self, step: &RegionStep, env: Env<'_>) -> bool {
        !env.records_nodes && self.strips.is_empty() && step.region.nodes.end <= self.until
    }

    /// Runs the region that begins with this node, from an instruction on.
    #[inline(never)]
    pub(super) fn run_region(
        &mut self,
        node: usize,
        step: &RegionStep,
        at: usize,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        let region = &step.region;
        if at == 0 {
            region.begin(&mut self.words);
            self.slots.resize(self.slots.len().max(region.slots), Value::Absent);
        }
        let is_in_step = !self.scopes.is_empty() || !self.inherited.is_empty();
        let mut run = RegionRun {
            region,
            slots: &mut self.slots,
            words: &mut self.words,
            choices: &mut self.choices,
            forks: &mut self.forks,
            current: self.region_at.insert(at),
            scene: ForkScene {
                instance: env.instance,
                units: env.units,
                call_budget: env.call_budget,
                forks: (!is_in_step).then_some(env.forks),
                fork: None,
                is_on_helper: false,
            },
        };
        let ran = run.run(at, context);
        let stopped = self.region_at.take().unwrap_or(at);
        self.cursor = node;
        match ran {
            RegionRan::Through => {
                self.cursor = region.nodes.end - 1;
                Ran::Next
            }
            RegionRan::Yields(at) => Ran::yields(Stage::Region(at, stopped)),
            RegionRan::Joins(at) => Ran::wait(Stage::RegionJoin(at)),
            RegionRan::Calls(at, long) => {
                let pending = long.begin(Vec::new(), Vec::new(), env);
                self.wait_for_call(step, (pending, at), context)
            }
            RegionRan::Ends(at, how) => self.end_at(region.place(at), how),
        }
    }

    /// Waits for the call of an instruction, which takes long, and goes on behind it.
    pub(super) fn wait_for_call(
        &mut self,
        step: &RegionStep,
        (mut pending, at): (Pending, usize),
        context: &mut Context<'_>,
    ) -> Ran {
        let Poll::Ready(settled) = pending.as_mut().poll(context) else {
            return Ran::wait(Stage::RegionCall(pending, at));
        };
        match step.region.answer_call(at, settled.outcome, &mut self.words, &mut self.slots) {
            // Not at once, so that calls that end quickly do not make the stack deep.
            Ok(()) => Ran::yields(Stage::Region(at + 1, at)),
            Err(failure) => self.end_at(step.region.place(at), Err(failure)),
        }
    }

    /// Ends the flow at this place of a region.
    fn end_at(&mut self, place: &CodePlace, how: Result<Value, Box<Failure>>) -> Ran {
        self.forks.give_up();
        self.cursor = place.node;
        Ran::Ends(Box::new(StepExit { within: place.within.clone(), how }))
    }

    /// Returns the end of the flow by a panic in the step of this node. A region moves the cursor to the node that
    /// panicked.
    #[cold]
    pub(super) fn exit_of_panic(&mut self, node: usize, body: &Body, panic: &(dyn Any + Send)) -> StepExit {
        let at = self.region_at.take();
        if at.is_some() {
            self.forks.give_up();
        }
        if let (Some(at), Some(Action::Region(step))) = (at, body.steps.get(node).map(|step| step.action.uncut())) {
            let place = step.region.place(at);
            self.cursor = place.node;
            let path = step.region.called(at).unwrap_or_else(|| path_of(body, place.node));
            return StepExit { within: place.within.clone(), how: Err(panicked(path, panic)) };
        }
        StepExit { within: String::new(), how: Err(panicked(path_of(body, node), panic)) }
    }

    /// Returns the end of the region that was interrupted; 0 if none was. A frame that goes on with it passes all its nodes,
    /// although it may have begun in a run of several segments and goes on in one of them.
    #[cold]
    pub(super) fn end_of_suspended_region(&self, body: &Body) -> usize {
        let stage = self.waits.last().and_then(|wait| wait.stage.as_deref());
        let action = self.suspended.map(|node| body.steps[node].action.uncut());
        match (stage, action) {
            (Some(Stage::Region(..) | Stage::RegionCall(..) | Stage::RegionJoin(_)), Some(Action::Region(step))) => {
                step.region.nodes.end
            }
            _ => 0,
        }
    }

    /// Records that the steps behind this one have run up to the cursor, because a region has run them.
    pub(super) fn see_region(&mut self, first: usize, body: &Body, env: Env<'_>) {
        for index in first + 1..=self.cursor {
            self.see(index);
            self.through(&body.steps[index], env);
        }
    }
}
