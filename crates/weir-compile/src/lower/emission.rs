//! The operations that are appended to the current block, and the limits of a flow.

use weir_host::{Type, Value};
use weir_ir::expr::{Atom, Op};
use weir_ir::prim::Prim;
use weir_syntax::{Code, Diagnostic, Span};

use super::{BLOCKS_MAX, DEPTH_MAX, Lowering, OPERATIONS_MAX, block_builder};

impl Lowering<'_, '_> {
    /// Appends an operation to the current block and returns its value.
    pub(super) fn emit(&mut self, op: Op, ty: Type, span: Span) -> Atom {
        if self.builder().has_ended() || self.too_large {
            return Atom::Value(Value::Unit);
        }
        self.operations += 1;
        if self.operations > OPERATIONS_MAX {
            self.too_large(span);
            return Atom::Value(Value::Unit);
        }
        if let Op::Call(call) = &op {
            self.statement.see(&call.function, span);
        }
        let never = ty == Type::Never;
        let origin = self.origin(span);
        let scope = self.builders.last_mut().expect("a body is lowered in a scope");
        let atom = self.vars.push(scope.lets_mut(), op, ty, origin);
        if let Some(bound) = scope.lets_mut().last() {
            self.constants.follow(&atom, &bound.op);
        }
        if never {
            scope.end(block_builder::Terminator::Diverge);
        }
        atom
    }

    pub(super) fn prim(&mut self, prim: Prim, operands: Vec<Atom>, ty: Type, span: Span) -> Atom {
        self.no_shared(&operands, span);
        self.emit(Op::Prim(prim, operands), ty, span)
    }

    /// Reports a shared value that an operation would keep. The checker does not see it if it came through a replaced
    /// function.
    pub(super) fn no_shared(&mut self, operands: &[Atom], span: Span) {
        let Some(Atom::Shared(name)) = operands.iter().find(|atom| matches!(atom, Atom::Shared(_))) else { return };
        let diagnostic =
            Diagnostic::new(Code::SharedAsValue, format!("`{name}` is a shared value and cannot be copied"))
                .at(span, "used as a value")
                .hint("call a function on it");
        self.context.report_once(diagnostic);
    }

    pub(super) fn too_large(&mut self, span: Span) {
        self.too_large_here(span, "split the flow, or move work into a host function");
    }

    pub(super) fn too_large_here(&mut self, span: Span, advice: &str) {
        if !self.too_large {
            self.too_large = true;
            let diagnostic = Diagnostic::new(
                Code::ProgramTooLarge,
                "this flow is too large after inlining its `fn`s",
            )
            .at(span, "the limit is reached here")
            .note(format!(
                "a flow has at most {OPERATIONS_MAX} operations, nested at most {DEPTH_MAX} expressions and {BLOCKS_MAX} branches deep"
            ))
            .hint(advice);
            self.context.report(diagnostic);
        }
    }
}
