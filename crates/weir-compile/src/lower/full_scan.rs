//! Reports queries that read a whole stored table although they compare columns with values, and proposes the index.

use weir_host::Value;
use weir_syntax::ast::ItemKind;
use weir_syntax::{Code, Diagnostic, Span};

use super::Lowering;
use super::conditions::DividedCondition;
use crate::declarations::DeclaredTable;

impl Lowering<'_, '_> {
    /// Reports a query with pages whose order no index of the table has: each page would sort all rows behind the cursor.
    pub(super) fn page_scan(&mut self, table: &str, condition: &DividedCondition<'_>, order: &[Value], span: Span) {
        let declared = self.table(table);
        if declared.soft.is_some() || declared.columns.is_empty() || self.is_in_test(span) {
            return;
        }
        let compared: Vec<(usize, bool)> = condition.searched.iter().filter_map(compared).collect();
        let equal: Vec<usize> = compared.iter().filter(|(_, equal)| *equal).map(|(column, _)| *column).collect();
        let Some(own) = declared.order_without_index(&equal, order) else { return };
        let names =
            |columns: &[usize]| columns.iter().map(|at| declared.columns[*at].name.as_str()).collect::<Vec<_>>();
        let whole: Vec<usize> = equal.iter().chain(&own).copied().collect();
        let behind = match &equal[..] {
            [] => String::new(),
            _ => format!(
                " behind {}",
                names(&equal).iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ")
            ),
        };
        let order = names(&own).iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let message = format!("each page of this query sorts all rows of `{table}` that it finds");
        let diagnostic = Diagnostic::new(Code::FullScan, message)
            .at(span, format!("no index has the order by {order}{behind}"))
            .hint(declared.how_to_order(&whole, &own));
        self.context.report_once(diagnostic);
    }

    /// Reports a query of the first rows of an order that no index of the table has, if it compares nothing: it sorts the whole table for
    /// a few rows. The largest and the smallest value of a column are such a query.
    pub(super) fn order_scan(&mut self, table: &str, condition: &DividedCondition<'_>, order: &[Value], span: Span) {
        let declared = self.table(table);
        let compares = condition.searched.iter().any(|condition| compared(condition).is_some());
        if compares || declared.soft.is_some() || declared.columns.is_empty() || self.is_in_test(span) {
            return;
        }
        let Some(own) = declared.order_without_index(&[], order) else { return };
        let names: Vec<&str> = own.iter().map(|at| declared.columns[*at].name.as_str()).collect();
        let order = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let diagnostic = Diagnostic::new(Code::FullScan, format!("this query reads all rows of `{table}`"))
            .at(span, format!("no index has the order by {order}"))
            .hint(declared.how_to_order(&own, &own));
        self.context.report_once(diagnostic);
    }

    /// Returns true if the text of a `test` contains the span: the tables of tests are small.
    fn is_in_test(&self, span: Span) -> bool {
        let tests = self.context.tree().items.iter().filter(|item| matches!(item.kind, ItemKind::Test(_)));
        tests.map(|test| test.span).any(|test| test.start <= span.start && span.end <= test.end)
    }

    /// Reports a query whose comparisons no index of the table serves.
    pub(super) fn full_scan(&mut self, table: &str, condition: &DividedCondition<'_>, span: Span) {
        let declared = self.table(table);
        if declared.soft.is_some() || declared.columns.is_empty() || self.is_in_test(span) {
            return;
        }
        let compared: Vec<(usize, bool)> = condition.searched.iter().filter_map(compared).collect();
        let proposed = proposed_index(&compared);
        let columns: Vec<usize> = compared.iter().map(|(column, _)| *column).collect();
        if proposed.is_empty() || declared.begins_with_one_of(&columns) {
            return;
        }
        let names: Vec<&str> = proposed.iter().map(|at| declared.columns[*at].name.as_str()).collect();
        let diagnostic = Diagnostic::new(Code::FullScan, format!("this query reads all rows of `{table}`"))
            .at(span, format!("neither the key nor an index begins with {}", listed(&names)))
            .hint(declared.how_to_index(&proposed));
        self.context.report_once(diagnostic);
    }
}

