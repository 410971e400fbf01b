//! Checks constraints: the functions that they are bound to, and the resources that steps hold.
//!
//! A constraint (Flux §2.5) stands for something outside the program, such as an account at a bank. Each call of a function
//! that it is bound to is an atomic step that holds it: exclusively, or behind `read` together with other readers. A module
//! stands for those of its functions that use the outside world.

use std::collections::BTreeMap;

use weir_host::{Mode, Passing, Signature, Text, World};
use weir_syntax::ast::{AtomicResource, Block, Constraint, ConstraintBinding, ItemKind, Name, Path};
use weir_syntax::{Code, Diagnostic, Span};

use super::{Expected, TypeChecker};
use crate::declare::private_item;
use crate::suggest::nearest;
use crate::symbol::Symbol;
use crate::typed_tree::{BoundFunction, HeldScope};
use crate::types::Ty;

impl<'a> TypeChecker<'a, '_> {
    /// Resolves the functions and modules that constraints are bound to.
    pub(super) fn constraint_bindings(&mut self) {
        for item in &self.context.tree().items {
            if let ItemKind::Constraint(constraint) = &item.kind
                && self.enter_file(item)
            {
                self.bindings_of(constraint);
            }
        }
    }

    fn bindings_of(&mut self, constraint: &Constraint) {
        let declarations = &self.typed.declarations;
        let whole = declarations.own(&constraint.name.text);
        let Some(declared) = declarations.constraints.get(whole).filter(|known| known.span == constraint.name.span)
        else {
            return;
        };
        let (per_session, whole) = (declared.per_session, Text::from(whole));
        let mut bound: Vec<(BoundTo, &ConstraintBinding)> = Vec::new();
        for binding in &constraint.bindings {
            let Some(target) = self.bound_to(binding, &constraint.name) else { continue };
            match bound.iter().find(|(known, _)| *known == target) {
                Some((_, first)) => self.bound_twice(&constraint.name, first, binding),
                None => bound.push((target, binding)),
            }
        }
        if let Some((_, first)) = bound.first()
            && !per_session
        {
            let scope = HeldScope { resource: whole.as_str().into(), per_session: false, span: first.span };
            self.typed.here().summary.binding_scopes.push(scope);
        }
        // A function of its own comes before its module.
        bound.sort_by_key(|(target, _)| matches!(target, BoundTo::Module(_)));
        for (target, binding) in bound {
            let mode = if binding.read { Mode::Read } else { Mode::Write };
            for function in self.functions_bound(&target) {
                let bound = BoundFunction { function, constraint: whole.clone(), mode };
                self.typed.here().summary.bound.push(bound);
            }
        }
    }

    /// Returns the paths of the functions that a binding concerns.
    fn functions_bound(&self, target: &BoundTo) -> Vec<Text> {
        match target {
            BoundTo::Function(path) => vec![path.clone()],
            BoundTo::Module(name) => {
                let module = self.context.library.modules.get(name);
                let functions = module.into_iter().flat_map(|module| module.functions.values());
                let outside = functions.filter(|function| uses_outside(&function.signature));
                outside.map(|function| function.signature.path().into()).collect()
            }
        }
    }

    fn bound_to(&mut self, binding: &ConstraintBinding, constraint: &Name) -> Option<BoundTo> {
        if binding.path.last().is_missing() {
            return None;
        }
        match &binding.path.names[..] {
            [name] if self.is_fn(name) => self.bound_fn(binding, constraint),
            [name] if self.names_module(name) => self.bound_module(name, binding, constraint),
            [module, _] if self.names_module(module) => self.bound_function(module, binding, constraint),
            [first, ..] => {
                self.unknown_name(first);
                None
            }
            [] => None,
        }
    }

    fn is_fn(&self, name: &Name) -> bool {
        self.typed.declarations.functions.contains_key(self.typed.declarations.own(&name.text))
    }

    fn bound_module(&mut self, name: &Name, binding: &ConstraintBinding, constraint: &Name) -> Option<BoundTo> {
        let Some(module) = self.module(name) else {
            self.module_not_used(name);
            return None;
        };
        if !self.context.library.modules.contains_key(&module) {
            return self.bound_fn(binding, constraint);
        }
        let target = BoundTo::Module(module);
        if self.functions_bound(&target).is_empty() {
            let message = format!("the module `{name}` has nothing that a constraint could exclude");
            return self.not_bound(message, binding, "none of its functions uses the outside world", "remove it");
        }
        Some(target)
    }

    fn bound_function(&mut self, module: &Name, binding: &ConstraintBinding, constraint: &Name) -> Option<BoundTo> {
        let name = binding.path.last();
        if let Some(file) = self.module_file(module) {
            self.function_of_file(file, module, name)?;
            return self.bound_fn(binding, constraint);
        }
        let path = self.module(module).map(|whole| format!("{whole}.{name}"));
        if path.is_some_and(|path| self.context.modules.describe(&path, self.context.library).is_some()) {
            let message = format!("a constraint cannot be bound to `{}`", binding.path);
            return self.not_bound(message, binding, "is written in Weir and uses nothing outside of it", "remove it");
        }
        let signature = self.host_function(module, name)?;
        let takes = |passing| matches!(passing, Passing::Borrow | Passing::Change);
        if !uses_outside(signature) && !signature.parameters.iter().any(|parameter| takes(parameter.passing)) {
            let message = format!("`{}` has nothing that a constraint could exclude", binding.path);
            return self.not_bound(message, binding, "is `pure`: no other call can observe it", "remove it");
        }
        Some(BoundTo::Function(signature.path().into()))
    }

    /// Reports a binding to a `fn` of the program, or to one of its modules.
    fn bound_fn(&mut self, binding: &ConstraintBinding, constraint: &Name) -> Option<BoundTo> {
        let message = format!("a constraint cannot be bound to `{}`", binding.path);
        let read = if binding.read { "read " } else { "" };
        let hint = format!("hold it in the body of the `fn`: `atomic {read}{constraint} {{ … }}`");
        self.not_bound(message, binding, "is written in Weir, and not a host function", &hint)
    }

    fn not_bound(&mut self, message: String, binding: &ConstraintBinding, label: &str, hint: &str) -> Option<BoundTo> {
        let diagnostic = Diagnostic::new(Code::ConstraintBinding, message).at(binding.path.span, label).hint(hint);
        self.report(diagnostic);
        None
    }

    fn bound_twice(&mut self, constraint: &Name, first: &ConstraintBinding, second: &ConstraintBinding) {
        let message = format!("`{constraint}` is bound to `{}` twice", second.path);
        let diagnostic = Diagnostic::new(Code::NameTaken, message)
            .at(second.span, "bound again here")
            .because(first.span, "first bound here")
            .hint("remove one of them");
        self.report(diagnostic);
    }

    pub(super) fn atomic(
        &mut self,
        resources: &'a [AtomicResource],
        body: &'a Block,
        expected: Option<&Expected>,
    ) -> Ty {
        for resource in resources {
            if self.resource(&resource.path) {
                self.read_of_shared(resource);
                self.scope_of(resource);
                self.held_for_all(resource);
            }
        }
        self.block(body, expected)
    }

    /// Reports `read` before a shared value or table.
    fn read_of_shared(&mut self, resource: &AtomicResource) {
        let path = &resource.path;
        let (Some(read), Some(whole)) = (resource.read, self.held(path)) else { return };
        let declarations = &self.typed.declarations;
        if !declarations.shared.contains_key(&*whole) {
            return;
        }
        let (is, how) = match declarations.tables.contains_key(&*whole) {
            true => (
                "table",
                "a transaction holds the tables that it names exclusively, even if it only reads them; its reads of other tables of \
                 the database see the same moment",
            ),
            false => {
                ("shared value", "a step that only reads a shared value holds it together with other readers anyway")
            }
        };
        let word = Span { end: path.span.start, ..read };
        let message = format!("`read` belongs before a constraint, but `{path}` is a {is}");
        let diagnostic = Diagnostic::new(Code::ReadOfShared, message)
            .at(read, format!("not before a {is}"))
            .note(how)
            .fix("remove `read`", word, "");
        self.report(diagnostic);
    }

    /// Notes the scope in which a step holds a resource.
    fn scope_of(&mut self, resource: &AtomicResource) {
        let Some(whole) = self.held(&resource.path) else { return };
        if !self.typed.declarations.is_of_sessions(&whole) {
            let resource =
                HeldScope { resource: (&*whole).into(), per_session: resource.per_session, span: resource.span };
            self.typed.here().summary.step_scopes.push(resource);
        }
    }

    /// Collects the resources that are held per session. Reports those that some places hold per session and others for all
    /// flows: they would not exclude each other.
    pub(super) fn session_resources(&mut self) {
        let files = self.typed.files.clone();
        let bindings = files.iter().flat_map(|file| &file.summary.binding_scopes);
        let steps = files.iter().flat_map(|file| &file.summary.step_scopes);
        let mut first_of: BTreeMap<&str, &HeldScope> = BTreeMap::new();
        for held in bindings.chain(steps) {
            let first = *first_of.entry(&held.resource).or_insert(held);
            if first.per_session != held.per_session {
                self.report(mixed_scope(first, held));
            }
        }
        let declarations = &self.typed.declarations;
        let declared = declarations.shared.keys().chain(declarations.constraints.keys());
        let declared = declared.filter(|name| declarations.is_of_sessions(name)).cloned();
        let held = first_of.values().filter(|held| held.per_session).map(|held| held.resource.clone());
        self.typed.per_session = declared.chain(held).collect();
    }

    /// Returns the name in the program of a resource that a step names, whether there is one or not.
    pub(super) fn held(&self, path: &Path) -> Option<Text> {
        self.typed.declarations.name_in_program(self.typed.declarations.file, path)
    }

    /// Resolves a resource that a step names, or reports that there is none.
    fn resource(&mut self, path: &Path) -> bool {
        let name = path.last();
        if let [module] = path.qualifier() {
            return match self.module_file(module) {
                Some(file) => self.constraint_of_module(file, path),
                None => {
                    self.no_module_of_program(module);
                    false
                }
            };
        }
        let whole = self.held(path).unwrap_or_default();
        let shared = self.typed.declarations.shared.contains_key(&*whole);
        if shared || self.typed.declarations.constraints.contains_key(&*whole) {
            self.hold(path, &whole);
            return true;
        }
        if !name.is_missing() {
            self.no_resource(path);
        }
        false
    }

    /// Resolves a constraint or a table that another module declares. Shared values belong to the functions of their module.
    fn constraint_of_module(&mut self, file: usize, path: &Path) -> bool {
        let (module, name) = (&path.qualifier()[0], path.last());
        self.module(module);
        let declarations = &self.typed.declarations;
        let whole = Text::from(declarations.files[file].whole(name.as_str()));
        let table = declarations.tables.get(&*whole).zip(declarations.shared.get(&*whole));
        let constraint = declarations.constraints.get(&*whole).map(|declared| (declared.public, declared.span));
        if let Some((public, place)) = constraint.or(table.map(|(table, shared)| (table.public, shared.span))) {
            let hidden = (!public).then_some(place);
            self.hold(path, &whole);
            if let Some(place) = hidden {
                self.report(private_item(name, path, place));
            }
            return true;
        }
        if let Some(declared) = declarations.shared.get(&*whole) {
            let diagnostic =
                Diagnostic::new(Code::NotAResource, format!("`{path}` is a shared value of another module"))
                    .at(path.span, "only its own module can hold it")
                    .because(declared.span, "declared here")
                    .hint(format!("hold it in a `fn` of `{module}`, and call that `fn` here"));
            self.report(diagnostic);
        } else if !name.is_missing() {
            self.no_resource(path);
        }
        false
    }

    fn no_module_of_program(&mut self, module: &Name) {
        if self.module(module).is_none() {
            return self.module_not_used(module);
        }
        let message = format!("the module `{module}` has no constraints");
        let diagnostic = Diagnostic::new(Code::NotAResource, message)
            .at(module.span, "a module of the library")
            .hint(format!("declare one that its calls hold: `constraint name on {module}`"));
        self.report(diagnostic);
    }

    /// Records the name in the program of a resource that a step holds.
    fn hold(&mut self, path: &Path, whole: &Text) {
        if whole.as_str() != path.last().as_str() {
            let held = whole.as_str().into();
            self.typed.here().held_names.insert(path.span.start, held);
        }
        let is_shared = self.typed.declarations.shared.contains_key(whole.as_str());
        let symbol = if is_shared { Symbol::Shared(whole.clone()) } else { Symbol::Constraint(whole.clone()) };
        self.refer(path.last().span, symbol);
    }

    fn no_resource(&mut self, path: &Path) {
        let name = path.last();
        let known = self.typed.declarations.shared.keys().chain(self.typed.declarations.constraints.keys());
        let diagnostic = Diagnostic::new(Code::NotAResource, format!("`{path}` is neither shared nor a constraint"))
            .at(path.span, "cannot be held by `atomic`");
        let near = nearest(name.as_str(), known.map(|name| &**name)).map(str::to_owned);
        self.report(match near {
            Some(near) if path.qualifier().is_empty() => {
                diagnostic.suggest(format!("did you mean `{near}`?"), name.span, near)
            }
            _ if path.qualifier().is_empty() => {
                diagnostic.hint(format!("declare it at the top level: `constraint {name}`"))
            }
            _ => diagnostic.hint(format!("declare it in that module: `pub constraint {name}`")),
        });
    }
}

fn mixed_scope(first: &HeldScope, second: &HeldScope) -> Diagnostic {
    let held = |held: &HeldScope| if held.per_session { "held per session" } else { "held for all flows" };
    let name = &second.resource;
    let message = format!("`{name}` is held per session in one place and for all flows in another");
    Diagnostic::new(Code::MixedScope, message)
        .at(second.span, held(second))
        .because(first.span, held(first))
        .hint("hold it the same way everywhere: these two do not exclude each other")
}

/// The target of a binding.
#[derive(PartialEq, Eq)]
enum BoundTo {
    /// A host function, by its path.
    Function(Text),
    /// A module of the library.
    Module(Text),
}

/// Returns whether a function uses anything besides its arguments.
fn uses_outside(signature: &Signature) -> bool {
    signature.effects.world != World::Pure || signature.state.is_some()
}
