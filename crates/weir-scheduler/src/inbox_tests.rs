//! The inbox, by one thread. It lies apart from `inbox.rs`, which the model check compiles a second time.

use crate::inbox::{Inbox, Put, Released, Rest};

fn taken(inbox: &Inbox<u32>, most: usize) -> (Vec<u32>, Vec<usize>) {
    let (mut batch, mut released) = (Vec::new(), Released::default());
    inbox.take(most, &mut batch, &mut released);
    (batch, released.ports)
}

#[test]
fn only_the_first_item_asks_for_a_hand() {
    let inbox = Inbox::new(4, 2);
    assert_eq!(inbox.offer(1), Ok(Put { hand: true, full: false }));
    assert_eq!(inbox.offer(2), Ok(Put { hand: false, full: false }));
    assert_eq!(taken(&inbox, 8).0, [1, 2]);
    assert_eq!(inbox.offer(3), Ok(Put { hand: false, full: false }), "it is still being run");
    assert_eq!(inbox.rest(), Rest::More);
    assert_eq!(taken(&inbox, 8).0, [3]);
    assert_eq!(inbox.rest(), Rest::Empty);
    assert_eq!(inbox.offer(4), Ok(Put { hand: true, full: false }));
}

#[test]
fn a_full_inbox_gives_the_item_back() {
    let inbox = Inbox::new(1, 0);
    assert_eq!(inbox.offer(1), Ok(Put { hand: true, full: true }));
    assert_eq!(inbox.offer(2), Err(2));
}

#[test]
fn who_waits_for_room_is_released_when_it_is_half_empty() {
    let inbox = Inbox::new(4, 2);
    assert!(inbox.put(&mut vec![1, 2, 3, 4, 5]).full);
    assert!(inbox.wait(7));
    assert_eq!(taken(&inbox, 2), (vec![1, 2], vec![]));
    assert_eq!(taken(&inbox, 2), (vec![3, 4], vec![7]));
    assert!(!inbox.wait(7), "there is room");
}

#[test]
fn a_port_is_claimed_only_where_nobody_looks_after_it() {
    let inbox = Inbox::new(4, 2);
    assert!(inbox.claim());
    assert!(!inbox.claim(), "it is being run");
    assert_eq!(inbox.offer(1), Ok(Put { hand: false, full: false }));
    assert_eq!(inbox.rest(), Rest::More);
    assert_eq!(taken(&inbox, 8).0, [1]);
    assert_eq!(inbox.rest(), Rest::Empty);
    assert!(inbox.claim());
}
