//! Lowers the keyed reads of a `for`, such as `users[m.from]`, to one statement: the keys of all rounds are computed first, and
//! the table is read once, as it is at that moment.
//!
//! A read is one of these if its key is made of parts of the element and of names outside of the `for`, and nothing in the
//! body can write a table: then the rounds cannot tell the difference. In a `for` over a list, every round must also come to the
//! read: not in a branch, and nothing in the body may `return`, in this round or an earlier one. A query joins the tables whatever the rounds
//! come to. If the rounds have other reads that gather at run time, such as `users[m.from + 1]`, those by such keys gather with them.

use std::collections::BTreeSet;

use weir_host::{Text, Type, World};
use weir_ir::expr::{Atom, Op};
use weir_ir::prim::Prim;
use weir_syntax::Span;
use weir_syntax::ast::{
    BinaryOperator, Block, Expr, ExprKind, Pattern, UnaryOperator, Visitor, walk_expr, walk_pattern,
};

use super::paired_row::PairedRow;
use super::tables::outside;
use super::{Binding, InlineFrameKind, Lowering, pattern_name};
use crate::move_checker::is_move_only;
use crate::typed_tree::{CallTarget, LocalId, Resolution, TableStatement};

/// A read of the row with a key.
#[derive(Clone, Copy)]
pub(super) struct KeyedRead<'a> {
    pub(super) expr: &'a Expr,
    pub(super) object: &'a Expr,
    pub(super) key: &'a Expr,
    /// True if each round comes to it, or fails before.
    pub(super) is_certain: bool,
    /// True if something else may fail in the rounds, so that its failure counts only if the text comes to it.
    pub(super) keeps_failure: bool,
    /// True if it gathers with other reads of the rounds, if reads of its table do.
    gathers: bool,
}

/// A list whose elements are pairs of an element and a row for each read, which nest to the left.
pub(super) struct PairedList<'a> {
    pub(super) list: Atom,
    pub(super) element_type: Type,
    /// The reads that each row answers.
    pub(super) reads: Vec<Vec<KeyedRead<'a>>>,
}

impl PairedList<'_> {
    /// Returns a list of elements without rows.
    pub(super) fn plain(list: Atom, element_type: Type) -> Self {
        PairedList { list, element_type, reads: Vec::new() }
    }
}

