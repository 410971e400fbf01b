//! The tables that a flow uses: the columns that it reads and writes, and whether it inserts or deletes rows.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{HostType, Resource, Text, Value};
use weir_ir::expr::{Atom, Block, Call, Op, Program};
use weir_ir::needed_parts::{NeededParts, ValuePart, VariableNeeds};
use weir_library::tables::{Schema, TableGrouping, TableJoin, TableQuery, is_database};

use super::changed_columns::BodyDefinitions;
use crate::commands::tables::schema_in;

/// The tables of a program, by their names with the module, such as `accounts.users`.
#[derive(Default)]
pub(super) struct ProgramTables(BTreeMap<Text, Schema>);

/// The uses of a table by a flow.
#[derive(Default)]
struct TableUse {
    reads: BTreeSet<usize>,
    writes: BTreeSet<usize>,
    inserts: bool,
    deletes: bool,
}

impl ProgramTables {
    pub(super) fn of(program: &Program) -> ProgramTables {
        let shared = program.shared.iter();
        ProgramTables(shared.filter_map(|shared| Some((shared.name.clone(), schema_in(&shared.init)?))).collect())
    }

    /// Returns whether an effect is that of statements on the tables, which [`Self::uses_in`] describes better.
    pub(super) fn has(&self, resource: &Resource) -> bool {
        match resource {
            Resource::Shared(name) => self.0.contains_key(name),
            Resource::World(name) => name.as_str() == "tables",
            Resource::Constraint(name) => is_database(name),
            Resource::State(_) => false,
        }
    }

    /// Returns what a body does with tables, in words.
    pub(super) fn uses_in(&self, body: &Block) -> Vec<String> {
        let definitions = BodyDefinitions::of(body, &self.0);
        let needs = VariableNeeds::of(body, &|call, at| definitions.needed_of_argument(call, at));
        let mut uses = FlowColumns { schemas: &self.0, needs, definitions, tables: BTreeMap::new() };
        body.each_binding(&mut |binding| {
            if let Op::Call(call) = &binding.op
                && let Some(function) = call.function.strip_prefix("tables.")
                && let Some(table) = call.arguments.first().and_then(Atom::shared)
                && let Some(schema) = self.0.get(table)
            {
                let function = function.strip_prefix("place_").unwrap_or(function);
                uses.statement(function, call, schema, &uses.needs.of_variable(binding.bound.var));
            }
        });
        let in_database = |table: &str| self.0.iter().find(|(_, schema)| schema.name == table);
        let words = uses.tables.iter().filter_map(|(table, used)| Some((in_database(table)?, used)));
        words.flat_map(|((name, schema), used)| used.words(name, schema)).collect()
    }
}

/// The uses of a flow.
struct FlowColumns<'p> {
    schemas: &'p BTreeMap<Text, Schema>,
    needs: VariableNeeds,
    definitions: BodyDefinitions<'p>,
    /// By the name in the database.
    tables: BTreeMap<&'p str, TableUse>,
}

