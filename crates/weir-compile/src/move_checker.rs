//! The move checker: reports uses of a value after it was moved.
//!
//! A value whose type can neither be shared nor cloned has a single owner. Passing it by value, storing it in another
//! value or taking it apart moves it; lending it by `&` or `&mut` does not. The check runs on the expression IR, where
//! every use is an operand: it checks the arms of a switch one by one and joins their states, and a body that runs more
//! than once must not move what was bound outside.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use weir_host::{Field, Library, Passing, Text, Type, TypeDefinition, TypeShape};
use weir_ir::expr::{Atom, Block, Op, Origin, Runs, Scope, Var, Variable};
use weir_syntax::{Code, Diagnostic};

use crate::context::CheckContext;

/// The types of a program, and which of them are move-only.
pub(crate) struct MoveOnlyDefinitions<'a> {
    library: &'a Library,
    definitions: IndexMap<&'a Text, &'a TypeDefinition>,
    /// The named types that were asked for: true if their values are move-only.
    known: RefCell<IndexMap<Text, bool>>,
}

impl<'a> MoveOnlyDefinitions<'a> {
    pub(crate) fn of(types: &'a [TypeDefinition], library: &'a Library) -> Self {
        let definitions = types.iter().map(|definition| (&definition.name, definition)).collect();
        MoveOnlyDefinitions { library, definitions, known: RefCell::default() }
    }

    /// Returns whether values of the type, or parts of them, can neither be shared nor cloned.
    fn contain(&self, ty: &Type) -> bool {
        let Type::Named(name) = ty else { return is_move_only(ty, &|name| self.definition(name)) };
        if let Some(known) = self.known.borrow().get(name) {
            return *known;
        }
        let found = is_move_only(ty, &|name| self.definition(name));
        self.known.borrow_mut().insert(name.clone(), found);
        found
    }

    fn definition(&self, name: &Text) -> Option<&'a TypeDefinition> {
        self.definitions.get(name).copied().or_else(|| self.library.definition(name))
    }
}

/// Checks one body.
pub(crate) fn check(
    parameters: &[Variable],
    body: &Block,
    types: &MoveOnlyDefinitions<'_>,
    context: &mut CheckContext<'_>,
) {
    if !parameters.iter().any(|parameter| types.contain(&parameter.ty)) && !has_moves(body, types) {
        return;
    }
    let mut moves = MoveChecker {
        types,
        bound: BTreeMap::new(),
        known: BTreeMap::new(),
        gone: BTreeMap::new(),
        given_up: BTreeSet::new(),
        context,
    };
    parameters.iter().for_each(|parameter| moves.bind(parameter));
    moves.block(body, Origin::default());
}

/// Returns whether a block binds a value that is move-only, or has a body that may be cancelled. In most there is nothing to
/// check.
fn has_moves(block: &Block, types: &MoveOnlyDefinitions<'_>) -> bool {
    block.lets.iter().any(|binding| {
        if types.contain(&binding.bound.ty) {
            return true;
        }
        let has_bodies = !matches!(binding.op, Op::Prim(..) | Op::Call(_) | Op::Return(_) | Op::Fail(_));
        has_bodies
            && (binding.op.runs() == Runs::UnlessCancelled
                || binding.op.binders().any(|variable| types.contain(&variable.ty))
                || binding.op.blocks().any(|inner| has_moves(inner, types)))
    })
}

/// A bound variable.
struct BoundVariable {
    /// The number of variables that were bound before it.
    number: usize,
    name: Text,
    ty: Type,
}

struct MoveChecker<'a, 'c> {
    types: &'a MoveOnlyDefinitions<'a>,
    /// All variables.
    bound: BTreeMap<Var, BoundVariable>,
    /// The variables whose moves are tracked: those of a move-only type, and those that a cancelled body may lose.
    known: BTreeMap<Var, (Text, Type)>,
    /// The place where each moved variable was moved.
    gone: BTreeMap<Var, Origin>,
    /// The variables that count as moved because a body that may be cancelled uses them.
    given_up: BTreeSet<Var>,
    context: &'a mut CheckContext<'c>,
}

