//! Requests for memory, which are compared with the limits.

use std::sync::atomic::Ordering;

use super::limits::PROGRAM_LIMIT;
use super::reached_limit::ReachedLimit;
use super::thread_account::{TOTAL, account};
use crate::{Failure, FailureKind};

/// A request below this is compared with the limit of the flow only, and a flow that holds less is not stopped because of
/// the others. Chosen by judgement: most requests never hold as much.
pub(super) const SMALL_BYTES: i64 = 64 * 1024;

/// The bytes by which a flow may grow in an atomic step, whatever the limits say. Chosen by judgement: far more than most
/// steps need, and little beside the limit of a program, which steps that are under way may exceed by as much each.
const STEP_BYTES: i64 = 1 << 20;

/// The same as a part of the flow's limit, if that is less.
const STEP_PART: i64 = 16;

/// Asks for room for an allocation that the running flow is about to make.
///
/// # Errors
/// Fails if the flow or the program would exceed its limit; the failure ends the flow.
#[inline]
pub fn ask(bytes: usize) -> Result<(), Box<Failure>> {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    let (balance, limit) = account(|account| (account.balance(), account.limit.get()));
    if bytes < SMALL_BYTES && balance.saturating_add(bytes) <= limit {
        return Ok(());
    }
    exceeded(balance, bytes, limit).map_or(Ok(()), Err)
}

/// Compares the running flow with the limits.
///
/// # Errors
/// Fails if the flow holds too much; the failure ends the flow.
#[inline]
pub fn check() -> Result<(), Box<Failure>> {
    let (balance, limit) = account(|account| (account.balance(), account.limit.get()));
    if balance < SMALL_BYTES && balance <= limit {
        return Ok(());
    }
    exceeded(balance, 0, limit).map_or(Ok(()), Err)
}

/// Returns the balance to which the flow that runs on this thread may grow because it is in an atomic step, for work that
/// another thread does for it; 0 if it is in none.
#[must_use]
pub fn assured() -> i64 {
    account(|account| account.assured.get())
}

/// Begins an atomic step of the running flow: asks for the room that the step may rely on, so that a flow which holds too
/// much fails before the step and not within.
///
/// # Errors
/// Fails if the flow or the program would exceed its limit; the failure ends the flow.
pub fn begin_step() -> Result<(), Box<Failure>> {
    let (balance, limit) = account(|account| (account.balance().max(0), account.limit.get()));
    if limit == i64::MAX {
        // No flow runs.
        return Ok(());
    }
    account(|account| account.assured.set(0));
    let room = STEP_BYTES.min(limit / STEP_PART);
    // Of the program, only as much is asked for as most steps need: others may need it, too.
    let problem = match balance.saturating_add(room) > limit {
        true => exceeded(balance, room, limit),
        false => exceeded(balance, room.min(SMALL_BYTES), limit),
    };
    account(|account| account.assured.set(balance.saturating_add(room)));
    problem.map_or(Ok(()), Err)
}

/// Returns true if [`check`] would fail.
#[inline]
#[must_use]
pub fn is_over() -> bool {
    let (balance, limit) = account(|account| (account.balance(), account.limit.get()));
    (balance >= SMALL_BYTES || balance > limit) && exceeded(balance, 0, limit).is_some()
}

/// Returns the limit for which a flow was refused something on this thread since the last call: the work may have released what
/// it had before it failed for that reason.
#[must_use]
pub fn take_refusal() -> Option<ReachedLimit> {
    account(|account| account.refused.take())
}

/// Returns the failure of a flow that asks for this much more.
#[cold]
#[inline(never)]
fn exceeded(balance: i64, bytes: i64, limit: i64) -> Option<Box<Failure>> {
    let needed = balance.saturating_add(bytes);
    // No flow runs, or the flow is in an atomic step.
    if limit == i64::MAX || needed <= account(|account| account.assured.get()) {
        return None;
    }
    if needed > limit {
        let message = format!("the flow needs more than {} of memory (`memory_per_flow`)", shown(limit));
        return Some(failure(ReachedLimit::Flow, message));
    }
    let (used, program) = (TOTAL.load(Ordering::Relaxed), PROGRAM_LIMIT.load(Ordering::Relaxed));
    if fits_program(used, program, bytes, needed) {
        return None;
    }
    let (used, program, needed) = (shown(used), shown(program), shown(needed));
    let message =
        format!("the program holds {used} of its {program} of memory (`--memory`), and the flow would hold {needed}");
    Some(failure(ReachedLimit::Program, message))
}

/// Returns whether the program has room for what a flow asks for, which would then hold `needed` bytes.
fn fits_program(used: i64, program: i64, bytes: i64, needed: i64) -> bool {
    let after = used.saturating_add(bytes);
    let with_margin = program.saturating_add(program / 10);
    let is_in_step = assured() > 0;
    // A little beyond the limit, atomic steps and small flows may still end as they would.
    let small = if used > with_margin { 0 } else { SMALL_BYTES };
    (is_in_step && after <= with_margin) || needed <= program.saturating_sub(after).max(small)
}

fn failure(reached: ReachedLimit, message: String) -> Box<Failure> {
    account(|account| account.refused.set(Some(reached)));
    Box::new(Failure::new(FailureKind::Memory, message))
}

/// Returns a number of bytes for a message, in MiB with one digit.
fn shown(bytes: i64) -> String {
    let tenths = bytes.max(0) / (1024 * 1024 / 10);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}
