//! Memory accounts: how much the flow that runs on a thread holds, and how much the process holds.
//!
//! The allocator of the command reports each allocation and release ([`allocated`], [`released`]). Reports go to plain
//! cells of their thread, and from there to the total of the process whenever they sum up to `SETTLED_BYTES`. The total
//! therefore misses at most that much for each thread; a thread that has run a flow settles the rest when it ends.
//!
//! A flow is charged for what its thread allocates, minus what it releases, while the flow runs: [`enter`] notes the cells
//! when an engine takes up the flow, and [`Entered::leave`] returns the new *balance*. Three rules follow:
//!
//! 1. A balance is never below 0: a flow that releases what others have allocated gains nothing.
//! 2. Work for the flow on another thread enters with the flow's balance, and its growth is added by [`charge`].
//! 3. What the flow leaves behind, such as a part of a shared value, is the flow's until it ends, and then the program's.
//!
//! There are two limits, and none of them is waited for:
//!
//! * A flow may hold [`MemoryLimits::flow`].
//! * A flow may hold no more than the process has free of [`MemoryLimits::program`] (a *dynamic threshold*: Choudhury and
//!   Hahne, IEEE/ACM Transactions on Networking 6(2), 1998). One greedy flow gets half of the memory, two get a third each,
//!   and so on; flows that hold less go on. So nobody has to find the largest one.
//!
//! An atomic step should not end half-way for want of memory. [`begin_step`] therefore fails before the step does
//! anything, or else lets the flow grow by `STEP_BYTES` whatever the limits say. Beyond that, a flow in a step need not leave
//! as much free as it holds: it may take what the program has left, and a tenth of the program's limit more. Meanwhile the
//! threshold of all other flows falls, so that those fail which can. A step fails half-way only if it needs more than the flow
//! may hold, or if steps alone exceed the program's limit by a tenth.
//!
//! Operations that can grow by their data [`ask`] before they allocate. Everything else is noticed at the next safe point
//! ([`check`]). Without the command's allocator nothing is reported, and only single requests are compared with the limits.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::{Failure, FailureKind};

/// The sum of a thread's reports after which they are added to the total of the process. Chosen by judgement: an atomic
/// addition for each 64 KiB costs nothing, and a hundred threads hide 6 MiB at most.
const SETTLED_BYTES: i64 = 64 * 1024;

/// A request below this is compared with the limit of the flow only, and a flow that holds less is not stopped because of
/// the others. Chosen by judgement: most requests never hold as much.
const SMALL_BYTES: i64 = 64 * 1024;

/// The bytes by which a flow may grow in an atomic step, whatever the limits say. Chosen by judgement: far more than most
/// steps need, and little beside the limit of a program, which steps that are under way may exceed by as much each.
const STEP_BYTES: i64 = 1 << 20;

/// The same as a part of the flow's limit, if that is less.
const STEP_PART: i64 = 16;

/// The limits of the process. They are those of its program, because an allocator belongs to the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// The bytes that a flow may hold.
    pub flow: u64,
    /// The bytes that the program may hold.
    pub program: u64,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        MemoryLimits { flow: MemoryLimits::FLOW_BYTES_MAX, program: u64::MAX }
    }
}

impl MemoryLimits {
    /// The default limit of a flow, 256 MiB.
    pub const FLOW_BYTES_MAX: u64 = 256 * 1024 * 1024;

    /// Applies the limits to this process.
    pub fn apply(self) {
        // The greatest number stands for a thread without a flow.
        FLOW_LIMIT.store(signed(self.flow).min(i64::MAX - 1), Ordering::Relaxed);
        PROGRAM_LIMIT.store(signed(self.program), Ordering::Relaxed);
    }
}

/// The bytes of the process that were reported and settled, and those that are reserved.
static TOTAL: AtomicI64 = AtomicI64::new(0);
/// See [`MemoryLimits::flow`]; written at the start of a program.
static FLOW_LIMIT: AtomicI64 = AtomicI64::new(MemoryLimits::FLOW_BYTES_MAX as i64);
/// See [`MemoryLimits::program`]; written at the start of a program.
static PROGRAM_LIMIT: AtomicI64 = AtomicI64::new(i64::MAX);

