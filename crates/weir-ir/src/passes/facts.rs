//! Facts about one flow that the laws of the passes depend on: which values never change, and which calls are pure and total.

use std::collections::{BTreeMap, BTreeSet};

use weir_host::{Library, Passing, Resource, Signature, Text, Type, World};

use crate::expr::{Atom, Block, Op, Runs, Scope, Var, Variable};
use crate::lower::changed_variables;
use crate::move_only::TypeDefinitions;
use crate::program::{Flow, FormerSite};
use crate::verify::scalar;

/// Facts about one flow, and the call sites that passes have removed from it.
pub struct Facts<'a> {
    definitions: TypeDefinitions<'a>,
    /// The resources that steps of the program hold per session.
    session_scoped: &'a BTreeSet<Resource>,
    /// The variables whose values never change: no call takes them by `&mut`, and they can be shared or cloned.
    constant: BTreeSet<Var>,
    /// The types of the variables.
    types: BTreeMap<Var, Type>,
    /// The number of the next new variable.
    next: u32,
    /// The call sites that were removed.
    pub(super) former_sites: Vec<FormerSite>,
}

impl<'a> Facts<'a> {
    pub(super) fn new(
        flow: &Flow<Block>,
        definitions: TypeDefinitions<'a>,
        session_scoped: &'a BTreeSet<Resource>,
    ) -> Self {
        let changed = changed_variables(&flow.body, definitions.library);
        let mut facts = Facts {
            definitions,
            session_scoped,
            constant: BTreeSet::new(),
            types: BTreeMap::new(),
            next: 0,
            former_sites: Vec::new(),
        };
        let mut see = |variable: &Variable| {
            facts.next = facts.next.max(variable.var.0 + 1);
            facts.types.insert(variable.var, variable.ty.clone());
            if !changed.contains(&variable.var) && !definitions.is_move_only(&variable.ty) {
                facts.constant.insert(variable.var);
            }
        };
        flow.parameters.iter().for_each(&mut see);
        flow.body.each_binding(&mut |binding| {
            see(&binding.bound);
            binding.op.binders().for_each(&mut see);
        });
        facts
    }

    /// Returns a new variable, whose value never changes.
    pub(super) fn variable(&mut self, ty: Type) -> Variable {
        let var = Var(self.next);
        self.next += 1;
        self.constant.insert(var);
        self.types.insert(var, ty.clone());
        Variable { var, name: Text::default(), ty }
    }

    /// Returns the type of a variable.
    pub(super) fn ty(&self, var: Var) -> Option<&Type> {
        self.types.get(&var)
    }

    /// Returns true if the value of the variable never changes, so that it may be read at any other time.
    pub(super) fn never_changes(&self, var: Var) -> bool {
        self.constant.contains(&var)
    }

    /// Returns true if the operand is a constant or a variable whose value never changes.
    pub(super) fn is_steady(&self, atom: &Atom) -> bool {
        match atom {
            Atom::Value(_) => true,
            Atom::Var(var) => self.never_changes(*var),
            Atom::Shared(_) => false,
        }
    }

    /// Returns true if the operand is a variable of this type, or a constant that is of no other type. A payload is taken out
    /// of a variant in arms that are never chosen too, where it is of another type.
    pub(super) fn is_of(&self, atom: &Atom, ty: &Type) -> bool {
        match atom {
            Atom::Var(var) => self.types.get(var) == Some(ty),
            Atom::Value(value) => scalar(value).as_ref() == Some(ty),
            Atom::Shared(_) => false,
        }
    }

    /// Returns true if the operation is a primitive or a call whose result depends on its operands only, which never
    /// change, and which has no effect. It may still fail or fault.
    pub(super) fn is_pure(&self, op: &Op) -> bool {
        let is_pure = match op {
            Op::Prim(..) => true,
            Op::Call(call) => self.signature(&call.function).is_some_and(is_pure_function),
            _ => false,
        };
        is_pure && op.operands().all(|atom| self.is_steady(atom))
    }

