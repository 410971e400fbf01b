//! The account of a flow on another thread that works for it.

use super::charging::enter;
use super::thread_account::account;

/// The account of the running flow, with its limits, for work that another thread does for it.
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
    /// Returns the account of two flows together, for work that is done for both.
    #[must_use]
    pub fn together(self, other: CarriedAccount) -> CarriedAccount {
        CarriedAccount {
            balance: self.balance.saturating_add(other.balance),
            limit: self.limit.saturating_add(other.limit),
            assured: self.assured.saturating_add(other.assured),
        }
    }

    /// Notes that the flow has grown by these bytes.
    pub fn grow(&mut self, bytes: i64) {
        self.balance = self.balance.saturating_add(bytes).max(0);
    }

    /// Runs `work` for the flow, and returns the bytes by which it has grown, which the flow has to [`take_over`](super::take_over).
    pub fn run<R>(self, work: impl FnOnce() -> R) -> (R, i64) {
        let entered = enter(self.balance);
        entered.assure(self.assured);
        account(|account| account.limit.set(self.limit));
        let result = work();
        (result, entered.leave_since(self.balance))
    }
}
