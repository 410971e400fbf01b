//! The numbers of commits that do not wait for the disk (`durability`).

/// The number of bits that count commits.
pub(super) const COUNT_BITS: u32 = 40;
/// Counts the commit of a transaction that has its turn. The answer is its number if it will not wait for the disk, and empty
/// beside another program. The number of the lock is `Weir` in ASCII, and that of the table. It is prepared, because each
/// transaction executes it: to plan it takes the server longer than to execute it. The answer also tells whether nobody listens to
/// write sets before the end of the transaction (`publications`).
pub(super) const COUNT_COMMIT: &str = "UPDATE \"weir_numbers\" SET \"last\" = \"last\" + 1 WHERE \"table\" = '' AND CASE \
    WHEN pg_try_advisory_xact_lock((1466263922::bigint << 32) | '\"weir_database\"'::regclass::oid::bigint) \
    THEN set_config('synchronous_commit', 'off', true) = 'off' ELSE false END RETURNING \"last\", \
    pg_try_advisory_xact_lock((1466263923::bigint << 32) | '\"weir_database\"'::regclass::oid::bigint)";

/// The number of a commit that does not wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommitNumber(pub(super) i64);

impl CommitNumber {
    /// Returns the number of commits.
    pub(super) fn count(self) -> i64 {
        self.0 & ((1 << COUNT_BITS) - 1)
    }

    /// Returns the number of programs that have joined.
    pub(super) fn programs(self) -> i64 {
        self.0 >> COUNT_BITS
    }
}
