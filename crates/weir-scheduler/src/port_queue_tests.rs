//! The inbox, by one thread. It lies apart from `queue.rs`, which the model check compiles a second time.

use crate::port_queue::{PortQueue, PutOutcome, Released, Remaining};

fn taken(queue: &PortQueue<u32>, most: usize) -> (Vec<u32>, Vec<usize>) {
    let (mut batch, mut released) = (Vec::new(), Released::default());
    queue.take_batch(most, &mut batch, &mut released);
    (batch, released.ports)
}

#[test]
fn only_the_first_item_asks_for_a_hand() {
    let queue = PortQueue::new(4, 2);
    assert_eq!(queue.try_put(1), Ok(PutOutcome { must_schedule: true, is_full: false }));
    assert_eq!(queue.try_put(2), Ok(PutOutcome { must_schedule: false, is_full: false }));
    assert_eq!(taken(&queue, 8).0, [1, 2]);
    assert_eq!(queue.try_put(3), Ok(PutOutcome { must_schedule: false, is_full: false }), "it is still being run");
    assert_eq!(queue.finish_batch(), Remaining::More);
    assert_eq!(taken(&queue, 8).0, [3]);
    assert_eq!(queue.finish_batch(), Remaining::Empty);
    assert_eq!(queue.try_put(4), Ok(PutOutcome { must_schedule: true, is_full: false }));
}

#[test]
fn a_full_inbox_gives_the_item_back() {
    let queue = PortQueue::new(1, 0);
    assert_eq!(queue.try_put(1), Ok(PutOutcome { must_schedule: true, is_full: true }));
    assert_eq!(queue.try_put(2), Err(2));
}

#[test]
fn who_waits_for_room_is_released_when_it_is_half_empty() {
    let queue = PortQueue::new(4, 2);
    assert!(queue.put_batch(&mut vec![1, 2, 3, 4, 5]).is_full);
    assert!(queue.wait_for_room(7));
    assert_eq!(taken(&queue, 2), (vec![1, 2], vec![]));
    assert_eq!(taken(&queue, 2), (vec![3, 4], vec![7]));
    assert!(!queue.wait_for_room(7), "there is room");
}

#[test]
fn a_port_is_claimed_only_where_nobody_looks_after_it() {
    let queue = PortQueue::new(4, 2);
    assert!(queue.try_claim());
    assert!(!queue.try_claim(), "it is being run");
    assert_eq!(queue.try_put(1), Ok(PutOutcome { must_schedule: false, is_full: false }));
    assert_eq!(queue.finish_batch(), Remaining::More);
    assert_eq!(taken(&queue, 8).0, [1]);
    assert_eq!(queue.finish_batch(), Remaining::Empty);
    assert!(queue.try_claim());
}
