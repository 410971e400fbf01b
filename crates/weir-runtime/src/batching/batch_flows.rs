//! The flows whose calls are in a batch: what they may hold, and the requests that each of them has made first.
//!
//! The answers to a batch count for its flows while they arrive: all flows together may hold as much as each of them may. A flow that
//! has come to rest since it has joined may count as another one when it joins again, which loosens that bound.

use smallvec::SmallVec;
use weir_host::memory::{self, CarriedAccount};

use super::requests::SentRequests;

/// The flows of a batch.
#[derive(Default)]
pub(super) struct BatchFlows {
    /// The account of each flow when it has joined.
    accounts: SmallVec<[CarriedAccount; 1]>,
    /// The index of the first of some requests, in ascending order, and the flow that has made them.
    runs: SmallVec<[(u32, u32); 1]>,
}

/// The requests of a flow, by their positions among those that are sent, and its account.
pub(super) struct FlowRequests {
    pub account: CarriedAccount,
    pub positions: Vec<usize>,
}

impl BatchFlows {
    /// Notes that the flow of this thread makes the requests from an index on. `known` is its number if it has joined before. Returns
    /// its number.
    pub(super) fn join(&mut self, first: usize, known: Option<u32>) -> u32 {
        let flow = known.unwrap_or_else(|| {
            self.accounts.push(memory::carried());
            self.accounts.len() as u32 - 1
        });
        if self.last() != Some(flow) {
            self.runs.push((first as u32, flow));
        }
        flow
    }

    /// Returns the flow that has joined last.
    pub(super) fn last(&self) -> Option<u32> {
        self.runs.last().map(|(_, flow)| *flow)
    }

    /// Returns true if there are several.
    pub(super) fn are_several(&self) -> bool {
        self.accounts.len() > 1
    }

    /// Returns the account of all flows together.
    pub(super) fn account(&self) -> CarriedAccount {
        let all = self.accounts.iter().copied().reduce(CarriedAccount::together);
        all.unwrap_or_else(memory::carried)
    }

    /// Returns the requests of each flow that has made one of those that are sent.
    pub(super) fn each(&self, sent: &SentRequests) -> Vec<FlowRequests> {
        let of_account = |account: &CarriedAccount| FlowRequests { account: *account, positions: Vec::new() };
        let mut flows: Vec<FlowRequests> = self.accounts.iter().map(of_account).collect();
        let (mut runs, mut flow) = (self.runs.iter().peekable(), 0);
        for position in 0..sent.count {
            while let Some((_, next)) = runs.next_if(|(first, _)| *first <= sent.index(position)) {
                flow = *next as usize;
            }
            flows[flow].positions.push(position);
        }
        flows.retain(|flow| !flow.positions.is_empty());
        flows
    }
}

#[cfg(test)]
mod tests {
    use foldhash::fast::FixedState;
    use weir_host::Value;

    use super::super::requests::Requests;
    use super::*;

    #[test]
    fn each_flow_has_the_requests_that_it_has_made_first_and_that_are_sent() {
        let (mut requests, mut flows) = (Requests::new(Some(FixedState::default()), 0), BatchFlows::default());
        let mut join = |known, values: &[i64]| {
            let flow = flows.join(requests.len(), known);
            (flow, requests.add_all(&mut values.iter().map(|value| Value::Int(*value)), 100))
        };
        assert_eq!(join(None, &[1, 2]).0, 0);
        assert_eq!(join(None, &[2, 3, 4]).0, 1);
        let (flow, left) = join(Some(0), &[5, 6]);
        assert_eq!(flow, 0);
        assert_eq!(join(None, &[1]).0, 2);
        requests.leave(left[0], 1);
        let sent = requests.send(|users| users > 0);
        assert_eq!(sent.values, [1, 2, 3, 4, 6].map(Value::Int));
        let positions: Vec<Vec<usize>> = flows.each(&sent).into_iter().map(|flow| flow.positions).collect();
        assert_eq!(positions, [vec![0, 1, 4], vec![2, 3]]);
    }
}
