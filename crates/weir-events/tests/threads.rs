//! No thread without a reason: group 28, and the threads after storms of lost choices (group 12). One test in a
//! process of its own, because it counts that process's threads.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::{on_one_thread, threads, until};
use std::time::Duration;
use weir_events::*;

#[test]
fn no_thread_is_made_without_post_consumption_actions_and_no_storm_leaves_one() {
    let before = threads();
    let channel = Channel::rendezvous();
    for n in 0..1000 {
        a_send(&channel, n).s_wrap(|()| ()).a_sync();
        _ = channel.post(n);
    }
    (0..2000).for_each(|n| assert_eq!(channel.recv().sync(), Ok(n / 2)));
    (0..1000).for_each(|_| a_recv(&channel).a_sync());
    (0..1000).for_each(|n| channel.send(n).sync().unwrap());
    let callback = a_send(&channel, 1).callback(|sent| sent).a_sync();
    assert_eq!((channel.recv().sync(), callback.sync()), (Ok(1), Ok(())));
    s_trans(&channel.recv()).a_sync();
    _ = channel.post(1);
    a_always(1).a_sync();
    a_never::<u8>().a_sync();
    let lost = choose([channel.recv().wrap(|_| ()), after(Duration::from_secs(3600)), always(())]);
    (0..1000).for_each(|_| lost.sync());
    assert_eq!(threads(), before, "nothing of this needs a thread");

    // Tasks that wait for time need the clock's thread, one for all.
    on_one_thread(async { after(Duration::from_millis(1)).await });
    assert_eq!(threads(), before + 1);

    // Actions get threads, which end when there is nothing to do.
    (0..100).for_each(|n| a_send(&channel, n).a_wrap(drop).a_sync());
    (0..100).for_each(|n| assert_eq!(channel.recv().sync(), Ok(n)));
    until(|| action_threads() == 0 && threads() == before + 1);
}