    /// Returns true if the operation is pure, ends at once and always yields, so that its evaluation cannot be
    /// observed. A failure that a call returns as a value counts as yielding.
    pub(super) fn is_total(&self, op: &Op) -> bool {
        let is_total = match op {
            Op::Prim(prim, _) => !prim.may_fail(),
            Op::Call(call) => self.signature(&call.function).is_some_and(is_total_function),
            _ => false,
        };
        is_total && self.is_pure(op)
    }

    /// Returns true if the operation may be left out if its result is not used: it is total, or reads the outside world
    /// without failing, faulting or waiting, or it is a switch whose arms hold such operations only.
    pub(super) fn is_removable(&self, op: &Op) -> bool {
        match op {
            Op::Prim(..) => self.is_total(op),
            Op::Call(call) => {
                let reads = |signature: &Signature| {
                    signature.effects.world == World::Reads
                        && signature.failure.is_none()
                        && is_total_function(signature)
                };
                self.is_total(op)
                    || self
                        .signature(&call.function)
                        .is_some_and(|signature| reads(signature) && takes_values(signature))
                        && op.operands().all(|atom| self.is_steady(atom))
            }
            // Plans name repeated bodies by their number, which must not change; the others hold constraints or wait.
            op => {
                let is_removable = |scope: Scope<'_>| {
                    let mut inner = scope.block.lets.iter();
                    scope.runs == Runs::IfChosen && inner.all(|binding| self.is_removable(&binding.op))
                };
                !op.may_end() && op.operands().all(|atom| self.is_steady(atom)) && op.scopes().all(is_removable)
            }
        }
    }

    /// Returns the resources that steps of the program hold per session.
    pub(super) fn session_scoped(&self) -> &'a BTreeSet<Resource> {
        self.session_scoped
    }

    /// Returns the library.
    pub(super) fn library(&self) -> &'a Library {
        self.definitions.library
    }

    /// Returns the types of the fields of a tuple or record.
    pub(super) fn fields(&self, ty: &Type) -> Option<Vec<Type>> {
        self.definitions.fields(ty)
    }

    /// Returns true if a call in the block has private state, which is made when the program starts.
    pub(super) fn has_state(&self, block: &Block) -> bool {
        let mut found = false;
        block.each_binding(&mut |binding| {
            if let Op::Call(call) = &binding.op {
                found |= self.signature(&call.function).is_none_or(|signature| signature.state.is_some());
            }
        });
        found
    }

    /// Records that the operation and all within it were removed; `now` is the call site that answers to its name.
    pub(super) fn removed(&mut self, op: &Op, now: Option<&Text>) {
        if let Op::Call(call) = op {
            self.former_sites.push(FormerSite { site: call.site.clone(), now: now.cloned() });
        }
        op.blocks().for_each(|block| self.block_removed(block));
    }

    /// Records that all operations of a block were removed.
    pub(super) fn block_removed(&mut self, block: &Block) {
        block.lets.iter().for_each(|binding| self.removed(&binding.op, None));
    }

    /// Returns the signature of a function.
    pub(super) fn signature(&self, function: &str) -> Option<&'a Signature> {
        let library: &'a Library = self.definitions.library;
        library.function(function).map(|function| &function.signature)
    }
}

/// A function whose result depends on its arguments only, and which has no effect.
fn is_pure_function(signature: &Signature) -> bool {
    signature.effects.world == World::Pure && signature.state.is_none() && takes_values(signature)
}

/// A function that leaves its arguments as they are.
fn takes_values(signature: &Signature) -> bool {
    signature.state.is_none() && signature.parameters.iter().all(|parameter| parameter.passing != Passing::Change)
}

/// A function that neither faults nor waits.
fn is_total_function(signature: &Signature) -> bool {
    signature.effects.total && !signature.effects.waits && !signature.effects.blocking
}