impl MoveChecker<'_, '_> {
    fn bind(&mut self, variable: &Variable) {
        let bound = BoundVariable { number: self.bound.len(), name: variable.name.clone(), ty: variable.ty.clone() };
        self.bound.entry(variable.var).or_insert(bound);
        if self.types.contain(&variable.ty) {
            self.known.insert(variable.var, (variable.name.clone(), variable.ty.clone()));
        }
    }

    /// Checks a block of an operation at this place.
    fn block(&mut self, block: &Block, origin: Origin) {
        let mut last = origin;
        for binding in &block.lets {
            self.op(&binding.op, binding.origin);
            self.bind(&binding.bound);
            last = binding.origin;
        }
        self.take(&block.result, last);
    }

    fn op(&mut self, op: &Op, origin: Origin) {
        match op {
            Op::Call(call) => {
                let parameters = self.context.parameters(&call.function);
                for (atom, parameter) in call.arguments.iter().zip(parameters) {
                    match parameter.passing {
                        Passing::Value | Passing::Typed | Passing::Named => self.take(atom, origin),
                        Passing::Borrow | Passing::Change | Passing::Start | Passing::TypeOf(_) => {
                            self.lend(atom, origin)
                        }
                    }
                }
            }
            Op::Switch { subject, arms } => {
                self.take(subject, origin);
                let before = self.gone.clone();
                let mut after = before.clone();
                for arm in arms {
                    self.gone.clone_from(&before);
                    arm.payload.iter().for_each(|variable| self.bind(variable));
                    self.block(&arm.body, origin);
                    // Also behind an arm that ends the flow: engines free a value at its last use in the text.
                    after.append(&mut self.gone);
                }
                self.gone = after;
            }
            // The session is only looked at.
            Op::Atomic { body, .. } => self.block(body, origin),
            op => {
                op.operands().for_each(|atom| self.take(atom, origin));
                // All bodies of a race start, so that only one of them may take a value.
                op.scopes().for_each(|scope| self.scope(&scope, origin));
            }
        }
    }

    fn scope(&mut self, scope: &Scope<'_>, origin: Origin) {
        match scope.runs {
            Runs::Once | Runs::IfChosen => self.block(scope.block, origin),
            Runs::Repeatedly => self.rounds(&scope.variables().collect::<Vec<_>>(), scope.block, origin),
            Runs::UnlessCancelled => self.given_up(scope.block, origin),
        }
    }

    /// Checks a body that may be cancelled. A move-only value from outside that it uses may be lost with a dropped
    /// call, and a value that it changes may be left half changed. Both therefore count as moved into the body, even if
    /// it only borrows them.
    fn given_up(&mut self, body: &Block, origin: Origin) {
        let outside: Vec<Var> = self.known.keys().copied().filter(|var| !self.gone.contains_key(var)).collect();
        let mut changed = BTreeSet::new();
        self.changed_in(body, &mut changed);
        changed.retain(|var| self.bound.contains_key(var));
        self.block(body, origin);
        let taken = outside.into_iter().filter(|var| body.mentions(*var));
        for var in taken.chain(changed).collect::<BTreeSet<Var>>() {
            self.gone.entry(var).or_insert(origin);
            self.given_up.insert(var);
            if let Some(bound) = self.bound.get(&var) {
                self.known.entry(var).or_insert_with(|| (bound.name.clone(), bound.ty.clone()));
            }
        }
    }

    /// Adds the variables that calls in the block take by `&mut`.
    fn changed_in(&self, block: &Block, found: &mut BTreeSet<Var>) {
        block.each_binding(&mut |binding| {
            let Op::Call(call) = &binding.op else { return };
            let pairs = call.arguments.iter().zip(self.context.parameters(&call.function));
            let changed = pairs.filter(|(_, parameter)| parameter.passing == Passing::Change);
            found.extend(changed.filter_map(|(atom, _)| atom.variable()));
        });
    }

