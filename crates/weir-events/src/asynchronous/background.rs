//! A synchronisation in the background, which no thread waits for: the result of `s_trans`.
//!
//! The thread that starts it queues its offers. Once a peer or a timer commits it, an implicit thread takes over and
//! runs its wraps; until then it occupies no thread.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

use crate::actions::{self, ActionContext, PostConsumption};
use crate::event::{CommittedSync, Event, Synchronisation};

struct BackgroundSync<T: 'static> {
    synchronisation: Mutex<Option<Synchronisation<T>>>,
    actions: PostConsumption<T>,
    /// True if no user code follows the commit, so that the committing thread may finish it.
    is_plain: bool,
}

/// Starts a synchronisation and returns at once.
pub(crate) fn start<T: Send + 'static>(event: &Event<T>, actions: PostConsumption<T>) {
    let shape = event.shape();
    if shape.base_events == 0 && !shape.guarded {
        return;
    }
    let is_plain = actions.is_none() && !shape.acts;
    let synchronisation = Mutex::new(Some(Synchronisation::with_deferred_wraps(event.clone())));
    Arc::new(BackgroundSync { synchronisation, actions, is_plain }).turn();
}

impl<T: Send + 'static> BackgroundSync<T> {
    fn turn(self: Arc<Self>) {
        if let Some(advance) = self.advance() {
            match self.is_plain {
                true => drop(advance.conclude()),
                false => actions::run(move || self.finish(advance)),
            }
        }
    }

    fn advance(self: &Arc<Self>) -> Option<CommittedSync<T>> {
        let waker = Waker::from(self.clone());
        let mut slot = self.synchronisation.lock().unwrap_or_else(PoisonError::into_inner);
        let advance = slot.as_mut()?.advance(&mut Context::from_waker(&waker))?;
        *slot = None;
        Some(advance)
    }

    fn finish(&self, advance: CommittedSync<T>) {
        self.actions.run_at(advance.conclude(), ActionContext::Implicit);
    }
}

impl<T: Send + 'static> Wake for BackgroundSync<T> {
    /// Runs user code on an implicit thread, because the caller may hold locks.
    fn wake(self: Arc<Self>) {
        match self.is_plain {
            true => self.turn(),
            false => actions::run(move || {
                if let Some(advance) = self.advance() {
                    self.finish(advance);
                }
            }),
        }
    }
}
