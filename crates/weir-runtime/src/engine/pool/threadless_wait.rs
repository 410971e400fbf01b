//! Flows that wait without a thread: for the peer of a connection, for a lock or a turn, or for a call that takes long.
//!
//! Such a flow is parked, in the protocol of `parking.rs`. Whatever wakes it puts it back into the queue, from which the
//! next free thread takes it.

use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use super::super::parking::{ParkOutcome, Parking};
use super::{FlowQueue, HeldFlow, QueuedFlow};
use crate::units::Advanced;

/// One wait of one flow.
struct ThreadlessWait {
    parking: Parking<QueuedFlow>,
    queue: Arc<FlowQueue>,
}

impl Wake for ThreadlessWait {
    fn wake(self: Arc<Self>) {
        if let Some(flow) = self.parking.wake() {
            self.queue.add(flow);
        }
    }
}

/// Parks a flow that waits without a thread. Returns it if it waits for something else meanwhile; then it must be polled again.
pub(super) fn park(queue: &Arc<FlowQueue>, mut held: HeldFlow) -> Option<HeldFlow> {
    let wait = Arc::new(ThreadlessWait { parking: Parking::new(), queue: Arc::clone(queue) });
    let waker = Waker::from(Arc::clone(&wait));
    wait.parking.begin();
    match held.advance(&mut Context::from_waker(&waker)) {
        Advanced::Ready(()) => return None,
        Advanced::Yields => {
            queue.put_back(held);
            return None;
        }
        Advanced::Waits if !held.flow.leaves_thread() => return Some(held),
        Advanced::Waits => {}
    }
    let waiting = QueuedFlow { held, begun: true };
    // A cancellation wakes the flow like everything else, so nothing is given up while it is parked.
    match wait.parking.park(waiting, false) {
        ParkOutcome::Waits => {}
        ParkOutcome::Again(woken) | ParkOutcome::GivenUp(woken) => queue.add(woken),
    }
    None
}
