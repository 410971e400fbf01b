//! Lowers loops. If a body may exit its `fn`, the loop carries the exit, and the remaining rounds do nothing.

use weir_host::{Type, Value};
use weir_ir::expr::{ArmTest, Atom, LoopExit, Op, Variable};
use weir_ir::prim::Prim;
use weir_syntax::Span;
use weir_syntax::ast::{Block, Expr, Pattern, QueryClauses, QueryOrder};

use super::block_builder::{BlockExits, OpenBlock};
use super::keyed_reads::PairedList;
use super::{Binding, Lowering, pattern_name};

/// The clauses of a `for` over a list.
#[derive(Default)]
pub(super) struct ListClauses<'a> {
    /// The conditions, all of which an element must fulfil.
    pub(super) conditions: Vec<&'a Expr>,
    pub(super) order: &'a [QueryOrder],
    pub(super) limit: Option<&'a Expr>,
}

impl<'a> ListClauses<'a> {
    fn of(query: &'a QueryClauses) -> Self {
        let (conditions, limit) = (query.condition.iter().collect(), query.limit.as_ref());
        ListClauses { conditions, order: &query.order, limit }
    }
}

impl<'a> Lowering<'a, '_> {
    /// Lowers `for x in xs { … }`: to a map, or to a fold if the body may exit the `fn`.
    pub(super) fn for_(
        &mut self,
        expr: &'a Expr,
        (pattern, items): (&'a Pattern, &'a Expr),
        query: &'a QueryClauses,
        body: &'a Block,
    ) -> Atom {
        let list = match self.table_named(items) {
            Some(table) if query.after.is_some() => return self.page(expr, &table, (pattern, query), body),
            Some(table) => {
                if let Some(values) = self.column_list(expr, &table, (pattern, query), body) {
                    return values;
                }
                let rows = self.query(&table, (pattern, query), body, items.span);
                return self.for_each_pair((&self.ty(expr), expr.span), rows, pattern, body);
            }
            None => {
                let groups = self.groups(pattern, items, (query, body));
                let (list, clauses) = groups.unwrap_or_else(|| (self.elements(items), ListClauses::of(query)));
                if let Some(values) = self.tested_rounds(expr, &list, (pattern, body), &clauses) {
                    return values;
                }
                self.chosen(list, pattern, &clauses, items.span)
            }
        };
        self.for_each((&self.ty(expr), expr.span), list, pattern, body)
    }

    /// Returns the elements of a list that the clauses of a `for` choose, in their order.
    fn chosen(&mut self, list: Atom, pattern: &'a Pattern, clauses: &ListClauses<'a>, span: Span) -> Atom {
        let element = self.pattern_type(pattern.id);
        let limit = clauses.limit.map(|limit| self.expr(limit));
        let mut list = self.filtered(list, (pattern, &element), &clauses.conditions, span);
        // A stable sort by the last key first: each later one keeps the order of equal elements.
        for key in clauses.order.iter().rev() {
            list = self.sorted(list, (pattern, &element), key);
        }
        match limit {
            Some(limit) => self.call_list("take", vec![list, limit], &element, span),
            None => list,
        }
    }

    /// Returns a list in the order of a key; equal elements keep their order.
    fn sorted(&mut self, list: Atom, (pattern, element_type): (&'a Pattern, &Type), key: &'a QueryOrder) -> Atom {
        let span = key.value.span;
        let reversed = |lowering: &mut Self, list: Atom| match key.descending {
            true => lowering.call_list("reverse", vec![list], element_type, span),
            false => list,
        };
        let list = reversed(self, list);
        let pair = Type::tuple(vec![self.ty(&key.value), element_type.clone()]);
        let element = self.vars.variable(pattern_name(pattern), element_type.clone());
        let item = Atom::Var(element.var);
        let open_block = self.build_block(|lowering| {
            lowering.bind(pattern, item.clone());
            let value = lowering.expr(&key.value);
            lowering.prim(Prim::Record, vec![value, item], pair.clone(), span)
        });
        let exits = open_block.exits();
        let keyed = if exits.is_empty() {
            let body = self.close_without_exits(open_block, &pair);
            self.emit(Op::Map { list, element, body }, Type::list(pair), span)
        } else {
            self.collect(span, (list, element), (open_block, &pair), &exits)
        };
        let list = self.call_list("sort_keyed", vec![keyed], element_type, span);
        reversed(self, list)
    }

    /// Calls a function of the module `list` that returns elements of this type.
    fn call_list(&mut self, function: &str, given: Vec<Atom>, element: &Type, span: Span) -> Atom {
        let given = given.into_iter().map(|atom| Some(Binding::Atom(atom))).collect();
        self.call_host(&format!("list.{function}").into(), given, Type::list(element.clone()), (span, &[]))
    }

    /// Lowers the rounds of a `for` over a list.
    pub(super) fn for_each(
        &mut self,
        (result, span): (&Type, Span),
        list: Atom,
        pattern: &'a Pattern,
        body: &'a Block,
    ) -> Atom {
        let paired = PairedList::plain(list, self.pattern_type(pattern.id));
        self.for_each_pair((result, span), paired, pattern, body)
    }

    /// Lowers the rounds of a `for` over a list whose elements may be paired with rows already.
    pub(super) fn for_each_pair(
        &mut self,
        (result, span): (&Type, Span),
        paired: PairedList<'a>,
        pattern: &'a Pattern,
        body: &'a Block,
    ) -> Atom {
        let paired = self.with_rows(paired, pattern, body, span);
        let element = self.vars.variable(pattern_name(pattern), paired.element_type.clone());
        let open_block = self.loop_body(|lowering| {
            lowering.bind_pairs(&paired, Atom::Var(element.var), pattern, span);
            lowering.block(body)
        });
        let list = self.end_pairs(paired);
        self.rounds((result, span), (list, element), open_block)
    }

    /// Lowers the rounds of a `for` that has this result: to a map, or to a fold if the block may exit the `fn`.
    pub(super) fn rounds(
        &mut self,
        (result, span): (&Type, Span),
        (list, element): (Atom, Variable),
        open_block: OpenBlock,
    ) -> Atom {
        let Type::List(of) = result else { return Atom::Value(Value::Unit) };
        let exits = open_block.exits();
        if exits.is_empty() {
            let body = self.close_without_exits(open_block, of);
            return self.emit(Op::Map { list, element, body }, result.clone(), span);
        }
        self.collect(span, (list, element), (open_block, of), &exits)
    }

    /// Lowers the body of a `for` or `fold`.
    pub(super) fn loop_body(&mut self, body: impl FnOnce(&mut Self) -> Atom) -> OpenBlock {
        self.loops.push(self.frames.len());
        let open_block = self.build_block(body);
        self.loops.pop();
        open_block
    }

    /// Returns the list that a `for` iterates over; of a map, the list of its pairs.
    fn elements(&mut self, items: &'a Expr) -> Atom {
        let value = self.expr(items);
        match self.ty(items) {
            Type::Map(pair) => {
                let pairs = Type::list(Type::tuple(vec![pair.0.clone(), pair.1.clone()]));
                self.prim(Prim::Pairs, vec![value], pairs, items.span)
            }
            _ => value,
        }
    }

    /// Lowers a `for` whose body may exit, as a fold over the elements so far or the exit. A `?` that ends the flow is
    /// no exit.
    fn collect(
        &mut self,
        span: Span,
        (list, element): (Atom, Variable),
        (open_block, of): (OpenBlock, &Type),
        exits: &BlockExits,
    ) -> Atom {
        let whole = Type::list(of.clone());
        let lists = Type::list(whole.clone());
        let init = Atom::Value(Value::list(Vec::new()));
        let collected = self.fold_with_exits(span, (list, init, element), &lists, exits, |lowering, so_far| {
            let value = lowering.join(open_block, of, span);
            lowering.prim(Prim::Collect, vec![so_far, value], lists.clone(), span)
        });
        self.prim(Prim::Flatten, vec![collected], whole, span)
    }

    /// Lowers a fold whose body may exit: the accumulator is a control-flow value.
    pub(super) fn fold_with_exits(
        &mut self,
        span: Span,
        (list, init, element): (Atom, Atom, Variable),
        ty: &Type,
        exits: &BlockExits,
        body: impl FnOnce(&mut Self, Atom) -> Atom,
    ) -> Atom {
        let step = self.control_flow_type(ty, exits);
        let Type::Result(pair) = &step else { return Atom::Value(Value::Unit) };
        let init = self.prim(Prim::Variant(Value::OK), vec![init], step.clone(), span);
        let accumulator = self.vars.variable("", step.clone());
        let so_far = self.vars.variable("", ty.clone());
        let left = self.vars.variable("", pair.1.clone());
        let going = Atom::Var(so_far.var);
        let open_block = self.build_block(|lowering| body(lowering, going));
        let next = self.close_to_control_flow(open_block, ty, exits);
        let subject = Atom::Var(accumulator.var);
        let kept = Atom::Var(left.var);
        let rounds = self.build_block(|lowering| {
            let err = |lowering: &mut Self| lowering.prim(Prim::Variant(Value::ERR), vec![kept], step.clone(), span);
            let going = super::block_builder::OpenArm {
                test: ArmTest::Tag(Value::OK),
                payload: vec![so_far],
                body: OpenBlock { lets: next.lets, end: super::block_builder::Terminator::FallThrough(next.result) },
            };
            let arms = vec![going, lowering.arm(ArmTest::Tag(Value::ERR), vec![left], err)];
            lowering.switch(subject, arms, &step, span)
        });
        let body = self.close_without_exits(rounds, &step);
        let (init, state) = (vec![init], vec![accumulator]);
        let value = self.emit(Op::Fold { list, init, state, element, body, exit: exits.how }, step.clone(), span);
        self.branch_on_control_flow(value, ty, exits, span)
    }

    pub(super) fn fold(
        &mut self,
        expr: &'a Expr,
        (accumulator, initial): (&'a Pattern, &'a Expr),
        (pattern, items): (&'a Pattern, &'a Expr),
        body: &'a Block,
    ) -> Atom {
        let init = self.expr(initial);
        let list = self.elements(items);
        let ty = self.pattern_type(accumulator.id);
        let element = self.vars.variable(pattern_name(pattern), self.pattern_type(pattern.id));
        let so_far = self.vars.variable(pattern_name(accumulator), ty.clone());
        let open_block = self.loop_body(|lowering| {
            lowering.bind(accumulator, Atom::Var(so_far.var));
            lowering.bind(pattern, Atom::Var(element.var));
            lowering.block(body)
        });
        let exits = open_block.exits();
        if exits.is_empty() {
            let body = self.close_without_exits(open_block, &ty);
            let (init, state) = (vec![init], vec![so_far]);
            return self.emit(Op::Fold { list, init, state, element, body, exit: LoopExit::Never }, ty, expr.span);
        }
        self.fold_with_exits(expr.span, (list, init, element), &ty, &exits, |lowering, going| {
            // The body refers to the accumulator by the variable that it was built with.
            lowering.rename(so_far, going, expr.span);
            lowering.join(open_block, &ty, expr.span)
        })
    }

    /// Binds a variable that an open block mentions.
    pub(super) fn rename(&mut self, variable: Variable, value: Atom, span: Span) {
        let origin = self.origin(span);
        let op = Op::Prim(Prim::Copy, vec![value]);
        self.builder().lets_mut().push(weir_ir::expr::Let { bound: variable, op, origin });
    }

    pub(super) fn loop_(
        &mut self,
        expr: &'a Expr,
        (state, initial): (&'a Pattern, &'a Expr),
        body: &'a Block,
        until: &'a Expr,
    ) -> Atom {
        let init = self.expr(initial);
        let at_most = self.typed.of(expr.id).at_most.get(&expr.id).copied().unwrap_or(1);
        let ty = self.pattern_type(state.id);
        let span = expr.span;
        let variable = self.vars.variable(pattern_name(state), ty.clone());
        let pair = Type::tuple(vec![ty.clone(), Type::Bool]);
        let open_block = self.build_block(|lowering| {
            lowering.bind(state, Atom::Var(variable.var));
            let next = lowering.block(body);
            lowering.bind(state, next.clone());
            let done = lowering.expr(until);
            lowering.prim(Prim::Record, vec![next, done], pair.clone(), span)
        });
        let exits = open_block.exits();
        if exits.is_empty() {
            let body = self.close_without_exits(open_block, &pair);
            return self.emit(Op::Loop { init: vec![init], state: vec![variable], body, at_most }, ty, span);
        }
        let inner = self.close_to_control_flow(open_block, &pair, &exits);
        self.loop_with_exits(span, (init, variable, inner), (&ty, &pair), &exits, at_most)
    }

    /// Lowers a loop whose body may exit: the state is a control-flow value, and an exit ends the loop.
    pub(super) fn loop_with_exits(
        &mut self,
        span: Span,
        (init, variable, inner): (Atom, Variable, weir_ir::expr::Block),
        (ty, pair): (&Type, &Type),
        exits: &BlockExits,
        at_most: u64,
    ) -> Atom {
        let step = self.control_flow_type(ty, exits);
        let Type::Result(parts) = step.clone() else { return Atom::Value(Value::Unit) };
        let init = self.prim(Prim::Variant(Value::OK), vec![init], step.clone(), span);
        let state = self.vars.variable("", step.clone());
        let round = Type::tuple(vec![step.clone(), Type::Bool]);
        let subject = Atom::Var(state.var);
        let rounds = self.build_block(|lowering| {
            // A round begins only while the state is `Ok`.
            let held = lowering.prim(Prim::Payload(Value::OK), vec![subject], ty.clone(), span);
            lowering.rename(variable, held, span);
            lowering.builder().lets_mut().extend(inner.lets);
            let next = lowering.vars.variable("", pair.clone());
            let left = lowering.vars.variable("", parts.1.clone());
            let (next_atom, left_atom) = (Atom::Var(next.var), Atom::Var(left.var));
            let arms = vec![
                lowering.arm(ArmTest::Tag(Value::OK), vec![next], |lowering| {
                    let value = lowering.prim(Prim::Field(0), vec![next_atom.clone()], ty.clone(), span);
                    let done = lowering.prim(Prim::Field(1), vec![next_atom], Type::Bool, span);
                    let value = lowering.prim(Prim::Variant(Value::OK), vec![value], step.clone(), span);
                    lowering.prim(Prim::Record, vec![value, done], round.clone(), span)
                }),
                lowering.arm(ArmTest::Tag(Value::ERR), vec![left], |lowering| {
                    let value = lowering.prim(Prim::Variant(Value::ERR), vec![left_atom], step.clone(), span);
                    lowering.prim(Prim::Record, vec![value, Self::constant_true()], round.clone(), span)
                }),
            ];
            lowering.switch(inner.result, arms, &round, span)
        });
        let body = self.close_without_exits(rounds, &round);
        let value = self.emit(Op::Loop { init: vec![init], state: vec![state], body, at_most }, step.clone(), span);
        self.branch_on_control_flow(value, ty, exits, span)
    }
}
