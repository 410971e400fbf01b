//! The parts of values that a body needs: which fields of a record, which elements' fields of a list.
//!
//! The analysis goes backwards. What is needed of the result of an operation tells what is needed of its operands: if only the
//! field `name` of a record is read, nothing else of the record is needed. The rounds of folds and loops repeat it until
//! nothing changes. Where it does not know, it answers that everything is needed.

use std::collections::BTreeMap;

use weir_host::{Type, Value};

use crate::expr::{Arm, ArmTest, Atom, Block, Call, Let, Op, Var, Variable};
use crate::prim::Prim;

/// The number of parts from which a value counts as needed whole: what a loop needs of a tree would have no end.
const PARTS_MAX: usize = 500;

/// A part of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValuePart {
    /// A field of a record or tuple.
    Field(u32),
    /// A value of the variant with this tag: the tag, then the place of the value.
    Payload(u32, u32),
    /// Each element of a list.
    Element,
}

/// The parts of a value that are needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NeededParts {
    /// Not even the value itself.
    #[default]
    Nothing,
    /// The value, without other parts than these: its variant, or its length.
    Parts(BTreeMap<ValuePart, NeededParts>),
    /// The whole value.
    All,
}

impl NeededParts {
    /// Returns the value without any part.
    fn outline() -> NeededParts {
        NeededParts::Parts(BTreeMap::new())
    }

    /// Returns the value with this part, as far as the part is needed.
    #[must_use]
    pub fn with(part: ValuePart, needed: NeededParts) -> NeededParts {
        match needed {
            NeededParts::Nothing => NeededParts::outline(),
            needed => NeededParts::Parts([(part, needed)].into()),
        }
    }

    /// Returns what is needed of a part.
    #[must_use]
    pub fn part(&self, part: ValuePart) -> NeededParts {
        match self {
            NeededParts::Nothing => NeededParts::Nothing,
            NeededParts::Parts(parts) => parts.get(&part).cloned().unwrap_or_default(),
            NeededParts::All => NeededParts::All,
        }
    }

    /// Returns the same without a part.
    fn without(&self, part: ValuePart) -> NeededParts {
        let mut rest = self.clone();
        if let NeededParts::Parts(parts) = &mut rest {
            parts.remove(&part);
        }
        rest
    }

    /// Adds what else is needed, and returns whether that is more than before.
    fn add(&mut self, other: &NeededParts) -> bool {
        match (&mut *self, other) {
            (_, NeededParts::Nothing) | (NeededParts::All, _) => false,
            (NeededParts::Parts(parts), NeededParts::Parts(others)) => {
                let mut grows = false;
                for (part, needed) in others {
                    grows |= parts.entry(*part).or_default().add(needed);
                }
                grows
            }
            (NeededParts::Nothing | NeededParts::Parts(_), other) => {
                *self = other.clone();
                true
            }
        }
    }

    /// Returns the number of parts, and of their parts.
    fn count(&self) -> usize {
        match self {
            NeededParts::Nothing | NeededParts::All => 1,
            NeededParts::Parts(parts) => 1 + parts.values().map(NeededParts::count).sum::<usize>(),
        }
    }
}

/// The parts that a body needs of each of its variables.
pub struct VariableNeeds {
    needs: BTreeMap<Var, NeededParts>,
    grows: bool,
}

impl VariableNeeds {
    /// Analyses the body of a flow. `argument` tells what a call needs of the argument at a position.
    #[must_use]
    pub fn of(body: &Block, argument: &impl Fn(&Call, usize) -> NeededParts) -> VariableNeeds {
        let mut needs = VariableNeeds { needs: BTreeMap::new(), grows: true };
        while std::mem::take(&mut needs.grows) {
            needs.block(body, &NeededParts::All, argument);
        }
        needs
    }

    /// Returns what is needed of a variable.
    #[must_use]
    pub fn of_variable(&self, var: Var) -> NeededParts {
        self.needs.get(&var).cloned().unwrap_or_default()
    }

    fn need(&mut self, atom: &Atom, needed: &NeededParts) {
        let Some(var) = atom.variable() else { return };
        let known = self.needs.entry(var).or_default();
        if known.add(needed) {
            self.grows = true;
            if known.count() > PARTS_MAX {
                *known = NeededParts::All;
            }
        }
    }

