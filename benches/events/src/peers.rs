//! The contenders behind one interface: channels of threads, with a choice if they have one.

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

/// Defines a peer whose channel is a pair of a sender and a receiver, with the names of its blocking operations.
macro_rules! pair_peer {
    ($peer:ident, $name:literal, $library:ident, $send:ident, $receive:ident, $capacity_min:literal) => {
        pub(crate) struct $peer;

        impl<V: Send + 'static> Peer<V> for $peer {
            const NAME: &'static str = $name;
            type Channel = ($library::Sender<V>, $library::Receiver<V>);

            fn make(capacity: Option<usize>) -> Self::Channel {
                let bounded = |capacity: usize| $library::bounded(capacity.max($capacity_min));
                capacity.map_or_else($library::unbounded, bounded)
            }

            fn send(channel: &Self::Channel, value: V) {
                assert!(channel.0.$send(value).is_ok(), "the channel is open");
            }

            fn receive(channel: &Self::Channel) -> V {
                channel.1.$receive().expect("the channel is open")
            }
        }
    };
}

pair_peer!(Crossbeam, "crossbeam", crossbeam_channel, send, recv, 0);
pair_peer!(Flume, "flume", flume, send, recv, 0);
pair_peer!(Kanal, "kanal", kanal, send, recv, 0);
// It has no rendezvous.
pair_peer!(AsyncChannel, "async-channel", async_channel, send_blocking, recv_blocking, 1);

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
