//! Preparation: compiles a graph, with a library, into steps that engines run, and computes everything that is known
//! before the first flow.
//!
//! For each body: calls are resolved to code; a fallible call and the switch that tests it become one step ([`shape`]);
//! edges become sets of the nodes that may wait ([`order`]); ports become slots, by liveness ([`slots`]).

use std::sync::{Arc, OnceLock};

use weir_host::{
    Function, FunctionCode, Library, Mode, Passing, Resource, SeenCommits, Signature, Text, Type, TypeDefinition, World,
};
use weir_ir::graph::{Graph, Node, NodeKind, Operand, Program};
use weir_ir::io_rounds::waits_for_all_commits;
use weir_ir::plan::Plan;
use weir_ir::program::Flow;

use crate::batching::{BatchedFunction, BorrowedValues, Gatherer, GathererContext, IS_COMPILED};
use crate::flow_section::{CallQueue, CallSection, NodeSection};
use crate::lock::FairRwLock;
use crate::operations::KeptFailure;
use crate::region::{LARGE_WINDOW, Scalar, WordTypes};
use crate::resources::Resources;
use crate::step::{Body, Repeat, VectorCall};

mod cuts;
mod error;
mod gathered;
mod latencies;
mod moves;
mod order;
mod part;
mod queued;
mod regions;
mod shape;
mod slots;
mod steps;
mod strips;
mod timed;

use cuts::Cuts;
pub use error::PrepareError;
use error::error;
use part::{NodePart, Resolved};
pub use queued::QueuedCall;
pub(crate) use queued::queued_calls_of;
use regions::RegionRules;
pub use regions::{IndependentPart, LoopRounds};
pub(crate) use strips::STRIP_MAX;
use strips::StripSearch;

/// The deepest nesting of bodies; the compiler's own limit is lower.
const NESTING_MAX: usize = 64;

/// The size from which on a region ends: about the number of its registers. Half of those that the interpreter has, because
/// constants and values from outside have registers too.
pub(crate) const REGION_SIZE_MAX: usize = LARGE_WINDOW / 2;

/// A prepared flow.
pub(crate) struct PreparedFlow {
    /// The name of the flow.
    pub name: Arc<str>,
    /// The body.
    pub body: Body,
    /// All ticket gates in the body.
    pub ticket_gates: Box<[usize]>,
}

/// The preparation of the bodies of one program.
pub(crate) struct Preparation<'a> {
    library: &'a Library,
    types: &'a [TypeDefinition],
    moves: moves::MoveOnlyTypes<'a>,
    resources: &'a mut Resources,
    gathering: GathererContext,
    /// True if stateful calls must see the order of the source.
    ordered: bool,
    /// True in a body that may be given up while it waits, and in the bodies in it.
    may_be_given_up: bool,
    /// The ticket gates of the flow that is being prepared.
    ticket_gates: Vec<usize>,
    /// The plan by which bodies are cut, for an engine with sections.
    plan: Option<&'a Plan>,
    /// The name of the flow that is being prepared; `None` for a body that belongs to no flow.
    flow: Option<Text>,
    /// The body that is being prepared.
    place: BodyPlace,
    /// The size from which on a region ends.
    region_size_max: usize,
    /// The largest number of elements of a strip.
    strip_max: usize,
}

/// The surroundings of a body that is being prepared.
#[derive(Clone, Copy, Default)]
struct BodyPlace {
    /// The section of the plan to which the calls belong that the plan does not name.
    rest: Option<usize>,
    /// The section of the plan in which the flow stays while it runs the body.
    home: Option<usize>,
    /// The node of the flow's own body around it.
    around: u32,
    /// True in the body of a `for`, whose rounds may overlap.
    in_for: bool,
    /// True in an atomic step.
    in_step: bool,
}

impl<'a> Preparation<'a> {
    /// Returns a preparation that finds functions in `library` and resources in `resources`.
    pub(crate) fn new(
        program: &'a Program,
        library: &'a Library,
        resources: &'a mut Resources,
        gathering: GathererContext,
    ) -> Self {
        let moves = moves::MoveOnlyTypes::new(&program.types, library);
        Preparation {
            library,
            types: &program.types,
            moves,
            resources,
            gathering,
            ordered: false,
            may_be_given_up: false,
            ticket_gates: Vec::new(),
            plan: None,
            flow: None,
            place: BodyPlace::default(),
            region_size_max: REGION_SIZE_MAX,
            strip_max: STRIP_MAX,
        }
    }

