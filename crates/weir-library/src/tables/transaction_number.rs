//! The numbers of transactions. They tell which ones are executed again if the database refuses them: all attempts of a transaction of
//! the program but the last one; which ones have steps that restore shared values unless they commit; and which ones only read. 0 stands
//! for no transaction, and a store numbers its own ones below that.

use weir::Failure;

/// The bit of a transaction whose step restores shared values.
const RESTORES: i64 = 1 << 62;
/// The bit of a transaction that writes no table.
const ONLY_READS: i64 = 1 << 61;

/// Returns the number of the nth transaction.
pub(super) fn number(nth: i64, is_repeated: bool) -> i64 {
    2 * nth - i64::from(!is_repeated)
}

/// Returns the number of a transaction whose step restores shared values unless it commits.
pub(super) fn restoring(transaction: i64) -> i64 {
    transaction | RESTORES
}

/// Returns whether the step of a transaction restores shared values unless it commits.
pub(super) fn is_restoring(transaction: i64) -> bool {
    transaction > 0 && transaction & RESTORES != 0
}

/// Returns the number of a transaction that writes no table.
pub(super) fn only_reading(transaction: i64) -> i64 {
    transaction | ONLY_READS
}

/// Returns whether a transaction writes no table.
pub(super) fn only_reads(transaction: i64) -> bool {
    transaction > 0 && transaction & ONLY_READS != 0
}

/// Returns whether a transaction is executed again if it is refused.
pub(super) fn is_repeated(transaction: i64) -> bool {
    transaction > 0 && transaction % 2 == 0
}

/// Returns the failure of a transaction of which nothing takes effect, because it is refused.
pub(super) fn refused(transaction: i64, failure: Failure) -> Failure {
    if is_repeated(transaction) { failure.refusal() } else { failure }
}
