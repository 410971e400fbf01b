//! Lowers queries: the table evaluates the searchable part of a condition, and the program the rest. The values of the searchable
//! part are evaluated once, before the query.

use weir_host::{Text, Type, Value};
use weir_ir::expr::{Atom, LoopExit, Op, Variable};
use weir_ir::prim::Prim;
use weir_syntax::Span;
use weir_syntax::ast::{Block, Expr, ExprKind, Pattern, QueryClauses};

use super::block_builder::{BlockExits, OpenBlock};
use super::conditions::DividedCondition;
use super::keyed_reads::PairedList;
use super::table_description::record;
use super::tables::outside;
use super::{Binding, Callable, Lowering, pattern_name};
use crate::typed_tree::{Resolution, TableStatement};

impl<'a> Lowering<'a, '_> {
    /// Lowers a query, and returns the list of its rows, paired with those that the rounds read by their columns.
    pub(super) fn query(
        &mut self,
        table: &Text,
        (pattern, clauses): (&'a Pattern, &'a QueryClauses),
        body: &'a Block,
        span: Span,
    ) -> PairedList<'a> {
        let row = self.typed.pattern_local(pattern.id);
        let divided = self.divide(table, row, clauses.condition.as_ref());
        let order = self.order(clauses);
        let limit = clauses.limit.as_ref().map(|limit| self.expr(limit));
        let early = limit.clone().filter(|_| divided.left.is_empty());
        let left = divided.left.clone();
        let joins = row.map(|row| self.joins(table, row, self.keyed_reads(&left, body))).unwrap_or_default();
        let rows = self.select_joined(table, (joins, divided), span, |lowering, divided| {
            lowering.description(table, divided, order, early, span)
        });
        let mut rows = self.filtered_pairs(rows, pattern, &left, span);
        if let Some(limit) = limit.filter(|_| !left.is_empty()) {
            self.context.note_query_rest(span, "takes the first ones of these".to_owned());
            let given = vec![Some(Binding::Atom(rows.list)), Some(Binding::Atom(limit))];
            let ty = Type::list(rows.element_type.clone());
            rows.list = self.call_host(&"list.take".into(), given, ty, (span, &[]));
        }
        rows
    }

    /// Returns the rows of a table, with the rows that they are paired with, that fulfil the conditions which the table does
    /// not search.
    pub(super) fn filtered_pairs(
        &mut self,
        mut rows: PairedList<'a>,
        pattern: &'a Pattern,
        conditions: &[&'a Expr],
        span: Span,
    ) -> PairedList<'a> {
        if conditions.is_empty() {
            return rows;
        }
        self.note_filter(conditions, span);
        let given = (rows.list.clone(), pattern_name(pattern));
        rows.list = self.kept(given, &rows.element_type, conditions, span, |lowering, item| {
            lowering.bind_pairs(&rows, item, pattern, span);
        });
        rows
    }

    /// Notes the conditions that the table does not search.
    fn note_filter(&mut self, conditions: &[&'a Expr], span: Span) {
        let texts: Vec<String> = conditions.iter().map(|part| self.context.text_at(part.span)).collect();
        self.context.note_query_rest(span, format!("keeps the rows with `{}`", texts.join(" && ")));
    }

    /// Returns the order of a query as values of the type `tables.RowOrder`.
    pub(super) fn order(&self, clauses: &QueryClauses) -> Vec<Value> {
        let order = clauses.order.iter().filter_map(|key| {
            let Some(Resolution::Field(column)) = self.typed.resolution(key.value.id) else { return None };
            Some(record([Value::Int((*column).into()), Value::Bool(key.descending)]))
        });
        order.collect()
    }

    /// Lowers a statement that takes a function.
    pub(super) fn table_statement(
        &mut self,
        statement: TableStatement,
        given: Vec<Option<Binding<'a>>>,
        expr: &'a Expr,
        written: &[Option<&'a Expr>],
    ) -> Atom {
        let (ty, span) = (self.ty(expr), expr.span);
        let mut given = given.into_iter();
        let Some(Some(Binding::Atom(Atom::Shared(table)))) = given.next() else { return Atom::Value(Value::Unit) };
        match statement {
            TableStatement::Update => {
                let (Some(Some(Binding::Atom(key))), Some(Some(change))) = (given.next(), given.next()) else {
                    return Atom::Value(Value::Unit);
                };
                let tried = self.tried.take().filter(|tried| tried.call == expr.id);
                self.update(&table, (key, change), (&ty, tried), span)
            }
            TableStatement::UpdateAll => {
                let (condition, change) = (given.next().flatten(), given.next().flatten());
                let condition = (condition, written.get(1).copied().flatten());
                self.update_all(&table, condition, change, &ty, span)
            }
            TableStatement::Count => {
                let condition = given.next().flatten();
                self.count(&table, condition, written.get(1).copied().flatten(), span)
            }
            TableStatement::Exists => {
                let condition = given.next().flatten();
                self.exists(&table, condition, written.get(1).copied().flatten(), span)
            }
            TableStatement::DeleteAll => {
                let condition = given.next().flatten();
                self.delete_all(&table, (condition, written.get(1).copied().flatten()), &ty, span)
            }
        }
    }

    /// Lowers a count: by the table, if it can search the whole condition.
    fn count(&mut self, table: &Text, condition: Option<Binding<'a>>, written: Option<&'a Expr>, span: Span) -> Atom {
        if let Some(divided) = self.searched_whole(table, condition.as_ref(), written) {
            let (query, arguments) = self.description(table, &divided, Vec::new(), None, span);
            let given = vec![Atom::Shared(table.clone()), outside(), query, arguments];
            return self.call_tables("count", given, Type::Int, span);
        }
        let rows = self.rows_where(table, (condition, written), span);
        self.prim(Prim::Length, vec![rows], Type::Int, span)
    }

    /// Lowers the question whether there is a row that fulfils a condition: the table looks for one, if it can search the
    /// whole condition.
    fn exists(&mut self, table: &Text, condition: Option<Binding<'a>>, written: Option<&'a Expr>, span: Span) -> Atom {
        let rows = match self.searched_whole(table, condition.as_ref(), written) {
            Some(divided) => self.select(table, &divided, Vec::new(), Some(Atom::Value(Value::Int(1))), span),
            None => self.rows_where(table, (condition, written), span),
        };
        let length = self.prim(Prim::Length, vec![rows], Type::Int, span);
        self.prim(Prim::NotEqual, vec![length, Atom::Value(Value::Int(0))], Type::Bool, span)
    }

    /// Returns the condition of a statement if the table can search the whole of it.
    pub(super) fn searched_whole(
        &self,
        table: &Text,
        condition: Option<&Binding<'a>>,
        written: Option<&'a Expr>,
    ) -> Option<DividedCondition<'a>> {
        if condition.is_none() {
            return Some(DividedCondition::default());
        }
        closure_of(written)?;
        Some(self.divided(table, written)).filter(|divided| divided.left.is_empty())
    }

    /// Returns the rows that fulfil the condition of a statement.
    fn rows_where(&mut self, table: &Text, condition: (Option<Binding<'a>>, Option<&'a Expr>), span: Span) -> Atom {
        let divided = self.divided(table, condition.1);
        let rows = self.select(table, &divided, Vec::new(), None, span);
        self.rows_left(table, rows, (condition, &divided), span)
    }

    /// Divides the condition of a statement, if it is written as a closure.
    pub(super) fn divided(&self, table: &Text, written: Option<&'a Expr>) -> DividedCondition<'a> {
        let Some((pattern, body)) = closure_of(written) else { return DividedCondition::default() };
        self.divide(table, self.typed.pattern_local(pattern.id), Some(body))
    }

    /// Returns those of the rows that fulfil the part of a condition that the table does not search.
    pub(super) fn rows_left(
        &mut self,
        table: &Text,
        rows: Atom,
        ((condition, written), divided): ((Option<Binding<'a>>, Option<&'a Expr>), &DividedCondition<'a>),
        span: Span,
    ) -> Atom {
        let element = self.row_type(table);
        if let Some((pattern, _)) = closure_of(written) {
            if !divided.left.is_empty() {
                self.note_filter(&divided.left, span);
            }
            return self.filtered(rows, (pattern, &element), &divided.left, span);
        }
        match condition {
            Some(Binding::Callable(condition)) => {
                self.context.note_query_rest(span, "keeps the rows for which the function returns `true`".to_owned());
                self.accepted_by(rows, condition, &element, span)
            }
            _ => rows,
        }
    }

    /// Returns the elements of a list for which a function returns true.
    fn accepted_by(&mut self, list: Atom, condition: Callable<'a>, element_type: &Type, span: Span) -> Atom {
        let ty = Type::list(element_type.clone());
        self.collected((list, ""), (element_type, &ty), span, |lowering, item, kept| {
            let given = vec![Some(Binding::Atom(item.clone()))];
            let test = lowering.call_value(condition, given, &Type::Bool, (span, &[]));
            let more = |lowering: &mut Self| lowering.appended(kept, item, &ty, span);
            lowering.choose(test, &ty, span, more, |_| kept.clone())
        })
    }

    pub(super) fn appended(&mut self, list: &Atom, item: &Atom, ty: &Type, span: Span) -> Atom {
        let one = self.prim(Prim::List, vec![item.clone()], ty.clone(), span);
        self.prim(Prim::Add, vec![list.clone(), one], ty.clone(), span)
    }

    pub(super) fn select(
        &mut self,
        table: &Text,
        divided: &DividedCondition<'a>,
        order: Vec<Value>,
        limit: Option<Atom>,
        span: Span,
    ) -> Atom {
        let (query, arguments) = self.description(table, divided, order, limit, span);
        let given = vec![Atom::Shared(table.clone()), outside(), query, arguments];
        let rows = Type::list(self.row_type(table));
        self.call_tables("select", given, rows, span)
    }

    /// Returns the description of a query, and the tuple of its limit and of the values that it compares with.
    pub(super) fn description(
        &mut self,
        table: &str,
        divided: &DividedCondition<'a>,
        order: Vec<Value>,
        limit: Option<Atom>,
        span: Span,
    ) -> (Atom, Atom) {
        if limit.is_some() {
            self.order_scan(table, divided, &order, span);
        }
        let after = (Atom::Value(Value::Unit), Type::Unit);
        self.description_after(table, divided, order, (limit, after), span)
    }

    /// Like [`Self::description`], for rows behind a cursor.
    pub(super) fn description_after(
        &mut self,
        table: &str,
        divided: &DividedCondition<'a>,
        order: Vec<Value>,
        (limit, after): (Option<Atom>, (Atom, Type)),
        span: Span,
    ) -> (Atom, Atom) {
        self.full_scan(table, divided, span);
        let mut parts = vec![limit.unwrap_or(Atom::Value(Value::Int(i64::MAX))), after.0];
        let mut types = vec![Type::Int, after.1];
        for value in &divided.values {
            let (part, ty) = self.compared_value(value);
            parts.push(part);
            types.push(ty);
        }
        let arguments = self.prim(Prim::Record, parts, Type::tuple(types), span);
        let query = record([Value::list(divided.searched.clone()), Value::list(order)]);
        (Atom::Value(query), arguments)
    }

    /// Returns the elements of a list that fulfil all conditions.
    pub(super) fn filtered(
        &mut self,
        list: Atom,
        (pattern, element_type): (&'a Pattern, &Type),
        conditions: &[&'a Expr],
        span: Span,
    ) -> Atom {
        if conditions.is_empty() {
            return list;
        }
        self.kept((list, pattern_name(pattern)), element_type, conditions, span, |lowering, item| {
            lowering.bind(pattern, item);
        })
    }

    /// Returns the elements of a list that fulfil all conditions, of which there is at least one. `bind` binds the names of an element.
    fn kept(
        &mut self,
        (list, name): (Atom, &str),
        element_type: &Type,
        conditions: &[&'a Expr],
        span: Span,
        bind: impl FnOnce(&mut Self, Atom),
    ) -> Atom {
        let element = self.vars.variable(name, element_type.clone());
        let item = Atom::Var(element.var);
        let open_block = self.build_block(|lowering| {
            bind(lowering, item);
            lowering.all_hold(conditions, span)
        });
        self.kept_where((list, element), open_block, span)
    }

    /// Returns the elements for which a block yields `true`.
    pub(super) fn kept_where(&mut self, (list, element): (Atom, Variable), open_block: OpenBlock, span: Span) -> Atom {
        let (ty, item) = (Type::list(element.ty.clone()), Atom::Var(element.var));
        let so_far = self.vars.variable("", ty.clone());
        let exits = open_block.exits();
        let gathers = exits.is_empty() && open_block.any_binding(&|binding| self.gathers(binding));
        if gathers && !self.is_move_only(&element.ty) {
            return self.kept_of_tested((list, element), open_block, span);
        }
        let add = |lowering: &mut Self, kept: Atom| {
            let holds = lowering.join(open_block, &Type::Bool, span);
            let then = |lowering: &mut Self| lowering.appended(&kept, &item, &ty, span);
            lowering.choose(holds, &ty, span, then, |_| kept.clone())
        };
        self.collected_in((list, element), so_far, (&ty, &exits), span, add)
    }

    /// Returns the elements for which a block yields `true`. A `for` evaluates it for all of them, so that its calls gather.
    fn kept_of_tested(&mut self, (list, element): (Atom, Variable), test: OpenBlock, span: Span) -> Atom {
        let (ty, item) = (element.ty.clone(), Atom::Var(element.var));
        let pair = Type::tuple(vec![ty.clone(), Type::Bool]);
        let open_block = self.build_block(|lowering| {
            let holds = lowering.join(test, &Type::Bool, span);
            lowering.prim(Prim::Record, vec![item, holds], pair.clone(), span)
        });
        let body = self.close_without_exits(open_block, &pair);
        let tested = self.emit(Op::Map { list, element, body }, Type::list(pair.clone()), span);
        let whole = Type::list(ty.clone());
        self.collected((tested, ""), (&pair, &whole), span, |lowering, tested, kept| {
            let item = lowering.prim(Prim::Field(0), vec![tested.clone()], ty.clone(), span);
            let holds = lowering.prim(Prim::Field(1), vec![tested.clone()], Type::Bool, span);
            let then = |lowering: &mut Self| lowering.appended(kept, &item, &whole, span);
            lowering.choose(holds, &whole, span, then, |_| kept.clone())
        })
    }

    /// Returns whether all conditions hold, of which there is at least one; those behind one that does not are not evaluated.
    pub(super) fn all_hold(&mut self, conditions: &[&'a Expr], span: Span) -> Atom {
        let Some((condition, others)) = conditions.split_first() else { return Self::constant_true() };
        let condition = self.expr(condition);
        if others.is_empty() {
            return condition;
        }
        let then = |lowering: &mut Self| lowering.all_hold(others, span);
        self.choose(condition, &Type::Bool, span, then, |_| Atom::Value(Value::Bool(false)))
    }

    /// Folds a list into another one: `body` returns the second one with what an element adds to it.
    pub(super) fn collected(
        &mut self,
        (list, name): (Atom, &str),
        (element_type, ty): (&Type, &Type),
        span: Span,
        body: impl FnOnce(&mut Self, &Atom, &Atom) -> Atom,
    ) -> Atom {
        let element = self.vars.variable(name, element_type.clone());
        let so_far = self.vars.variable("", ty.clone());
        let (item, kept) = (Atom::Var(element.var), Atom::Var(so_far.var));
        let open_block = self.build_block(|lowering| body(lowering, &item, &kept));
        let exits = open_block.exits();
        self.collected_in((list, element), so_far, (ty, &exits), span, |lowering, _| {
            lowering.join(open_block, ty, span)
        })
    }

    /// Does the same with the variables of an element and of the second list. `body` may exit these `fn`s.
    fn collected_in(
        &mut self,
        (list, element): (Atom, Variable),
        so_far: Variable,
        (ty, exits): (&Type, &BlockExits),
        span: Span,
        body: impl FnOnce(&mut Self, Atom) -> Atom,
    ) -> Atom {
        let (init, kept) = (Atom::Value(Value::list(Vec::new())), Atom::Var(so_far.var));
        if exits.is_empty() {
            let open_block = self.build_block(|lowering| body(lowering, kept));
            let body = self.close_without_exits(open_block, ty);
            let fold = Op::Fold { list, init: vec![init], state: vec![so_far], element, body, exit: LoopExit::Never };
            return self.emit(fold, ty.clone(), span);
        }
        self.fold_with_exits(span, (list, init, element), ty, exits, |lowering, going| {
            lowering.rename(so_far, going, span);
            body(lowering, kept)
        })
    }
}

/// Returns the pattern and the body of a closure of one parameter.
pub(super) fn closure_of(written: Option<&Expr>) -> Option<(&Pattern, &Expr)> {
    match &written?.kind {
        ExprKind::Closure { parameters, body } => match &parameters[..] {
            [only] => Some((&only.pattern, body)),
            _ => None,
        },
        _ => None,
    }
}
