//! Join points for long bodies: closes chunks of statements that would nest too deeply.
//!
//! Each `?` in a `fn` nests everything after it. The statements of a long body are therefore lowered in chunks. If the
//! nesting has become deep, a chunk is closed: it yields `Ok` of its live locals, or `Err` of an exit. The continuation
//! goes into the `Ok` arm of a switch on that value (the join point), a single level deep however many `?` the chunk
//! contains.

use std::collections::BTreeSet;

use weir_host::{Type, Value};
use weir_ir::expr::Atom;
use weir_ir::prim::Prim;
use weir_syntax::Span;
use weir_syntax::ast::{Expr, Statement};
use weir_syntax::ast::{Visitor, walk_expr};

use super::block_builder::{BlockBuilder, BlockExits, OpenBlock};
use super::{BLOCKS_MAX, Binding, Callable, Lowering, Names};
use crate::typed_tree::{LocalId, Resolution, TypedTree};

/// The number of statements in a chunk.
const CHUNK_STATEMENTS: usize = 16;

/// The nesting from which on chunks are closed. Less nesting costs nothing at run time.
const JOIN_POINT_DEPTH: usize = BLOCKS_MAX / 2;

/// The locals of a closed chunk that later statements use, with their types.
type LiveLocals = Vec<(LocalId, Type)>;

impl<'a> Lowering<'a, '_> {
    /// Lowers the statements of a block and returns the value of the last.
    pub(super) fn statements(&mut self, statements: &'a [Statement]) -> Atom {
        let mut rest = statements;
        while rest.len() > CHUNK_STATEMENTS {
            let (chunk, later) = rest.split_at(CHUNK_STATEMENTS);
            self.chunk(chunk, later);
            rest = later;
        }
        let mut value = Atom::Value(Value::Unit);
        for statement in rest {
            value = self.statement(statement);
        }
        value
    }

    fn chunk(&mut self, chunk: &'a [Statement], later: &'a [Statement]) {
        if self.too_large || self.builder().has_ended() {
            return;
        }
        let (from, span) = (self.vars.count(), later[0].span);
        let mut live = None;
        let open_block = self.build_block(|lowering| {
            chunk.iter().for_each(|statement| _ = lowering.statement(statement));
            live = lowering.live_locals(later, from);
            live.as_ref().map_or(Atom::Value(Value::Unit), |live| lowering.packed(live, span))
        });
        let exits = open_block.exits();
        match live {
            Some(live) if !exits.is_empty() && open_block.fall_through_count() == 1 => {
                self.close_chunk(open_block, &live, &exits, span)
            }
            _ => {
                self.builder().continue_in(open_block);
                self.bound_depth(span);
            }
        }
    }

    /// Returns the locals bound since `from` that later statements use; `None` if the chunk has to stay open.
    fn live_locals(&mut self, later: &'a [Statement], from: u32) -> Option<LiveLocals> {
        if self.builders.iter().map(BlockBuilder::depth).sum::<usize>() < JOIN_POINT_DEPTH || self.builder().has_ended()
        {
            return None;
        }
        let mut live = Vec::new();
        for local in mentioned(later, self.typed) {
            match self.names.get(&local) {
                Some(Binding::Atom(atom)) if is_new(atom, from) => match self.constants.value(atom) {
                    Some(known) => _ = self.names.insert(local, Binding::Atom(Atom::Value(known.clone()))),
                    None => live.push((local, self.local_type(local))),
                },
                Some(Binding::Callable(Callable::Closure { names, .. })) if holds_new(names, from) => return None,
                _ => {}
            }
        }
        Some(live)
    }

    /// Packs the live locals into one value.
    fn packed(&mut self, live: &LiveLocals, span: Span) -> Atom {
        let atom = |local: &LocalId| match self.names.get(local) {
            Some(Binding::Atom(atom)) => atom.clone(),
            _ => Atom::Value(Value::Unit),
        };
        let atoms = live.iter().map(|(local, _)| atom(local)).collect();
        self.together(atoms, &types(live), span)
    }

    fn close_chunk(&mut self, open_block: OpenBlock, live: &LiveLocals, exits: &BlockExits, span: Span) {
        let types = types(live);
        let ty = if let [only] = &types[..] { only.clone() } else { Type::Tuple(types.into()) };
        let step = self.control_flow_type(&ty, exits);
        let block = self.close_to_control_flow(open_block, &ty, exits);
        let value = self.splice(block, &step, span);
        let value = self.branch_on_control_flow(value, &ty, exits, span);
        for ((local, ty), at) in live.iter().zip(0..) {
            let only = live.len() == 1;
            let own =
                if only { value.clone() } else { self.prim(Prim::Field(at), vec![value.clone()], ty.clone(), span) };
            self.names.insert(*local, Binding::Atom(own));
        }
    }
}

fn types(live: &LiveLocals) -> Vec<Type> {
    live.iter().map(|(_, ty)| ty.clone()).collect()
}

fn is_new(atom: &Atom, from: u32) -> bool {
    matches!(atom, Atom::Var(var) if var.0 >= from)
}

/// Returns whether a name stands for a variable bound since `from`.
fn holds_new(names: &Names<'_>, from: u32) -> bool {
    names.values().any(|binding| match binding {
        Binding::Atom(atom) => is_new(atom, from),
        Binding::Callable(Callable::Closure { names, .. }) => holds_new(names, from),
        Binding::Callable(_) => false,
    })
}

/// Returns the locals that the statements mention.
fn mentioned(statements: &[Statement], typed: &TypedTree) -> BTreeSet<LocalId> {
    let mut mentions = MentionedLocals { typed, found: BTreeSet::new() };
    statements.iter().for_each(|statement| mentions.statement(statement));
    mentions.found
}

struct MentionedLocals<'t> {
    typed: &'t TypedTree,
    found: BTreeSet<LocalId>,
}

impl<'a> Visitor<'a> for MentionedLocals<'_> {
    fn expr(&mut self, expr: &'a Expr) {
        if let Some(Resolution::Local(local)) = self.typed.resolution(expr.id) {
            self.found.insert(*local);
        }
        walk_expr(self, expr);
    }
}
