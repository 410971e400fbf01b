//! Kept flows: after an edit, a flow is lowered again only if a text that it consists of has changed.
//!
//! A flow consists of its *parts*, such as its route and the handlers of its service, and of the `fn`s that are inlined into
//! it. The lowering of the same parts and `fn`s, with the same declarations, is the same but for positions and the ids of
//! inlined calls. So a kept flow is *relocated*: each position moves together with the part or `fn` that has it.
//!
//! A flow is kept only if its lowering has reported nothing, because a warning about a `fn` belongs to no single flow. The
//! checks of its values ([`FlowLowering::check_flows`]) are not repeated if they have reported nothing either.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_ir::expr::{Block, InlinedCall, InlinedCallId, Origin};
use weir_ir::program::Flow;
use weir_syntax::Span;
use weir_syntax::ast::{ItemKind, Service, ServiceMember, ServiceMemberKind, Tree};

use crate::bypassed_handlers::HandlerUses;
use crate::checked::QueryRest;
use crate::context::{CheckContext, FlowFindings};
use crate::file_keys::hashed;
use crate::fingerprints::Fingerprints;
use crate::typed_tree::TypedTree;

/// The flows of the last state of a program, by the fingerprints of their own parts.
#[derive(Clone, Default)]
pub(crate) struct KeptFlows {
    before: BTreeMap<u64, Arc<KeptFlow>>,
    now: BTreeMap<u64, Arc<KeptFlow>>,
    /// Flows whose values have been checked, and are right.
    checked: BTreeSet<u64>,
}

/// A flow as it was lowered, with the ids of inlined calls counted from its own first one.
struct KeptFlow {
    /// The places of its parts.
    parts: Vec<Span>,
    /// The `fn`s that are inlined into it: name, fingerprint and place.
    functions: Vec<(Arc<str>, u64, Span)>,
    flow: Flow<Block>,
    inlined_calls: Vec<InlinedCall>,
    handlers: HandlerUses,
    query_rests: Vec<QueryRest>,
}

/// A flow that has been lowered.
pub(crate) struct LoweredFlow {
    pub(crate) flow: Flow<Block>,
    /// The `fn`s of the program that are inlined into it, by their indices.
    pub(crate) inlined: BTreeSet<usize>,
    /// True if it requests a service of the program, whose routes are then parts of it, too.
    pub(crate) asks_service: bool,
}

/// Lowers flows, or takes them from the last state.
pub(crate) struct FlowLowering<'k, 'a> {
    kept: &'k mut KeptFlows,
    fingerprints: &'k Fingerprints<'a>,
    /// The flows of this state, in their order: the fingerprint of a kept one.
    lowered: Vec<Option<u64>>,
}

/// The texts that a flow consists of, without the `fn`s that it calls.
pub(crate) struct FlowParts {
    /// The file that has them.
    pub(crate) file: usize,
    pub(crate) spans: Vec<Span>,
}

impl<'k, 'a> FlowLowering<'k, 'a> {
    /// Begins a new state of the program.
    pub(crate) fn new(kept: &'k mut KeptFlows, fingerprints: &'k Fingerprints<'a>) -> Self {
        kept.before = std::mem::take(&mut kept.now);
        FlowLowering { kept, fingerprints, lowered: Vec::new() }
    }

