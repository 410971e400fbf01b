//! Long bodies: what would nest too deep is lowered piece by piece.
//!
//! Each `?` of a `fn` nests all that follows it. So the statements of a long body are lowered in pieces, and where the body
//! has become deep, a piece is closed: it yields `Ok` of the values that later statements name, or `Err` of a result that
//! leaves. What follows goes into the `Ok` arm of a switch on this, one level deep however many `?` the piece had.

use std::collections::BTreeSet;

use weir_host::{Type, Value};
use weir_ir::expr::Atom;
use weir_ir::prim::Prim;
use weir_syntax::Span;
use weir_syntax::ast::{Expr, Statement};
use weir_syntax::ast::{Visitor, walk_expr};

use super::draft::{Draft, Scope};
use super::{BLOCKS_MAX, Binding, Callable, Lowering, Names};
use crate::typed::{LocalId, Meaning, Typed};

/// The statements of a piece.
const PIECE: usize = 16;

/// From so many branches on a piece is closed; shallower bodies nest, which costs nothing while they run.
const DEEP: usize = BLOCKS_MAX / 2;

/// The locals that a closed piece hands on, with their types.
type Kept = Vec<(LocalId, Type)>;

impl<'a> Lowering<'a, '_> {
    /// Lowers the statements of a block, and gives the value of the last.
    pub(super) fn statements(&mut self, statements: &'a [Statement]) -> Atom {
        let mut rest = statements;
        while rest.len() > PIECE {
            let (piece, later) = rest.split_at(PIECE);
            self.piece(piece, later);
            rest = later;
        }
        let mut value = Atom::Value(Value::Unit);
        for statement in rest {
            value = self.statement(statement);
        }
        value
    }

    fn piece(&mut self, piece: &'a [Statement], later: &'a [Statement]) {
        if self.too_large || self.scope().has_ended() {
            return;
        }
        let (from, span) = (self.vars.count(), later[0].span);
        let mut kept = None;
        let draft = self.scoped(|lowering| {
            piece.iter().for_each(|statement| _ = lowering.statement(statement));
            kept = lowering.kept(later, from);
            kept.as_ref().map_or(Atom::Value(Value::Unit), |kept| lowering.packed(kept, span))
        });
        let mut targets = Vec::new();
        draft.targets(&mut targets);
        match kept {
            Some(kept) if !targets.is_empty() && draft.falls() == 1 => self.close_piece(draft, &kept, &targets, span),
            _ => {
                self.scope().continue_in(draft);
                self.bound_depth(span);
            }
        }
    }

    /// What later statements name of what was bound from a variable on; nothing where the piece is to stay open.
    fn kept(&mut self, later: &'a [Statement], from: u32) -> Option<Kept> {
        if self.scopes.iter().map(Scope::depth).sum::<usize>() < DEEP || self.scope().has_ended() {
            return None;
        }
        let mut kept = Vec::new();
        for local in mentioned(later, self.typed) {
            match self.names.get(&local) {
                Some(Binding::Atom(atom)) if is_new(atom, from) => match self.known.value(atom) {
                    Some(known) => _ = self.names.insert(local, Binding::Atom(Atom::Value(known.clone()))),
                    None => kept.push((local, self.typed.local(local).ty.to_type())),
                },
                Some(Binding::Callable(Callable::Closure { names, .. })) if holds_new(names, from) => return None,
                _ => {}
            }
        }
        Some(kept)
    }

    /// The values of what is kept, as one.
    fn packed(&mut self, kept: &Kept, span: Span) -> Atom {
        let atom = |local: &LocalId| match self.names.get(local) {
            Some(Binding::Atom(atom)) => atom.clone(),
            _ => Atom::Value(Value::Unit),
        };
        let atoms = kept.iter().map(|(local, _)| atom(local)).collect();
        self.together(atoms, &types(kept), span)
    }

    fn close_piece(&mut self, draft: Draft, kept: &Kept, targets: &[super::FrameId], span: Span) {
        let types = types(kept);
        let ty = if let [only] = &types[..] { only.clone() } else { Type::Tuple(types.into()) };
        let step = self.steps(&ty, targets);
        let block = self.close_steps(draft, &ty, targets);
        let value = self.splice(block, &step, span);
        let value = self.open_step(value, &ty, targets, span);
        for ((local, ty), at) in kept.iter().zip(0..) {
            let only = kept.len() == 1;
            let own =
                if only { value.clone() } else { self.prim(Prim::Field(at), vec![value.clone()], ty.clone(), span) };
            self.names.insert(*local, Binding::Atom(own));
        }
    }
}

fn types(kept: &Kept) -> Vec<Type> {
    kept.iter().map(|(_, ty)| ty.clone()).collect()
}

fn is_new(atom: &Atom, from: u32) -> bool {
    matches!(atom, Atom::Var(var) if var.0 >= from)
}

/// Whether one of the names stands for something bound from this variable on.
fn holds_new(names: &Names<'_>, from: u32) -> bool {
    names.values().any(|binding| match binding {
        Binding::Atom(atom) => is_new(atom, from),
        Binding::Callable(Callable::Closure { names, .. }) => holds_new(names, from),
        Binding::Callable(_) => false,
    })
}

/// The locals that the statements name.
fn mentioned(statements: &[Statement], typed: &Typed) -> BTreeSet<LocalId> {
    let mut mentions = Mentions { typed, found: BTreeSet::new() };
    statements.iter().for_each(|statement| mentions.statement(statement));
    mentions.found
}

struct Mentions<'t> {
    typed: &'t Typed,
    found: BTreeSet<LocalId>,
}

impl<'a> Visitor<'a> for Mentions<'_> {
    fn expr(&mut self, expr: &'a Expr) {
        if let Some(Meaning::Local(local)) = self.typed.meanings.get(&expr.id) {
            self.found.insert(*local);
        }
        walk_expr(self, expr);
    }
}