    /// Ends regions at this size.
    pub(crate) fn with_region_size_max(mut self, region_size_max: usize) -> Self {
        self.region_size_max = region_size_max;
        self
    }

    /// Makes strips of at most so many elements.
    pub(crate) fn with_strip_max(mut self, strip_max: usize) -> Self {
        self.strip_max = strip_max.max(1);
        self
    }

    /// Cuts bodies as this plan says.
    pub(crate) fn cut_by(mut self, plan: &'a Plan) -> Self {
        self.plan = Some(plan);
        self
    }

    /// Prepares a flow of an entry point.
    pub(crate) fn flow(&mut self, flow: &Flow<Graph>, ordered: bool) -> Result<PreparedFlow, PrepareError> {
        self.ordered = ordered;
        self.ticket_gates.clear();
        self.flow = Some(flow.name.clone());
        let mut body = self.body(&flow.body, None, 0).map_err(|error| error.within(&flow.name))?;
        if let Some(cuts) = self.cuts() {
            cuts.mark(&flow.body, &mut body);
        }
        regions::form(self.region_rules(), &flow.body, &mut body);
        cuts::insert(&mut body);
        if waits_for_all_commits(&flow.body) {
            body.commits_at_begin = SeenCommits::ALL;
        }
        let ticket_gates = std::mem::take(&mut self.ticket_gates).into();
        Ok(PreparedFlow { name: flow.name.as_str().into(), body, ticket_gates })
    }

    /// Prepares a graph that runs once, when the program starts.
    pub(crate) fn initial(&mut self, graph: &Graph, place: &Text) -> Result<Body, PrepareError> {
        self.ordered = false;
        self.flow = None;
        let mut body = self.body(graph, None, 0).map_err(|error| error.within(place))?;
        regions::form(self.region_rules(), graph, &mut body);
        Ok(body)
    }

    /// Describes the regions of a flow.
    pub(crate) fn regions(&self, flow: &Flow<Graph>, prepared: &PreparedFlow) -> String {
        regions::described(self.region_rules(), &flow.name, &flow.body, &prepared.body)
    }

    /// Adds the loops of a flow that only compute to a list.
    pub(crate) fn loops(flow: &Flow<Graph>, prepared: &PreparedFlow, found: &mut Vec<LoopRounds>) {
        regions::loops(&format!("{}: ", flow.name), &flow.body, &prepared.body, found);
    }

    /// Adds the computations of a flow that may run beside others, or may not, to a list.
    pub(crate) fn independent_parts(
        &self,
        flow: &Flow<Graph>,
        prepared: &PreparedFlow,
        found: &mut Vec<IndependentPart>,
    ) {
        regions::independent_parts(self.region_rules(), &format!("{}: ", flow.name), &flow.body, &prepared.body, found);
    }

