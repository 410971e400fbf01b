//! Verification of the expression IR.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Library, Resource, Text, Type};

use super::arms::{covers, payload_fits};
use super::operand::TypedOperand;
use super::report::{Report, Rule};
use super::types::TypeTable;
use super::{calls, prims};
use crate::expr::{Arm, ArmTest, Atom, Block, Call, Constraint, Let, Op, Runs, Var, Variable};
use crate::lower::changed_variables;
use crate::print::TypeText;
use crate::program::NESTING_MAX;

/// Checks an outermost body; `result` is the type that it must yield and return, if that is known.
pub(super) fn flow(
    types: &TypeTable<'_>,
    library: &Library,
    parameters: &[Variable],
    body: &Block,
    result: Option<&Type>,
    report: &mut Report,
) {
    let mut checker = BlockVerifier {
        types,
        library,
        result,
        report,
        visible: BTreeMap::new(),
        before: Vec::new(),
        bound: BTreeSet::new(),
        sites: BTreeSet::new(),
        steps: Vec::new(),
        depth: 0,
    };
    parameters.iter().for_each(|parameter| checker.bind(parameter));
    checker.block(body, result, "the result of the flow");
}

struct BlockVerifier<'a, 'r> {
    types: &'a TypeTable<'a>,
    library: &'a Library,
    /// The type of the flow's answer.
    result: Option<&'a Type>,
    report: &'r mut Report,
    /// The variables in scope, with their types.
    visible: BTreeMap<Var, &'a Type>,
    /// An undo log of `visible`: leaving a block restores what its changes replaced.
    before: Vec<(Var, Option<&'a Type>)>,
    /// The variables bound anywhere in the flow.
    bound: BTreeSet<Var>,
    sites: BTreeSet<&'a Text>,
    /// The constraints that enclosing steps hold.
    steps: Vec<&'a Constraint>,
    depth: usize,
}

impl<'a> BlockVerifier<'a, '_> {
    fn add(&mut self, rule: Rule, at: impl Into<Option<Var>>, what: impl Into<String>) {
        let at = at.into().map_or(String::new(), |at| format!("%{}", at.0));
        self.report.add(rule, &at, what);
    }

    fn bind(&mut self, variable: &'a Variable) {
        if !self.bound.insert(variable.var) {
            self.add(Rule::Once, variable.var, "is bound a second time");
        }
        self.see(variable.var, Some(&variable.ty));
    }

    /// Brings the variable into scope with this type, or takes it out of scope.
    fn see(&mut self, var: Var, ty: Option<&'a Type>) {
        let before = match ty {
            Some(ty) => self.visible.insert(var, ty),
            None => self.visible.remove(&var),
        };
        self.before.push((var, before));
    }

    /// Undoes all changes of scope after the first `changes`.
    fn leave(&mut self, changes: usize) {
        for (var, before) in self.before.drain(changes..).rev() {
            match before {
                Some(ty) => self.visible.insert(var, ty),
                None => self.visible.remove(&var),
            };
        }
    }

    /// Checks a block and returns whether it yields. Its bindings leave the scope.
    fn block(&mut self, block: &'a Block, result: Option<&Type>, what: &str) -> bool {
        let outside = self.before.len();
        self.depth += 1;
        let yields = if self.depth > NESTING_MAX {
            self.report.add(Rule::Nesting, "", format!("blocks nest deeper than {NESTING_MAX}"));
            true
        } else {
            self.lets(block, result, what)
        };
        self.depth -= 1;
        self.leave(outside);
        yields
    }

    fn lets(&mut self, block: &'a Block, result: Option<&Type>, what: &str) -> bool {
        for (index, binding) in block.lets.iter().enumerate() {
            self.binding(binding);
            if binding.bound.ty == Type::Never {
                if index + 1 < block.lets.len() {
                    self.add(Rule::Reach, binding.bound.var, "never yields, but bindings follow");
                }
                return false;
            }
            self.bind(&binding.bound);
        }
        let at = block.lets.last().map(|binding| binding.bound.var);
        let operand = self.operand(at, &block.result);
        if let Some(ty) = result {
            self.types_hold(at, operand.must_be(what, ty, self.types));
        }
        true
    }

    fn types_hold(&mut self, at: impl Into<Option<Var>>, checked: Result<(), String>) {
        if let Err(what) = checked {
            self.add(Rule::Types, at, what);
        }
    }

