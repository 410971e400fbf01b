//! An exhaustive model of Concurrent ML with asynchronous events: all outcomes that a program may have.
//!
//! A process tries the branches of its choice one by one, in any order, and then registers them in the same way. A branch
//! that can take effect then does, with the first peer in its channel's queue; otherwise it is queued if it is being
//! registered. These are the only assumptions: exactly one branch takes effect, values and peers are served first come,
//! first served, and nothing pairs with itself.

use std::collections::BTreeSet;

use crate::program::{Action, Branch, FORWARDED, Operation, Program, Step, result, step_key};
use crate::state::{Channel, Initiator, Offer, Process, Queued, Receipt, Receiver, Results, Sender, Source, State};

/// All outcomes of a program.
pub(crate) struct Outcomes {
    /// The results when nothing can happen any more.
    pub(crate) last: BTreeSet<Results>,
    /// The results at any time.
    pub(crate) any: BTreeSet<Results>,
}

impl Program {
    /// Explores the program; `None` if it has more than `states_max` states.
    pub(crate) fn outcomes(&self, states_max: usize) -> Option<Outcomes> {
        let mut outcomes = Outcomes { last: BTreeSet::new(), any: BTreeSet::new() };
        let first = State {
            processes: (0..self.processes.len()).map(|number| Process::new(Source::Program(number))).collect(),
            channels: self.channels.iter().map(|&capacity| Channel { capacity, ..Channel::default() }).collect(),
            results: Results::new(),
            stale_max: (0..self.channels.len()).map(|channel| self.stale_max(channel)).collect(),
        };
        let (mut seen, mut open) = (BTreeSet::from([first.clone()]), vec![first]);
        while let Some(state) = open.pop() {
            outcomes.any.insert(state.results.clone());
            let next = self.successors(&state);
            if next.is_empty() {
                outcomes.last.insert(state.results);
            }
            for state in next {
                if seen.insert(state.clone()) {
                    open.push(state);
                }
            }
            if seen.len() > states_max {
                return None;
            }
        }
        Some(outcomes)
    }

    /// The number of processes that may be in the queue of senders without waiting any more, because another branch of
    /// theirs has taken effect and they have not withdrawn this one yet.
    fn stale_max(&self, channel: usize) -> usize {
        let may_be_stale = |step: &Step| match step {
            Step::Choose { branches, .. } if branches.len() > 1 && self.channels[channel] != usize::MAX => {
                branches.iter().any(|branch| {
                    let is_send = matches!(branch.operation, Operation::Send(_));
                    branch.channel == channel && is_send && branch.action.is_none()
                })
            }
            _ => false,
        };
        self.processes.iter().filter(|steps| steps.iter().any(may_be_stale)).count()
    }

    fn step<'a>(&'a self, process: &'a Process) -> Option<Step> {
        match &process.source {
            Source::Program(number) => self.processes[*number].get(process.step).cloned(),
            Source::Post(branch) => (process.step == 0).then_some(Step::Start(*branch)),
        }
    }

    fn successors(&self, state: &State) -> Vec<State> {
        let mut all = Vec::new();
        for process in 0..state.processes.len() {
            match self.step(&state.processes[process]) {
                None => {}
                Some(Step::Close(channel)) => all.push(state.clone().close(process, channel)),
                Some(Step::Start(branch)) => all.extend(state.start(process, 0, branch)),
                Some(Step::Choose { branches, .. }) => all.extend(state.choose_next(process, &branches)),
                Some(Step::StartOne(branches)) => all.extend(state.start_next(process, &branches)),
            }
        }
        all
    }
}

impl State {
    /// Tries one more branch of a choice, or registers one more after all have been tried in vain.
    fn choose_next(&self, process: usize, branches: &[Branch]) -> Vec<State> {
        let Process { tried, registered, .. } = self.processes[process];
        let all_tried = tried == all_of(branches);
        let done = if all_tried { registered } else { tried };
        let mut all = Vec::new();
        for (number, branch) in branches.iter().enumerate().filter(|(number, _)| done & (1 << number) == 0) {
            let offer = Offer { process, branch: number, action: branch.action };
            let matched = self.communicate(Initiator::Process(offer), *branch, branch.action.is_some());
            if matched.is_empty() {
                let mut next = self.clone();
                if all_tried {
                    next.processes[process].registered |= 1 << number;
                    next.queue(offer, *branch);
                } else {
                    next.processes[process].tried |= 1 << number;
                }
                all.push(next);
            }
            all.extend(matched);
        }
        all
    }

