//! Passing modes: the ways in which a function takes the argument of a parameter.

/// Passing mode of a parameter. Applied to a shared value, `Borrow` makes the call a reader and `Change` a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Passing {
    /// By value: shared, cloned, or moved if it is neither shareable nor cloneable.
    Value,
    /// By `&`.
    Borrow,
    /// By `&mut`.
    Change,
    /// By value together with its type, as a [`crate::Typed`].
    Typed,
    /// All arguments that name no other parameter, as a [`crate::NamedArguments`]. Only the last parameter can be passed so.
    Named,
    /// Not by an argument: the compiler passes the type that the call has for this type parameter, as a
    /// [`crate::TypeArgument`]. Such parameters stand last, and the result of the function mentions the type parameter.
    TypeOf(char),
    /// To the constructor of the private state, before any flow begins; the function itself never receives it. The
    /// argument of a call must be constant.
    Start,
}

impl Passing {
    /// Returns `true` if the call takes ownership of the value.
    #[must_use]
    pub fn takes(self) -> bool {
        matches!(self, Passing::Value | Passing::Typed | Passing::Named)
    }
}
