//! Entry into atomic steps: ticket gates, two-phase locking, and the values of the sessions that are held.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use weir_host::{Failure, Value};

use super::action::{Ran, Stage};
use super::{Finished, Frame};
use crate::instance::Env;
use crate::lock::{HeldLock, LockAcquisition, LockHandle, SessionTable};
use crate::step::{AcquireStep, Body, Wanted};
use crate::units::{Advanced, Units};

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
        let handles = step.wanted.iter().filter_map(|wanted| match wanted {
            Wanted::Whole(lock, mode) => Some((LockHandle::Whole(Arc::clone(lock)), *mode)),
            // The session is known only here, so an enclosing step may turn out to hold it already.
            Wanted::Session(sessions, _) | Wanted::Own(sessions, ..)
                if self.holds_session(&step.within, sessions, &session) =>
            {
                None
            }
            Wanted::Session(sessions, mode) | Wanted::Own(sessions, mode, _) => {
                Some((LockHandle::session(sessions, session.clone()), *mode))
            }
        });
        let handles: Vec<_> = handles.collect();
        self.hold(node, LockAcquisition::new(handles), step, env, context)
    }

    /// Returns true if the step does not begin, because the frame, or one around it, is to be given up as soon as it is in
    /// no atomic step. A step inside another one begins.
    fn is_refused(&self, step: &AcquireStep, env: Env<'_>) -> bool {
        let Some(outside) = env.given_up else { return false };
        let own = self.scopes.iter().filter(|(node, _)| step.within.contains(node)).count();
        self.inherited.len() + own <= outside
    }

    fn holds_session(&self, within: &[u32], sessions: &Arc<SessionTable>, session: &Value) -> bool {
        let around = self.scopes_around(within);
        around.iter().flat_map(|scope| scope.iter()).any(|held| held.is_session(sessions, session))
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
            Poll::Ready(held) => {
                if let Err(failure) = make_own(step, &held, env) {
                    return Ran::fail(failure);
                }
                self.scopes.push((node as u32, Arc::new(held)));
                Ran::Next
            }
        }
    }
}

/// Creates the values of the sessions that are held, if they do not exist yet.
fn make_own(step: &AcquireStep, held: &[HeldLock], env: Env<'_>) -> Result<(), Box<Failure>> {
    for wanted in &step.wanted {
        let Wanted::Own(sessions, _, index) = wanted else { continue };
        if let Some(session) = held.iter().find_map(|held| held.session_of(sessions)) {
            session.value(|| made_for_a_session(*index, env))?;
        }
    }
    Ok(())
}

/// Creates the value of a session. The body that computes it never waits.
fn made_for_a_session(index: u32, env: Env<'_>) -> Result<Value, Box<Failure>> {
    let body = env.instance.own[index as usize].as_ref().expect("the program says that each session has one");
    let mut frame = Frame::take(body, true);
    let units = Units::endless();
    let env = Env { units: &units, ..env };
    let finished = frame.advance(body, env, None, &mut Context::from_waker(Waker::noop()));
    Frame::give_back(frame);
    match finished {
        Advanced::Ready(Finished::Value(value)) => Ok(value),
        Advanced::Ready(Finished::Ended(ended)) => ended.how,
        Advanced::Ready(Finished::SegmentEnd) | Advanced::Waits | Advanced::Yields => {
            Err(Box::new(Failure::function("what makes a session's value waits")))
        }
    }
}
