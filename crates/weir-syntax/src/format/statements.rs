//! Blocks and statements.

use super::SourcePrinter;
use super::comments::{CommentedElements, lines, range};
use super::doc::Doc;
use super::parentheses::{Tightness, begins_with_bars, takes_else};
use crate::ast::{Block, Let, Otherwise, Session, Statement, StatementKind};
use std::ops::Range;

/// Layout of the contents of braces.
#[derive(Clone, Copy)]
pub(super) enum BlockLayout {
    /// On lines of their own.
    Broken,
    /// On lines of their own if the author broke the line after the first brace from this offset on, or if they do not
    /// fit on one line.
    AsWritten(u32),
}

impl SourcePrinter<'_> {
    /// Prints a block that is broken independently of its surroundings.
    pub(super) fn block(&mut self, block: &Block) -> Doc {
        self.open_block(block).group()
    }

    /// Prints a block that is on one line if its surroundings are.
    pub(super) fn open_block(&mut self, block: &Block) -> Doc {
        let region = block.span.start..block.span.end.saturating_sub(1);
        let place = |statement: &Statement| range(statement.span);
        let sequence =
            self.inside(|printer| printer.attach_comments(&block.statements, region, place, Self::statement));
        self.block_of(sequence, block.span.start)
    }

    /// Prints the body of a route or an entry point, with its session at the head.
    pub(super) fn flow_body(&mut self, session: Option<&Session>, body: &Block) -> Doc {
        let statements = body.statements.iter().map(FlowPart::Statement);
        let rows: Vec<FlowPart<'_>> = session.into_iter().map(FlowPart::Session).chain(statements).collect();
        let open = body.span.start;
        let region = open..body.span.end.saturating_sub(1);
        let sequence = self.attach_comments(&rows, region, FlowPart::place, |printer, row| match row {
            FlowPart::Session(session) => printer.session(session),
            FlowPart::Statement(statement) => printer.statement(statement),
        });
        self.block_of(sequence, open).group()
    }

    fn block_of(&self, sequence: CommentedElements, open: u32) -> Doc {
        let broken = sequence.elements.len() > 1 || self.broke_after(open);
        self.braces(sequence, broken, "; ")
    }

    /// Prints elements in braces, separated by commas if on one line.
    pub(super) fn in_braces(&self, sequence: CommentedElements, layout: BlockLayout) -> Doc {
        let broken = match layout {
            BlockLayout::Broken => true,
            BlockLayout::AsWritten(from) => self.brace_behind(from).is_some_and(|open| self.broke_after(open)),
        };
        self.braces(sequence, broken, ", ").group()
    }

    /// Returns the offset of the first brace after `from`.
    fn brace_behind(&self, from: u32) -> Option<u32> {
        let rest = self.text.get(from as usize..)?;
        rest.find('{').map(|at| from + at as u32)
    }

    fn braces(&self, sequence: CommentedElements, broken: bool, separator: &'static str) -> Doc {
        if sequence.elements.is_empty() && sequence.tail.is_empty() {
            return Doc::text("{ }");
        }
        let broken = broken || sequence.has_comments();
        let inner = Doc::line(" ").then(lines(sequence, &Doc::line(separator))).nest();
        Doc::concat([Doc::text("{"), inner, Doc::line(" "), Doc::text("}")]).broken_if(broken)
    }

    fn statement(&mut self, statement: &Statement) -> Doc {
        match &statement.kind {
            StatementKind::Let(binding) => self.binding(binding),
            StatementKind::Expr(expr) if begins_with_bars(expr) => self.in_parentheses(expr),
            StatementKind::Expr(expr) => self.expression(expr),
            StatementKind::Expect(expr) => Doc::text("expect ").then(self.expression(expr)),
            StatementKind::FailureHandler(handler) => self.failure_handler(handler),
        }
    }

    fn binding(&mut self, binding: &Let) -> Doc {
        let pattern = self.pattern(&binding.pattern);
        let ty = binding.ty.as_ref().map_or(Doc::nothing(), |ty| Doc::text(": ").then(self.ty(ty)));
        let head = Doc::concat([Doc::text("let "), pattern, ty, Doc::text(" = ")]);
        let Some(otherwise) = &binding.otherwise else {
            return head.then(self.expr_in(&binding.value, Tightness::NO_ELSE));
        };
        let value = match takes_else(&binding.value) {
            true => self.in_parentheses(&binding.value),
            false => self.expr_in(&binding.value, Tightness::LIMITED),
        };
        Doc::concat([head, value, self.otherwise(otherwise)])
    }

    fn otherwise(&mut self, otherwise: &Otherwise) -> Doc {
        self.else_part(otherwise.failure.as_ref(), &otherwise.body)
    }
}

/// A part of the body of a route or an entry point.
enum FlowPart<'e> {
    Session(&'e Session),
    Statement(&'e Statement),
}

impl FlowPart<'_> {
    fn place(&self) -> Range<u32> {
        match self {
            Self::Session(session) => range(session.span),
            Self::Statement(statement) => range(statement.span),
        }
    }
}
