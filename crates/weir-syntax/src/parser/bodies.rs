//! Blocks, as bodies of items and as expressions.

use super::{BraceRole, Parser};
use crate::ast::{Block, Session, Statement};
use crate::token::TokenKind as T;

/// The two kinds of blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// The outermost block of a `fn`, a route, an entry point or a test.
    Body,
    /// Any other block.
    Inner,
}

impl Parser<'_> {
    /// Parses the outermost block of an item.
    pub(super) fn body(&mut self) -> Block {
        self.block_at(BlockKind::Body)
    }

    /// `{ statement* }`
    pub(super) fn block(&mut self) -> Block {
        self.block_at(BlockKind::Inner)
    }

    /// The body of a route or an entry point: `{ [session = expression]? statement* }`
    pub(super) fn flow_body(&mut self) -> (Option<Session>, Block) {
        let mut session = None;
        let block = self.braced_block(|parser| {
            if parser.at_session() {
                session = Some(parser.session());
                parser.statement_end(parser.previous_span());
            }
            parser.statements(BlockKind::Body)
        });
        (session, block)
    }

    fn block_at(&mut self, place: BlockKind) -> Block {
        self.braced_block(|parser| parser.statements(place))
    }

    fn braced_block(&mut self, statements: impl FnOnce(&mut Self) -> Vec<Statement>) -> Block {
        if let Some(record) = self.record_without_type() {
            return record;
        }
        let start = self.span();
        if self.expect(T::BraceOpen, "`{`").is_none() {
            return Block { statements: Vec::new(), span: self.previous_span().at_end() };
        }
        let inner = |parser: &mut Self| parser.within_mode(BraceRole::RecordLiteral, false, statements);
        let statements = self.nested(inner).unwrap_or_default();
        self.leave(T::BraceClose);
        Block { statements, span: self.since(start) }
    }

    /// Skips to the closing bracket and consumes it.
    fn leave(&mut self, close: T) {
        while !self.at(close) && !self.at(T::End) {
            self.skip_token();
        }
        self.eat(close);
    }
}
