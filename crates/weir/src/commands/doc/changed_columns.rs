//! The columns in which a row that replaces a stored one may differ from it.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Text, Value};
use weir_ir::expr::{Atom, Block, Call, Op, Scope, Var};
use weir_ir::needed_parts::{NeededParts, ValuePart};
use weir_ir::prim::Prim;
use weir_library::tables::Schema;

/// The source of the value of a variable.
#[derive(Clone, Copy)]
enum VariableSource<'p> {
    /// It is the result of an operation.
    Result(&'p Op),
    /// It is the payload of a variant, or an element of a list.
    PartOf(&'p Atom),
    /// It is the state of a fold: at first the one, then what the body yields.
    State(&'p Atom, &'p Block),
}

/// The definitions of the variables of a body.
pub(super) struct BodyDefinitions<'p> {
    sources: BTreeMap<Var, VariableSource<'p>>,
    schemas: &'p BTreeMap<Text, Schema>,
}

/// A replacement of rows: its table, and its transaction.
#[derive(Clone, Copy)]
struct RowsReplaced<'p> {
    table: &'p Atom,
    transaction: &'p Atom,
}

/// Columns; `None` if they may be all.
type Columns = Option<BTreeSet<usize>>;

impl<'p> BodyDefinitions<'p> {
    pub(super) fn of(body: &'p Block, schemas: &'p BTreeMap<Text, Schema>) -> BodyDefinitions<'p> {
        let mut definitions = BTreeMap::new();
        body.each_binding(&mut |binding| {
            definitions.insert(binding.bound.var, VariableSource::Result(&binding.op));
            match &binding.op {
                Op::Switch { subject, arms } => {
                    let payloads = arms.iter().flat_map(|arm| &arm.payload);
                    definitions.extend(payloads.map(|variable| (variable.var, VariableSource::PartOf(subject))));
                }
                Op::Map { list, element, .. } => {
                    definitions.insert(element.var, VariableSource::PartOf(list));
                }
                Op::Fold { list, init, state, element, body, exit: _ } => {
                    definitions.insert(element.var, VariableSource::PartOf(list));
                    if let ([init], [state]) = (&init[..], &state[..]) {
                        definitions.insert(state.var, VariableSource::State(init, body));
                    }
                }
                _ => {}
            }
        });
        BodyDefinitions { sources: definitions, schemas }
    }

    /// Returns what a call needs of an argument. It does not read the columns of a row that it replaces by the same values.
    pub(super) fn needed_of_argument(&self, call: &Call, at: usize) -> NeededParts {
        let changed = || {
            let Some(changed) = self.changed_columns(call) else { return NeededParts::All };
            let columns = changed.into_iter().map(|column| (ValuePart::Field(column as u32), NeededParts::All));
            NeededParts::Parts(columns.collect())
        };
        match (call.function.as_str(), at) {
            ("tables.replace" | "tables.place_replace", 3) => changed(),
            ("tables.replace_rows", 3) => NeededParts::with(ValuePart::Element, changed()),
            ("tables.replace_rows", 2) => NeededParts::Nothing,
            _ => NeededParts::All,
        }
    }

    /// Returns the columns in which the rows that a call of `tables.replace` or `tables.replace_rows` stores may differ from
    /// those that they replace; `None` if they may be all.
    pub(super) fn changed_columns(&self, call: &Call) -> Columns {
        let [table, transaction, _, rows, ..] = &call.arguments[..] else { return None };
        let changed = self.changed(rows, RowsReplaced { table, transaction }, &mut BTreeSet::new())?;
        let schema = self.schemas.get(table.shared()?)?;
        // With another key it is another row, of which all columns are copied.
        (!schema.key.iter().any(|column| changed.contains(column))).then_some(changed)
    }

    /// Returns the columns in which a row, or rows within an `Option` or a list, may differ from the stored ones.
    fn changed(&self, rows: &Atom, replacement: RowsReplaced<'_>, open: &mut BTreeSet<Var>) -> Columns {
        let var = match rows {
            Atom::Value(Value::List(elements)) if elements.is_empty() => return Some(BTreeSet::new()),
            Atom::Value(Value::Variant(_, None)) => return Some(BTreeSet::new()),
            Atom::Value(_) | Atom::Shared(_) => return None,
            Atom::Var(var) => *var,
        };
        // A state that is found again within itself adds nothing.
        if !open.insert(var) {
            return Some(BTreeSet::new());
        }
        let changed = match *self.sources.get(&var)? {
            VariableSource::PartOf(whole) => self.changed(whole, replacement, open),
            VariableSource::State(init, body) => self.changed_in([init, &body.result], replacement, open),
            VariableSource::Result(Op::Call(call)) => {
                let reads = ["get", "get_to_change", "get_all", "select", "select_to_change"];
                let reads = call.function.strip_prefix("tables.").is_some_and(|name| reads.contains(&name));
                let is_same = call.arguments.first() == Some(replacement.table)
                    && call.arguments.get(1) == Some(replacement.transaction)
                    && replacement.transaction.variable().is_some();
                (reads && is_same).then(BTreeSet::new)
            }
            VariableSource::Result(Op::Prim(prim, operands)) => self.changed_by(*prim, operands, replacement, open),
            VariableSource::Result(Op::Fold { init, body, .. }) => match &init[..] {
                [init] => self.changed_in([init, &body.result], replacement, open),
                _ => None,
            },
            VariableSource::Result(
                op @ (Op::Switch { .. } | Op::Map { .. } | Op::Atomic { .. } | Op::Transaction { .. }),
            ) => {
                let yielded = op.scopes().map(|Scope { block, .. }| block).filter(|block| block.yields());
                self.changed_in(yielded.map(|block| &block.result), replacement, open)
            }
            VariableSource::Result(_) => None,
        };
        open.remove(&var);
        changed
    }

    fn changed_by(
        &self,
        prim: Prim,
        operands: &[Atom],
        replacement: RowsReplaced<'_>,
        open: &mut BTreeSet<Var>,
    ) -> Columns {
        match (prim, operands) {
            (Prim::WithField(at), [row, _]) => {
                let mut changed = self.changed(row, replacement, open)?;
                changed.insert(at as usize);
                Some(changed)
            }
            (Prim::Record, parts) => {
                let columns = parts.iter().enumerate();
                let kept = columns.filter(|(at, part)| !self.is_column(part, *at, replacement, open));
                Some(kept.map(|(at, _)| at).collect())
            }
            (Prim::Variant(_) | Prim::List | Prim::Add, parts) => self.changed_in(parts, replacement, open),
            _ => None,
        }
    }

    /// Returns whether a value is that of a column of the stored row.
    fn is_column(&self, part: &Atom, at: usize, replacement: RowsReplaced<'_>, open: &mut BTreeSet<Var>) -> bool {
        let defined = part.variable().and_then(|var| self.sources.get(&var));
        let Some(VariableSource::Result(Op::Prim(Prim::Field(field) | Prim::DetachField(field), of))) = defined else {
            return false;
        };
        let row = of.first().and_then(|row| self.changed(row, replacement, open));
        *field as usize == at && row.is_some_and(|changed| !changed.contains(&at))
    }

    fn changed_in<'a>(
        &self,
        parts: impl IntoIterator<Item = &'a Atom>,
        replacement: RowsReplaced<'_>,
        open: &mut BTreeSet<Var>,
    ) -> Columns {
        let mut changed = BTreeSet::new();
        for part in parts {
            changed.extend(self.changed(part, replacement, open)?);
        }
        Some(changed)
    }
}