    /// Tries one more branch of an `a_choose`, and starts any of them when none could be consumed.
    fn start_next(&self, process: usize, branches: &[Branch]) -> Vec<State> {
        let tried = self.processes[process].tried;
        if tried == all_of(branches) {
            let started = branches.iter().enumerate();
            return started.flat_map(|(number, branch)| self.start(process, number, *branch)).collect();
        }
        let mut all = Vec::new();
        for (number, branch) in branches.iter().enumerate().filter(|(number, _)| tried & (1 << number) == 0) {
            let done = self.communicate(Initiator::Nobody(branch.action), *branch, true);
            if done.is_empty() {
                let mut next = self.clone();
                next.processes[process].tried |= 1 << number;
                all.push(next);
            }
            all.extend(done.into_iter().map(|mut next| {
                next.end_step(process, result(0, Ok(None)));
                next
            }));
        }
        all
    }

    /// Starts an asynchronous event: what cannot be done now is queued.
    fn start(&self, process: usize, _: usize, branch: Branch) -> Vec<State> {
        let mut all = self.communicate(Initiator::Nobody(branch.action), branch, false);
        if all.is_empty() {
            let mut next = self.clone();
            let channel = &mut next.channels[branch.channel];
            match branch.operation {
                Operation::Send(value) => {
                    channel.senders.push(Sender::Buffered(Queued { value, action: branch.action }))
                }
                Operation::Receive => channel.receivers.push(Receiver::Buffered(branch.action)),
            }
            all.push(next);
        }
        all.iter_mut().for_each(|next| next.end_step(process, result(0, Ok(None))));
        all
    }

    /// All ways in which a communication can take place now.
    fn communicate(&self, initiator: Initiator, branch: Branch, needs_receipt: bool) -> Vec<State> {
        match branch.operation {
            Operation::Send(value) => self.send(initiator, branch.channel, value, needs_receipt).into_iter().collect(),
            Operation::Receive => self.receive(initiator, branch.channel),
        }
    }

    fn send(&self, initiator: Initiator, number: usize, value: u32, needs_receipt: bool) -> Option<State> {
        let channel = &self.channels[number];
        let mut next = self.clone();
        if channel.closed {
            next.conclude(initiator, Err(()));
            return Some(next);
        }
        let peer = channel.receivers.iter().position(|receiver| !receiver.is_of(initiator));
        if let Some(peer) = peer {
            let receiver = next.channels[number].receivers.remove(peer);
            next.conclude(initiator, Ok(None));
            next.conclude(receiver.initiator(), Ok(Some(value)));
            return Some(next);
        }
        if needs_receipt || channel.buffer.len() >= channel.capacity {
            return None;
        }
        let action = match initiator {
            Initiator::Nobody(action) => action,
            Initiator::Process(_) => {
                next.conclude(initiator, Ok(None));
                None
            }
        };
        next.channels[number].buffer.push(Queued { value, action });
        Some(next)
    }

    fn receive(&self, initiator: Initiator, number: usize) -> Vec<State> {
        let channel = &self.channels[number];
        let mut all = Vec::new();
        let receipt = channel.receipts.iter().position(|receipt| !receipt.is_of(initiator));
        let due = receipt
            .filter(|&receipt| channel.buffer.is_empty() || channel.received >= channel.receipts[receipt].possible);
        let is_certain = due.is_some_and(|due| channel.received >= channel.receipts[due].certain);
        if let Some(due) = due {
            all.push(self.clone().receive_receipt(initiator, number, due));
        }
        if !channel.buffer.is_empty() && !is_certain {
            all.push(self.clone().receive_buffered(initiator, number));
        }
        let sender = channel.senders.iter().position(|sender| !sender.is_of(initiator));
        if let Some(sender) = sender.filter(|_| channel.buffer.is_empty() && !is_certain) {
            let mut next = self.clone();
            let sender = next.channels[number].senders.remove(sender);
            let value = next.take(sender, true);
            next.conclude(initiator, Ok(Some(value)));
            all.push(next);
        }
        if all.is_empty() && channel.closed {
            let mut next = self.clone();
            next.conclude(initiator, Err(()));
            all.push(next);
        }
        all
    }

    fn receive_receipt(mut self, initiator: Initiator, number: usize, receipt: usize) -> State {
        let receipt = self.channels[number].receipts.remove(receipt);
        self.conclude(Initiator::Process(receipt.offer), Ok(None));
        self.conclude(initiator, Ok(Some(receipt.value)));
        self
    }

