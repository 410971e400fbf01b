//! Deprecated names do what their successors do.
#![cfg(not(loom))]
#![allow(deprecated, reason = "these names are what is tested")]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

use weir_events::*;

#[test]
fn the_former_names_of_receiving_receive() {
    let channel = Channel::unbounded();
    (1..=4).for_each(|value| channel.post(value).unwrap());
    assert_eq!(channel.try_receive(), Ok(1));
    assert_eq!(channel.blocking_receive(), Ok(2));
    assert_eq!(channel.receive().sync(), Ok(3));
    let first = Channel::rendezvous();
    let told = first.clone();
    a_receive(&channel).a_wrap(move |value| _ = told.post(value)).a_sync();
    assert_eq!(first.recv().sync(), Ok(Ok(4)));
    assert_eq!(channel.try_receive(), Err(TryReceiveError::Empty));
}

#[test]
fn the_former_names_of_sending_send() {
    let (sender, receiver) = halves(Channel::rendezvous());
    let sending = std::thread::spawn(move || sender.send_once(Box::new(1)).sync());
    assert_eq!(receiver.receive().sync(), Ok(Box::new(1)));
    assert_eq!(sending.join().unwrap(), Ok(()));

    let channel = Channel::rendezvous();
    channel.send_and_go(1);
    assert_eq!(channel.try_recv(), Ok(1));
    channel.close();
    channel.send_and_go(2);
}
