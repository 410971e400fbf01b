//! The names of the constraints that steps of a program hold which write a database. The compiler chooses them.

/// The constraint of the database of the program, and of what it keeps in memory. Those of other databases begin with it and a dot.
pub(super) const OWN: &str = "tables";

/// Returns whether a constraint is that of a database with tables of the program.
#[must_use]
pub fn is_database(constraint: &str) -> bool {
    constraint.strip_prefix(OWN).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
