//! How a source begins a flow for each of its elements.

use std::sync::Arc;

use tokio::task::{JoinSet, LocalSet, yield_now};
use weir::{Begun, Flows, Stop, Value};

/// Elements after which others on the event loop get their turn, where no flow had to wait.
const TURN: usize = 64;

/// Begins a flow for each element until there is none or `stop` says so, and waits for those that have begun.
///
/// `next` waits for an element; `None` is the end.
pub(crate) async fn feed(flows: Arc<dyn Flows>, stop: Stop, mut next: impl AsyncFnMut() -> Option<Value>) {
    LocalSet::new()
        .run_until(async {
            let mut going = JoinSet::new();
            tokio::select! {
                biased;
                () = stop.stopped() => {}
                () = begin_all(&*flows, &mut next, &mut going) => {}
            }
            while going.join_next().await.is_some() {}
        })
        .await;
}

async fn begin_all(
    flows: &dyn Flows,
    next: &mut impl AsyncFnMut() -> Option<Value>,
    going: &mut JoinSet<Result<Value, weir::Failure>>,
) {
    let mut turn = 0;
    while let Some(element) = next().await {
        begin(flows, element, going).await;
        while going.try_join_next().is_some() {}
        turn = (turn + 1) % TURN;
        if turn == 0 {
            yield_now().await;
        }
    }
}

/// Begins one flow as soon as there is room. A failure of it is the runtime's to tell.
async fn begin(flows: &dyn Flows, element: Value, going: &mut JoinSet<Result<Value, weir::Failure>>) {
    loop {
        match flows.begin(0, vec![element.clone()]) {
            Begun::Done(_) => return,
            Begun::Going(flow) => {
                going.spawn_local(flow);
                return;
            }
            Begun::Full => flows.room().await,
        }
    }
}
