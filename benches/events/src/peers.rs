//! The contenders behind one interface: channels of threads, with a choice if they have one.
//!
//! Cancellation safe in a `select!` of tasks, that is, without losing a value when they lose: receiving from weir-events,
//! tokio's `mpsc`, flume and async-channel; sending on weir-events alone, because the others drop the value with the
//! future. kanal's receiving future drops a value that has arrived.

/// A kind of channel between threads, for values of one type.
pub(crate) trait Peer<V>: 'static {
    const NAME: &'static str;
    type Channel: Clone + Send + Sync + 'static;

    /// `None` is unbounded.
    fn make(capacity: Option<usize>) -> Self::Channel;
    fn send(channel: &Self::Channel, value: V);
    fn receive(channel: &Self::Channel) -> V;
}

/// A kind of channel with a choice.
pub(crate) trait ChoosingPeer: Peer<usize> {
    /// Receives this many values from any of the channels.
    fn receive_any(channels: &[Self::Channel], messages: usize);
    /// Sends this many values on any of the channels.
    fn send_any(channels: &[Self::Channel], messages: usize);
}

pub(crate) struct Weir;

impl<V: Send + 'static> Peer<V> for Weir {
    const NAME: &'static str = "weir";
    type Channel = weir_events::Channel<V>;

    fn make(capacity: Option<usize>) -> Self::Channel {
        match capacity {
            None => weir_events::Channel::unbounded(),
            Some(capacity) => weir_events::Channel::bounded(capacity),
        }
    }

    fn send(channel: &Self::Channel, value: V) {
        assert!(channel.blocking_send(value).is_ok(), "the channel is open");
    }

    fn receive(channel: &Self::Channel) -> V {
        channel.blocking_recv().expect("the channel is open")
    }
}

impl ChoosingPeer for Weir {
    fn receive_any(channels: &[Self::Channel], messages: usize) {
        let event = weir_events::choose(channels.iter().map(weir_events::Channel::recv));
        (0..messages).for_each(|_| _ = event.sync().expect("the channels are open"));
    }

    fn send_any(channels: &[Self::Channel], messages: usize) {
        // Like the others here, the choice is made once and gets its values later.
        let parcel = weir_events::Parcel::new(0);
        let event = weir_events::choose(channels.iter().map(|channel| channel.send_parcel(&parcel)));
        for message in 0..messages {
            parcel.fill(message);
            event.sync().expect("the channels are open");
        }
    }
}

pub(crate) struct Crossbeam;

impl<V: Send + 'static> Peer<V> for Crossbeam {
    const NAME: &'static str = "crossbeam";
    type Channel = (crossbeam_channel::Sender<V>, crossbeam_channel::Receiver<V>);

    fn make(capacity: Option<usize>) -> Self::Channel {
        capacity.map_or_else(crossbeam_channel::unbounded, crossbeam_channel::bounded)
    }

    fn send(channel: &Self::Channel, value: V) {
        assert!(channel.0.send(value).is_ok(), "the channel is open");
    }

    fn receive(channel: &Self::Channel) -> V {
        channel.1.recv().expect("the channel is open")
    }
}

impl ChoosingPeer for Crossbeam {
    fn receive_any(channels: &[Self::Channel], messages: usize) {
        let mut select = crossbeam_channel::Select::new();
        for (_, receiver) in channels {
            select.recv(receiver);
        }
        for _ in 0..messages {
            let operation = select.select();
            let index = operation.index();
            operation.recv(&channels[index].1).expect("the channels are open");
        }
    }

    fn send_any(channels: &[Self::Channel], messages: usize) {
        let mut select = crossbeam_channel::Select::new();
        for (sender, _) in channels {
            select.send(sender);
        }
        for message in 0..messages {
            let operation = select.select();
            let index = operation.index();
            operation.send(&channels[index].0, message).expect("the channels are open");
        }
    }
}

pub(crate) struct Flume;

impl<V: Send + 'static> Peer<V> for Flume {
    const NAME: &'static str = "flume";
    type Channel = (flume::Sender<V>, flume::Receiver<V>);

    fn make(capacity: Option<usize>) -> Self::Channel {
        capacity.map_or_else(flume::unbounded, flume::bounded)
    }

    fn send(channel: &Self::Channel, value: V) {
        assert!(channel.0.send(value).is_ok(), "the channel is open");
    }

    fn receive(channel: &Self::Channel) -> V {
        channel.1.recv().expect("the channel is open")
    }
}

pub(crate) struct Kanal;

impl<V: Send + 'static> Peer<V> for Kanal {
    const NAME: &'static str = "kanal";
    type Channel = (kanal::Sender<V>, kanal::Receiver<V>);

    fn make(capacity: Option<usize>) -> Self::Channel {
        capacity.map_or_else(kanal::unbounded, kanal::bounded)
    }

    fn send(channel: &Self::Channel, value: V) {
        assert!(channel.0.send(value).is_ok(), "the channel is open");
    }

    fn receive(channel: &Self::Channel) -> V {
        channel.1.recv().expect("the channel is open")
    }
}

pub(crate) struct AsyncChannel;

impl<V: Send + 'static> Peer<V> for AsyncChannel {
    const NAME: &'static str = "async-channel";
    type Channel = (async_channel::Sender<V>, async_channel::Receiver<V>);

    fn make(capacity: Option<usize>) -> Self::Channel {
        // It has no rendezvous: the smallest capacity is 1.
        capacity.map_or_else(async_channel::unbounded, |capacity| async_channel::bounded(capacity.max(1)))
    }

    fn send(channel: &Self::Channel, value: V) {
        assert!(channel.0.send_blocking(value).is_ok(), "the channel is open");
    }

    fn receive(channel: &Self::Channel) -> V {
        channel.1.recv_blocking().expect("the channel is open")
    }
}
