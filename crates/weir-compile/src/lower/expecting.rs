//! Asks for the rows that a transaction reads by keys as soon as the keys are known (`tables.expect`): then the reads of a flow share
//! a round trip to the database.
//!
//! A request stands as early as its key is known, before the reads and loops that the transaction waits for. It moves out of a branch
//! if all others end the flow, and out of a loop as one request for the keys of all rounds. A row that is not read after all was asked
//! for in vain; one that the transaction writes first is read again. So a request changes nothing but the time of a read.

use weir_host::{Text, Type, Value};
use weir_ir::expr::{Arm, ArmTest, Atom, Block, Call, Let, Op, Origin, Variable};
use weir_ir::prim::Prim;
use weir_ir::program::Var;

use super::Lowering;
use super::table_description::{numbers, option, record};
use crate::lang_items::TABLES;

/// Maximum number of requests of a transaction. Chosen by judgement.
const REQUESTS_MAX: usize = 64;
/// Maximum number of fields through which a part of a key is found.
const PATH_MAX: usize = 16;

/// A request for a row, or for the rows of all rounds of a loop.
#[derive(Clone)]
struct RowRequest {
    table: Text,
    /// The parts of the key; one that is the whole key if the key has several columns.
    key: Vec<RequestedPart>,
    /// The list of a loop around it, and the element.
    round: Option<(Atom, Var)>,
    site: Text,
    origin: Origin,
}

/// A part of a key: a field of a field of a value.
#[derive(Clone)]
struct RequestedPart {
    of: Atom,
    /// The fields, outermost first, with their types.
    path: Vec<(u32, Type)>,
}

impl Lowering<'_, '_> {
    /// Has a transaction ask for the rows that it reads.
    pub(super) fn expect_rows(&mut self, body: &mut Block, transaction: Var) {
        let mut requests = self.requests_in(body, transaction);
        // The first statement is sent at once.
        let first = body.lets.iter().find(|binding| waits(binding, transaction)).map(|binding| &binding.op);
        if let Some(Op::Call(first)) = first {
            requests.retain(|request| request.site != first.site || request.round.is_some());
        }
        requests.truncate(REQUESTS_MAX);
        let asked = requests.into_iter().flat_map(|request| self.asked(request, transaction)).collect::<Vec<_>>();
        let begin = body.lets.iter().position(|binding| binding.bound.var == transaction);
        let from = begin.map_or(0, |begin| begin + 1);
        body.lets.splice(from..from, asked);
    }

    /// Places the requests of a block that cannot leave it, and returns the others, which may stand before it.
    fn requests_in(&mut self, block: &mut Block, transaction: Var) -> Vec<RowRequest> {
        let (mut leaving, mut staying) = (Vec::new(), Vec::new());
        for at in 0..block.lets.len() {
            let (before, behind) = block.lets.split_at_mut(at);
            let kept = before.last().filter(|read| matches!(&read.op, Op::Call(call) if call.keeps_failure));
            let kept = kept.map(|read| read.bound.var);
            for mut request in self.requests_of(&mut behind[0], kept, transaction) {
                match request.lifted(before, transaction) {
                    None => leaving.push(request),
                    // Right before its read it would be of no use, unless it is for the rows of several rounds.
                    Some(from) if request.round.is_some() || before[from..].iter().any(|of| waits(of, transaction)) => {
                        staying.push((from, request));
                    }
                    Some(_) => {}
                }
            }
        }
        staying.sort_by_key(|(from, _)| std::cmp::Reverse(*from));
        for (from, request) in staying {
            let asked = self.asked(request, transaction);
            block.lets.splice(from..from, asked);
        }
        leaving
    }

    /// Returns the requests of an operation that may stand before it. `kept` is what a read before it returns that keeps its failure.
    fn requests_of(&mut self, binding: &mut Let, kept: Option<Var>, transaction: Var) -> Vec<RowRequest> {
        let origin = binding.origin;
        match &mut binding.op {
            Op::Call(call) => self.request_of(call, transaction, origin).into_iter().collect(),
            Op::Switch { subject, arms } => {
                // Behind a read that has failed, the transaction does nothing.
                let of_read = kept.is_some_and(|read| *subject == Atom::Var(read));
                let has_failed = |arm: &Arm| of_read && arm.test == ArmTest::Tag(Value::ERR);
                let going = arms.iter().filter(|arm| !ends_flow(&arm.body) && !has_failed(arm)).count();
                let mut leaving = Vec::new();
                for arm in arms {
                    let own: Vec<Var> = arm.payload.iter().map(|variable| variable.var).collect();
                    let found = self.requests_in(&mut arm.body, transaction);
                    let may_leave = |of: &RowRequest| going == 1 && !ends_flow(&arm.body) && !of.mentions(&own);
                    let (leave, stay): (Vec<RowRequest>, Vec<RowRequest>) = found.into_iter().partition(may_leave);
                    leaving.extend(leave);
                    let stay = stay.into_iter().flat_map(|request| self.asked(request, transaction));
                    let stay: Vec<Let> = stay.collect();
                    arm.body.lets.splice(0..0, stay);
                }
                leaving
            }
            Op::Map { list, element, body } => self.requests_of_rounds((list, element, &[]), body, transaction),
            Op::Fold { list, element, state, body, .. } => {
                self.requests_of_rounds((list, element, state), body, transaction)
            }
            _ => Vec::new(),
        }
    }

