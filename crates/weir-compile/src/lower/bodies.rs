//! Whole bodies: of flows, and of what runs at the start of the program.

use weir_host::Type;
use weir_ir::expr::{Atom, Block, Op, Variable};
use weir_syntax::ast::FailureHandler;
use weir_syntax::{Code, Diagnostic, Span};

use super::Lowering;
use super::block_builder::{self, BlockBuilder, ClosingRules, InlineFrameId, yield_exit_value, yield_value};
use super::handled_calls::ArgumentAtoms;
use super::statement_place::StatementPlace;
use super::surroundings::{Binding, InlineFrame, InlineFrameKind};
use crate::typed_tree::LocalId;

impl<'a> Lowering<'a, '_> {
    /// Returns the block of a whole body, which `return` and `?` end.
    pub(super) fn whole(&mut self, result: &Type, body: impl FnOnce(&mut Self) -> Atom) -> Block {
        self.flow(result, Vec::new(), body)
    }

    /// Returns the block of a flow's body, to which these handlers apply.
    pub(super) fn flow(
        &mut self,
        result: &Type,
        handlers: Vec<&'a FailureHandler>,
        body: impl FnOnce(&mut Self) -> Atom,
    ) -> Block {
        self.see_handlers(&handlers);
        let (result_of, parameters) = (result.clone(), self.names.clone());
        self.frames.push(InlineFrame {
            id: InlineFrameId(0),
            call_path: String::new(),
            result: result_of,
            kind: InlineFrameKind::Flow,
            outer: None,
            function: None,
            called_at: Span { source: self.context.source, start: 0, end: 0 },
            inlined_call: None,
            arguments: ArgumentAtoms::new(),
            handlers,
            parameters,
            scope: self.scope(),
        });
        self.statement = StatementPlace::default();
        let open_block = self.build_block(|lowering| {
            let value = body(lowering);
            lowering.settle(Span::default());
            value
        });
        self.frames.pop();
        let mut rules =
            ClosingRules { vars: &mut self.vars, ty: result.clone(), fall: &yield_value, leave: &yield_exit_value };
        let mut block = open_block.close(&mut rules);
        self.settle_only_reads(&mut block);
        self.place_changes(&mut block);
        self.gather_reads(&mut block);
        block
    }

    /// Notes the handlers of a frame of a flow, so that those that no failure reaches are reported.
    pub(super) fn see_handlers(&mut self, handlers: &[&FailureHandler]) {
        if !self.alone {
            self.context.handlers.seen(handlers);
        }
    }

    /// Returns the open block that `body` lowers, built by its own builder.
    pub(super) fn build_block(&mut self, body: impl FnOnce(&mut Self) -> Atom) -> block_builder::OpenBlock {
        self.builders.push(BlockBuilder::default());
        let value = body(self);
        let scope = self.builders.pop().expect("it was just pushed");
        scope.finish(value)
    }

    /// Returns a block that runs at the start of the program, before there are shared values.
    pub(super) fn starting(&mut self, result: &Type, body: impl FnOnce(&mut Self) -> Atom) -> Block {
        self.starting_before(result, "use it in a flow instead", body)
    }

    /// Like [`Self::starting`], with the advice for a use of a shared value.
    pub(super) fn starting_before(
        &mut self,
        result: &Type,
        advice: &str,
        body: impl FnOnce(&mut Self) -> Atom,
    ) -> Block {
        self.starts = true;
        let block = self.whole(result, body);
        self.uses_no_shared(&block, advice);
        block
    }

    fn uses_no_shared(&mut self, block: &Block, advice: &str) {
        for binding in &block.lets {
            if let Op::Call(call) = &binding.op
                && let Some(Atom::Shared(name)) = call.arguments.iter().find(|atom| matches!(atom, Atom::Shared(_)))
            {
                let diagnostic = Diagnostic::new(Code::SharedAsValue, format!("`{name}` is not initialised yet"))
                    .at(self.context.span(binding.origin), "evaluated when the program starts")
                    .hint(advice);
                self.context.report(diagnostic);
            }
            binding.op.blocks().for_each(|inner| self.uses_no_shared(inner, advice));
        }
    }

    /// Binds the parameters of a flow to new variables and returns these.
    pub(super) fn parameters(&mut self, locals: &[LocalId]) -> Vec<Variable> {
        let bound = locals.iter().map(|id| {
            let local = self.typed.local(*id);
            let variable = self.vars.variable(&local.name, self.local_type(*id));
            self.names.insert(*id, Binding::Atom(Atom::Var(variable.var)));
            variable
        });
        bound.collect()
    }
}
