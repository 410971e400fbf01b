//! The model check of texts that share a buffer: every interleaving of two threads that extend one text, by loom.
//!
//! The file under test is compiled a second time here, over loom's primitives instead of the system's; loom's cells notice
//! a byte that is written while another thread has it. Every mutant leaves out one step of the protocol, and must be caught.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use sync::{ClaimMutant, MUTANT};
use used_bytes::UsedBytes;

#[path = "used_bytes.rs"]
#[expect(clippy::duplicate_mod, reason = "this copy is over loom's primitives")]
mod used_bytes;

/// Loom's primitives under the names of those in `super::sync`.
mod sync {
    use std::cell::Cell;

    pub(super) use loom::sync::atomic::{AtomicUsize, Ordering};

    pub(super) use super::super::sync::ClaimMutant;

    thread_local! {
        /// The mutant under test. All threads of a model run on one thread of the system.
        pub(super) static MUTANT: Cell<Option<ClaimMutant>> = const { Cell::new(None) };
    }

    pub(super) fn is(mutant: ClaimMutant) -> bool {
        MUTANT.get() == Some(mutant)
    }
}

struct ModelBuffer {
    used: UsedBytes,
    bytes: [UnsafeCell<u8>; 2],
}

/// A text as `characters` has it, which does not grow beyond its buffer.
#[derive(Clone)]
struct ModelText {
    buffer: Arc<ModelBuffer>,
    length: usize,
}

#[expect(unsafe_code, reason = "loom's cells check each access")]
impl ModelText {
    /// Creates the text `a`.
    fn new() -> ModelText {
        let bytes = [b'a', 0].map(UnsafeCell::new);
        let buffer = ModelBuffer { used: UsedBytes::new(), bytes };
        assert!(buffer.used.claim(0, 1, true));
        ModelText { buffer: Arc::new(buffer), length: 1 }
    }

    /// Adds a byte in place; returns false if the text would have to be copied.
    fn push(&mut self, byte: u8) -> bool {
        let is_only = Arc::get_mut(&mut self.buffer).is_some();
        let is_claimed = self.buffer.used.claim(self.length, 1, is_only);
        if is_claimed {
            // SAFETY: the byte is claimed.
            self.buffer.bytes[self.length].with_mut(|place| unsafe { *place = byte });
            self.length += 1;
        }
        is_claimed
    }

    fn read(&self) -> Vec<u8> {
        let bytes = &self.buffer.bytes[..self.length];
        // SAFETY: the text has these bytes.
        bytes.iter().map(|byte| byte.with(|place| unsafe { *place })).collect()
    }
}

/// Extends a text by a byte, and returns whether that was possible in place.
fn extend(mut text: ModelText, byte: u8) -> bool {
    let is_claimed = text.push(byte);
    assert_eq!(text.read(), if is_claimed { vec![b'a', byte] } else { vec![b'a'] });
    is_claimed
}

/// Two threads extend one text; then what is left of it grows again.
fn two_extend_one_text() {
    loom::model(|| {
        let mut first = ModelText::new();
        let others = [b'x', b'y'].map(|byte| {
            let text = first.clone();
            thread::spawn(move || extend(text, byte))
        });
        let extended = others.map(|thread| thread.join().unwrap());
        assert!(extended != [false, false], "one of them finds the end free");
        assert_eq!(first.read(), b"a");
        assert!(first.push(b'z'), "the longer texts are gone");
        assert_eq!(first.read(), b"az");
    });
}

/// A text grows while another thread extends the same text and drops the longer one.
fn one_grows_while_a_longer_one_is_dropped() {
    loom::model(|| {
        let first = ModelText::new();
        let text = first.clone();
        let other = thread::spawn(move || extend(text, b'x'));
        let is_claimed = extend(first, b'y');
        assert!(is_claimed | other.join().unwrap(), "one of them finds the end free");
    });
}

fn caught(mutant: ClaimMutant) -> bool {
    MUTANT.set(Some(mutant));
    let outcome = std::panic::catch_unwind(two_extend_one_text);
    MUTANT.set(None);
    outcome.is_err()
}

#[test]
fn texts_that_share_a_buffer_do_not_change_each_other() {
    two_extend_one_text();
    one_grows_while_a_longer_one_is_dropped();
}

#[test]
fn every_mutant_of_claiming_is_caught() {
    assert!(caught(ClaimMutant::ClaimsOthers));
    assert!(caught(ClaimMutant::ReadsFirst));
}