    /// Returns the lowered flow. `kind` distinguishes flows of the same parts.
    pub(crate) fn flow(
        &mut self,
        (kind, parts): (&str, FlowParts),
        context: &mut CheckContext<'a>,
        typed: &'a TypedTree,
        lower: impl FnOnce(&mut CheckContext<'a>) -> LoweredFlow,
    ) -> Flow<Block> {
        let key = self.key(kind, &parts, context);
        if let Some(flow) = key.and_then(|key| self.known(key, &parts, context, typed)) {
            self.lowered.push(key);
            return flow;
        }
        self.lowered.push(None);
        let outer = context.begin_flow();
        let LoweredFlow { flow, inlined, asks_service } = lower(context);
        let found = context.end_flow(outer);
        if let Some(key) = key.filter(|_| found.diagnostics.is_empty() && !asks_service) {
            let functions = inlined.into_iter().filter_map(|at| self.function(at, context.tree(), typed)).collect();
            let kept = KeptFlow {
                parts: parts.spans,
                functions,
                flow: flow.clone(),
                inlined_calls: found.inlined_calls.clone(),
                handlers: found.handlers.clone(),
                query_rests: found.query_rests.clone(),
            };
            if self.keep(key, kept)
                && let Some(last) = self.lowered.last_mut()
            {
                *last = Some(key);
            }
            // It was lowered again.
            self.kept.checked.remove(&key);
        }
        let first_call = context.add_flow(found);
        if first_call == 0 {
            return flow;
        }
        relocated(flow, &mut |origin| with_first_call(origin, first_call))
    }

    /// Returns the fingerprint of everything that a flow depends on besides `fn`s; `None` if the program has circles.
    fn key(&self, kind: &str, parts: &FlowParts, context: &CheckContext<'_>) -> Option<u64> {
        let texts: Vec<&str> = parts.spans.iter().map(|span| &context.text[span.range()]).collect();
        let surroundings = (self.fingerprints.of_file(parts.file)?, self.fingerprints.surroundings);
        Some(hashed((kind, texts, surroundings)))
    }

    /// Returns the name, the fingerprint and the place of a `fn`.
    fn function(&self, at: usize, tree: &Tree, typed: &TypedTree) -> Option<(Arc<str>, u64, Span)> {
        let (name, declared) = typed.declarations.functions.get_index(at)?;
        Some((name.clone(), self.fingerprints.own(at), tree.items[declared.item].span))
    }

    /// Returns the flow of the last state at its new place, if all its texts are the same.
    fn known(
        &mut self,
        key: u64,
        parts: &FlowParts,
        context: &mut CheckContext<'a>,
        typed: &TypedTree,
    ) -> Option<Flow<Block>> {
        let kept = self.kept.now.get(&key).or_else(|| self.kept.before.get(&key))?.clone();
        let mut moves = Moves::new(&kept.parts, &parts.spans)?;
        for (name, fingerprint, before) in &kept.functions {
            let at = typed.declarations.functions.get_index_of(name)?;
            let (_, now, place) = self.function(at, context.tree(), typed)?;
            if now != *fingerprint {
                return None;
            }
            moves.add(*before, place);
        }
        moves.sort();
        self.kept.now.insert(key, kept.clone());
        let mut place = |position| moves.position(position).unwrap_or(position);
        let mut inlined_calls = kept.inlined_calls.clone();
        for call in &mut inlined_calls {
            call.called_at = moved(call.called_at, &mut place);
        }
        let mut query_rests = kept.query_rests.clone();
        for QueryRest { query, .. } in &mut query_rests {
            *query = Span { start: place(query.start), end: place(query.end), ..*query };
        }
        let handlers = kept.handlers.relocated(&mut place);
        let found = FlowFindings { diagnostics: Vec::new(), handlers, inlined_calls, query_rests };
        let first_call = context.add_flow(found);
        let flow = kept.flow.clone();
        if moves.is_empty() && first_call == 0 {
            return Some(flow);
        }
        Some(relocated(flow, &mut |origin| with_first_call(moved(origin, &mut place), first_call)))
    }

    /// Checks the values of all flows but those that were right in the last state. `check` returns whether the result also
    /// depends on other flows.
    pub(crate) fn check_flows<'f>(
        &mut self,
        flows: impl Iterator<Item = &'f Flow<Block>>,
        context: &mut CheckContext<'a>,
        mut check: impl FnMut(&Flow<Block>, &mut CheckContext<'a>) -> bool,
    ) {
        let mut checked = BTreeSet::new();
        for (flow, key) in flows.zip(&self.lowered) {
            let is_known = key.is_some_and(|key| self.kept.checked.contains(&key));
            if !is_known {
                let outer = context.begin_flow();
                let depends = check(flow, context);
                let found = context.end_flow(outer);
                if depends || !found.diagnostics.is_empty() {
                    context.add_flow(found);
                    continue;
                }
            }
            checked.extend(*key);
        }
        self.kept.checked = checked;
    }

    /// Keeps a flow, unless an operation has a position outside of its parts and `fn`s. Returns whether it is kept.
    fn keep(&mut self, key: u64, mut kept: KeptFlow) -> bool {
        let mut places = Moves::default();
        let functions = kept.functions.iter().map(|(_, _, place)| place);
        kept.parts.iter().chain(functions).for_each(|place| places.add(*place, *place));
        places.sort();
        let of_rests = kept.query_rests.iter().flat_map(|rest| [rest.query.start, rest.query.end]);
        let mut is_within = kept.handlers.positions().chain(of_rests).all(|position| places.covers(position));
        let called_at: Vec<Origin> = kept.inlined_calls.iter().map(|call| call.called_at).collect();
        let mut see = |origin: Origin| {
            is_within &= [origin.start, origin.end].into_iter().all(|position| places.covers(position));
            origin
        };
        called_at.into_iter().for_each(|origin| _ = see(origin));
        kept.flow.body.relocate(&mut see);
        if is_within {
            self.kept.now.insert(key, kept.into());
        }
        is_within
    }
}

/// Returns the parts of a route: its own text, and everything that its service and its file add to all routes.
pub(crate) fn parts_of_route(tree: &Tree, service: &Service, route: Span) -> FlowParts {
    let is_of_all = |member: &&ServiceMember| !matches!(member.kind, ServiceMemberKind::Route(_));
    let of_all = service.members.iter().filter(is_of_all).map(|member| member.span);
    let header = [service.name.span, service.transport.span];
    FlowParts {
        file: 0,
        spans: header.into_iter().chain([route]).chain(of_all).chain(handlers_of_file(tree)).collect(),
    }
}

/// Returns the parts of the flows of a `for`: its own text and the handlers of its file.
pub(crate) fn parts_of_entry(tree: &Tree, entry: Span) -> FlowParts {
    FlowParts { file: 0, spans: std::iter::once(entry).chain(handlers_of_file(tree)).collect() }
}

fn handlers_of_file(tree: &Tree) -> impl Iterator<Item = Span> {
    let of_main_file = tree.items.iter().take_while(|item| item.file == 0);
    of_main_file.filter(|item| matches!(item.kind, ItemKind::FailureHandler(_))).map(|item| item.span)
}

/// Texts that have moved, each with the place that it had and the one that it has.
#[derive(Default)]
struct Moves {
    /// By the place that they had: its first and last position, and the first position now.
    texts: Vec<(u32, u32, u32)>,
}

impl Moves {
    fn new(before: &[Span], now: &[Span]) -> Option<Moves> {
        if before.len() != now.len() {
            return None;
        }
        let mut moves = Moves::default();
        before.iter().zip(now).for_each(|(before, now)| moves.add(*before, *now));
        Some(moves)
    }