    /// Returns the requests of the rounds of a loop.
    fn requests_of_rounds(
        &mut self,
        (list, element, states): (&Atom, &Variable, &[Variable]),
        body: &mut Block,
        transaction: Var,
    ) -> Vec<RowRequest> {
        let found = self.requests_in(body, transaction);
        let states: Vec<Var> = states.iter().map(|variable| variable.var).collect();
        let (leave, stay): (Vec<RowRequest>, Vec<RowRequest>) =
            found.into_iter().partition(|of| of.round.is_none() && !of.mentions(&states));
        let stay: Vec<Let> = stay.into_iter().flat_map(|request| self.asked(request, transaction)).collect();
        body.lets.splice(0..0, stay);
        leave.into_iter().map(|of| RowRequest { round: Some((list.clone(), element.var)), ..of }).collect()
    }

    fn request_of(&self, call: &Call, transaction: Var, origin: Origin) -> Option<RowRequest> {
        let [Atom::Shared(table), Atom::Var(number), key] = &call.arguments[..] else { return None };
        let reads = ["get", "get_to_change"].map(|name| format!("{TABLES}.{name}"));
        let is_read =
            reads.iter().any(|name| *call.function == **name) && *number == transaction && self.is_stored(table);
        let key = vec![RequestedPart { of: key.clone(), path: Vec::new() }];
        is_read.then(|| RowRequest { table: table.clone(), key, round: None, site: call.site.clone(), origin })
    }

    /// Returns the operations that ask for rows.
    fn asked(&mut self, request: RowRequest, transaction: Var) -> Vec<Let> {
        let RowRequest { table, key, round, site, origin } = request;
        let columns = self.table(&table).key_type();
        let types: Vec<Type> = match &columns {
            Type::Tuple(types) if key.len() > 1 => types.to_vec(),
            only => vec![only.clone()],
        };
        let mut lets = Vec::new();
        let (function, more) = match round {
            None => {
                let parts: Vec<Atom> = key.into_iter().map(|part| self.key_part(part, &mut lets, origin)).collect();
                ("expect", vec![self.tuple(parts, columns, &mut lets, origin)])
            }
            Some((list, element)) => {
                let (mut outside, mut outside_types, mut description) = (Vec::new(), Vec::new(), Vec::new());
                for (part, ty) in key.into_iter().zip(types) {
                    let is_of_element = part.of == Atom::Var(element);
                    let path: Vec<usize> = part.path.iter().map(|(field, _)| *field as usize).collect();
                    let value = (!is_of_element).then(|| Value::Int(outside.len() as i64));
                    description.push(record([option(value), numbers(if is_of_element { &path } else { &[] })]));
                    if !is_of_element {
                        outside.push(self.key_part(part, &mut lets, origin));
                        outside_types.push(ty);
                    }
                }
                let description = Atom::Value(Value::list(description));
                let outside = match outside.is_empty() {
                    true => Atom::Value(Value::Unit),
                    false => {
                        // A tuple of one, too.
                        outside.push(Atom::Value(Value::Unit));
                        outside_types.push(Type::Unit);
                        self.tuple(outside, Type::Tuple(outside_types.into()), &mut lets, origin)
                    }
                };
                ("expect_each", vec![list, description, outside])
            }
        };
        let path: Text = format!("{TABLES}.{function}").into();
        let site = self.unique(format!("{}.{function}", site.as_str())).into();
        let arguments = [Atom::Shared(table), Atom::Var(transaction)].into_iter().chain(more).collect();
        let bound = self.vars.variable("", if function == "expect" { Type::Bool } else { Type::Unit });
        lets.push(Let { bound, op: Op::Call(Call::new(path, site, arguments)), origin });
        lets
    }

