//! Waits for which a flow leaves its thread to others, under an engine whose flows hold their threads while they wait.
//!
//! A flow that waits for several things at once, such as the bodies of a `race`, leaves its thread if it would for one of them:
//! the flow that is to bring it about may need the thread. It holds its thread only while it would for all, such as during a
//! `time.sleep`.

/// Returns true if one of the waits leaves the thread; or if there is none, because what is waited for then, such as the answers
/// to gathered calls or the pause before an attempt, holds none.
pub(super) fn leaves_for_one(mut waits: impl Iterator<Item = bool>) -> bool {
    waits.next().is_none_or(|first| first || waits.any(|leaves| leaves))
}