/// The reports of one thread, and the flow that it runs. Without a destructor, so that the allocator may use it at any
/// time, also while the thread ends.
struct ThreadAccount {
    /// The bytes reported since they were last added to the total.
    unsettled: Cell<i64>,
    /// The bytes reported before.
    settled: Cell<i64>,
    /// The bytes of the thread at which the balance of the running flow is 0.
    base: Cell<i64>,
    /// The limit of the running flow; the greatest number if no flow runs.
    limit: Cell<i64>,
    /// The balance that the running flow may have whatever the limits say, because it is in an atomic step; 0 otherwise.
    assured: Cell<i64>,
    /// The balance with which the next flow begins.
    opening: Cell<i64>,
    /// True if a flow was refused something since [`take_refusal`].
    has_refused: Cell<bool>,
    /// True if the thread settles when it ends.
    settles_at_end: Cell<bool>,
}

thread_local! {
    static ACCOUNT: ThreadAccount = const {
        ThreadAccount {
            unsettled: Cell::new(0),
            settled: Cell::new(0),
            base: Cell::new(0),
            limit: Cell::new(i64::MAX),
            assured: Cell::new(0),
            opening: Cell::new(0),
            has_refused: Cell::new(false),
            settles_at_end: Cell::new(false),
        }
    };
    static SETTLE_AT_END: SettleAtEnd = const { SettleAtEnd };
}

/// Gives access to the account of this thread.
///
/// [`LocalKey::with`](std::thread::LocalKey::with) is a call, and the access itself another one, unless the whole program is
/// optimised at link time; every allocation goes through here.
#[inline(always)]
fn account<R>(of: impl FnOnce(&ThreadAccount) -> R) -> R {
    match ACCOUNT.try_with(of) {
        Ok(result) => result,
        Err(_) => unreachable!("an account has no destructor"),
    }
}

/// Settles the account of its thread when it is dropped.
struct SettleAtEnd;

impl Drop for SettleAtEnd {
    fn drop(&mut self) {
        account(ThreadAccount::settle);
    }
}

impl ThreadAccount {
    #[inline(always)]
    fn add(&self, bytes: i64) {
        let unsettled = self.unsettled.get().wrapping_add(bytes);
        self.unsettled.set(unsettled);
        if unsettled > SETTLED_BYTES {
            self.settle();
        }
    }

    #[inline(always)]
    fn subtract(&self, bytes: i64) {
        let unsettled = self.unsettled.get().wrapping_sub(bytes);
        self.unsettled.set(unsettled);
        if unsettled < -SETTLED_BYTES {
            self.settle();
        }
    }

    #[cold]
    #[inline(never)]
    fn settle(&self) {
        let bytes = self.unsettled.replace(0);
        self.settled.set(self.settled.get().wrapping_add(bytes));
        TOTAL.fetch_add(bytes, Ordering::Relaxed);
    }

    #[inline]
    fn bytes(&self) -> i64 {
        self.settled.get().wrapping_add(self.unsettled.get())
    }

    #[inline]
    fn balance(&self) -> i64 {
        self.bytes().wrapping_sub(self.base.get())
    }

    #[cold]
    fn settle_at_end(&self) {
        self.settles_at_end.set(true);
        // A thread that ends already has no destructors left to run.
        let _ = SETTLE_AT_END.try_with(|_| ());
    }
}

/// About the bytes that the system's allocator needs beside each allocation: a word, and alignment to 16 bytes.
const OVERHEAD_BYTES: usize = 16;

