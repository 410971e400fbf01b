//! Checked primitives: those that may fail, with the failure as a value.

use weir_host::Value;

use super::Prim;

/// A primitive whose failure its operands alone decide, such as an overflow or an index out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FalliblePrim {
    /// [`Prim::Add`].
    Add,
    /// [`Prim::Subtract`].
    Subtract,
    /// [`Prim::Multiply`].
    Multiply,
    /// [`Prim::Divide`].
    Divide,
    /// [`Prim::Remainder`].
    Remainder,
    /// [`Prim::Negate`].
    Negate,
    /// [`Prim::Index`].
    Index,
}

impl FalliblePrim {
    const ALL: [FalliblePrim; 7] = [
        FalliblePrim::Add,
        FalliblePrim::Subtract,
        FalliblePrim::Multiply,
        FalliblePrim::Divide,
        FalliblePrim::Remainder,
        FalliblePrim::Negate,
        FalliblePrim::Index,
    ];

    /// Returns the primitive that fails.
    #[must_use]
    pub fn prim(self) -> Prim {
        match self {
            FalliblePrim::Add => Prim::Add,
            FalliblePrim::Subtract => Prim::Subtract,
            FalliblePrim::Multiply => Prim::Multiply,
            FalliblePrim::Divide => Prim::Divide,
            FalliblePrim::Remainder => Prim::Remainder,
            FalliblePrim::Negate => Prim::Negate,
            FalliblePrim::Index => Prim::Index,
        }
    }

    /// Returns the name of the checked primitive in the printed IR.
    pub(super) fn checked_name(self) -> &'static str {
        match self {
            FalliblePrim::Add => "checked_add",
            FalliblePrim::Subtract => "checked_subtract",
            FalliblePrim::Multiply => "checked_multiply",
            FalliblePrim::Divide => "checked_divide",
            FalliblePrim::Remainder => "checked_remainder",
            FalliblePrim::Negate => "checked_negate",
            FalliblePrim::Index => "checked_index",
        }
    }

    /// Applies the checked primitive: returns `Ok` of the value of the primitive, or `Err` of its failure.
    pub(super) fn apply_checked(self, operands: &[&Value]) -> Value {
        self.prim().apply(operands).map_or_else(|failure| Value::err(Value::Failure(failure)), Value::ok)
    }
}

impl Prim {
    /// Returns the checked form of a primitive whose failure its operands alone decide.
    #[must_use]
    pub fn checked(self) -> Option<Prim> {
        FalliblePrim::ALL.into_iter().find(|fallible| fallible.prim() == self).map(Prim::Checked)
    }
}