impl<'a> Lowering<'a, '_> {
    /// Reads the rows that the rounds of a `for` read by keys, and that the elements are not paired with yet.
    pub(super) fn with_rows(
        &mut self,
        mut paired: PairedList<'a>,
        pattern: &'a Pattern,
        body: &'a Block,
        span: Span,
    ) -> PairedList<'a> {
        if self.is_move_only(&paired.element_type) {
            return paired;
        }
        for read in self.keyed_reads(&[], body).into_iter().filter(|read| read.is_certain) {
            if paired.reads.iter().flatten().any(|known| known.expr.id == read.expr.id) {
                continue;
            }
            let Some(table) = self.table_named(read.object) else { continue };
            if read.gathers && self.steps.is_empty() && self.is_stored(&table) {
                continue;
            }
            self.pair(&mut paired, (&table, read), pattern, span);
        }
        paired
    }

    /// Returns whether values of the type cannot be cloned: an element that the keys and the rounds both use would be.
    pub(super) fn is_move_only(&self, ty: &Type) -> bool {
        let definition = |name: &Text| {
            let own = self.program.declarations.types.get(name).map(|declared| &declared.definition);
            own.or_else(|| self.context.library.definition(name))
        };
        is_move_only(ty, &definition)
    }

    /// Adds the rows of one read to the elements.
    fn pair(
        &mut self,
        paired: &mut PairedList<'a>,
        (table, read): (&Text, KeyedRead<'a>),
        pattern: &'a Pattern,
        span: Span,
    ) {
        let key_type = self.table(table).key_type();
        let element = self.vars.variable(pattern_name(pattern), paired.element_type.clone());
        let item = Atom::Var(element.var);
        let open_block = self.build_block(|lowering| {
            lowering.bind_pairs(paired, item, pattern, span);
            lowering.expr(read.key)
        });
        let body = self.close_without_exits(open_block, &key_type);
        let keys = Op::Map { list: paired.list.clone(), element, body };
        let keys = self.emit(keys, Type::list(key_type), span);
        let row = Type::option(self.row_type(table));
        let given = vec![Atom::Shared(table.clone()), outside(), keys];
        let keeps_failure = read.keeps_failure && self.steps.is_empty() && self.is_stored(table);
        let (function, row) = match keeps_failure {
            true => ("get_each", Type::result(row, Type::Failure)),
            false => ("get_all", row),
        };
        let rows = self.call_tables(function, given, Type::list(row.clone()), span);
        let pair = Type::tuple(vec![paired.element_type.clone(), row]);
        let given = vec![Some(Binding::Atom(paired.list.clone())), Some(Binding::Atom(rows))];
        paired.list = self.call_host(&"list.zip".into(), given, Type::list(pair.clone()), (span, &[]));
        paired.element_type = pair;
        paired.reads.push(vec![read]);
    }

    /// Binds the pattern of a `for` to an element of the pairs, and its reads to the rows.
    pub(super) fn bind_pairs(&mut self, paired: &PairedList<'a>, item: Atom, pattern: &'a Pattern, span: Span) {
        let (mut item, mut ty) = (item, paired.element_type.clone());
        for reads in paired.reads.iter().rev() {
            let Type::Tuple(parts) = &ty else { return };
            let row = self.prim(Prim::Field(1), vec![item.clone()], parts[1].clone(), span);
            let row = PairedRow { row, keeps_failure: matches!(parts[1], Type::Result(_)) };
            self.rows_read.extend(reads.iter().map(|read| (read.expr.id, row.clone())));
            item = self.prim(Prim::Field(0), vec![item], parts[0].clone(), span);
            ty = parts[0].clone();
        }
        self.bind(pattern, item);
    }

    /// Ends the rounds over pairs, whose rows no other code sees. Returns the list.
    pub(super) fn end_pairs(&mut self, paired: PairedList<'a>) -> Atom {
        for read in paired.reads.iter().flatten() {
            self.rows_read.remove(&read.expr.id);
        }
        paired.list
    }

    /// Returns the list of the elements alone.
    pub(super) fn elements_of_pairs(&mut self, paired: &PairedList<'a>, span: Span) -> Atom {
        if paired.reads.is_empty() {
            return paired.list.clone();
        }
        let element = self.vars.variable("", paired.element_type.clone());
        let (mut item, mut ty) = (Atom::Var(element.var), paired.element_type.clone());
        let open_block = self.build_block(|lowering| {
            for _ in &paired.reads {
                let Type::Tuple(parts) = &ty else { break };
                item = lowering.prim(Prim::Field(0), vec![item.clone()], parts[0].clone(), span);
                ty = parts[0].clone();
            }
            item
        });
        let body = self.close_without_exits(open_block, &ty);
        self.emit(Op::Map { list: paired.list.clone(), element, body }, Type::list(ty), span)
    }

    /// Returns the keyed reads of conditions and of a body that can be made before its rounds.
    pub(super) fn keyed_reads(&self, conditions: &[&'a Expr], body: &'a Block) -> Vec<KeyedRead<'a>> {
        if self.program.declarations.tables.is_empty() || !self.replaced.is_empty() {
            return Vec::new();
        }
        let mut search = ReadSearch {
            lowering: self,
            reads: Vec::new(),
            bound: BTreeSet::new(),
            writes: false,
            branches: 0,
            returns: false,
            fails: false,
            exits: false,
        };
        conditions.iter().for_each(|condition| search.expr(condition));
        search.block(body);
        let ReadSearch { mut reads, bound, writes, returns, fails, exits, .. } = search;
        let keeps_failure = fails || reads.len() > 1;
        reads
            .iter_mut()
            .for_each(|read| (read.is_certain, read.keeps_failure) = (read.is_certain && !returns, keeps_failure));
        if writes {
            return Vec::new();
        }
        let is_late = |read: &KeyedRead<'a>| !read.is_certain || !self.is_path(read.key, &bound);
        let gathers = !(exits && self.may_leave_loops()) && reads.iter().any(is_late);
        reads.iter_mut().for_each(|read| read.gathers = gathers);
        let is_new = |read: &KeyedRead<'a>| !self.rows_read.contains_key(&read.expr.id);
        reads.into_iter().filter(|read| is_new(read) && self.is_path(read.key, &bound)).collect()
    }

    /// Returns whether an expression is made of fields of names that the body does not bind, and of constants.
    fn is_path(&self, expr: &Expr, bound: &BTreeSet<LocalId>) -> bool {
        if self.typed.constant(expr).is_ok() {
            return true;
        }
        match &expr.kind {
            ExprKind::Name(_) => match self.typed.resolution(expr.id) {
                Some(Resolution::Local(local)) => !bound.contains(local),
                _ => false,
            },
            ExprKind::Field { object, .. } => {
                matches!(self.typed.resolution(expr.id), Some(Resolution::Field(_))) && self.is_path(object, bound)
            }
            ExprKind::TupleIndex { object, .. } => self.is_path(object, bound),
            ExprKind::Tuple(parts) => parts.iter().all(|part| self.is_path(part, bound)),
            _ => false,
        }
    }

    /// Returns whether a call may write a table, or change something that decides what tables have.
    fn may_write(&self, target: &CallTarget) -> bool {
        match target {
            CallTarget::Host(path) => {
                let function = self.context.library.function(path);
                path.starts_with("tables.")
                    || function.is_none_or(|function| function.signature.effects.world == World::Writes)
            }
            CallTarget::Function(_) | CallTarget::Local(_) | CallTarget::Service { .. } => true,
            CallTarget::Table(statement) => !matches!(statement, TableStatement::Count | TableStatement::Exists),
            CallTarget::Weir(_) | CallTarget::Variant(_) | CallTarget::Length | CallTarget::Failure => false,
            CallTarget::Fail { .. } => false,
        }
    }
}

