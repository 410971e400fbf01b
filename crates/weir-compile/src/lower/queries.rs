//! Lowers queries: the part of a condition that compares columns with values goes to the table, the rest is evaluated here.
//!
//! A comparison is *searchable* if one side is a column of the row, and the other does not mention the row. The values are
//! evaluated once, before the query. A comparison of a `Float` is not searchable: databases disagree about NaN.

use weir_host::{Text, Type, Value};
use weir_ir::expr::{ArmTest, Atom, Op};
use weir_ir::prim::Prim;
use weir_syntax::ast::{BinaryOperator, Expr, ExprKind, Pattern, QueryClauses, UnaryOperator, Visitor, walk_expr};
use weir_syntax::{Code, Diagnostic, Span};

use super::repeat::exit_targets;
use super::tables::{outside, record};
use super::{Binding, Lowering, pattern_name};
use crate::typed_tree::{LocalId, Resolution, TableStatement, TypedTree};

/// A condition, divided into what the table searches and what is left.
#[derive(Default)]
struct DividedCondition<'a> {
    /// The searchable comparisons, as values of the type `tables.Condition`.
    searched: Vec<Value>,
    /// The values that they compare with, and their types.
    values: Vec<(&'a Expr, Option<Value>)>,
    left: Vec<&'a Expr>,
}

