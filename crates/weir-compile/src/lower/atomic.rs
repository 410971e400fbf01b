//! Lowers atomic steps: their constraints, in canonical order, as readers or writers.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_host::{Library, Mode, Passing, Resource, Signature, Text, Type};
use weir_ir::expr::{Atom, Block, Call, Constraint, Op};
use weir_syntax::ast::{self, AtomicResource, Expr};
use weir_syntax::{Code, Diagnostic, Span};

use super::block_builder::OpenBlock;
use super::{Lowering, StepScope};
use crate::typed_tree::LocalId;

impl<'a> Lowering<'a, '_> {
    pub(super) fn atomic(&mut self, expr: &'a Expr, resources: &'a [AtomicResource], body: &'a ast::Block) -> Atom {
        let held = resources.iter().find(|resource| self.is_per_session(resource));
        let session = held.map(|held| self.session_of(&self.held_name(held), held.span));
        let databases = self.databases_named(resources);
        for resource in resources.iter().filter(|resource| resource.read.is_none()) {
            self.held_exclusively(&self.held_name(resource), resource.span);
        }
        let written: Vec<Arc<str>> =
            resources.iter().filter(|it| it.read.is_none()).map(|it| self.held_name(it)).collect();
        self.settle_before_existing(written.iter().map(|name| &**name), expr.span);
        let mut begun = None;
        let open_block = self.build_block(|lowering| {
            let transaction = lowering.begin(resources, expr.span);
            begun.clone_from(&transaction);
            let held = resources.iter().map(|resource| lowering.held_name(resource)).collect();
            let readers = resources.iter().filter_map(|each| Some((lowering.held_name(each), each.read?))).collect();
            let frame_count = lowering.frames.len();
            lowering.steps.push(StepScope { resources: held, readers, frame_count, transaction });
            let value = lowering.block(body);
            let value = lowering.commit_innermost((value, &lowering.ty(expr)), expr.span);
            lowering.steps.pop();
            value
        });
        let is_transaction = begun.is_some();
        if let Some(transaction) = begun {
            let ty = if self.ty(expr) == Type::Never { Type::Unit } else { self.ty(expr) };
            self.lower_refused_commit((&transaction, &open_block), &ty, expr.span);
        }
        self.step(open_block, (self.ty(expr), session), expr.span, |lowering, body| {
            let (restoring, restores) = match is_transaction {
                true => {
                    lowering.begin_to_read(body);
                    lowering.restored_in(body, !databases.is_empty())
                }
                false => Default::default(),
            };
            let held = resources.iter().map(|resource| lowering.constraint(resource, body));
            (held.chain(databases).chain(restoring).collect(), restores)
        })
    }

    /// Appends an atomic step with this body, which holds the constraints, and restores shared values.
    pub(super) fn step(
        &mut self,
        open_block: OpenBlock,
        (ty, session): (Type, Option<Atom>),
        span: Span,
        holds: impl FnOnce(&mut Self, &mut Block) -> (Vec<Constraint>, Vec<Text>),
    ) -> Atom {
        let exits = open_block.exits();
        // If every path exits, the step has no value; its type is that of the exits.
        let only_leaves = ty == Type::Never && !exits.is_empty();
        let ty = if only_leaves { Type::Unit } else { ty };
        let step = if exits.is_empty() { ty.clone() } else { self.control_flow_type(&ty, &exits) };
        let yields = open_block.yields();
        let mut body = if exits.is_empty() {
            self.close_without_exits(open_block, &ty)
        } else {
            self.close_to_control_flow(open_block, &ty, &exits)
        };
        let (mut constraints, restores) = holds(self, &mut body);
        constraints.sort();
        constraints.dedup_by(|a, b| a.resource == b.resource);
        let op = Op::Atomic { constraints, restores, session, cancellable: false, body };
        let bound = if yields { step } else { Type::Never };
        let value = self.emit(op, bound, span);
        if exits.is_empty() {
            return value;
        }
        let value = self.branch_on_control_flow(value, &ty, &exits, span);
        if only_leaves { self.never_reached(span) } else { value }
    }

    /// Returns the session key, or reports that this place has no session to hold `name` for.
    fn session_of(&mut self, name: &str, place: Span) -> Atom {
        if self.session.is_none() {
            let is_own = self.program.declarations.shared.get(name).is_some_and(|shared| shared.per_session);
            let message = if is_own {
                format!("each session has its own `{name}`, but the flow has no session")
            } else {
                format!("`{name}` is held per session, but the flow has no session")
            };
            let diagnostic = Diagnostic::new(Code::NoSession, message)
                .at(place, "sessions are not distinguished here")
                .hint("add a session key to the service, route or entry point: `session = …`");
            self.context.report_once(diagnostic);
        }
        self.session.clone().unwrap_or(Atom::Value(weir_host::Value::Unit))
    }

    /// Lowers a call. It is an atomic step of its own if its function is bound to constraints, and if a shared argument
    /// is held per session elsewhere and by no step around it, so that it and the steps of its session exclude each other. Like
    /// any call, it may be cancelled.
    pub(super) fn call_alone(&mut self, call: Call, signature: &Signature, ty: Type, span: Span) -> Atom {
        let bound = self.bound_constraints(&call.function);
        for (resource, _) in bound.iter().filter(|(_, mode)| *mode == Mode::Write) {
            self.held_exclusively(name_of(resource), span);
        }
        let mut modes: BTreeMap<Text, Mode> = BTreeMap::new();
        for (atom, parameter) in call.arguments.iter().zip(&signature.parameters) {
            let Atom::Shared(name) = atom else { continue };
            let known = modes.entry(name.clone()).or_insert(Mode::Read);
            *known = mode(parameter.passing).max(*known);
        }
        if bound.is_empty() && !modes.keys().any(|name| self.is_narrowed(name)) {
            return self.emit(Op::Call(call), ty, span);
        }
        let arguments = modes.into_iter().map(|(name, mode)| (Resource::Shared(name), mode));
        let constraints: Vec<Constraint> =
            arguments.chain(bound).map(|(resource, mode)| self.scoped(resource, mode)).collect();
        let of_session = constraints.iter().find(|constraint| constraint.per_session);
        let session = of_session.map(|constraint| self.session_of(name_of(&constraint.resource), span));
        let open_block = self.build_block(|lowering| lowering.emit(Op::Call(call), ty.clone(), span));
        let body = self.close_without_exits(open_block, &ty);
        self.emit(Op::Atomic { constraints, restores: Vec::new(), session, cancellable: true, body }, ty, span)
    }

    /// Warns of the steps around this place that hold a constraint as readers, although this place holds it exclusively.
    fn held_exclusively(&mut self, name: &str, place: Span) {
        let readers = self.steps.iter().flat_map(|step| &step.readers).filter(|(reader, _)| **reader == *name);
        for (_, read) in readers {
            let message = format!("this step holds `{name}` exclusively, not together with other readers");
            let diagnostic = Diagnostic::new(Code::ExclusiveReader, message)
                .at(*read, "has no effect")
                .because(place, format!("holds `{name}` exclusively, so that the whole step does"))
                .hint("remove `read`, or move what holds it exclusively out of the step");
            self.context.report_once(diagnostic);
        }
    }

    /// Returns the constraints that calls of a host function hold. Nothing excludes calls at the start of the program.
    fn bound_constraints(&self, function: &str) -> Vec<(Resource, Mode)> {
        if self.starts {
            return Vec::new();
        }
        let held = self.program.bound_constraints.held_by(function);
        held.map(|(name, mode)| (Resource::Constraint(name.clone()), mode)).collect()
    }

    /// Returns the constraint of a step on a resource, in the scope in which the program holds it.
    pub(super) fn scoped(&self, resource: Resource, mode: Mode) -> Constraint {
        let per_session = self.program.per_session.contains(name_of(&resource));
        Constraint { resource, mode, per_session }
    }

    /// Returns the name in the program of a resource that a step holds.
    pub(super) fn held_name(&self, resource: &AtomicResource) -> Arc<str> {
        self.program.held_name(resource)
    }

    /// Returns whether steps elsewhere hold the shared value per session, and none around this place does.
    fn is_narrowed(&self, name: &Text) -> bool {
        self.program.per_session.contains(name.as_str())
            && !self.steps.iter().any(|step| step.resources.iter().any(|held| **held == **name))
    }

    /// Lowers the session key of a route: its own, or that of the service in terms of the route's parameters.
    pub(super) fn begin_session(
        &mut self,
        (service, route): (&'a ast::Service, &'a ast::Route),
        named: &[LocalId],
        parameters: &[LocalId],
    ) {
        if let Some(own) = &route.session {
            self.session = Some(self.expr(&own.value));
            return;
        }
        let Some(session) = service.session() else { return };
        for local in named {
            let name = &self.typed.local(*local).name;
            let own = parameters.iter().find(|id| self.typed.local(**id).name == *name);
            if let Some(binding) = own.and_then(|own| self.names.get(own)).cloned() {
                self.names.insert(*local, binding);
            }
        }
        self.session = Some(self.expr(&session.value));
    }

    fn constraint(&self, resource: &AtomicResource, body: &Block) -> Constraint {
        let name = self.held_name(resource);
        let is_shared = self.program.declarations.shared.contains_key(&name);
        let name: Text = (&*name).into();
        let (resource_held, mode) = if is_shared {
            let mode = mode_of(&name, body, self.context.library).unwrap_or(Mode::Write);
            (Resource::Shared(name), mode)
        } else {
            (Resource::Constraint(name), if resource.read.is_some() { Mode::Read } else { Mode::Write })
        };
        Constraint { resource: resource_held, mode, per_session: self.is_per_session(resource) }
    }

    /// Returns whether a step holds the resource per session: the step or the declaration says so.
    fn is_per_session(&self, resource: &AtomicResource) -> bool {
        resource.per_session || self.program.per_session.contains(&self.held_name(resource))
    }
}

fn name_of(resource: &Resource) -> &str {
    let (Resource::Shared(name) | Resource::Constraint(name) | Resource::World(name) | Resource::State(name)) =
        resource;
    name
}

/// Returns the strongest mode in which a block uses a shared value; `None` if it does not use it.
pub(crate) fn mode_of(name: &Text, block: &Block, library: &Library) -> Option<Mode> {
    block.lets.iter().filter_map(|binding| op_mode(name, &binding.op, library)).max()
}

fn op_mode(name: &Text, op: &Op, library: &Library) -> Option<Mode> {
    if let Op::Call(call) = op {
        let parameters = library.function(&call.function).map_or(&[][..], |function| &function.signature.parameters);
        let uses = call.arguments.iter().zip(parameters).filter(|(atom, _)| **atom == Atom::Shared(name.clone()));
        return uses.map(|(_, parameter)| mode(parameter.passing)).max();
    }
    op.blocks().filter_map(|block| mode_of(name, block, library)).max()
}

fn mode(passing: Passing) -> Mode {
    if passing == Passing::Change { Mode::Write } else { Mode::Read }
}
