//! Flows that wait without a thread: for the peer of a connection, for a lock or a turn, or for a call that takes long, whatever
//! they wait for beside it.
//!
//! Such a flow is parked, in the protocol of `parking.rs`. Whatever wakes it puts it back into the queue, from which the
//! next free thread takes it.
//!
//! No flow waits for a thread that is held by a flow which waits for it. For each wait, the flows that may have to bring about
//! what is waited for, and the thread meanwhile:
//!
//! | a flow waits for | up to | its thread |
//! |---|---|---|
//! | a peer: `client`, `tcp`, `udp.ask`, `mail`, `dns`, the body of a request | any flow, also a new one, of a service of the program that is called | left |
//! | a permit for a call or connection to a peer | flows that have one, and wait for their peers | left |
//! | a lock, a constraint, a value that belongs to a session | flows that have run | left |
//! | its turn at a call with private state | earlier flows | left |
//! | a batch, a sync of a disk, a commit | flows that have run, threads of the library | left |
//! | rounds or a call on other threads | these threads | left |
//! | an attempt of a transaction | time | left |
//! | `time.sleep`, alone | time | held; runs the flows that have run before |
//! | `time.sleep` in a loop that looks at a shared value | any flow, also a new one | held; runs a new flow each time, too |
//! | a file, a password's hash, a row of a table | threads of the library | held; runs the flows that have run before |
//! | a function that blocks its thread, such as a statement | nobody, or for a bounded time: connections of tables are kept for one statement, or by a transaction, for which others wait some milliseconds | blocked |
//!
//! A flow that waits for several of them leaves its thread if it would for one (`frame/thread_release`). Flows have no other ways
//! to wait for one another: there are no channels between them.

use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use super::super::parking::{ParkOutcome, Parking};
use super::{FlowQueue, HeldFlow, QueuedFlow};
use crate::units::{Advanced, Units};

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
    match held.advance(&Units::slice(held.flow.slice()), &mut Context::from_waker(&waker)) {
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
