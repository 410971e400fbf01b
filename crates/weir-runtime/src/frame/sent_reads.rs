//! Reads of one value that are under way together: those that are sent on one connection, where they are answered one after the other.
//!
//! A read of a shared value must not see less than an earlier one of its flow. It begins before that is answered if both are sent on the same
//! connection ([`AwaitedCall::sent_on`](weir_host::AwaitedCall)), which is known only when it begins. Otherwise it begins behind it.

use std::num::NonZeroU64;

use super::action::{Meanwhile, Stage};
use super::{Frame, Wait};
use crate::step::{Action, Body, PreparedStep};
use crate::wait_set::WaitSet;

impl Frame {
    /// Returns false if a step has to wait for earlier reads that are `unfinished`: those that it may follow have not all been sent on one
    /// connection.
    #[inline]
    pub(super) fn may_follow_reads(&self, step: &PreparedStep, unfinished: &WaitSet, body: &Body) -> bool {
        !step.follows.meets(unfinished) || self.follows_sent_reads(step, unfinished, body)
    }

    #[cold]
    fn follows_sent_reads(&self, step: &PreparedStep, unfinished: &WaitSet, body: &Body) -> bool {
        let mut awaited = unfinished.clone();
        awaited.retain_all(&step.follows);
        let (mut sent, mut connection) = (WaitSet::default(), None);
        for wait in &self.waits {
            let number = body.steps[wait.node].wait_number.filter(|number| awaited.contains(*number));
            let Some(number) = number else { continue };
            let sent_on = wait.sent_on();
            if sent_on.is_none() || connection.is_some_and(|other| Some(other) != sent_on) {
                return false;
            }
            connection = sent_on;
            sent.insert(number);
        }
        // A read that depends on something else may not have begun.
        let takes_no_lock = matches!(step.action.uncut().form(), Action::Call(call) if call.needs_no_locks());
        takes_no_lock && awaited.is_within(&sent)
    }

    /// Returns the connection on which the earlier reads were sent that a step follows, if some of them are not answered.
    #[inline]
    pub(super) fn connection_before(&self, node: usize, body: &Body) -> Option<NonZeroU64> {
        self.reads_before(node, body).find_map(Wait::sent_on)
    }

    /// Returns true if reads are not answered that a step which has begun follows.
    #[inline]
    pub(super) fn awaits_reads(&self, index: usize, body: &Body) -> bool {
        self.reads_before(self.waits[index].node, body).next().is_some()
    }

    fn reads_before<'f>(&'f self, node: usize, body: &'f Body) -> impl Iterator<Item = &'f Wait> {
        let follows = &body.steps[node].follows;
        let waits = if follows.is_empty() { &[][..] } else { &self.waits[..] };
        waits.iter().filter(move |other| {
            let number = body.steps[other.node].wait_number;
            other.node < node && number.is_some_and(|number| follows.contains(number))
        })
    }
}

impl Wait {
    /// Returns the connection on which the call was sent, if it is a read that later ones may follow.
    fn sent_on(&self) -> Option<NonZeroU64> {
        match self.stage.as_deref() {
            Some(Stage::Function(.., Meanwhile::Sent(connection))) => Some(*connection),
            _ => None,
        }
    }
}
