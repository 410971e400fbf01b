//! Tests of the port queue on one thread. They are a file of their own because the model check compiles `port_queue.rs`
//! twice.

use crate::port_queue::{PortQueue, PutOutcome, Released, Remaining};

fn taken(queue: &PortQueue<u32>, most: usize) -> (Vec<u32>, Vec<usize>) {
    let (mut batch, mut released) = (Vec::new(), Released::default());
    queue.take_batch(most, &mut batch, &mut released);
    (batch, released.ports)
}

#[test]
fn only_the_first_item_must_schedule_the_port() {
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
fn a_full_queue_gives_the_item_back() {
    let queue = PortQueue::new(1, 0);
    assert_eq!(queue.try_put(1), Ok(PutOutcome { must_schedule: true, is_full: true }));
    assert_eq!(queue.try_put(2), Err(2));
}

#[test]
fn a_waiting_port_is_released_at_the_low_water_mark() {
    let queue = PortQueue::new(4, 2);
    assert!(queue.put_batch(&mut vec![1, 2, 3, 4, 5]).is_full);
    assert!(queue.wait_for_room(7));
    assert_eq!(taken(&queue, 2), (vec![1, 2], vec![]));
    assert_eq!(taken(&queue, 2), (vec![3, 4], vec![7]));
    assert!(!queue.wait_for_room(7), "there is room");
}

#[test]
fn only_an_idle_port_can_be_claimed() {
    let queue = PortQueue::new(4, 2);
    assert!(queue.try_claim());
    assert!(!queue.try_claim(), "it is being run");
    assert_eq!(queue.try_put(1), Ok(PutOutcome { must_schedule: false, is_full: false }));
    assert_eq!(queue.finish_batch(), Remaining::More);
    assert_eq!(taken(&queue, 8).0, [1]);
    assert_eq!(queue.finish_batch(), Remaining::Empty);
    assert!(queue.try_claim());
}

#[test]
fn items_that_were_put_back_take_up_no_room_and_hold_nothing_up() {
    let queue = PortQueue::new(2, 0);
    for item in 10..16 {
        assert_eq!(queue.put_back(item), PutOutcome { must_schedule: item == 10, is_full: false });
    }
    assert_eq!(queue.try_put(1), Ok(PutOutcome { must_schedule: false, is_full: false }));
    assert_eq!(queue.try_put(2), Ok(PutOutcome { must_schedule: false, is_full: true }));
    assert_eq!(taken(&queue, 1).0, [1]);
    assert_eq!(taken(&queue, 1).0, [10]);
    assert_eq!(taken(&queue, 2).0, [2, 11]);
    assert_eq!(queue.finish_batch(), Remaining::More);
    assert_eq!(taken(&queue, 64).0, [12, 13, 14, 15]);
    assert_eq!(queue.finish_batch(), Remaining::Empty);
}

#[test]
fn a_port_with_endless_items_still_releases_those_that_wait_for_room() {
    let queue = PortQueue::new(1, 0);
    queue.put_back(10);
    assert!(queue.put_batch(&mut vec![1]).is_full);
    assert!(queue.wait_for_room(7));
    let released: Vec<usize> = (0..4)
        .flat_map(|_| {
            let (batch, released) = taken(&queue, 1);
            batch.into_iter().filter(|item| *item == 10).for_each(|item| _ = queue.put_back(item));
            released
        })
        .collect();
    assert_eq!(released, [7]);
}

#[test]
fn the_rest_of_a_batch_returns_to_the_front_in_its_order() {
    let queue = PortQueue::new(8, 0);
    assert!(!queue.put_batch(&mut vec![1, 2, 3]).is_full);
    (10..13).for_each(|item| _ = queue.put_back(item));
    let (mut batch, mut released) = (Vec::new(), Released::default());
    let returned = queue.take_batch(5, &mut batch, &mut released);
    assert_eq!((&batch[..], returned), (&[1, 2, 3, 10, 11][..], 2));
    let mut items = batch.drain(..);
    assert_eq!(items.next(), Some(1));
    queue.return_rest(&mut items, returned);
    drop(items);
    _ = queue.put(4);
    assert_eq!(taken(&queue, 64).0, [2, 3, 4, 10, 11, 12]);
}