    fn need_all<'a>(&mut self, atoms: impl IntoIterator<Item = &'a Atom>) {
        atoms.into_iter().for_each(|atom| self.need(atom, &NeededParts::All));
    }

    fn block(&mut self, block: &Block, needed: &NeededParts, argument: &impl Fn(&Call, usize) -> NeededParts) {
        self.need(&block.result, needed);
        block.lets.iter().rev().for_each(|binding| self.binding(binding, argument));
    }

    fn binding(&mut self, binding: &Let, argument: &impl Fn(&Call, usize) -> NeededParts) {
        let needed = self.of_variable(binding.bound.var);
        match &binding.op {
            Op::Prim(prim, operands) => {
                // Lists are joined by `add`, too, which does not fail.
                let may_fail = prim.may_fail() && !matches!(binding.bound.ty, Type::List(_));
                match needed == NeededParts::Nothing && may_fail {
                    true => self.need_all(operands),
                    false => self.prim(*prim, operands, &needed),
                }
            }
            Op::Call(call) => {
                call.arguments.iter().enumerate().for_each(|(at, atom)| self.need(atom, &argument(call, at)));
            }
            Op::Switch { subject, arms } => {
                for arm in arms {
                    self.block(&arm.body, &needed, argument);
                    self.tested(subject, arm);
                }
            }
            Op::Map { list, element, body } => {
                self.block(body, &needed.part(ValuePart::Element), argument);
                self.elements(list, element);
            }
            Op::Fold { list, init, state, element, body, exit: _ } => {
                let states = self.states(state, &needed);
                self.block(body, &tuple(&states), argument);
                init.iter().zip(&states).for_each(|(init, needed)| self.need(init, needed));
                self.elements(list, element);
            }
            Op::Loop { init, state, body, at_most: _ } => {
                let states = self.states(state, &needed);
                let done = (ValuePart::Field(states.len() as u32), NeededParts::All);
                let round = states.iter().zip(0..).map(|(needed, at)| (ValuePart::Field(at), needed.clone()));
                self.block(body, &NeededParts::Parts(round.chain([done]).collect()), argument);
                init.iter().zip(&states).for_each(|(init, needed)| self.need(init, needed));
            }
            Op::Atomic { session, body, .. } => {
                self.block(body, &needed, argument);
                self.need_all(session);
            }
            Op::Within { limit, body } => {
                self.block(body, &needed.part(ValuePart::Payload(Value::SOME, 0)), argument);
                self.need_all([limit]);
            }
            Op::Catch { body } => self.block(body, &needed.part(ValuePart::Payload(Value::OK, 0)), argument),
            Op::Transaction { is_last: _, body } => self.block(body, &needed, argument),
            Op::Race { bodies } => bodies.iter().for_each(|body| self.block(body, &needed, argument)),
            Op::Return(atom) | Op::Fail(atom) => self.need_all([atom]),
        }
    }

    fn prim(&mut self, prim: Prim, operands: &[Atom], needed: &NeededParts) {
        let is_used = *needed != NeededParts::Nothing;
        match (prim, operands) {
            (Prim::Field(_) | Prim::DetachField(_) | Prim::WithField(_), _) if !is_used => {}
            (Prim::Field(at) | Prim::DetachField(at), [record]) => {
                self.need(record, &NeededParts::with(ValuePart::Field(at), needed.clone()));
            }
            (Prim::WithField(at), [record, value]) => {
                self.need(record, &needed.without(ValuePart::Field(at)));
                self.need(value, &needed.part(ValuePart::Field(at)));
            }
            (Prim::IsVariant(_) | Prim::Length, [value]) => self.need(value, &NeededParts::outline()),
            // It tells whether the value is this variant, which has no payload.
            (Prim::Equal | Prim::NotEqual, [value, Atom::Value(Value::Variant(_, None))]) => {
                self.need(value, &NeededParts::outline());
            }
            (Prim::Unwrap, [kept]) => {
                self.need(kept, &NeededParts::with(ValuePart::Payload(Value::OK, 0), needed.clone()));
            }
            (Prim::Record, parts) => self.parts(parts, needed, ValuePart::Field),
            (Prim::Variant(tag), parts) => self.parts(parts, needed, |at| ValuePart::Payload(tag, at)),
            (Prim::List, parts) => self.parts(parts, needed, |_| ValuePart::Element),
            (Prim::Add, [_, _]) => operands.iter().for_each(|operand| self.need(operand, needed)),
            (Prim::Flatten, [lists]) => self.need(lists, &NeededParts::with(ValuePart::Element, needed.clone())),
            (Prim::Rest, [list, from]) => {
                self.need(list, needed);
                self.need_all([from]);
            }
            _ => self.need_all(operands),
        }
    }

    fn parts(&mut self, parts: &[Atom], needed: &NeededParts, place: impl Fn(u32) -> ValuePart) {
        parts.iter().zip(0..).for_each(|(part, at)| self.need(part, &needed.part(place(at))));
    }

    /// The subject of a switch is tested, and an arm has its payload.
    fn tested(&mut self, subject: &Atom, arm: &Arm) {
        let needed = match arm.test {
            ArmTest::Value(_) => NeededParts::All,
            ArmTest::Otherwise => NeededParts::outline(),
            ArmTest::Tag(tag) => {
                let payload = arm.payload.iter().zip(0..);
                let payload = payload.map(|(value, at)| (ValuePart::Payload(tag, at), self.of_variable(value.var)));
                NeededParts::Parts(payload.collect())
            }
        };
        self.need(subject, &needed);
    }

    fn elements(&mut self, list: &Atom, element: &Variable) {
        let needed = self.of_variable(element.var);
        self.need(list, &NeededParts::with(ValuePart::Element, needed));
    }

    /// Returns what is needed of each state of a fold or loop: by its body, and behind it.
    fn states(&self, states: &[Variable], after: &NeededParts) -> Vec<NeededParts> {
        let states = states.iter().zip(0..).map(|(state, at)| {
            let mut needed = self.of_variable(state.var);
            needed.add(&if states.len() == 1 { after.clone() } else { after.part(ValuePart::Field(at)) });
            needed
        });
        states.collect()
    }
}

/// Returns what is needed of the value of the states of a fold: the state, or the tuple of several.
fn tuple(states: &[NeededParts]) -> NeededParts {
    match states {
        [state] => state.clone(),
        states => NeededParts::Parts(
            states.iter().zip(0..).map(|(state, at)| (ValuePart::Field(at), state.clone())).collect(),
        ),
    }
}