impl<'p> FlowColumns<'p> {
    /// Returns the table with this name in the database.
    fn in_database(&self, name: &str) -> Option<&'p Schema> {
        self.schemas.values().find(|schema| schema.name == name)
    }

    fn of_table(&mut self, schema: &'p Schema) -> &mut TableUse {
        self.tables.entry(&schema.name).or_default()
    }

    fn reads(&mut self, schema: &'p Schema, columns: impl IntoIterator<Item = usize>) {
        self.of_table(schema).reads.extend(columns);
    }

    /// Adds the columns of a row that are needed.
    fn reads_row(&mut self, schema: &'p Schema, row: &NeededParts) {
        let is_needed = |at: &usize| row.part(ValuePart::Field(*at as u32)) != NeededParts::Nothing;
        self.reads(schema, (0..schema.columns.len()).filter(is_needed));
    }

    fn statement(&mut self, function: &str, call: &Call, schema: &'p Schema, answer: &NeededParts) {
        let query = constant::<TableQuery>(call, 2);
        if let Some(query) = &query {
            self.reads(schema, query.conditions.iter().map(|condition| condition.column));
            self.reads(schema, query.order.iter().map(|order| order.column));
        }
        let payload = |value: &NeededParts| value.part(ValuePart::Payload(Value::SOME, 0));
        let element = answer.part(ValuePart::Element);
        match function {
            "get" | "row" => self.reads_by_key(schema, &payload(answer)),
            "get_to_change" => self.reads_by_key(schema, &payload(&answer.part(ValuePart::Payload(Value::OK, 0)))),
            "get_all" => self.reads_by_key(schema, &payload(&element)),
            "get_each" => self.reads_by_key(schema, &payload(&element.part(ValuePart::Payload(Value::OK, 0)))),
            "select" => self.reads_row(schema, &element),
            "select_to_change" => {
                self.reads_row(schema, &answer.part(ValuePart::Payload(Value::OK, 0)).part(ValuePart::Element));
            }
            "join" => {
                self.reads_row(schema, &element.part(ValuePart::Field(0)));
                let joins = constant::<Vec<TableJoin>>(call, 4).unwrap_or_default();
                for (join, at) in joins.iter().zip(1..) {
                    self.reads(schema, join.key.iter().filter_map(|column| *column));
                    if let Some(joined) = self.in_database(&join.table) {
                        self.reads_by_key(joined, &payload(&element.part(ValuePart::Field(at))));
                    }
                }
            }
            "column" | "sum" | "average" | "distinct" => self.reads(schema, constant::<usize>(call, 4)),
            "group" => {
                let grouping = constant::<TableGrouping>(call, 4);
                self.reads(schema, grouping.iter().flat_map(TableGrouping::columns_read));
            }
            "insert" | "upsert" => {
                let written = if function == "upsert" { 0..schema.columns.len() } else { 0..0 };
                let table = self.of_table(schema);
                table.inserts = true;
                table.writes.extend(written);
                self.looks_up_references(schema, |_| true);
            }
            "replace" => {
                self.replaces(call, schema);
                // The answer of an `update` is the whole row, also as far as nobody has read it before.
                self.reads_row(schema, &answer.part(ValuePart::Payload(Value::OK, 0)));
            }
            "replace_rows" => self.replaces(call, schema),
            "delete" => {
                self.reads(schema, schema.key.iter().copied());
                self.deletes(schema);
            }
            "delete_all" | "delete_rows" => self.deletes(schema),
            _ => {}
        }
    }

    fn reads_by_key(&mut self, schema: &'p Schema, row: &NeededParts) {
        self.reads(schema, schema.key.iter().copied());
        self.reads_row(schema, row);
    }

    fn replaces(&mut self, call: &Call, schema: &'p Schema) {
        let changed = self.definitions.changed_columns(call);
        let others = (0..schema.columns.len()).filter(|at| !schema.key.contains(at));
        let written: BTreeSet<usize> = changed.unwrap_or_else(|| others.collect());
        self.looks_up_references(schema, |column| written.contains(&column));
        self.of_table(schema).writes.extend(written);
    }

    /// A write looks up the rows that it references by these columns.
    fn looks_up_references(&mut self, schema: &'p Schema, is_written: impl Fn(usize) -> bool) {
        for reference in schema.references.iter().filter(|to| to.columns.iter().any(|column| is_written(*column))) {
            if let Some(target) = self.in_database(&reference.target) {
                self.reads(target, target.key.iter().copied());
            }
        }
    }

    /// A deletion looks for rows that reference the deleted ones, and deletes those that go with them.
    fn deletes(&mut self, schema: &'p Schema) {
        if std::mem::replace(&mut self.of_table(schema).deletes, true) {
            return;
        }
        for reference in &schema.referenced_by {
            if let Some(source) = self.in_database(&reference.source) {
                self.reads(source, reference.columns.iter().copied());
                if reference.cascade {
                    self.deletes(source);
                }
            }
        }
    }
}

/// Returns an argument that is a constant.
fn constant<T: HostType>(call: &Call, at: usize) -> Option<T> {
    match call.arguments.get(at)? {
        Atom::Value(value) => T::from_value(Value::clone(value)).ok(),
        Atom::Var(_) | Atom::Shared(_) => None,
    }
}

impl TableUse {
    /// Returns the uses in words; `table` is the name in the program.
    fn words(&self, table: &str, schema: &Schema) -> Vec<String> {
        let columns = |verb: &str, columns: &BTreeSet<usize>| {
            let names = columns.iter().map(|at| schema.columns[*at].name.as_str()).collect::<Vec<_>>().join(", ");
            (!names.is_empty()).then(|| format!("{verb} {table} ({names})"))
        };
        let counts = self.reads.is_empty() && self.writes.is_empty() && !self.inserts && !self.deletes;
        let words = [
            counts.then(|| format!("reads {table}")),
            columns("reads", &self.reads),
            self.inserts.then(|| format!("inserts into {table}")),
            columns("writes", &self.writes),
            self.deletes.then(|| format!("deletes from {table}")),
        ];
        words.into_iter().flatten().collect()
    }
}
