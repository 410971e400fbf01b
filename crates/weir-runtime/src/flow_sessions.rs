//! The sessions that a flow uses: each is in use until the flow ends, also while it is in no step that holds the session, so that
//! all its steps see one value.

use std::cell::Cell;
use std::sync::Arc;

use weir_host::Value;

use crate::lock::{LockHandle, SessionTable};

/// The sessions with values of their own that a flow has used so far. A pointer, because most flows have none.
#[derive(Default)]
pub(crate) struct FlowSessions(Cell<Option<Box<UsedSessions>>>);

struct UsedSessions(Vec<LockHandle>);

impl FlowSessions {
    /// Keeps the session in use until the flow ends.
    pub(crate) fn keep(&self, sessions: &Arc<SessionTable>, session: &Value) {
        let mut used = self.0.take().unwrap_or_else(|| Box::new(UsedSessions(Vec::new())));
        if !used.0.iter().any(|handle| handle.is_session(sessions, session)) {
            used.0.push(LockHandle::session(sessions, session.clone()));
        }
        self.0.set(Some(used));
    }
}