    fn operand(&mut self, at: impl Into<Option<Var>>, atom: &'a Atom) -> TypedOperand<'a> {
        match atom {
            Atom::Value(value) => TypedOperand::Constant(value),
            Atom::Var(var) => match self.visible.get(var) {
                Some(ty) => TypedOperand::Typed(ty),
                None => {
                    self.add(Rule::Scope, at, format!("%{} cannot be seen here", var.0));
                    TypedOperand::Unknown
                }
            },
            Atom::Shared(name) => match self.types.shared.get(&**name) {
                Some(ty) => {
                    self.held_if_own(at.into(), name);
                    TypedOperand::Shared(ty)
                }
                None => {
                    self.add(Rule::Known, at, format!("there is no shared value `{name}`"));
                    TypedOperand::Unknown
                }
            },
        }
    }

    /// Checks that a session's value is used within a step that holds it: only the step names the session.
    fn held_if_own(&mut self, at: Option<Var>, name: &Text) {
        let holds = |step: &&Constraint| matches!(&step.resource, Resource::Shared(held) if held == name);
        if self.types.per_session.contains(&**name) && !self.steps.iter().any(holds) {
            self.add(Rule::Steps, at, format!("the session's `{name}` is used outside of a step that holds it"));
        }
    }

    fn operands(&mut self, at: Var, atoms: &'a [Atom]) -> Vec<TypedOperand<'a>> {
        atoms.iter().map(|atom| self.operand(at, atom)).collect()
    }

    fn binding(&mut self, binding: &'a Let) {
        let (at, result) = (binding.bound.var, &binding.bound.ty);
        match &binding.op {
            Op::Prim(prim, atoms) => {
                let operands = self.operands(at, atoms);
                self.types_hold(at, prims::check(*prim, &operands, result, self.types));
            }
            Op::Call(call) => self.call(at, call, result),
            Op::Switch { subject, arms } => self.switch(at, subject, arms, result),
            Op::Return(answer) => {
                let operand = self.operand(at, answer);
                if let Some(ty) = self.result {
                    self.types_hold(at, operand.must_be("the answer", ty, self.types));
                }
                self.ends(at, result);
            }
            Op::Fail(failure) => {
                self.operand(at, failure);
                self.ends(at, result);
            }
            Op::Atomic { constraints, session, .. } => {
                self.constraints(at, constraints, session.as_ref());
                let outside = self.steps.len();
                self.steps.extend(constraints);
                self.bodies(at, &binding.op, result);
                self.steps.truncate(outside);
            }
            op => {
                let operands: Vec<TypedOperand<'a>> = op.operands().map(|atom| self.operand(at, atom)).collect();
                if let Some(required) = self.bodies(at, op, result) {
                    self.types_hold(at, own_operands(&operands, &required, self.types));
                }
            }
        }
    }

    /// Checks the bodies of an operation and its result, and returns the types that its own operands must have.
    fn bodies(&mut self, at: Var, op: &'a Op, result: &Type) -> Option<Vec<Type>> {
        let Some(types) = op.body_types().filter(|_| op.blocks().next().is_some()) else {
            self.add(Rule::Types, at, "has no body");
            return None;
        };
        let own: Vec<&Type> = op.binders().map(|variable| &variable.ty).collect();
        let required = types.required(&own, result);
        let (operands, body) =
            required.map(|required| (Some(required.operands), required.body)).unwrap_or_else(|what| {
                self.add(Rule::Types, at, what);
                (None, None)
            });
        let mut yields = false;
        for scope in op.scopes() {
            let parameters: Vec<&Variable> = scope.variables().collect();
            yields |= self.body(&parameters, scope.block, body.as_ref(), "the result of the body");
            if scope.runs == Runs::UnlessCancelled {
                self.given_away(scope.block);
            }
        }
        if let Op::Loop { at_most: 0, .. } = op {
            self.add(Rule::Types, at, "a loop has at least one round");
        }
        if yields || types.stands_for_bodies() {
            self.never(at, yields, result);
        }
        operands
    }

    /// Takes captured variables out of scope that a cancellable body changes or that are move-only.
    fn given_away(&mut self, body: &Block) {
        let changed = changed_variables(body, self.library);
        for var in body.free_variables(&[]) {
            let is_move_only = |ty: &&Type| self.types.definitions.is_move_only(ty);
            if changed.contains(&var) || self.visible.get(&var).is_some_and(is_move_only) {
                self.see(var, None);
            }
        }
    }

    fn ends(&mut self, at: Var, result: &Type) {
        if *result != Type::Never {
            self.add(Rule::Types, at, format!("ends the flow, so that it is of Never, not {}", TypeText(result)));
        }
    }

    fn never(&mut self, at: Var, yields: bool, result: &Type) {
        match (yields, *result == Type::Never) {
            (true, true) => self.add(Rule::Types, at, "is of Never, but yields"),
            (false, false) => {
                self.add(Rule::Types, at, format!("never yields, so that it is of Never, not {}", TypeText(result)));
            }
            _ => {}
        }
    }

    fn call(&mut self, at: Var, call: &'a Call, result: &Type) {
        if !self.sites.insert(&call.site) {
            self.add(Rule::Once, at, format!("two call sites of the name `{}`", call.site));
        }
        let arguments = self.operands(at, &call.arguments);
        match self.library.function(&call.function) {
            Some(function) => self.types_hold(
                at,
                calls::check((&function.signature, call.keeps_failure), &arguments, result, self.types),
            ),
            None => self.add(Rule::Known, at, format!("there is no function `{}`", call.function)),
        }
    }

    /// Checks a body with its own parameters, and returns whether it yields.
    fn body(&mut self, parameters: &[&'a Variable], body: &'a Block, result: Option<&Type>, what: &str) -> bool {
        let outside = self.before.len();
        parameters.iter().for_each(|parameter| self.bind(parameter));
        let yields = self.block(body, result, what);
        self.leave(outside);
        yields
    }

    fn switch(&mut self, at: Var, subject: &'a Atom, arms: &'a [Arm], result: &Type) {
        let operand = self.operand(at, subject);
        let tests: Vec<&ArmTest> = arms.iter().map(|arm| &arm.test).collect();
        if let Err(what) = covers(&tests, operand, self.types) {
            self.add(Rule::Cover, at, what);
        }
        let mut yields = false;
        for arm in arms {
            self.payload(at, arm, operand);
            let ty = (*result != Type::Never).then_some(result);
            let payload: Vec<&Variable> = arm.payload.iter().collect();
            yields |= self.body(&payload, &arm.body, ty, "the result of the arm");
        }
        self.never(at, yields, result);
    }

    fn payload(&mut self, at: Var, arm: &Arm, subject: TypedOperand<'_>) {
        let types: Vec<&Type> = arm.payload.iter().map(|variable| &variable.ty).collect();
        if let Err(what) = payload_fits(&arm.test, &types, subject, self.types) {
            self.add(Rule::Payload, at, what);
        }
    }

    fn constraints(&mut self, at: Var, constraints: &[Constraint], session: Option<&'a Atom>) {
        session.iter().for_each(|session| _ = self.operand(at, session));
        if let Err(what) = canonical(constraints, session.is_some(), self.types) {
            self.add(Rule::Constraints, at, what);
        }
    }
}

/// Checks the own operands of an operation with bodies.
fn own_operands(operands: &[TypedOperand<'_>], required: &[Type], types: &TypeTable<'_>) -> Result<(), String> {
    if operands.len() != required.len() {
        return Err(format!("has {} own operands instead of {}", operands.len(), required.len()));
    }
    operands.iter().zip(required).try_for_each(|(operand, ty)| operand.must_be("an operand", ty, types))
}

/// Checks that constraints are in the canonical order, each once, with a session if one is per session.
pub(super) fn canonical(constraints: &[Constraint], session: bool, types: &TypeTable<'_>) -> Result<(), String> {
    if constraints.windows(2).any(|pair| pair[0].resource >= pair[1].resource) {
        return Err("the constraints are not in the canonical order, each once".into());
    }
    for constraint in constraints {
        let Resource::Shared(name) = &constraint.resource else { continue };
        if !types.shared.contains_key(&**name) {
            return Err(format!("there is no shared value `{name}`"));
        }
        if types.per_session.contains(&**name) && !constraint.per_session {
            return Err(format!("each session has its own `{name}`, but the step holds it for all"));
        }
    }
    match (constraints.iter().any(|constraint| constraint.per_session), session) {
        (true, false) => Err("a constraint is per session, but there is no session".into()),
        (false, true) => Err("there is a session, but no constraint is per session".into()),
        _ => Ok(()),
    }
}