    fn region_rules(&self) -> RegionRules<'a> {
        let types = WordTypes { types: self.types, library: self.library };
        RegionRules { types, size_max: self.region_size_max }
    }

    fn body(&mut self, graph: &Graph, repeat: Option<Repeat>, depth: usize) -> Result<Body, PrepareError> {
        if depth > NESTING_MAX {
            return Err(error("", format!("bodies nest deeper than {NESTING_MAX}")));
        }
        let parts = graph.nodes.iter().enumerate().map(|(index, node)| {
            if depth == 0 {
                self.place.around = index as u32;
            }
            self.part(graph, node, depth)
        });
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let shape = shape::ControlShape::of(graph, &parts, repeat, &self.moves);
        let order = order::StepOrder::of(graph, &parts, repeat, &self.moves, self.may_be_given_up);
        let layout = slots::SlotLayout::of(graph, &shape, &order, repeat);
        let latencies = latencies::latencies(graph, &parts, &shape, &order);
        let strips =
            StripSearch { graph, parts: &parts, order: &order, library: self.library, length_max: self.strip_max };
        let (moves, resources, strips) = (&self.moves, &*self.resources, &*strips.roles());
        let assembly =
            steps::Assembly { graph, shape: &shape, order: &order, layout: &layout, moves, resources, strips };
        let mut body = assembly.body(parts)?;
        body.latencies = latencies;
        Ok(body)
    }

    fn part(&mut self, graph: &Graph, node: &Node, depth: usize) -> Result<NodePart, PrepareError> {
        let gates_before = self.ticket_gates.len();
        let mut part = NodePart { waits_for_returns: node.waits_for_returns(self.library), ..NodePart::default() };
        match &node.kind {
            NodeKind::Call { function, keeps_failure, .. } => {
                part.call = Some(self.resolve(graph, node, (function, *keeps_failure))?);
            }
            kind => {
                let repeat = Repeat::of(kind);
                let (outside, around) = (self.may_be_given_up, self.place);
                self.may_be_given_up |= kind.cancels_bodies();
                let rest = self.planned_section(node).or(around.rest);
                self.place = BodyPlace {
                    rest,
                    home: self.cuts().and_then(|cuts| cuts.home(node, rest)).or(rest),
                    around: around.around,
                    in_for: repeat == Some(Repeat::Map),
                    in_step: around.in_step || node.within.is_some(),
                };
                let bodies = kind.bodies().iter();
                let prepare = |body| self.body(body, repeat, depth + 1).map_err(|error| error.within(&node.name));
                let mut bodies = bodies.map(prepare).collect::<Result<Vec<_>, _>>()?;
                (self.may_be_given_up, self.place) = (outside, around);
                match repeat {
                    Some(_) => part.body = bodies.pop(),
                    None => part.timed = bodies,
                }
            }
        }
        part.ticket_gates = self.ticket_gates[gates_before..].to_vec();
        Ok(part)
    }

    fn resolve(
        &mut self,
        graph: &Graph,
        node: &Node,
        (path, keeps_failure): (&str, bool),
    ) -> Result<Resolved, PrepareError> {
        let library = self.library;
        let found =
            library.function(path).ok_or_else(|| error(&node.name, format!("there is no function `{path}`")))?;
        for input in &node.inputs {
            self.check_shared(node, input)?;
        }
        let state = self.state(graph, node, &found.signature)?;
        let ticket_gate = (state.is_some() && self.ordered).then(|| self.resources.add_ticket_gate());
        self.ticket_gates.extend(ticket_gate);
        let mut locks = self.locks_of(node);
        if let (Some(state), None) = (&found.signature.state, ticket_gate) {
            locks.push((Arc::default(), state.mode));
        }
        let gatherer = self.gatherer(graph, node, found);
        if gatherer.as_ref().is_some_and(|gatherer| !gatherer.borrowed().values.is_empty()) {
            locks.clear();
        }
        let effects = &found.signature.effects;
        let only_reads = node.uses.iter().all(|used| used.mode == Mode::Read && !used.held);
        let sees_snapshot =
            effects.sees_snapshot && state.is_none() && node.uses.iter().all(|used| used.mode == Mode::Read);
        let reads_elsewhere = effects.leaves_thread && locks.is_empty() && only_reads;
        let may_be_sent = effects.leaves_thread && sees_snapshot && !self.is_in_step(node);
        Ok(Resolved {
            code: found.code.clone(),
            path: path.into(),
            fallible: keeps_failure || found.signature.failure.is_some(),
            kept_failure: keeps_failure.then(|| KeptFailure::of(&found.signature)),
            awaits_peer: effects.awaits_peer,
            // The internal ones read what a peer sends by itself.
            asks_peer: effects.awaits_peer && effects.world == World::Reads && !found.signature.internal,
            vector: vector_call(found),
            optional: !keeps_failure
                && found.signature.failure.is_none()
                && matches!(found.signature.result, Type::Option(_)),
            passing: found.signature.parameters.iter().map(|parameter| parameter.passing).collect(),
            locks: locks.into(),
            sees_snapshot,
            is_in_step: self.is_in_step(node),
            ticket_gate,
            state,
            gatherer,
            reads_elsewhere,
            may_be_sent,
            section: self.section_of_call(node, found),
        })
    }

    /// Returns the plan's sections for the nodes of this flow; `None` if no plan cuts bodies, or for a body of no flow.
    fn cuts(&self) -> Option<Cuts<'_>> {
        Some(Cuts { plan: self.plan?, flow: self.flow.as_ref()?, in_rounds: self.place.in_for })
    }

    /// Returns the section of the plan that names a node.
    fn planned_section(&self, node: &Node) -> Option<usize> {
        self.cuts()?.planned(node)
    }

    /// Returns the section whose threads run this call while its flow stays where it is: the call is in a `for`, so that other
    /// rounds go on meanwhile, and belongs to another section than the one in which the flow stays. A call that changes an
    /// argument in place, or that uses a shared value, runs on the thread of its flow.
    fn section_of_call(&self, node: &Node, found: &Function) -> Option<CallSection> {
        let BodyPlace { rest, home, around, in_for, in_step } = self.place;
        let own = self.planned_section(node).or(rest);
        if !in_for || own == home {
            return None;
        }
        let changes = || found.signature.parameters.iter().any(|parameter| parameter.passing == Passing::Change);
        let is_fit = match &found.code {
            FunctionCode::Immediate(_) => !changes(),
            FunctionCode::Blocking(_) => true,
            FunctionCode::Waiting(_) => false,
        };
        let shares = node.uses.iter().any(|used| matches!(used.resource, Resource::Shared(_)));
        let section = own.map_or(Some(NodeSection::OUTER), NodeSection::planned);
        let is_handed_on = is_fit && !shares && !in_step && node.within.is_none();
        section.filter(|_| is_handed_on).map(|section| CallSection { section, around, queue: CallQueue::Any })
    }

    /// Returns the gatherer of a call; `None` if it is not gathered. Calls that borrow the same shared values have one of their own.
    fn gatherer(&mut self, graph: &Graph, node: &Node, found: &Function) -> Option<Arc<Gatherer>> {
        let (code, limits) = (found.batch.as_ref()?, found.signature.batch?);
        let (signature, mut path) = (&found.signature, found.signature.path());
        let borrowed: Vec<&Text> = borrowed_values(node, signature).collect();
        if !borrowed.is_empty() {
            // Within a step, the step holds the locks.
            let may_wait_for_locks = IS_COMPILED && !self.is_in_step(node);
            if !may_wait_for_locks || node.uses.iter().any(|used| self.is_own(&used.resource)) {
                return None;
            }
            path = format!("{path}({})", borrowed.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", "));
        }
        let (path, name) = (Text::from(path), name_of_batches(node, &signature.path()));
        if let Some(known) = self.resources.gatherers.get(&path) {
            return Some(Arc::clone(known));
        }
        let gathered = signature.parameters.get(limits.gathered)?;
        let index_of = |name: &&Text| self.resources.shared_index.get(*name).copied();
        let shared = borrowed.iter().filter_map(index_of).map(|index| self.resources.shared[index as usize].clone());
        let function = BatchedFunction {
            name: Arc::from(name),
            code: Arc::clone(code),
            limits,
            world: signature.effects.world,
            idempotent: signature.effects.idempotent,
            copies_requests: match borrowed.is_empty() {
                true => !self.moves.may(&gathered.ty),
                // The types of all its calls are the same.
                false => !node.inputs.get(limits.gathered).is_some_and(|input| self.moves.input(graph, input)),
            },
            copies_answers: match borrowed.is_empty() {
                true => !self.moves.may(&signature.call_type()),
                false => !node.outputs.iter().any(|output| self.moves.may(output)),
            },
            borrowed: BorrowedValues {
                values: shared.collect(),
                locks: if borrowed.is_empty() { Box::default() } else { self.locks_of(node).into() },
                sees_snapshot: signature.effects.sees_snapshot,
                handles: OnceLock::new(),
            },
        };
        let gatherer = Arc::new(Gatherer::new(function, self.gathering.clone()));
        self.resources.gatherers.insert(path, Arc::clone(&gatherer));
        Some(gatherer)
    }

    /// Creates the private state of a node from its constant arguments, and returns the state's index.
    fn state(&mut self, graph: &Graph, node: &Node, signature: &Signature) -> Result<Option<usize>, PrepareError> {
        let Some(state) = &signature.state else { return Ok(None) };
        let constants = signature.start_parameters().filter_map(|index| match node.inputs.get(index) {
            Some(Operand::Constant(constant)) => graph.constants.get(*constant as usize).cloned(),
            _ => None,
        });
        let made = (state.make)(&constants.collect::<Vec<_>>());
        let refused = |failure| {
            let message = format!("`{}` cannot be prepared: {failure}", signature.path());
            PrepareError { state_of: Some(node.origin), ..error(&node.name, message) }
        };
        let made = made.map_err(refused)?;
        Ok(Some(self.resources.add_state(made)))
    }

    fn check_shared(&self, node: &Node, input: &Operand) -> Result<(), PrepareError> {
        match input {
            Operand::Shared(name) if !self.resources.shared_index.contains_key(name) => {
                Err(error(&node.name, format!("there is no shared value `{name}`")))
            }
            _ => Ok(()),
        }
    }

    /// Returns true if an atomic step is around a node.
    fn is_in_step(&self, node: &Node) -> bool {
        node.within.is_some() || self.place.in_step
    }

    /// Returns true if each session has a value of its own, so that the enclosing step holds all locks that a call
    /// needs.
    fn is_own(&self, resource: &Resource) -> bool {
        let Resource::Shared(name) = resource else { return false };
        self.resources.shared_index.get(name).is_some_and(|index| self.resources.own(*index).is_some())
    }

    /// Returns the locks that a call holds while it runs: those that no enclosing step holds. Resources that are held
    /// per session come last.
    fn locks_of(&self, node: &Node) -> Vec<(Arc<FairRwLock>, Mode)> {
        let (mut taken, mut last) = (Vec::new(), Vec::new());
        for used in &node.uses {
            if matches!(used.resource, Resource::World(_) | Resource::State(_)) {
                continue;
            }
            let Some(locks) = self.resources.locks.get(&used.resource) else { continue };
            if !used.held && !self.is_own(&used.resource) {
                let order = if locks.session_scoped { &mut last } else { &mut taken };
                order.push((Arc::clone(&locks.whole), used.mode));
            }
        }
        taken.append(&mut last);
        taken
    }
}

