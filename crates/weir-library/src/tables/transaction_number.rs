//! The numbers of transactions. They tell which ones are executed again if the database refuses them: all attempts of a transaction of
//! the program but the last one. 0 stands for no transaction, and a store numbers its own ones below that.

use weir::Failure;

/// Returns the number of the nth transaction.
pub(super) fn number(nth: i64, is_repeated: bool) -> i64 {
    2 * nth - i64::from(!is_repeated)
}

/// Returns whether a transaction is executed again if it is refused.
pub(super) fn is_repeated(transaction: i64) -> bool {
    transaction > 0 && transaction % 2 == 0
}

/// Returns the failure of a transaction of which nothing takes effect, because it is refused.
pub(super) fn refused(transaction: i64, failure: Failure) -> Failure {
    if is_repeated(transaction) { failure.refusal() } else { failure }
}
