//! Operands of either IR, as far as their types go.

use weir_host::{Type, Value};

use super::types::Types;
use crate::print::{Constant, TypeText};

/// What is known of an operand.
#[derive(Clone, Copy)]
pub(super) enum Operand<'a> {
    /// A variable or a port.
    Typed(&'a Type),
    /// A constant.
    Constant(&'a Value),
    /// A shared value.
    Shared(&'a Type),
    /// Nothing, and that was said already.
    Unknown,
}

impl<'a> Operand<'a> {
    pub(super) fn is(self, ty: &Type, types: &Types<'_>) -> bool {
        match self {
            Operand::Typed(own) | Operand::Shared(own) => own == ty,
            Operand::Constant(value) => types.holds(ty, value),
            Operand::Unknown => true,
        }
    }

    /// Its type, where it has one that is not a constant's.
    pub(super) fn ty(self) -> Option<&'a Type> {
        match self {
            Operand::Typed(ty) | Operand::Shared(ty) => Some(ty),
            Operand::Constant(_) | Operand::Unknown => None,
        }
    }

    pub(super) fn describe(self) -> String {
        match self {
            Operand::Typed(ty) => format!("a value of {}", TypeText(ty)),
            Operand::Shared(ty) => format!("a shared value of {}", TypeText(ty)),
            Operand::Constant(value) => format!("the constant {}", Constant(value)),
            Operand::Unknown => "something unknown".into(),
        }
    }

    /// Says what is wrong where it is not of this type.
    pub(super) fn must_be(self, what: &str, ty: &Type, types: &Types<'_>) -> Result<(), String> {
        if self.is(ty, types) {
            return Ok(());
        }
        Err(format!("{what} should be of {}, but is {}", TypeText(ty), self.describe()))
    }
}
