//! Charges for memory: those of the flow that runs on a thread, and those of the program.

use std::sync::atomic::Ordering;

use super::limits::FLOW_LIMIT;
use super::thread_account::{ThreadAccount, account, with_overhead};

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
    of_program_measured(work).0
}

/// The same. Also returns the bytes by which the program has grown.
pub fn of_program_measured<R>(work: impl FnOnce() -> R) -> (R, i64) {
    let before = account(ThreadAccount::bytes);
    let result = work();
    let grown = account(ThreadAccount::bytes).wrapping_sub(before);
    charge(grown.wrapping_neg());
    (result, grown)
}

/// Takes over bytes that another thread has allocated, such as one that receives rows: the running flow, or those for which the thread
/// works, hold them from here on, until they are released.
pub fn take_over(bytes: i64) {
    account(|account| account.settled.set(account.settled.get().wrapping_add(bytes)));
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