    fn add(&mut self, before: Span, now: Span) {
        self.texts.push((before.start, before.end, now.start));
    }

    fn sort(&mut self) {
        self.texts.sort_unstable();
    }

    /// Returns whether nothing has moved.
    fn is_empty(&self) -> bool {
        self.texts.iter().all(|(before, _, now)| before == now)
    }

    /// Returns whether a text has the position; 0 stands for no place.
    fn covers(&self, position: u32) -> bool {
        position == 0 || self.position(position).is_some()
    }

    /// Returns where a position is now; `None` if none of the texts has it.
    fn position(&self, before: u32) -> Option<u32> {
        let next = self.texts.partition_point(|(start, ..)| *start <= before);
        let (start, end, now) = self.texts[next.checked_sub(1)?];
        (before <= end).then(|| now + (before - start))
    }
}

fn moved(origin: Origin, place: &mut impl FnMut(u32) -> u32) -> Origin {
    if origin.start == 0 && origin.end == 0 {
        return origin;
    }
    Origin { start: place(origin.start), end: place(origin.end), ..origin }
}

/// Returns an origin whose inlined call is counted from the first one of the program.
fn with_first_call(origin: Origin, first: u32) -> Origin {
    Origin { inlined_call: origin.inlined_call.map(|call| InlinedCallId(call.0 + first)), ..origin }
}

fn relocated(mut flow: Flow<Block>, place: &mut impl FnMut(Origin) -> Origin) -> Flow<Block> {
    flow.body.relocate(place);
    flow
}
