//! The contenders behind one face: channels of threads, with a choice where they have one.

/// A kind of channel.
pub(crate) trait Peer: 'static {
    const NAME: &'static str;
    type Channel: Clone + Send + Sync + 'static;

    /// `None` is unbounded.
    fn make(capacity: Option<usize>) -> Self::Channel;
    fn send(channel: &Self::Channel, value: usize);
    fn receive(channel: &Self::Channel) -> usize;
    /// Receives this many values from any of the channels.
    fn receive_any(channels: &[Self::Channel], messages: usize);
    /// Sends this many values on any of the channels.
    fn send_any(channels: &[Self::Channel], messages: usize);
}

pub(crate) struct Weir;

impl Peer for Weir {
    const NAME: &'static str = "weir";
    type Channel = weir_events::Channel<usize>;

    fn make(capacity: Option<usize>) -> Self::Channel {
        match capacity {
            None => weir_events::Channel::unbounded(),
            Some(capacity) => weir_events::Channel::bounded(capacity),
        }
    }

    fn send(channel: &Self::Channel, value: usize) {
        channel.blocking_send(value).expect("the channel is open");
    }

    fn receive(channel: &Self::Channel) -> usize {
        channel.blocking_receive().expect("the channel is open")
    }

    fn receive_any(channels: &[Self::Channel], messages: usize) {
        let event = weir_events::choose(channels.iter().map(weir_events::Channel::receive));
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

type CrossbeamChannel = (crossbeam_channel::Sender<usize>, crossbeam_channel::Receiver<usize>);

impl Peer for Crossbeam {
    const NAME: &'static str = "crossbeam";
    type Channel = CrossbeamChannel;

    fn make(capacity: Option<usize>) -> Self::Channel {
        capacity.map_or_else(crossbeam_channel::unbounded, crossbeam_channel::bounded)
    }

    fn send(channel: &Self::Channel, value: usize) {
        channel.0.send(value).expect("the channel is open");
    }

    fn receive(channel: &Self::Channel) -> usize {
        channel.1.recv().expect("the channel is open")
    }

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

impl Peer for Flume {
    const NAME: &'static str = "flume";
    type Channel = (flume::Sender<usize>, flume::Receiver<usize>);

    fn make(capacity: Option<usize>) -> Self::Channel {
        capacity.map_or_else(flume::unbounded, flume::bounded)
    }

    fn send(channel: &Self::Channel, value: usize) {
        channel.0.send(value).expect("the channel is open");
    }

    fn receive(channel: &Self::Channel) -> usize {
        channel.1.recv().expect("the channel is open")
    }

    fn receive_any(channels: &[Self::Channel], messages: usize) {
        for _ in 0..messages {
            let select = channels.iter().fold(flume::Selector::new(), |select, (_, receiver)| {
                select.recv(receiver, |value| value.expect("the channels are open"))
            });
            select.wait();
        }
    }

    fn send_any(channels: &[Self::Channel], messages: usize) {
        for message in 0..messages {
            let select = channels.iter().fold(flume::Selector::new(), |select, (sender, _)| {
                select.send(sender, message, |sent| sent.expect("the channels are open"))
            });
            select.wait();
        }
    }
}