impl Lowering<'_, '_> {
    /// Returns whether a failure leaves the loop around it with a value, instead of ending the flow.
    fn may_leave_loops(&self) -> bool {
        self.frames[self.body_frame()].kind != InlineFrameKind::Flow
            || self.frames.iter().any(|frame| !frame.handlers.is_empty())
    }

    /// Returns whether an expression may fail, or leave what is around it, apart from reads by keys and from the expressions in it.
    fn may_fail(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Call { .. } | ExprKind::Pipe { .. } => match self.typed.call(expr.id).map(|call| &call.target) {
                Some(CallTarget::Host(path)) => {
                    let function = self.context.library.function(path);
                    function.is_none_or(|function| !function.signature.effects.total)
                }
                Some(CallTarget::Variant(_) | CallTarget::Length | CallTarget::Failure) => false,
                _ => true,
            },
            ExprKind::Index { object, .. } => self.table_named(object).is_none(),
            ExprKind::Unary { operator, .. } => *operator == UnaryOperator::Negate,
            ExprKind::Binary { operator, .. } => matches!(
                operator,
                BinaryOperator::Add
                    | BinaryOperator::Subtract
                    | BinaryOperator::Multiply
                    | BinaryOperator::Divide
                    | BinaryOperator::Remainder
            ),
            ExprKind::Literal(_)
            | ExprKind::Text(_)
            | ExprKind::Html(_)
            | ExprKind::Name(_)
            | ExprKind::Field { .. }
            | ExprKind::TupleIndex { .. }
            | ExprKind::Else { .. }
            | ExprKind::If { .. }
            | ExprKind::Match { .. }
            | ExprKind::Block(_)
            | ExprKind::Record { .. }
            | ExprKind::Tuple(_)
            | ExprKind::List(_) => false,
            _ => true,
        }
    }
}

/// Looks for keyed reads, for the names that a body binds, and for what may write.
struct ReadSearch<'s, 'a, 'd> {
    lowering: &'s Lowering<'a, 'd>,
    reads: Vec<KeyedRead<'a>>,
    bound: BTreeSet<LocalId>,
    writes: bool,
    /// The number of branches, repeated and limited bodies around.
    branches: usize,
    /// True if there is a `return`.
    returns: bool,
    /// True if something else than a read by a key may fail.
    fails: bool,
    /// True if there is a `?` or `fail`.
    exits: bool,
}

impl<'a> ReadSearch<'_, 'a, '_> {
    /// Notes a read, unless it was visited before.
    fn add(&mut self, expr: &'a Expr, (object, key): (&'a Expr, &'a Expr)) {
        if self.reads.iter().all(|known| known.expr.id != expr.id) {
            let is_certain = self.branches == 0;
            self.reads.push(KeyedRead { expr, object, key, is_certain, keeps_failure: false, gathers: false });
        }
    }
}

/// Returns the part of an expression that is certainly evaluated, if others may not be, or not by now.
fn certain_part(expr: &Expr) -> Option<Option<&Expr>> {
    match &expr.kind {
        ExprKind::If { condition: part, .. }
        | ExprKind::Match { value: part, .. }
        | ExprKind::Else { value: part, .. }
        | ExprKind::Binary { operator: BinaryOperator::And | BinaryOperator::Or, left: part, .. }
        | ExprKind::For { items: part, .. }
        | ExprKind::Fold { items: part, .. } => Some(Some(part)),
        ExprKind::Loop { .. }
        | ExprKind::Closure { .. }
        | ExprKind::Within { .. }
        | ExprKind::Race(_)
        | ExprKind::Retry { .. }
        | ExprKind::With { .. } => Some(None),
        _ => None,
    }
}

impl<'a> Visitor<'a> for ReadSearch<'_, 'a, '_> {
    fn expr(&mut self, expr: &'a Expr) {
        let typed = self.lowering.typed;
        match &expr.kind {
            ExprKind::Index { object, index } if self.lowering.table_named(object).is_some() => {
                self.add(expr, (object, index));
            }
            ExprKind::Call { .. } | ExprKind::Pipe { .. } => {
                let target = typed.call(expr.id).map(|call| &call.target);
                self.writes |= target.is_none_or(|target| self.lowering.may_write(target));
            }
            ExprKind::Atomic { .. } => self.writes = true,
            _ => {}
        }
        self.fails |= self.lowering.may_fail(expr);
        let target = typed.call(expr.id).map(|call| &call.target);
        self.exits |= matches!(expr.kind, ExprKind::Try(_)) || matches!(target, Some(CallTarget::Fail { .. }));
        self.bound.extend(typed.of(expr.id).failure_locals.get(&expr.id));
        let Some(certain) = certain_part(expr) else {
            walk_expr(self, expr);
            self.returns |= matches!(expr.kind, ExprKind::Return(_));
            return;
        };
        certain.into_iter().for_each(|part| self.expr(part));
        self.branches += 1;
        walk_expr(self, expr);
        self.branches -= 1;
    }

    fn pattern(&mut self, pattern: &'a Pattern) {
        self.bound.extend(self.lowering.typed.pattern_local(pattern.id));
        walk_pattern(self, pattern);
    }
}
