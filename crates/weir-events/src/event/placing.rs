//! What a leaf needs to know in order to place its stake, and what it may ask for.

use std::sync::Arc;
use std::time::Instant;

use crate::party::Party;

/// One synchronisation that is publishing its leaves, or looks at some of them again.
pub(crate) struct Placing<'a> {
    pub(crate) party: &'a Arc<Party>,
    /// The leaf at hand, numbered in the whole tree.
    pub(crate) leaf: usize,
    pub(crate) wishes: &'a mut Wishes,
}

/// What the leaves asked for besides being found by peers.
#[derive(Default)]
pub(crate) struct Wishes {
    /// The leaf that takes effect by time alone, earliest first.
    pub(crate) timer: Option<(Instant, usize)>,
    /// Leaves that want to be looked at whenever the party is woken.
    pub(crate) watched: Vec<usize>,
}

impl Placing<'_> {
    /// The leaf takes effect at `instant`, if nothing else has by then.
    pub(crate) fn ring_at(&mut self, instant: Instant) {
        if self.wishes.timer.is_none_or(|(earliest, _)| instant < earliest) {
            self.wishes.timer = Some((instant, self.leaf));
        }
    }

    /// The leaf is looked at again each time the party is woken.
    pub(crate) fn look_again(&mut self) {
        self.wishes.watched.push(self.leaf);
    }
}