/// Returns the source of an entry point.
///
/// # Errors
/// Fails if the source is not in the library.
pub(crate) fn source_of(
    library: &Library,
    program: &Program,
    entry: usize,
) -> Result<Arc<dyn weir_host::Source>, PrepareError> {
    let entry = &program.entries[entry];
    let found = entry.source.rsplit_once('.').and_then(|(module, name)| library.modules.get(module)?.sources.get(name));
    let (_, source) = found.ok_or_else(|| error(&entry.name, format!("there is no source `{}`", entry.source)))?;
    Ok(Arc::clone(source))
}

/// Returns the name of the batches in which a call of a function with this path is gathered: the path; for reads of a table `us[key]`, as in
/// programs. The calls of a function that borrows a shared value gather with those for the same value only.
#[must_use]
pub fn name_of_batches(node: &Node, path: &str) -> String {
    match node.inputs.first() {
        Some(Operand::Shared(table)) if path == "tables.row" => format!("{table}[key]"),
        Some(Operand::Shared(value)) => format!("{path}({value})"),
        _ => path.to_owned(),
    }
}

/// Returns the shared values that a call of a batched function borrows.
fn borrowed_values<'n>(node: &'n Node, signature: &'n Signature) -> impl Iterator<Item = &'n Text> {
    node.inputs.iter().zip(&signature.parameters).filter_map(|(input, parameter)| match input {
        Operand::Shared(name) if parameter.passing == Passing::Borrow => Some(name),
        _ => None,
    })
}

/// Returns the form of a call of this function for vectors, if it has one.
fn vector_call(function: &Function) -> Option<VectorCall> {
    let Signature { effects, result, .. } = &function.signature;
    let (code, result) = (function.words?, Scalar::of(result)?);
    (effects.world == World::Pure && !effects.declares_units).then_some(VectorCall { code, result })
}