impl<'a> Lowering<'a, '_> {
    /// Lowers a query, and returns the list of its rows.
    pub(super) fn query(
        &mut self,
        table: &Text,
        (pattern, clauses): (&'a Pattern, &'a QueryClauses),
        span: Span,
    ) -> Atom {
        let row = self.typed.pattern_locals.get(&pattern.id).copied();
        let divided = self.divide(table, row, clauses.condition.as_ref());
        let order = clauses.order.iter().filter_map(|key| {
            let Some(Resolution::Field(column)) = self.typed.resolutions.get(&key.value.id) else { return None };
            Some(record([Value::Int((*column).into()), Value::Bool(key.descending)]))
        });
        let order: Vec<Value> = order.collect();
        let limit = clauses.limit.as_ref().map(|limit| self.expr(limit));
        let early = limit.clone().filter(|_| divided.left.is_empty());
        let rows = self.select(table, &divided, order, early, span);
        let element = self.row_type(table);
        let rows = self.filtered(rows, (pattern, &element), &divided.left, span);
        match limit.filter(|_| !divided.left.is_empty()) {
            Some(limit) => {
                let given = vec![Some(Binding::Atom(rows)), Some(Binding::Atom(limit))];
                self.call_host(&"list.take".into(), given, Type::list(element), (span, &[]))
            }
            None => rows,
        }
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
                self.update(&table, (key, change), &ty, span)
            }
            TableStatement::Count => {
                let condition = given.next().flatten();
                self.count(&table, condition, written.get(1).copied().flatten(), span)
            }
            TableStatement::DeleteAll => self.delete_all(&table, written.get(1).copied().flatten(), &ty, span),
        }
    }

    fn update(&mut self, table: &Text, (key, change): (Atom, Binding<'a>), ty: &Type, span: Span) -> Atom {
        let (row_type, Type::Result(pair)) = (self.row_type(table), ty) else { return Atom::Value(Value::Unit) };
        self.holding(table, ty, span, |lowering| {
            let found = vec![Atom::Shared(table.clone()), outside(), key.clone()];
            let found = lowering.call_tables("get", found, pair.0.clone(), span);
            let old = lowering.vars.variable("", row_type.clone());
            let old_row = Atom::Var(old.var);
            let arms = vec![
                lowering.arm(ArmTest::Tag(Value::SOME), vec![old], |lowering| {
                    let Binding::Callable(change) = change else { return Atom::Value(Value::Unit) };
                    let given = vec![Some(Binding::Atom(old_row))];
                    let new = lowering.call_value(change, given, &row_type, (span, &[]));
                    lowering.replaced(table, (key, new), ty, span)
                }),
                lowering.arm(ArmTest::Tag(Value::NONE), Vec::new(), |lowering| {
                    let none = Atom::Value(Value::none());
                    lowering.prim(Prim::Variant(Value::OK), vec![none], ty.clone(), span)
                }),
            ];
            lowering.switch(found, arms, ty, span)
        })
    }

    /// Lowers a count: by the table, if it can search the whole condition.
    fn count(&mut self, table: &Text, condition: Option<Binding<'a>>, written: Option<&'a Expr>, span: Span) -> Atom {
        let divided = match (condition.is_some(), closure_of(written)) {
            (false, _) => DividedCondition::default(),
            (true, Some((pattern, body))) => {
                let row = self.typed.pattern_locals.get(&pattern.id).copied();
                self.divide(table, row, Some(body))
            }
            (true, None) => return self.count_by(table, condition, span),
        };
        if divided.left.is_empty() {
            let (query, arguments) = self.description(&divided, Vec::new(), None, span);
            let given = vec![Atom::Shared(table.clone()), outside(), query, arguments];
            return self.call_tables("count", given, Type::Int, span);
        }
        let Some((pattern, _)) = closure_of(written) else { return Atom::Value(Value::Unit) };
        let rows = self.select(table, &divided, Vec::new(), None, span);
        let element = self.row_type(table);
        let rows = self.filtered(rows, (pattern, &element), &divided.left, span);
        self.prim(Prim::Length, vec![rows], Type::Int, span)
    }

    /// Lowers a count by a function that is not written at the call.
    fn count_by(&mut self, table: &Text, condition: Option<Binding<'a>>, span: Span) -> Atom {
        let Some(Binding::Callable(condition)) = condition else { return Atom::Value(Value::Unit) };
        let rows = self.select(table, &DividedCondition::default(), Vec::new(), None, span);
        let element = self.vars.variable("", self.row_type(table));
        let so_far = self.vars.variable("", Type::Int);
        let (row, counted) = (Atom::Var(element.var), Atom::Var(so_far.var));
        let open_block = self.build_block(|lowering| {
            let test = lowering.call_value(condition, vec![Some(Binding::Atom(row))], &Type::Bool, (span, &[]));
            let more = |lowering: &mut Self| {
                lowering.prim(Prim::Add, vec![counted.clone(), Atom::Value(Value::Int(1))], Type::Int, span)
            };
            lowering.choose(test, &Type::Int, span, more, |_| counted.clone())
        });
        let body = self.close_without_exits(open_block, &Type::Int);
        let init = vec![Atom::Value(Value::Int(0))];
        self.emit(Op::Fold { list: rows, init, state: vec![so_far], element, body }, Type::Int, span)
    }

    fn delete_all(&mut self, table: &Text, written: Option<&'a Expr>, ty: &Type, span: Span) -> Atom {
        let divided = closure_of(written).map(|(pattern, body)| {
            let row = self.typed.pattern_locals.get(&pattern.id).copied();
            self.divide(table, row, Some(body))
        });
        let Some(divided) = divided.filter(|divided| divided.left.is_empty()) else {
            let diagnostic = Diagnostic::new(Code::QueryForm, "the table cannot search by this condition")
                .at(written.map_or(span, |written| written.span), "not a comparison of columns with values")
                .hint("compare columns with values, or query the rows with `for` and `delete` each");
            self.context.report_once(diagnostic);
            return Atom::Value(Value::Unit);
        };
        let (query, arguments) = self.description(&divided, Vec::new(), None, span);
        let given = [Atom::Shared(table.clone()), outside(), query, arguments];
        let given = given.into_iter().map(|atom| Some(Binding::Atom(atom))).collect();
        self.call_host(&"tables.delete_all".into(), given, ty.clone(), (span, &[]))
    }

    fn select(
        &mut self,
        table: &Text,
        divided: &DividedCondition<'a>,
        order: Vec<Value>,
        limit: Option<Atom>,
        span: Span,
    ) -> Atom {
        let (query, arguments) = self.description(divided, order, limit, span);
        let given = vec![Atom::Shared(table.clone()), outside(), query, arguments];
        let rows = Type::list(self.row_type(table));
        self.call_tables("select", given, rows, span)
    }

    /// Returns the description of a query, and the tuple of its limit and of the values that it compares with.
    fn description(
        &mut self,
        divided: &DividedCondition<'a>,
        order: Vec<Value>,
        limit: Option<Atom>,
        span: Span,
    ) -> (Atom, Atom) {
        let mut parts = vec![limit.unwrap_or(Atom::Value(Value::Int(i64::MAX))), Atom::Value(Value::Unit)];
        let mut types = vec![Type::Int, Type::Unit];
        for (value, constant) in &divided.values {
            match constant {
                Some(constant) => {
                    parts.push(Atom::Value(constant.clone()));
                    types.push(Type::Bool);
                }
                None => {
                    parts.push(self.expr(value));
                    types.push(self.ty(value));
                }
            }
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
        let ty = Type::list(element_type.clone());
        let element = self.vars.variable(pattern_name(pattern), element_type.clone());
        let so_far = self.vars.variable("", ty.clone());
        let (item, kept) = (Atom::Var(element.var), Atom::Var(so_far.var));
        let open_block = self.build_block(|lowering| {
            lowering.bind(pattern, item.clone());
            lowering.kept_if(conditions, (&kept, &item), &ty, span)
        });
        let init = Atom::Value(Value::list(Vec::new()));
        let targets = exit_targets(&open_block);
        if targets.is_empty() {
            let body = self.close_without_exits(open_block, &ty);
            return self.emit(Op::Fold { list, init: vec![init], state: vec![so_far], element, body }, ty, span);
        }
        self.fold_with_exits(span, (list, init, element), &ty, &targets, |lowering, going| {
            lowering.rename(so_far, going, span);
            lowering.join(open_block, &ty, span)
        })
    }

    /// Returns the list with the item appended if it fulfils all conditions.
    fn kept_if(&mut self, conditions: &[&'a Expr], (kept, item): (&Atom, &Atom), ty: &Type, span: Span) -> Atom {
        let Some((condition, others)) = conditions.split_first() else {
            let one = self.prim(Prim::List, vec![item.clone()], ty.clone(), span);
            return self.prim(Prim::Add, vec![kept.clone(), one], ty.clone(), span);
        };
        let condition = self.expr(condition);
        let then = |lowering: &mut Self| lowering.kept_if(others, (kept, item), ty, span);
        self.choose(condition, ty, span, then, |_| kept.clone())
    }

    /// Divides a condition.
    fn divide(&self, table: &Text, row: Option<LocalId>, condition: Option<&'a Expr>) -> DividedCondition<'a> {
        let mut divided = DividedCondition::default();
        let mut open: Vec<&'a Expr> = condition.into_iter().collect();
        while let Some(part) = open.pop() {
            if let ExprKind::Binary { operator: BinaryOperator::And, left, right, .. } = &part.kind {
                open.extend([&**right, &**left]);
                continue;
            }
            match row.and_then(|row| self.searchable(table, row, part)) {
                Some((column, comparison, value, constant)) => {
                    let at = Value::Int(column.into());
                    divided.searched.push(record([at, Value::text(comparison)]));
                    divided.values.push((value, constant));
                }
                None => divided.left.push(part),
            }
        }
        divided
    }

    /// Returns the column, the comparison and the value of a searchable comparison.
    fn searchable(
        &self,
        table: &Text,
        row: LocalId,
        part: &'a Expr,
    ) -> Option<(u32, &'static str, &'a Expr, Option<Value>)> {
        let is_searched = |column: &u32| {
            let columns = &self.program.declarations.tables[table.as_str()].columns;
            columns.get(*column as usize).is_some_and(|column| column.kind != "Float")
        };
        let (column, comparison, value, constant) = match &part.kind {
            ExprKind::Binary { operator, left, right, .. } => {
                let comparison = symbol(*operator)?;
                match (self.column_of(row, left), self.column_of(row, right)) {
                    (Some(column), None) if !self.mentions(row, right) => (column, comparison, &**right, None),
                    (None, Some(column)) if !self.mentions(row, left) => (column, flipped(comparison), &**left, None),
                    _ => return None,
                }
            }
            ExprKind::Field { .. } => (self.column_of(row, part)?, "==", part, Some(Value::Bool(true))),
            ExprKind::Unary { operator: UnaryOperator::Not, operand } => {
                (self.column_of(row, operand)?, "==", part, Some(Value::Bool(false)))
            }
            _ => return None,
        };
        is_searched(&column).then_some((column, comparison, value, constant))
    }

    /// Returns the column if the expression is a field of the row.
    fn column_of(&self, row: LocalId, expr: &Expr) -> Option<u32> {
        let ExprKind::Field { object, .. } = &expr.kind else { return None };
        let is_row = self.typed.resolutions.get(&object.id) == Some(&Resolution::Local(row));
        match self.typed.resolutions.get(&expr.id) {
            Some(Resolution::Field(column)) if is_row => Some(*column),
            _ => None,
        }
    }

    fn mentions(&self, row: LocalId, expr: &'a Expr) -> bool {
        let mut search = LocalSearch { typed: self.typed, local: row, found: false };
        search.expr(expr);
        search.found
    }
}

/// Looks for the name of a row.
struct LocalSearch<'t> {
    typed: &'t TypedTree,
    local: LocalId,
    found: bool,
}

impl<'a> Visitor<'a> for LocalSearch<'_> {
    fn expr(&mut self, expr: &'a Expr) {
        self.found |= self.typed.resolutions.get(&expr.id) == Some(&Resolution::Local(self.local));
        walk_expr(self, expr);
    }
}

/// Returns the pattern and the body of a closure of one parameter.
fn closure_of(written: Option<&Expr>) -> Option<(&Pattern, &Expr)> {
    match &written?.kind {
        ExprKind::Closure { parameters, body } => match &parameters[..] {
            [only] => Some((&only.pattern, body)),
            _ => None,
        },
        _ => None,
    }
}

fn symbol(operator: BinaryOperator) -> Option<&'static str> {
    match operator {
        BinaryOperator::Equal => Some("=="),
        BinaryOperator::NotEqual => Some("!="),
        BinaryOperator::Less => Some("<"),
        BinaryOperator::LessEqual => Some("<="),
        BinaryOperator::Greater => Some(">"),
        BinaryOperator::GreaterEqual => Some(">="),
        _ => None,
    }
}

/// Returns the comparison with its sides exchanged.
fn flipped(comparison: &'static str) -> &'static str {
    match comparison {
        "<" => ">",
        "<=" => ">=",
        ">" => "<",
        ">=" => "<=",
        same => same,
    }
}
