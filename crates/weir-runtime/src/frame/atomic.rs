//! Entry into atomic steps: ticket gates, two-phase locking, and the values of the sessions that are held.

use std::sync::Arc;
use std::task::{Context, Poll};

use weir_host::{Shared, Value, memory};

use super::action::{Making, Ran, Stage};
use super::step_locks::StepLocks;
use super::{Finished, FlowExit, Frame, OpenStep};
use crate::instance::Env;
use crate::lock::{HeldLock, LockAcquisition, LockHandle, SessionState, SessionTable};
use crate::step::{AcquireStep, Body, SharedOf, Wanted};
use crate::units::Advanced;

impl Frame {
    /// Waits at the ticket gates from `passed` on, and then for the locks.
    pub(super) fn acquire(
        &mut self,
        node: usize,
        passed: usize,
        step: &AcquireStep,
        body: &Body,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        if self.is_refused(step, env) {
            return Ran::wait(Stage::Refused);
        }
        for (index, gate) in step.ticket_gates.iter().enumerate().skip(passed) {
            if env.instance.resources.ticket_gates[*gate].poll(env.key.sequence, context).is_pending() {
                return Ran::wait(Stage::Ticket(index));
            }
        }
        let session = step.session.map_or(Value::Unit, |session| self.value(body, session));
        let needs_no_locks = self.inherited.is_empty() && step.needs_no_locks();
        let wanted = step.wanted.iter().filter(|_| !needs_no_locks);
        let handles = wanted.filter_map(|wanted| match wanted {
            Wanted::Whole(lock, mode) => Some((LockHandle::Whole(Arc::clone(lock)), *mode)),
            // The session is known only here, so an enclosing step may turn out to hold it already.
            Wanted::Session(sessions, _) | Wanted::Own(sessions, ..)
                if self.holds_session(&step.within, sessions, &session) =>
            {
                None
            }
            Wanted::Session(sessions, mode) => Some((LockHandle::session(sessions, session.clone()), *mode)),
            Wanted::Own(sessions, mode, _) => {
                env.sessions.keep(sessions, &session);
                Some(LockHandle::of_own(sessions, session.clone(), *mode))
            }
        });
        let handles: Vec<_> = handles.collect();
        self.hold(node, LockAcquisition::new(handles), step, env, context)
    }

    /// Returns true if the step does not begin, because the frame, or one around it, is to be given up as soon as it is in
    /// no atomic step. A step inside another one begins.
    fn is_refused(&self, step: &AcquireStep, env: Env<'_>) -> bool {
        let Some(outside) = env.given_up else { return false };
        let own = self.scopes.iter().filter(|open| step.within.contains(&open.node)).count();
        self.inherited.len() + own <= outside
    }

    fn holds_session(&self, within: &[u32], sessions: &Arc<SessionTable>, session: &Value) -> bool {
        let around = self.scopes_around(within);
        around.iter().flat_map(|scope| scope.held.iter()).any(|held| held.is_session(sessions, session))
    }

    /// Waits for the locks.
    pub(super) fn hold(
        &mut self,
        node: usize,
        mut locks: LockAcquisition,
        step: &AcquireStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        if self.is_refused(step, env) {
            return Ran::wait(Stage::Refused);
        }
        match locks.poll(context) {
            Poll::Pending => Ran::wait(Stage::Locks(locks)),
            Poll::Ready(held) => self.make_own(node, Making { held, wanted: 0, frame: None }, step, env, context),
        }
    }

    /// Creates the values of the sessions that are held, if they do not exist yet, and begins the step. Their bodies spend
    /// the units and the memory of the flow. The step has not begun: it may be given up.
    pub(super) fn make_own(
        &mut self,
        node: usize,
        mut making: Making,
        step: &AcquireStep,
        env: Env<'_>,
        context: &mut Context<'_>,
    ) -> Ran {
        while let Some(wanted) = step.wanted.get(making.wanted) {
            if let Wanted::Own(sessions, _, index) = wanted
                && let Some(session) = making.held.iter().find_map(|held| held.session_of(sessions))
                && session.made().is_none()
            {
                let body =
                    env.instance.own[*index as usize].as_ref().expect("the program says that each session has one");
                let frame = making.frame.get_or_insert_with(|| Frame::take(body, true));
                let finished = match frame.advance(body, env, None, context) {
                    Advanced::Ready(finished) => finished,
                    Advanced::Waits => return Ran::wait(Stage::Making(making)),
                    Advanced::Yields => return Ran::yields(Stage::Making(making)),
                };
                match finished {
                    Finished::Value(value) | Finished::Ended(FlowExit { how: Ok(value), .. }) => session.put(value),
                    Finished::Ended(FlowExit { how: Err(failure), .. }) => return Ran::fail(failure),
                    Finished::SegmentEnd => unreachable!("bodies are not cut"),
                }
                making.end_body();
            }
            making.wanted += 1;
        }
        if self.inherited.is_empty()
            && self.scopes.is_empty()
            && let Err(failure) = memory::begin_step()
        {
            return Ran::fail(failure);
        }
        let locks = Arc::new(self.locks_of_step(std::mem::take(&mut making.held), step, env));
        self.scopes.push(OpenStep { node: node as u32, locks, cancellable: step.cancellable });
        Ran::Next
    }

    /// Returns the locks of a step that begins, with the shared values that it restores: that of a session is one of these locks or of
    /// a step around.
    fn locks_of_step(&self, held: Vec<HeldLock>, step: &AcquireStep, env: Env<'_>) -> StepLocks {
        let shared = step.restores.iter().map(|shared| match shared {
            SharedOf::Session(sessions) => {
                let own = held.iter().filter_map(|lock| lock.session_of(sessions)).find_map(SessionState::made);
                own.unwrap_or_else(|| self.shared_at(shared, &step.within, &env))
            }
            SharedOf::Program(_) => self.shared_at(shared, &step.within, &env),
        });
        let shared: Vec<Shared> = shared.collect();
        StepLocks::restoring(held, shared, &step.ends)
    }
}
