//! Cancellation safety of the contenders: the peers that lose no value if a receive loses a `select!`.
//!
//! The tests try it: a receiving future waits, a value is sent, and the future is dropped before it is polled again. A safe
//! channel still has the value. crossbeam-channel and Go have no futures; their choices take nothing from a channel that
//! loses. Sending is safe on weir-events alone: the others drop the value with the sending future, unless a permit for it
//! was reserved before (tokio).

/// Returns true if a receive from this contender's channel may lose a choice without losing a value.
pub(crate) fn is_safe(contender: &str) -> bool {
    contender != "kanal"
}

#[cfg(test)]
mod tests {
    use super::is_safe;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    /// Polls a receive, sends, drops the receive, and returns true if the channel still has the value.
    fn keeps_value(receive: impl Future, send: impl FnOnce(), try_receive: impl FnOnce() -> bool) -> bool {
        let mut receive = Box::pin(receive);
        assert!(receive.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending(), "nothing was sent yet");
        send();
        drop(receive);
        try_receive()
    }

    #[test]
    fn weir_events_keeps_the_value() {
        let channel = weir_events::Channel::bounded(1);
        let send = || channel.try_send(1).expect("there is room");
        assert!(keeps_value(channel.recv_async(), send, || channel.try_recv() == Ok(1)) && is_safe("weir"));
        let send = || channel.try_send(2).expect("there is room");
        assert!(keeps_value(channel.recv().synchronise(), send, || channel.try_recv() == Ok(2)));
    }

    #[test]
    fn flume_keeps_the_value() {
        let (sender, receiver) = flume::bounded(1);
        let send = || sender.try_send(1).expect("there is room");
        assert!(keeps_value(receiver.recv_async(), send, || receiver.try_recv() == Ok(1)) && is_safe("flume"));
    }

    #[test]
    fn async_channel_keeps_the_value() {
        let (sender, receiver) = async_channel::bounded(1);
        let send = || sender.try_send(1).expect("there is room");
        assert!(keeps_value(receiver.recv(), send, || receiver.try_recv() == Ok(1)) && is_safe("async-channel"));
    }

    #[test]
    fn tokio_keeps_the_value() {
        let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
        {
            let mut receive = pin!(receiver.recv());
            assert!(receive.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            sender.try_send(1).expect("there is room");
        }
        assert!(receiver.try_recv() == Ok(1) && is_safe("tokio"));
    }

    #[test]
    fn kanal_loses_the_value() {
        let (sender, receiver) = kanal::bounded_async(1);
        let send = || assert_eq!(sender.try_send(1), Ok(true));
        assert!(!keeps_value(receiver.recv(), send, || receiver.try_recv() == Ok(Some(1))) && !is_safe("kanal"));
    }
}
