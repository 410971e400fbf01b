//! The constants of a body, with a copy for each stripe of threads.
//!
//! Most uses borrow a constant. A use that stores it, or passes it on, clones it, and if it is more than a number or a short
//! text, that writes its reference count. If all threads cloned the same constant, this word would move between their caches
//! with every flow. Therefore each stripe of threads (`striped.rs`) has constants of its own.

use std::ops::Deref;

use weir_host::Value;

use crate::striped::{STRIPES, stripe};

/// The size in bytes of the constants of a body that are copied; larger ones are shared by all threads. Chosen by judgement:
/// copying what takes as long as a thousand flows would save nothing.
const COPIED_BYTES_MAX: u64 = 64 * 1024;

/// The constants of a body. They dereference to those of this thread's stripe.
pub(crate) struct ConstantCopies {
    /// One list for each stripe, or a single one for all.
    copies: Box<[Box<[Value]>]>,
}

impl ConstantCopies {
    /// Creates the copies of these constants.
    pub(crate) fn new(constants: &[Value]) -> Self {
        let is_counted = constants.iter().any(Value::counts_references);
        let bytes = constants.iter().map(Value::approximate_bytes).fold(0, u64::saturating_add);
        if !is_counted || bytes > COPIED_BYTES_MAX {
            return ConstantCopies { copies: [constants.into()].into() };
        }
        ConstantCopies { copies: (0..STRIPES).map(|_| constants.iter().map(Value::deep_copy).collect()).collect() }
    }
}

impl Deref for ConstantCopies {
    type Target = [Value];

    #[inline]
    fn deref(&self) -> &[Value] {
        match &*self.copies {
            [shared] => shared,
            copies => &copies[stripe()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the places of a text of this length: among the constants of this thread, and in all copies.
    fn places(length: usize) -> (usize, Vec<usize>) {
        let constants = ConstantCopies::new(&[Value::Int(1), Value::text(&"x".repeat(length))]);
        let place = |constants: &[Value]| {
            let Value::Text(text) = &constants[1] else { panic!("it is a text") };
            text.as_ptr().addr()
        };
        (place(&constants), constants.copies.iter().map(|copy| place(copy)).collect())
    }

    #[test]
    fn each_stripe_has_constants_of_its_own() {
        let (here, mut all) = places(100);
        assert!(all.contains(&here));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), STRIPES);
    }

    #[test]
    fn large_constants_and_those_without_a_count_are_shared() {
        assert_eq!(places(COPIED_BYTES_MAX as usize).1.len(), 1);
        assert_eq!(places(3).1.len(), 1);
    }
}
