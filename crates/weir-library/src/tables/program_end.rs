//! The end of a program whose tables it must not use any more: a failure that only a start can mend.

use std::fmt;
use std::sync::{Arc, OnceLock};

use weir::Failure;

/// Ends the program.
#[derive(Clone, Default)]
pub(super) struct ProgramEnd(Arc<EndState>);

#[derive(Default)]
struct EndState {
    failure: OnceLock<Failure>,
    end: OnceLock<Box<dyn Fn(Failure) + Send + Sync>>,
}

impl ProgramEnd {
    /// Ends the program with a failure, the first one of several.
    pub(super) fn fail(&self, failure: &Failure) {
        _ = self.0.failure.set(failure.clone());
        self.tell();
    }

    /// Has the program end in this way.
    pub(super) fn on_failure(&self, end: impl Fn(Failure) + Send + Sync + 'static) {
        _ = self.0.end.set(Box::new(end));
        self.tell();
    }

    fn tell(&self) {
        if let (Some(failure), Some(end)) = (self.0.failure.get(), self.0.end.get()) {
            end(failure.clone());
        }
    }
}

impl fmt::Debug for ProgramEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ProgramEnd").field(&self.0.failure.get()).finish()
    }
}