impl DeclaredTable {
    /// Returns the columns of an order that no index has behind the columns which are compared by `==`; `None` if one has them.
    fn order_without_index(&self, equal: &[usize], order: &[Value]) -> Option<Vec<usize>> {
        let mut own: Vec<usize> = Vec::new();
        for at in order.iter().filter_map(ordered).filter(|at| !equal.contains(at)) {
            if !own.contains(&at) {
                own.push(at);
            }
        }
        // An index is followed by the key, so the end of the order may be the beginning of that.
        let is_followed = |kept: usize| {
            let (kept, end) = own.split_at(kept);
            let rest = self.key.iter().filter(|at| !equal.contains(at) && !kept.contains(at));
            end.iter().eq(rest.take(end.len())) && !self.has_enum(end)
        };
        let followed: Vec<usize> = (0..=own.len()).filter(|kept| is_followed(*kept)).collect();
        if followed.iter().any(|kept| self.has_order(equal, &own[..*kept])) {
            return None;
        }
        own.truncate(followed.first().copied().unwrap_or(own.len()));
        Some(own)
    }

    /// Returns whether one of these columns has variants, whose order no index has: a database has their names.
    fn has_enum(&self, columns: &[usize]) -> bool {
        columns.iter().any(|at| self.columns[*at].kind == "Enum")
    }

    /// Returns whether the key or an index has the columns that are compared by `==`, in any order, and then those of the order.
    fn has_order(&self, equal: &[usize], order: &[usize]) -> bool {
        let has = |index: &Vec<usize>| {
            let equal: Vec<usize> = equal.iter().copied().filter(|at| index.contains(at)).collect();
            let split = index.len().min(equal.len());
            let (first, rest) = index.split_at(split);
            first.iter().all(|at| equal.contains(at)) && rest.starts_with(order)
        };
        !self.has_enum(order) && self.indexes.iter().map(|(index, _)| index).chain([&self.key]).any(has)
    }

    /// Returns the advice to give the table an index of columns, the last of which have an order.
    fn how_to_order(&self, columns: &[usize], order: &[usize]) -> String {
        match order.iter().find(|at| self.has_enum(&[**at])) {
            None => self.how_to_index(columns),
            Some(at) => format!(
                "an index has the names of the variants of `{}`, not their order: order by another column, such as an `Int`, and \
                 add an index of that",
                self.columns[*at].name
            ),
        }
    }

    /// Returns the advice to give the table an index of columns.
    fn how_to_index(&self, columns: &[usize]) -> String {
        let names: Vec<&str> = columns.iter().map(|at| self.columns[*at].name.as_str()).collect();
        let index = if let [only] = names[..] { only.to_owned() } else { format!("({})", names.join(", ")) };
        match self.existing {
            None => format!("add an index to the table: `index {index}`"),
            // A start creates none, and fails if it is declared and not there.
            Some(_) => format!(
                "if the database has such an index, declare it: `index {index}`; otherwise create it there first"
            ),
        }
    }

    /// Returns whether the key or an index begins with one of these columns.
    fn begins_with_one_of(&self, columns: &[usize]) -> bool {
        let all = self.indexes.iter().map(|(index, _)| index).chain([&self.key]);
        all.filter_map(|index| index.first()).any(|first| columns.contains(first))
    }
}

/// Returns the column of a part of an order.
fn ordered(order: &Value) -> Option<usize> {
    let Value::Record(parts) = order else { return None };
    let Some(Value::Int(column)) = parts.first() else { return None };
    usize::try_from(*column).ok()
}

/// Returns the column of a comparison that an index serves, and whether it is an equality.
fn compared(condition: &Value) -> Option<(usize, bool)> {
    let Value::Record(parts) = condition else { return None };
    let [Value::Int(column), Value::Text(comparison)] = &parts[..] else { return None };
    let comparison = comparison.as_str();
    (comparison != "!=").then_some((usize::try_from(*column).ok()?, comparison == "=="))
}

/// Returns the columns of an index for these comparisons: those with equalities, then one with a bound.
fn proposed_index(compared: &[(usize, bool)]) -> Vec<usize> {
    let mut columns = Vec::new();
    let equal = compared.iter().filter(|(_, equal)| *equal);
    let bounded = compared.iter().filter(|(column, equal)| !equal && !compared.contains(&(*column, true)));
    for (column, _) in equal.chain(bounded.take(1)) {
        if !columns.contains(column) {
            columns.push(*column);
        }
    }
    columns
}

fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(" or ")
}
