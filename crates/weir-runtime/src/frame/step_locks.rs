//! The locks of an atomic step that has begun, and the shared values that it restores if what it has begun is taken back.
//!
//! However the step ends, its locks are released when the last that works under them is dropped: the frames of the step and calls that
//! run elsewhere. Before that, the shared values are restored, so that no other flow sees what the step has written in them.

use std::sync::Arc;

use weir_host::{Shared, StepEnd, Value};

use crate::lock::HeldLock;

/// The locks of an atomic step, which its frames and calls share.
pub(crate) type AtomicScope = Arc<StepLocks>;

/// The locks of an atomic step.
#[derive(Default)]
pub(crate) struct StepLocks {
    pub held: Vec<HeldLock>,
    restoring: Option<Box<RestoredValues>>,
}

/// The values that shared values had when a step began.
struct RestoredValues {
    ends: Box<[Arc<dyn StepEnd>]>,
    values: Vec<(Shared, Value)>,
}

impl StepLocks {
    /// Returns the locks of a step that restores these shared values.
    pub(super) fn restoring(
        held: Vec<HeldLock>,
        shared: impl IntoIterator<Item = Shared>,
        ends: &[Arc<dyn StepEnd>],
    ) -> StepLocks {
        let with_value = |shared: Shared| {
            let value = shared.read().clone();
            (shared, value)
        };
        let values: Vec<_> = shared.into_iter().map(with_value).collect();
        let restores = !values.is_empty() && !ends.is_empty();
        let restoring = restores.then(|| Box::new(RestoredValues { ends: ends.into(), values }));
        StepLocks { held, restoring }
    }
}

impl Drop for StepLocks {
    fn drop(&mut self) {
        if let Some(restoring) = self.restoring.take()
            && !has_completed(&restoring.ends)
        {
            restoring.values.into_iter().for_each(|(shared, value)| *shared.write() = value);
        }
    }
}

/// Returns true if a step has completed what it has begun, and so tells one of these ends. Asks all, because each notes it for one step.
fn has_completed(ends: &[Arc<dyn StepEnd>]) -> bool {
    ends.iter().filter(|end| end.has_completed()).count() > 0
}
