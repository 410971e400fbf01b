//! The connections of one event loop: who is there, and how they are told to stop.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Waker};

use indexmap::IndexMap;
use tokio::sync::Notify;

/// All connections of one loop.
#[derive(Default)]
pub(super) struct Crowd {
    stopping: Cell<bool>,
    next: Cell<u64>,
    /// Each member's task, once it has run.
    members: RefCell<IndexMap<u64, Option<Waker>>>,
    left: Notify,
}

impl Crowd {
    /// Adds a connection, until its [`Member`] is dropped.
    pub(super) fn join(self: &Rc<Self>) -> Member {
        let id = self.next.replace(self.next.get() + 1);
        self.members.borrow_mut().insert(id, None);
        Member { crowd: Rc::clone(self), id, waker_noted: Cell::new(false) }
    }

    /// Tells every connection to end after the requests that it has begun.
    pub(super) fn stop(&self) {
        self.stopping.set(true);
        for waker in self.members.borrow().values().flatten() {
            waker.wake_by_ref();
        }
    }

    /// Waits until no connection is left.
    pub(super) async fn gone(&self) {
        while !self.members.borrow().is_empty() {
            self.left.notified().await;
        }
    }
}

/// One connection's place in its crowd.
pub(super) struct Member {
    crowd: Rc<Crowd>,
    id: u64,
    waker_noted: Cell<bool>,
}

impl Member {
    /// Whether the connection should end.
    pub(super) fn is_stopping(&self) -> bool {
        self.crowd.stopping.get()
    }

    /// Notes whom to wake; a task keeps its waker, so once is enough.
    pub(super) fn note_waker(&self, cx: &Context<'_>) {
        if !self.waker_noted.replace(true) {
            self.crowd.members.borrow_mut().insert(self.id, Some(cx.waker().clone()));
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.crowd.members.borrow_mut().swap_remove(&self.id);
        self.crowd.left.notify_one();
    }
}