#[inline(always)]
fn with_overhead(bytes: usize) -> i64 {
    bytes.wrapping_add(OVERHEAD_BYTES) as i64
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Reports an allocation of this size on this thread. For allocators: it allocates nothing, and never unwinds.
#[inline(always)]
pub fn allocated(bytes: usize) {
    account(|account| account.add(with_overhead(bytes)));
}

/// Reports a release of an allocation of this size on this thread. For allocators, like [`allocated`].
#[inline(always)]
pub fn released(bytes: usize) {
    account(|account| account.subtract(with_overhead(bytes)));
}

/// Returns the bytes that the process holds, as far as they were settled.
#[must_use]
pub fn used() -> u64 {
    TOTAL.load(Ordering::Relaxed).max(0).unsigned_abs()
}

/// Returns true if the process holds its limit or more: nothing new should begin.
#[inline]
#[must_use]
pub fn is_full() -> bool {
    TOTAL.load(Ordering::Relaxed) >= PROGRAM_LIMIT.load(Ordering::Relaxed)
}

/// The running flow of a thread. Dropping it takes the thread back to whatever it ran before.
#[must_use]
pub struct Entered {
    outer: (i64, i64, i64),
}

/// Begins to charge a flow with this balance for what the thread allocates.
#[inline]
pub fn enter(balance: i64) -> Entered {
    account(|account| {
        if !account.settles_at_end.get() {
            account.settle_at_end();
        }
        let outer = (account.base.get(), account.limit.get(), account.assured.replace(0));
        account.base.set(account.bytes().wrapping_sub(balance));
        account.limit.set(FLOW_LIMIT.load(Ordering::Relaxed));
        Entered { outer }
    })
}

/// Begins to compare what the thread allocates with the limit of the program only: for values of the program that no flow
/// computes.
pub fn enter_program() -> Entered {
    let entered = enter(0);
    account(|account| account.limit.set(i64::MAX - 1));
    entered
}

impl Entered {
    /// Returns the balance of the flow so far.
    #[inline]
    #[must_use]
    pub fn balance(&self) -> i64 {
        account(ThreadAccount::balance).max(0)
    }

    /// Lets the flow grow to this balance, as [`Entered::assured`] returned it: it goes on with an atomic step.
    #[inline]
    pub fn assure(&self, balance: i64) {
        account(|account| account.assured.set(balance));
    }

    /// Returns the balance to which the flow may grow because it has begun an atomic step; 0 if it has begun none.
    #[inline]
    #[must_use]
    pub fn assured(&self) -> i64 {
        account(|account| account.assured.get())
    }

    /// Ends the charge, and returns the difference to an earlier balance, also if more was released than that.
    #[must_use]
    pub fn leave_since(self, before: i64) -> i64 {
        account(ThreadAccount::balance).wrapping_sub(before)
    }

    /// Ends the charge, and returns the balance of the flow.
    #[inline]
    pub fn leave(self) -> i64 {
        self.balance()
    }
}

impl Drop for Entered {
    #[inline]
    fn drop(&mut self) {
        account(|account| {
            account.base.set(self.outer.0);
            account.limit.set(self.outer.1);
            account.assured.set(self.outer.2);
        });
    }
}

/// Returns the balance of the flow that runs on this thread, for work that another thread does for it.
#[must_use]
pub fn balance() -> i64 {
    account(ThreadAccount::balance).max(0)
}

/// Charges the flow that runs on this thread for what another one has allocated for it.
pub fn charge(bytes: i64) {
    account(|account| account.base.set(account.base.get().wrapping_sub(bytes)));
}

/// Runs `work` on the account of the program: for buffers and caches that outlive the flow that fills them.
pub fn of_program<R>(work: impl FnOnce() -> R) -> R {
    let before = account(ThreadAccount::bytes);
    let result = work();
    account(|account| charge(before.wrapping_sub(account.bytes())));
    result
}

/// Runs `work`, and returns the bytes that the thread has allocated meanwhile and not released. For work that is done for several
/// flows, whose results are charged to them afterwards ([`charge`]).
pub fn measured<R>(work: impl FnOnce() -> R) -> (R, i64) {
    let before = account(ThreadAccount::bytes);
    let result = work();
    (result, account(ThreadAccount::bytes).wrapping_sub(before))
}

/// Takes over bytes that another thread has allocated, such as one that receives rows: the running flow, or what is [`measured`], holds
/// them from here on, until it releases them.
pub fn take_over(bytes: i64) {
    account(|account| account.settled.set(account.settled.get().wrapping_add(bytes)));
}

/// What the running flow holds and may hold, for work that another thread does for it.
#[derive(Clone, Copy, Debug)]
pub struct CarriedAccount {
    balance: i64,
    limit: i64,
    assured: i64,
}

/// Returns what the flow that runs on this thread holds and may hold.
#[must_use]
pub fn carried() -> CarriedAccount {
    account(|account| CarriedAccount {
        balance: account.balance().max(0),
        limit: account.limit.get(),
        assured: account.assured.get(),
    })
}

impl CarriedAccount {
    /// Runs `work` for the flow, and returns the bytes by which it has grown, which the flow has to [`take_over`].
    pub fn run<R>(self, work: impl FnOnce() -> R) -> (R, i64) {
        let entered = enter(self.balance);
        entered.assure(self.assured);
        account(|account| account.limit.set(self.limit));
        let result = work();
        (result, entered.leave_since(self.balance))
    }
}

/// Moves bytes that the running flow has allocated to the account of the program, for what a cache keeps of the flow.
pub fn hand_to_program(bytes: usize) {
    charge(with_overhead(bytes).wrapping_neg());
}

/// Sets the balance with which the next flow begins on this thread, such as the size of a request's body.
pub fn set_opening_balance(bytes: i64) {
    account(|account| account.opening.set(bytes));
}

/// Takes the balance with which a flow begins.
#[inline]
#[must_use]
pub fn take_opening_balance() -> i64 {
    account(|account| account.opening.replace(0))
}

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

/// Returns true if a flow was refused something on this thread since the last call: the work may have released what it had
/// before it failed for that reason.
#[must_use]
pub fn take_refusal() -> bool {
    account(|account| account.has_refused.replace(false))
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
        return Some(failure(message));
    }
    let (used, program) = (TOTAL.load(Ordering::Relaxed), PROGRAM_LIMIT.load(Ordering::Relaxed));
    if fits_program(used, program, bytes, needed) {
        return None;
    }
    let (used, program, needed) = (shown(used), shown(program), shown(needed));
    Some(failure(format!(
        "the program holds {used} of its {program} of memory (`--memory`), and the flow would hold {needed}"
    )))
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

fn failure(message: String) -> Box<Failure> {
    account(|account| account.has_refused.set(true));
    Box::new(Failure::new(FailureKind::Memory, message))
}

/// Returns a number of bytes for a message, in MiB with one digit.
fn shown(bytes: i64) -> String {
    let tenths = bytes.max(0) / (1024 * 1024 / 10);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

/// Room that was reserved before it is allocated. Dropping it gives back the rest.
#[derive(Debug)]
pub struct Reservation(i64);

impl Reservation {
    /// Reserves room of the program, without waiting; `None` if there is not enough.
    #[must_use]
    pub fn of(bytes: u64) -> Option<Reservation> {
        let bytes = signed(bytes);
        let used = TOTAL.fetch_add(bytes, Ordering::Relaxed);
        let reservation = Reservation(bytes);
        (used.saturating_add(bytes) <= PROGRAM_LIMIT.load(Ordering::Relaxed)).then_some(reservation)
    }

    /// Gives back what has been allocated meanwhile.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX).min(self.0);
        self.0 -= bytes;
        TOTAL.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        TOTAL.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Returns the limit of the program; `None` if it has none.
#[must_use]
pub fn program_limit() -> Option<u64> {
    let limit = PROGRAM_LIMIT.load(Ordering::Relaxed);
    (limit < i64::MAX).then(|| limit.max(0).unsigned_abs())
}

/// Returns the limit of a flow.
#[must_use]
pub fn flow_limit() -> u64 {
    FLOW_LIMIT.load(Ordering::Relaxed).max(0).unsigned_abs()
}

#[cfg(test)]
mod tests;
