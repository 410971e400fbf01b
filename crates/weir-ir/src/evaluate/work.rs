//! The bound on the work of an evaluation, so that a random program whose values double in nested loops ends soon.

use weir_host::Value;

/// The work that an evaluation may still do: one for each block, and for each value of an operation the number of its bytes
/// and parts, however deeply they nest.
pub(super) struct WorkLeft(u64);

impl WorkLeft {
    /// The work of an evaluation without a bound.
    pub(super) const UNBOUNDED: WorkLeft = WorkLeft(u64::MAX);

    /// Allows this much work.
    pub(super) fn new(work: u64) -> Self {
        WorkLeft(work)
    }

    /// Returns true if the work was bounded, and is done.
    pub(super) fn is_exhausted(&self) -> bool {
        self.0 == 0
    }

    /// Spends the work of a block that begins. Returns false if there was none left.
    pub(super) fn begin_block(&mut self) -> bool {
        if self.0 != u64::MAX {
            self.0 = self.0.saturating_sub(1);
        }
        !self.is_exhausted()
    }

    /// Spends the work of a value that an operation has made. Returns false if there was not enough left.
    pub(super) fn make(&mut self, value: &Value) -> bool {
        if self.0 != u64::MAX {
            spend(value, &mut self.0);
        }
        !self.is_exhausted()
    }
}

/// Subtracts the size of a value. Ends as soon as nothing is left, because a value that shares its parts may be far larger than
/// the memory that it takes.
fn spend(value: &Value, left: &mut u64) {
    let own = match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    *left = left.saturating_sub(1 + own as u64);
    match value {
        Value::List(elements) => elements.iter().take_while(|part| spends(part, left)).for_each(drop),
        Value::Map(entries) => {
            entries.iter().take_while(|(key, value)| spends(key, left) && spends(value, left)).for_each(drop);
        }
        Value::Record(parts) | Value::Variant(_, Some(parts)) => {
            parts.iter().take_while(|part| spends(part, left)).for_each(drop);
        }
        _ => {}
    }
}

/// The same; returns true if some is left.
fn spends(value: &Value, left: &mut u64) -> bool {
    spend(value, left);
    *left > 0
}
