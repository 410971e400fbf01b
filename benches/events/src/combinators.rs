//! Cost of the combinators: choices of k, wraps of depth d, negative acknowledgements, and events that are built for
//! one use.

use crate::report::{Contender, Report, here};
use weir_events::{Channel, Event, always, choose, guard, never, with_nack};

const WIDTHS: [usize; 4] = [1, 4, 16, 256];
const DEPTHS: [usize; 3] = [1, 4, 16];

pub(crate) fn run(report: &mut Report) {
    for width in WIDTHS {
        let ready = choose((0..width).map(always));
        report.case(&format!("choose of {width}, all ready"), vec![again(&ready)]);
        report.case(&format!("choose of {width}, one ready"), vec![one_ready(width), crossbeam_one_ready(width)]);
        let lost = choose((0..width).map(|_| Channel::<usize>::rendezvous().recv().wrap(|_| 0)));
        report.case(&format!("choose of {width}, given up"), vec![give_up(&lost)]);
    }
    for depth in DEPTHS {
        let wrapped = (0..depth).fold(always(1), |event, _| event.wrap(|value| value + 1));
        report.case(&format!("wraps of depth {depth}"), vec![again(&wrapped)]);
    }
    report.case("guard", vec![again(&guard(|| always(1)))]);
    report.case("nack that is not fired", vec![again(&with_nack(|_| always(1)))]);
    report.case("nack that is fired", vec![again(&choose([with_nack(|_| never()), always(1)]))]);
    report.case("event built for one use", vec![build_and_sync()]);
}

fn again(event: &Event<usize>) -> Contender<'static> {
    let event = event.clone();
    here("weir", move |messages| (0..messages).for_each(|_| _ = std::hint::black_box(event.sync())))
}

fn give_up(event: &Event<usize>) -> Contender<'static> {
    let event = event.clone();
    here("weir", move |messages| (0..messages).for_each(|_| _ = event.sync_timeout(std::time::Duration::ZERO)))
}

fn one_ready(width: usize) -> Contender<'static> {
    let channels: Vec<_> = (0..width).map(|_| Channel::<usize>::bounded(1)).collect();
    let event = choose(channels.iter().map(Channel::recv));
    let round = move |messages| {
        for message in 0..messages {
            channels[message % width].try_send(message).expect("there is room");
            event.sync().expect("the channels are open");
        }
    };
    here("weir", round)
}

fn crossbeam_one_ready(width: usize) -> Contender<'static> {
    let channels: Vec<_> = (0..width).map(|_| crossbeam_channel::bounded::<usize>(1)).collect();
    let round = move |messages| {
        let mut select = crossbeam_channel::Select::new();
        for (_, receiver) in &channels {
            select.recv(receiver);
        }
        for message in 0..messages {
            channels[message % width].0.try_send(message).expect("there is room");
            let operation = select.select();
            let index = operation.index();
            operation.recv(&channels[index].1).expect("the channels are open");
        }
    };
    here("crossbeam", round)
}

fn build_and_sync() -> Contender<'static> {
    let (a, b) = (Channel::<usize>::bounded(1), Channel::<usize>::bounded(1));
    let round = move |messages| {
        for message in 0..messages {
            choose([a.send(message), b.recv().wrap(|value| value.map(drop))]).sync().expect("the channel is open");
            a.try_recv().expect("it was sent");
        }
    };
    here("weir", round)
}