    fn receive_buffered(mut self, initiator: Initiator, number: usize) -> State {
        let Queued { value, action } = self.channels[number].buffer.remove(0);
        self.channels[number].received += usize::from(!self.channels[number].receipts.is_empty());
        self.conclude(initiator, Ok(Some(value)));
        self.act(action, Ok(None));
        while !self.channels[number].senders.is_empty()
            && self.channels[number].buffer.len() < self.channels[number].capacity
        {
            let sender = self.channels[number].senders.remove(0);
            let action = if let Sender::Buffered(queued) = sender { queued.action } else { None };
            let value = self.take(sender, false);
            self.channels[number].buffer.push(Queued { value, action });
        }
        self
    }

    /// The value of a sender that has left its queue.
    fn take(&mut self, sender: Sender, is_received: bool) -> u32 {
        match sender {
            Sender::Offer(offer, value) => {
                self.conclude(Initiator::Process(offer), Ok(None));
                value
            }
            Sender::Buffered(Queued { value, action }) => {
                if is_received {
                    self.act(action, Ok(None));
                }
                value
            }
        }
    }

    fn queue(&mut self, offer: Offer, branch: Branch) {
        let channel = &mut self.channels[branch.channel];
        match branch.operation {
            Operation::Receive => channel.receivers.push(Receiver::Offer(offer)),
            Operation::Send(value) if branch.action.is_some() && channel.capacity > 0 => {
                if channel.receipts.is_empty() {
                    channel.received = 0;
                }
                let possible = channel.received + channel.buffer.len() + channel.senders.len();
                let certain = possible + self.stale_max[branch.channel];
                channel.receipts.push(Receipt { offer, value, possible, certain });
            }
            Operation::Send(value) => channel.senders.push(Sender::Offer(offer, value)),
        }
    }

    fn close(mut self, process: usize, number: usize) -> State {
        self.channels[number].closed = true;
        while let Some(receiver) = self.channels[number].receivers.first().copied() {
            self.channels[number].receivers.remove(0);
            self.conclude(receiver.initiator(), Err(()));
        }
        let offers = self.channels[number].senders.iter().filter_map(|sender| match sender {
            Sender::Offer(offer, _) => Some(*offer),
            Sender::Buffered(_) => None,
        });
        let mut offers: Vec<_> =
            offers.chain(self.channels[number].receipts.iter().map(|receipt| receipt.offer)).collect();
        offers.dedup_by_key(|offer| offer.process);
        for offer in offers {
            // Another offer of the same process may have come first.
            if self.is_waiting(offer, number) {
                self.conclude(Initiator::Process(offer), Err(()));
            }
        }
        self.end_step(process, result(0, Ok(None)));
        self
    }

    fn is_waiting(&self, offer: Offer, number: usize) -> bool {
        let channel = &self.channels[number];
        channel.senders.iter().any(|sender| matches!(sender, Sender::Offer(known, _) if *known == offer))
            || channel.receipts.iter().any(|receipt| receipt.offer == offer)
    }

    /// A communication has taken effect for one of its sides.
    fn conclude(&mut self, side: Initiator, outcome: Result<Option<u32>, ()>) {
        match side {
            Initiator::Nobody(action) => self.act(action, outcome),
            Initiator::Process(Offer { process, branch, action }) => {
                for channel in &mut self.channels {
                    channel.senders.retain(|sender| !sender.is_of(side));
                    channel.receivers.retain(|receiver| !receiver.is_of(side));
                    channel.receipts.retain(|receipt| !receipt.is_of(side));
                }
                let own = if action.is_some() { Ok(None) } else { outcome };
                self.end_step(process, result(branch, own));
                self.act(action, outcome);
            }
        }
    }

    /// Runs a post-consumption action.
    fn act(&mut self, action: Option<Action>, outcome: Result<Option<u32>, ()>) {
        let Some(Action { key, forward }) = action else { return };
        self.results.insert(key, result(0, outcome));
        if let Some(channel) = forward {
            let value = outcome.ok().flatten().unwrap_or(key) + FORWARDED;
            let branch = Branch { channel, operation: Operation::Send(value), action: None };
            self.processes.push(Process::new(Source::Post(branch)));
        }
    }

    fn end_step(&mut self, number: usize, value: u32) {
        let process = &mut self.processes[number];
        if let Source::Program(source) = process.source {
            self.results.insert(step_key(source, process.step) + 9, value);
        }
        process.step += 1;
        (process.tried, process.registered) = (0, 0);
    }
}

/// The set of all branches.
fn all_of(branches: &[Branch]) -> u32 {
    (1 << branches.len()) - 1
}
