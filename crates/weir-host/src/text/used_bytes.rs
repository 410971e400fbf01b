//! The number of bytes of a buffer that belong to texts, and the claims of further ones: see `characters`.

use super::sync::{AtomicUsize, ClaimMutant, Ordering, is};

/// The number of bytes of a buffer that belong to texts. Those behind it belong to nobody.
///
/// Relaxed accesses suffice: what is claimed is read only by its claimant, until another thread gets the text by something
/// that synchronises; and whether a text is the only one in its buffer is known by the count of references, which orders the
/// accesses of texts that were dropped before.
pub(super) struct UsedBytes(AtomicUsize);

impl UsedBytes {
    /// Returns the number for a buffer without texts.
    pub(super) fn new() -> UsedBytes {
        UsedBytes(AtomicUsize::new(0))
    }

    /// Claims bytes behind a text of this length; returns false if they belong to another text. `is_only` is true if the
    /// buffer has no other text.
    #[inline]
    pub(super) fn claim(&self, length: usize, added: usize, is_only: bool) -> bool {
        if is_only || is(ClaimMutant::ClaimsOthers) {
            self.0.store(length + added, Ordering::Relaxed);
            return true;
        }
        if is(ClaimMutant::ReadsFirst) {
            let is_end = self.0.load(Ordering::Relaxed) == length;
            self.0.store(length + added, Ordering::Relaxed);
            return is_end;
        }
        self.0.compare_exchange(length, length + added, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}