    /// Appends the operations that find a part of a key.
    fn key_part(&mut self, part: RequestedPart, lets: &mut Vec<Let>, origin: Origin) -> Atom {
        part.path.into_iter().fold(part.of, |of, (field, ty)| {
            let bound = self.vars.variable("", ty);
            let atom = Atom::Var(bound.var);
            lets.push(Let { bound, op: Op::Prim(Prim::Field(field), vec![of]), origin });
            atom
        })
    }

    fn tuple(&mut self, mut parts: Vec<Atom>, ty: Type, lets: &mut Vec<Let>, origin: Origin) -> Atom {
        if parts.len() == 1 {
            return parts.remove(0);
        }
        let bound = self.vars.variable("", ty);
        let atom = Atom::Var(bound.var);
        lets.push(Let { bound, op: Op::Prim(Prim::Record, parts), origin });
        atom
    }
}

impl RowRequest {
    fn mentions(&self, variables: &[Var]) -> bool {
        let is_one = |atom: &Atom| matches!(atom, Atom::Var(var) if variables.contains(var));
        self.key.iter().any(|part| is_one(&part.of)) || self.round.as_ref().is_some_and(|(list, _)| is_one(list))
    }

    /// Expresses the request by what is known before these bindings, or else behind the last binding that it needs, whose place is
    /// returned.
    fn lifted(&mut self, before: &[Let], transaction: Var) -> Option<usize> {
        let mut needed = None;
        let known = |atom: &Atom| match atom {
            Atom::Var(var) if *var != transaction => before.iter().position(|binding| binding.bound.var == *var),
            _ => None,
        };
        if self.round.is_some() {
            self.see_through_lists(before);
        }
        if let Some((list, _)) = &self.round {
            needed = known(list);
        }
        let mut parts = Vec::new();
        let mut open: Vec<RequestedPart> = std::mem::take(&mut self.key).into_iter().rev().collect();
        while let Some(mut part) = open.pop() {
            let Some(at) = known(&part.of) else {
                parts.push(part);
                continue;
            };
            match &before[at].op {
                Op::Prim(Prim::Copy, of) => open.push(RequestedPart { of: of[0].clone(), ..part }),
                Op::Prim(Prim::Field(field), of) if part.path.len() < PATH_MAX => {
                    part.path.insert(0, (*field, before[at].bound.ty.clone()));
                    open.push(RequestedPart { of: of[0].clone(), ..part });
                }
                Op::Prim(Prim::Record, of) if !part.path.is_empty() => {
                    let (field, _) = part.path.remove(0);
                    open.push(RequestedPart { of: of[field as usize].clone(), ..part });
                }
                // The whole key.
                Op::Prim(Prim::Record, of) if parts.is_empty() && open.is_empty() && of.len() > 1 => {
                    open.extend(of.iter().rev().map(|of| RequestedPart { of: of.clone(), path: Vec::new() }));
                }
                _ => {
                    needed = needed.max(Some(at));
                    parts.push(part);
                }
            }
        }
        self.key = parts;
        needed.map(|at| at + 1)
    }

    /// Goes over from a list of pairs to one of the lists of which it is made, if the key needs the elements of only that.
    fn see_through_lists(&mut self, before: &[Let]) {
        while let Some((Atom::Var(list), element)) = self.round.clone() {
            let Some(binding) = before.iter().find(|binding| binding.bound.var == list) else { return };
            let Op::Call(call) = &binding.op else { return };
            if call.function.as_str() != "list.zip" {
                return;
            }
            let of_element: Vec<&mut RequestedPart> =
                self.key.iter_mut().filter(|part| part.of == Atom::Var(element)).collect();
            let side = |part: &RequestedPart| part.path.first().map(|(field, _)| *field);
            let Some(side) = of_element.first().and_then(|part| side(part)) else { return };
            if of_element.iter().any(|part| part.path.first().map(|(field, _)| *field) != Some(side)) {
                return;
            }
            of_element.into_iter().for_each(|part| _ = part.path.remove(0));
            self.round = Some((call.arguments[side as usize].clone(), element));
        }
    }
}

/// Returns whether the flow may wait for an operation of the transaction.
fn waits(binding: &Let, transaction: Var) -> bool {
    let is_statement = |call: &Call| call.arguments.get(1) == Some(&Atom::Var(transaction));
    match &binding.op {
        Op::Call(call) => is_statement(call),
        op => op.blocks().any(|block| block.lets.iter().any(|inner| waits(inner, transaction))),
    }
}

/// Returns whether a block ends the flow.
fn ends_flow(block: &Block) -> bool {
    block.lets.last().is_some_and(|last| match &last.op {
        Op::Fail(_) | Op::Return(_) => true,
        _ => last.bound.ty == Type::Never,
    })
}
