//! Lowers `for x in xs if condition { … }` over a list without `order by` and `limit`.
//!
//! The text says that an element is tested when its round comes. All elements are tested before the first round if nobody can tell the
//! difference: then tests gather, and rounds run on several cores. Otherwise each round begins with its test, as in
//! `for x in xs { if condition { … } }`.
//!
//! Tests and rounds that only compute are the exception: if both fail, the failure of the test comes first.

use weir_host::{Mode, Passing, Resource, Type, Value};
use weir_ir::expr::{Atom, Let, Op};
use weir_ir::prim::Prim;
use weir_syntax::ast::{Block, Expr, Pattern};

use super::block_builder::OpenBlock;
use super::repeat::ListClauses;
use super::{Lowering, pattern_name};
use crate::effects::EffectSummary;

/// Effects of a block that decide whether another block may run before it.
#[derive(Default)]
struct OrderedEffects {
    touched: EffectSummary,
    /// True if a call is ordered with all that are not pure.
    is_barrier: bool,
    /// True if it changes a variable.
    changes_variable: bool,
    /// True if arithmetic may fail.
    may_fail: bool,
    /// True if it may end the flow or leave the loop in another way.
    may_leave: bool,
}

impl OrderedEffects {
    fn writes(&self) -> bool {
        self.changes_variable || self.touched.resources.values().any(|mode| *mode == Mode::Write)
    }

    fn may_end(&self) -> bool {
        self.may_fail || self.may_leave
    }

    fn is_ordered_with(&self, other: &OrderedEffects) -> bool {
        let (mine, others) = (&self.touched.resources, &other.touched.resources);
        let shares = mine.iter().any(|(resource, mode)| {
            others.get(resource).is_some_and(|other| *mode == Mode::Write || *other == Mode::Write)
        });
        shares
            || self.is_barrier && !others.is_empty()
            || self.changes_variable
            || self.may_end() && (other.writes() || other.may_leave)
    }
}

impl<'a> Lowering<'a, '_> {
    /// Lowers a `for` over a list with conditions; `None` if it has none, or other clauses.
    pub(super) fn tested_rounds(
        &mut self,
        expr: &'a Expr,
        list: &Atom,
        (pattern, body): (&'a Pattern, &'a Block),
        clauses: &ListClauses<'a>,
    ) -> Option<Atom> {
        let result = self.ty(expr);
        let Type::List(of) = &result else { return None };
        let has_others = !clauses.order.is_empty() || clauses.limit.is_some();
        // Rows that all rounds read are read for the elements that are left; such rounds write nothing.
        let reads_rows = || self.keyed_reads(&[], body).iter().any(|read| read.is_certain);
        if clauses.conditions.is_empty() || has_others || reads_rows() {
            return None;
        }
        let (span, ty) = (expr.span, self.pattern_type(pattern.id));
        let tested = self.vars.variable(pattern_name(pattern), ty.clone());
        let element = self.vars.variable(pattern_name(pattern), ty);
        let test = self.loop_body(|lowering| {
            lowering.bind(pattern, Atom::Var(tested.var));
            lowering.all_hold(&clauses.conditions, span)
        });
        let round = self.loop_body(|lowering| {
            lowering.bind(pattern, Atom::Var(element.var));
            lowering.block(body)
        });
        let (of_test, of_round) = (self.ordered_effects(&test), self.ordered_effects(&round));
        if !of_test.is_ordered_with(&of_round) && !of_round.is_ordered_with(&of_test) {
            let list = self.kept_where((list.clone(), tested), test, span);
            return Some(self.rounds((&result, span), (list, element), round));
        }
        let item = Atom::Var(tested.var);
        let tested_round = self.build_block(|lowering| {
            let holds = lowering.join(test, &Type::Bool, span);
            let then = |lowering: &mut Self| {
                lowering.rename(element, item, span);
                let value = lowering.join(round, of, span);
                lowering.prim(Prim::List, vec![value], result.clone(), span)
            };
            lowering.choose(holds, &result, span, then, |_| Atom::Value(Value::list(Vec::new())))
        });
        let lists = self.rounds((&Type::list(result.clone()), span), (list.clone(), tested), tested_round);
        Some(self.prim(Prim::Flatten, vec![lists], result.clone(), span))
    }

    fn ordered_effects(&self, open_block: &OpenBlock) -> OrderedEffects {
        let mut effects = OrderedEffects { may_leave: !open_block.exits().is_empty(), ..OrderedEffects::default() };
        open_block.each_binding(&mut |binding| self.add_effects(&mut effects, binding));
        effects
    }

    fn add_effects(&self, effects: &mut OrderedEffects, binding: &Let) {
        match &binding.op {
            Op::Call(call) => {
                let Some(function) = self.context.library.function(&call.function) else { return };
                effects.touched.call(&function.signature, &call.site);
                effects.is_barrier |= function.signature.effects.barrier;
                for (argument, parameter) in call.arguments.iter().zip(&function.signature.parameters) {
                    let changes = parameter.passing == Passing::Change;
                    match argument {
                        Atom::Shared(name) => {
                            let mode = if changes { Mode::Write } else { Mode::Read };
                            effects.touched.touch(Resource::Shared(name.clone()), mode);
                        }
                        _ => effects.changes_variable |= changes,
                    }
                }
            }
            Op::Atomic { constraints, .. } => {
                constraints.iter().for_each(|held| effects.touched.touch(held.resource.clone(), held.mode));
            }
            Op::Prim(prim, _) => effects.may_fail |= prim.may_fail(),
            op => effects.may_leave |= op.may_end(),
        }
    }
}