    /// Checks a body that runs once for each element: it may move only what it binds.
    fn rounds(&mut self, variables: &[&Variable], body: &Block, origin: Origin) {
        let (outside, before) = (self.bound.len(), self.gone.clone());
        variables.iter().for_each(|variable| self.bind(variable));
        self.block(body, origin);
        let gone: Vec<(Var, Origin)> = self.gone.iter().map(|(var, at)| (*var, *at)).collect();
        for (var, at) in gone.into_iter().filter(|(var, _)| !before.contains_key(var)) {
            if self.bound.get(&var).is_some_and(|bound| bound.number < outside) {
                self.moved_in_rounds(var, at);
            }
        }
    }

    fn take(&mut self, atom: &Atom, origin: Origin) {
        self.lend(atom, origin);
        if let Atom::Var(var) = atom
            && self.known.contains_key(var)
        {
            self.gone.entry(*var).or_insert(origin);
        }
    }

    fn lend(&mut self, atom: &Atom, origin: Origin) {
        let Atom::Var(var) = atom else { return };
        if let (Some(at), Some((name, ty))) = (self.gone.get(var), self.known.get(var)) {
            let shown = shown(name);
            let how = match self.given_up.contains(var) {
                true => "moved here: a call in this body may be cancelled halfway",
                false => "moved here",
            };
            let diagnostic = Diagnostic::new(Code::MovedValue, format!("{shown} was moved and cannot be used again"))
                .at(self.context.span(origin), "used again here")
                .because(self.context.span(*at), how)
                .note(self.why(*var, ty))
                .hint("use it before it is moved, or create another one");
            self.report(diagnostic);
        }
    }

    fn moved_in_rounds(&mut self, var: Var, at: Origin) {
        let Some((name, ty)) = self.known.get(&var) else { return };
        let diagnostic = Diagnostic::new(Code::MovedValue, format!("{} is moved in every iteration", shown(name)))
            .at(self.context.span(at), "moved here in the first iteration")
            .note(self.why(var, ty))
            .hint("create it inside the body, so that each iteration has its own");
        self.report(diagnostic);
    }

    /// Returns the explanation for a moved value.
    fn why(&self, var: Var, ty: &Type) -> String {
        match self.given_up.contains(&var) {
            true => {
                "`within` and `race` keep values that are move-only or changed inside, because they may be cancelled"
                    .into()
            }
            false => format!("a `{ty}` has one owner: it can neither be shared nor cloned"),
        }
    }

    /// Adds the diagnostic, unless it was reported before: a `fn` that is inlined twice has the same error twice.
    fn report(&mut self, diagnostic: Diagnostic) {
        self.context.report_once(diagnostic);
    }
}

/// Returns whether values of the type, or parts of them, can neither be shared nor cloned.
pub(crate) fn is_move_only<'d>(ty: &Type, definition: &dyn Fn(&Text) -> Option<&'d TypeDefinition>) -> bool {
    part_is_move_only(ty, definition, &mut Vec::new())
}

fn part_is_move_only<'d>(
    ty: &Type,
    definition: &dyn Fn(&Text) -> Option<&'d TypeDefinition>,
    seen: &mut Vec<Text>,
) -> bool {
    let mut is_move_only = |part: &Type| part_is_move_only(part, definition, seen);
    match ty {
        Type::List(part) | Type::Option(part) => is_move_only(part),
        Type::Map(pair) | Type::Result(pair) => is_move_only(&pair.0) || is_move_only(&pair.1),
        Type::Tuple(parts) => parts.iter().any(is_move_only),
        Type::Named(name) if !seen.contains(name) => {
            seen.push(name.clone());
            let mut is_move_only = |field: &Field| part_is_move_only(&field.ty, definition, seen);
            match definition(name).map(|definition| &definition.shape) {
                Some(TypeShape::Opaque { shareable }) => !shareable,
                Some(TypeShape::Record(fields)) => fields.iter().any(is_move_only),
                Some(TypeShape::Enum(variants)) => {
                    variants.iter().flat_map(|variant| &variant.fields).any(&mut is_move_only)
                }
                None => false,
            }
        }
        _ => false,
    }
}

fn shown(name: &str) -> String {
    if name.is_empty() { "this value".to_owned() } else { format!("`{name}`") }
}
