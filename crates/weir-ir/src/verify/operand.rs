//! The types of operands of either IR.

use weir_host::{Type, Value};

use super::types::TypeTable;
use crate::print::{Constant, TypeText};

/// The type of an operand, or the constant that it is.
#[derive(Clone, Copy)]
pub(super) enum TypedOperand<'a> {
    /// A variable or a port.
    Typed(&'a Type),
    /// A constant.
    Constant(&'a Value),
    /// A shared value.
    Shared(&'a Type),
    /// An operand whose fault has been reported.
    Unknown,
}

impl<'a> TypedOperand<'a> {
    pub(super) fn is(self, ty: &Type, types: &TypeTable<'_>) -> bool {
        match self {
            TypedOperand::Typed(own) | TypedOperand::Shared(own) => own == ty,
            TypedOperand::Constant(value) => types.holds(ty, value),
            TypedOperand::Unknown => true,
        }
    }

    /// Returns the type, except of a constant.
    pub(super) fn ty(self) -> Option<&'a Type> {
        match self {
            TypedOperand::Typed(ty) | TypedOperand::Shared(ty) => Some(ty),
            TypedOperand::Constant(_) | TypedOperand::Unknown => None,
        }
    }

    pub(super) fn describe(self) -> String {
        match self {
            TypedOperand::Typed(ty) => format!("a value of {}", TypeText(ty)),
            TypedOperand::Shared(ty) => format!("a shared value of {}", TypeText(ty)),
            TypedOperand::Constant(value) => format!("the constant {}", Constant(value)),
            TypedOperand::Unknown => "something unknown".into(),
        }
    }

    /// Checks that the operand is of this type.
    pub(super) fn must_be(self, what: &str, ty: &Type, types: &TypeTable<'_>) -> Result<(), String> {
        if self.is(ty, types) {
            return Ok(());
        }
        Err(format!("{what} should be of {}, but is {}", TypeText(ty), self.describe()))
    }
}
