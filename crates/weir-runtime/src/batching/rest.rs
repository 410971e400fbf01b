//! Flows that have joined a batch and still run: the batch waits for them, because they may have more calls for it.
//!
//! A flow that waits is not at rest if one of its other batches was answered while it ran: on another thread this happens
//! between the polls of two calls of that batch, of which the first still waits and the second has made its next call. The
//! flow is woken, and the first makes its next call then.
//!
//! A thread runs one flow at a time. It notes a [`Claim`] for each batch that this flow joins, and drops the claims when the
//! flow comes to rest: when it waits or ends, and before it blocks its thread. A batch whose sender the flow has itself
//! ([`in_place`]) cannot be sent meanwhile, so that the flow needs a claim only if its slice is over. A flow whose slice is over keeps its claims, so
//! that a long `for` fills a batch, but only for a few slices after it has joined last: one that computes holds nobody up.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::batch::GatheredBatch;
use super::in_place;

thread_local! {
    /// The claims of the flow of this thread.
    static CLAIMS: RefCell<Vec<Claim>> = const { RefCell::new(Vec::new()) };
    /// True if this flow has joined a batch in its slice.
    static HAS_JOINED: Cell<bool> = const { Cell::new(false) };
}

/// The slices for which a batch waits for a flow that joins no batch meanwhile. Chosen by judgement: one can be over
/// before the flow comes to its next call, if the system has given the processor to another thread.
const SLICES_MAX: u32 = 4;
/// The number of the flow that has begun a batch.
const FIRST: u32 = 0;

/// The claim of a flow that a batch waits for it. Dropping it tells the batch that the flow has come to rest.
pub(crate) struct Claim {
    batch: Arc<GatheredBatch>,
    /// The number of the flow in the batch.
    flow: u32,
    /// The slices for which the batch still waits.
    slices_left: u32,
}

/// The claims that a flow keeps while it does not run, if it has any: one word, because few flows do.
#[cfg(not(without_batching))]
pub(crate) type KeptClaims = Option<Box<FlowClaims>>;
/// The same where no call is gathered.
#[cfg(without_batching)]
pub(crate) type KeptClaims = Option<std::convert::Infallible>;

/// The claims of a flow.
#[cfg(not(without_batching))]
pub(crate) struct FlowClaims(Vec<Claim>);

impl Drop for Claim {
    fn drop(&mut self) {
        self.batch.end_run();
    }
}

/// Returns the number of the flow of this thread in a batch, if the batch waits for it.
pub(super) fn number_in(batch: &Arc<GatheredBatch>) -> Option<u32> {
    if in_place::has_begun(batch) {
        return Some(FIRST);
    }
    CLAIMS.with_borrow(|claims| claims.iter().find(|claim| Arc::ptr_eq(&claim.batch, batch)).map(|claim| claim.flow))
}

/// Notes that the flow of this thread has joined a batch, in which it has this number, and whether this waits for it to come to rest
/// from now on.
pub(super) fn joined(batch: &Arc<GatheredBatch>, is_awaited: bool, flow: u32) {
    HAS_JOINED.set(true);
    if is_awaited {
        CLAIMS.with_borrow_mut(|claims| claims.push(Claim::new(batch, flow)));
    }
}

impl Claim {
    fn new(batch: &Arc<GatheredBatch>, flow: u32) -> Claim {
        Claim { batch: Arc::clone(batch), flow, slices_left: SLICES_MAX }
    }
}

/// Continues with the claims of a flow whose slice was over.
#[cfg(not(without_batching))]
pub(crate) fn resume(claims: &mut FlowClaims) {
    CLAIMS.set(std::mem::take(&mut claims.0));
}

#[cfg(without_batching)]
pub(crate) fn resume(claims: &mut std::convert::Infallible) {
    match *claims {}
}

/// Ends the slice of the flow of this thread; returns the claims that it keeps, if it `goes_on`.
pub(crate) fn end_slice(goes_on: bool) -> KeptClaims {
    let has_joined = HAS_JOINED.replace(false);
    if !goes_on {
        drop_all();
        return None;
    }
    let mut claims = CLAIMS.take();
    in_place::each_begun(|batch| claims.extend(batch.await_flow().then(|| Claim::new(batch, FIRST))));
    if has_joined {
        claims.iter_mut().for_each(|claim| claim.slices_left = SLICES_MAX);
    }
    claims.iter_mut().for_each(|claim| claim.slices_left -= 1);
    claims.retain(|claim| claim.slices_left > 0);
    kept(claims)
}

#[cfg(not(without_batching))]
fn kept(claims: Vec<Claim>) -> KeptClaims {
    (!claims.is_empty()).then(|| Box::new(FlowClaims(claims)))
}

#[cfg(without_batching)]
fn kept(_: Vec<Claim>) -> KeptClaims {
    None
}

/// Drops the claims of the flow of this thread, but keeps the list for the next one.
fn drop_all() {
    if has_claims() {
        let mut claims = CLAIMS.take();
        claims.clear();
        CLAIMS.set(claims);
    }
}

fn has_claims() -> bool {
    CLAIMS.with_borrow(|claims| !claims.is_empty())
}

/// Returns true if a batch waits for the flow of this thread.
pub(crate) fn is_awaited() -> bool {
    has_claims() || in_place::has_begun_any()
}

/// Returns true if the flow of this thread has joined a batch in its slice.
pub(crate) fn has_joined() -> bool {
    HAS_JOINED.get()
}

/// Drops the claims of the flow of this thread, which has come to rest.
pub(crate) fn at_rest() {
    if HAS_JOINED.replace(false) {
        in_place::pass_to_senders();
    }
    drop_all();
}
