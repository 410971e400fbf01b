//! Updates of one part of a value, for the tests of in-place updates: a field or element is read, changed and put back.
//!
//! Between the reading and the putting back, other bindings may read the same part or the whole value. A pass that moves
//! the part out must then leave it.

use weir_host::{Type, Value};

use super::program::Generator;
use super::values::{entry, has_updates, pair, texts};
use crate::expr::{Arm, ArmTest, Atom, Block, Let, Op, Var, Variable};
use crate::prim::Prim;

impl Generator {
    /// Generates an update of a part, or the addition of an element or of the parts of a text.
    pub(super) fn of_elements(&mut self, ty: &Type, lets: &mut Vec<Let>) -> Option<Op> {
        if !self.elements || self.budget == 0 || self.random.chance(60) {
            return None;
        }
        if has_updates(ty) && self.random.chance(60) {
            return Some(self.update(ty, lets));
        }
        let (of, maker) = match ty {
            Type::List(element) => (Type::clone(element), Prim::List),
            Type::Text => (self.random.pick(&[Type::Text, Type::Int, Type::Bool, entry()]).clone(), Prim::Interpolate),
            _ => return None,
        };
        let count = if maker == Prim::List { 1 } else { self.random.below(3) };
        // The operand is most often not used afterwards, and sometimes a part of what is added.
        let whole = self.operand(ty, lets);
        let parts = (0..count).map(|_| self.operand(&of, lets)).collect();
        let added = self.bind(ty.clone(), Op::Prim(maker, parts), lets);
        self.scope.retain(|known| known.var != added);
        Some(Op::Prim(Prim::Add, vec![whole, Atom::Var(added)]))
    }

    /// Returns the body of a loop; it uses an element that is a tuple most often only field by field.
    pub(super) fn body_of_elements(&mut self, own: &[Variable], element: &Variable, want: &Type) -> Block {
        let Type::Tuple(fields) = &element.ty else { return self.body(own, want, false) };
        let from = self.scope.len();
        let whole = self.random.chance(20);
        self.scope.extend(own.iter().filter(|variable| whole || variable.var != element.var).cloned());
        let mut lets = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            let field = self.random.below(fields.len());
            let read = Op::Prim(Prim::Field(field as u32), vec![Atom::Var(element.var)]);
            self.bind(fields[field].clone(), read, &mut lets);
        }
        if element.ty == entry() && self.random.chance(50) {
            self.update_under_field(element, &mut lets);
        }
        let mut block = self.body(&[], want, false);
        self.scope.truncate(from);
        block.lets.splice(0..0, lets);
        block
    }

    /// Binds an update of a map under a key that is a field of an element, and that most often nothing else uses.
    fn update_under_field(&mut self, element: &Variable, lets: &mut Vec<Let>) {
        let whole = self.operand(&texts(), lets);
        let key = self.bind(Type::Text, Op::Prim(Prim::Field(0), vec![Atom::Var(element.var)]), lets);
        if self.random.chance(80) {
            self.scope.retain(|known| known.var != key);
        }
        let update = self.update_of_map(whole, Atom::Var(key), lets);
        self.bind(texts(), update, lets);
    }

    /// Returns an update of an entry of a map.
    fn update_of_map(&mut self, whole: Atom, key: Atom, lets: &mut Vec<Let>) -> Op {
        let index = Op::Prim(Prim::Index, vec![whole.clone(), key.clone()]);
        let found = self.bind(Type::option(Type::Text), index, lets);
        let old = self.found_or_empty(found, lets);
        let new = self.changed(old, &whole, &texts(), lets);
        self.call_of("data.put", vec![whole, key, new])
    }

    /// Returns an update of a part of a value of a type of which parts can be updated.
    pub(super) fn update(&mut self, ty: &Type, lets: &mut Vec<Let>) -> Op {
        let whole = self.operand(ty, lets);
        if *ty == pair() {
            let old = self.bind(Type::Text, Op::Prim(Prim::Field(1), vec![whole.clone()]), lets);
            let new = self.changed(old, &whole, ty, lets);
            let update = Op::Prim(Prim::WithField(1), vec![whole, new]);
            if self.random.chance(70) {
                return update;
            }
            // The new field is read back, and replaced once more.
            let updated = Atom::Var(self.bind(ty.clone(), update, lets));
            let read = self.bind(Type::Text, Op::Prim(Prim::Field(1), vec![updated.clone()]), lets);
            let new = self.changed(read, &updated, ty, lets);
            return Op::Prim(Prim::WithField(1), vec![updated, new]);
        }
        let key = self.operand(if *ty == texts() { &Type::Text } else { &Type::Int }, lets);
        if *ty == texts() {
            return self.update_of_map(whole, key, lets);
        }
        let old = self.bind(Type::Text, Op::Prim(Prim::Index, vec![whole.clone(), key.clone()]), lets);
        let new = self.changed(old, &whole, ty, lets);
        self.call_of("data.replace", vec![whole, key, new])
    }

    /// Returns a text that was made of the old one, with other reads of the whole value in between.
    fn changed(&mut self, old: Var, whole: &Atom, ty: &Type, lets: &mut Vec<Let>) -> Atom {
        let suffix = self.operand(&Type::Text, lets);
        let new = self.bind(Type::Text, Op::Prim(Prim::Add, vec![Atom::Var(old), suffix]), lets);
        match self.random.below(12) {
            0 => _ = self.bind(Type::Text, Op::Prim(Prim::Interpolate, vec![whole.clone()]), lets),
            1 => _ = self.bind(ty.clone(), Op::Prim(Prim::Copy, vec![whole.clone()]), lets),
            2 if *ty == pair() => _ = self.bind(Type::Int, Op::Prim(Prim::Field(0), vec![whole.clone()]), lets),
            2 => _ = self.bind(Type::Int, Op::Prim(Prim::Length, vec![whole.clone()]), lets),
            3 if *ty == pair() => {
                let number = self.operand(&Type::Int, lets);
                _ = self.bind(ty.clone(), Op::Prim(Prim::WithField(0), vec![whole.clone(), number]), lets);
            }
            _ => {}
        }
        Atom::Var(new)
    }

    /// Returns the text that was found in a map, or the empty text.
    fn found_or_empty(&mut self, found: Var, lets: &mut Vec<Let>) -> Var {
        let payload = self.variable(Type::Text);
        let arm = |test, payload: Vec<_>, result| Arm { test, payload, body: Block { lets: Vec::new(), result } };
        let some = arm(ArmTest::Tag(1), vec![payload.clone()], Atom::Var(payload.var));
        let none = arm(ArmTest::Tag(0), Vec::new(), Atom::Value(Value::text("")));
        self.bind(Type::Text, Op::Switch { subject: Atom::Var(found), arms: vec![some, none] }, lets)
    }
}
