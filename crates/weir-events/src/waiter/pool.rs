//! Object pool of waiters, per thread: a thread waits for one thing at a time, its tasks for several.

pub(crate) use here::{put_back, take, take_for_task};

#[cfg(not(loom))]
mod here {
    use crate::waiter::{Waiter, Wake};
    use std::cell::{Cell, RefCell};
    use std::sync::Arc;
    use std::task::Waker;

    thread_local! {
        static SPARE: Cell<Option<Arc<Waiter>>> = const { Cell::new(None) };
        static SPARE_TASKS: RefCell<Vec<Arc<Waiter>>> = const { RefCell::new(Vec::new()) };
    }

    /// Maximum number of task waiters that a thread keeps.
    const SPARE_TASKS_MAX: usize = 32;

    /// Returns a waiter of this thread in its initial state.
    pub(crate) fn take() -> Arc<Waiter> {
        SPARE.try_with(Cell::take).ok().flatten().unwrap_or_else(|| Arc::new(Waiter::of_thread()))
    }

    /// Returns a waiter of a task in its initial state.
    pub(crate) fn take_for_task(waker: &Waker) -> Arc<Waiter> {
        match SPARE_TASKS.try_with(|spare| spare.borrow_mut().pop()).ok().flatten() {
            None => Arc::new(Waiter::of_task(waker)),
            Some(mut waiter) => {
                if let Some(Waiter { wake: Wake::Task(slot), .. }) = Arc::get_mut(&mut waiter) {
                    *slot.get_mut() = Some(waker.clone());
                }
                waiter
            }
        }
    }

    /// Keeps a waiter for reuse, unless a peer still refers to it. The waiter of a thread must be returned by that
    /// thread.
    pub(crate) fn put_back(mut waiter: Arc<Waiter>) {
        let Some(unshared) = Arc::get_mut(&mut waiter) else { return };
        unshared.reset();
        // If the thread is ending, the waiter is simply dropped.
        match &mut unshared.wake {
            Wake::Thread(_) => drop(SPARE.try_with(|spare| spare.set(Some(waiter)))),
            Wake::Task(waker) => {
                // A pooled waiter must not keep alive whatever its waker refers to.
                drop(waker.get_mut().take());
                let _ = SPARE_TASKS.try_with(|spare| {
                    let mut spare = spare.borrow_mut();
                    if spare.len() < SPARE_TASKS_MAX {
                        spare.push(waiter);
                    }
                });
            }
        }
    }
}

/// The model creates each waiter anew.
#[cfg(loom)]
mod here {
    use crate::waiter::Waiter;
    use std::sync::Arc;
    use std::task::Waker;

    pub(crate) fn take() -> Arc<Waiter> {
        Arc::new(Waiter::of_thread())
    }

    pub(crate) fn take_for_task(waker: &Waker) -> Arc<Waiter> {
        Arc::new(Waiter::of_task(waker))
    }

    pub(crate) fn put_back(_waiter: Arc<Waiter>) {}
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::waiter::{Wake, pool};
    use std::sync::Arc;
    use std::task::Waker;

    #[test]
    fn the_waiter_of_a_task_is_never_given_to_a_thread() {
        pool::put_back(pool::take_for_task(Waker::noop()));
        assert!(matches!(pool::take().wake, Wake::Thread(_)));
        assert!(matches!(pool::take_for_task(Waker::noop()).wake, Wake::Task(_)));
    }

    #[test]
    fn a_waiter_that_is_used_again_waits_again() {
        let waiter = pool::take();
        assert!(waiter.commit_alone(7) && !waiter.abandon());
        let known = Arc::as_ptr(&waiter);
        pool::put_back(waiter);
        let again = pool::take();
        assert_eq!((Arc::as_ptr(&again), again.outcome()), (known, None));
    }

    #[test]
    fn a_waiter_that_a_peer_still_looks_at_is_not_used_again() {
        let waiter = pool::take();
        let (known, peer) = (Arc::as_ptr(&waiter), waiter.clone());
        pool::put_back(waiter);
        assert_ne!(Arc::as_ptr(&pool::take()), known);
        drop(peer);
    }
}
