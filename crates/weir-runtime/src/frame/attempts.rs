//! The attempts of a transaction, which is executed again if the database refuses it.
//!
//! 1. Each attempt has a frame of its own. The values that the body captures are kept until the last one, and an attempt gets clones.
//! 2. If an attempt ends with the failure of a refusal ([`Failure::is_refusal`]), its frame is given back at once. That releases its
//!    locks, and takes back what it has left unfinished (`StepEnds`).
//! 3. The next attempt begins after a pause of random length, so that two transactions which hinder each other do not meet again. The
//!    flow can be given up meanwhile, as at any other wait.
//! 4. The last attempt is told that it is: its failures are those of the program.

use std::future::Future;
use std::pin::Pin;
use std::task::Context;

use weir_events::Synchronisation;
use weir_host::{Failure, Value};
use weir_ir::expr::TRANSACTION_ATTEMPTS_MAX;

use super::step_locks::AtomicScope;
use crate::instance::Env;

/// Maximum length of the pause behind the first attempt; behind each further one it is twice as long. Chosen by judgement: about the
/// time of a transaction.
const PAUSE_MAX_NS: u64 = 2_000_000;

/// The attempts of a transaction.
pub(super) struct Attempts {
    /// The number of those that have begun.
    begun: u32,
    captures: Vec<Value>,
    /// The locks of the atomic steps around the transaction.
    pub scopes: Vec<AtomicScope>,
    pause: Option<Synchronisation<()>>,
}

impl Attempts {
    pub(super) fn new(captures: Vec<Value>, scopes: Vec<AtomicScope>) -> Attempts {
        Attempts { begun: 0, captures, scopes, pause: None }
    }

    /// Begins an attempt. Returns the inputs of its body.
    pub(super) fn begin(&mut self) -> impl Iterator<Item = Value> + '_ {
        self.begun += 1;
        std::iter::once(Value::Bool(self.is_last())).chain(self.captures.iter().cloned())
    }

    fn is_last(&self) -> bool {
        self.begun >= TRANSACTION_ATTEMPTS_MAX
    }

    /// Returns whether the transaction is executed again if an attempt has ended with this failure.
    pub(super) fn go_on_behind(&self, failure: &Failure) -> bool {
        failure.is_refusal() && !self.is_last()
    }

    /// Begins the pause behind an attempt.
    pub(super) fn pause(&mut self, env: Env<'_>) {
        let platform = &env.instance.platform;
        let pause_ns = platform.random() % (PAUSE_MAX_NS << (self.begun - 1));
        self.pause = Some(platform.at(platform.now_ns().saturating_add(pause_ns)).synchronise());
    }

    /// Returns whether the flow is in the pause between two attempts, and has it woken at the end of that.
    pub(super) fn is_in_pause(&mut self, context: &mut Context<'_>) -> bool {
        let Some(pause) = &mut self.pause else { return false };
        if Pin::new(pause).poll(context).is_pending() {
            return true;
        }
        self.pause = None;
        false
    }
}
