//! Reasons why nodes cannot be compiled to a region although they qualify.

/// The reason why a region cannot be built; its nodes stay steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::prepare::regions) enum RegionProblem {
    /// It has too many registers, slots or instructions.
    TooLarge,
    /// Its nodes are in an order that the builder does not know, or use a value that no slot holds.
    Unsupported,
}
