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

mod carried;
mod charging;
mod limits;
mod reached_limit;
mod reservation;
mod room;
mod thread_account;

pub use carried::{CarriedAccount, carried};
pub use charging::{
    Entered, balance, charge, enter, enter_program, hand_to_program, of_program, of_program_measured,
    set_opening_balance, take_opening_balance, take_over,
};
pub use limits::{MemoryLimits, flow_limit, is_full, program_limit};
pub use reached_limit::ReachedLimit;
pub use reservation::Reservation;
pub use room::{ask, assured, begin_step, check, is_over, take_refusal};
pub use thread_account::{allocated, released, used};

#[cfg(test)]
mod tests;
