//! Lowers the checked tree to the expression IR: inlines every `fn`, and turns every `match` into switches.
//!
//! An *inline frame* is one inlined call of a `fn`; the outermost frame is the flow itself. The *call path* of a host
//! function's call lists the `fn`s that lead to it: `thumbnail/image.scale`, `files.read#2`. A local name stands for an
//! [`Atom`], or for a callable, which is inlined where it is called: no value of the IR is a function.

mod aggregates;
mod atomic;
mod attempt_values;
mod attempts;
mod block_builder;
mod bodies;
mod boolean;
mod branch;
mod call;
mod changes;
mod conditions;
mod config;
mod constants;
mod databases;
mod emission;
mod entry;
mod expecting;
mod expr;
mod failures;
mod formatted;
mod full_scan;
mod gathered_reads;
mod group_clauses;
mod groups;
mod handled_calls;
mod html;
mod join_points;
mod joins;
mod keyed_reads;
mod matching;
mod migrations;
mod own_transactions;
mod pages;
mod paired_row;
mod pattern;
mod placing;
mod queries;
mod reads_together;
mod references;
mod refused_commits;
mod refused_reads;
mod repeat;
mod restoring;
mod result_uses;
mod retried_writes;
mod service_call;
mod settling;
mod show;
mod statement_functions;
mod statement_place;
mod surroundings;
mod table_description;
mod tables;
mod test_items;
mod tested_rounds;
mod transactions;
mod typed_arguments;
mod types;
mod waiting;
mod written_paths;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use indexmap::IndexMap;
use weir_host::{Type, Value};
use weir_ir::expr::{Atom, Block, Origin, Program, Variable};
use weir_ir::program::{Flow, SharedValue, Var};
use weir_syntax::Span;
use weir_syntax::ast::{self, ExprId, ItemKind, PatternId, Tree};

use crate::context::CheckContext;
use crate::kept_flows::{FlowLowering, LoweredFlow};
use crate::typed_tree::{CallTarget, LocalId, TypedTree};
use crate::types::{Substitution, Ty};
pub(crate) use test_items::lower_tests;

use block_builder::{BlockBuilder, InlineFrameId, VariableSupply};
use handled_calls::HandledCalls;
use paired_row::PairedRow;
use statement_place::StatementPlace;
use surroundings::{
    Binding, Callable, CallingStatement, CheckedCode, CodeScope, DeferredHandler, InlineFrame, InlineFrameKind, Names,
    RefusedCommit, StepScope, Transaction, TriedCall,
};
use table_description::GroupedRows;

/// The maximum number of operations of one flow, after inlining.
pub const OPERATIONS_MAX: usize = 100_000;

/// The deepest nesting of expressions, after inlining, so that no recursive pass overflows the stack of a thread.
const DEPTH_MAX: usize = 400;

/// The deepest nesting of blocks.
const BLOCKS_MAX: usize = 200;

/// Lowers a checked tree without errors. Reports errors that can be detected only after inlining.
pub(crate) fn lower<'a>(
    context: &mut CheckContext<'a>,
    typed: &'a TypedTree,
    flows: &mut FlowLowering<'_, 'a>,
) -> Program {
    let tree = context.tree();
    let mut program = Program::default();
    for (name, shared) in &typed.declarations.shared {
        let mut lowering = Lowering::new(context, typed);
        lowering.session = Some(Atom::Value(Value::Unit));
        let init = match &tree.items[shared.item].kind {
            ItemKind::Shared(item) => lowering.starting(&shared.ty.to_type(), |lowering| lowering.expr(&item.value)),
            ItemKind::Table(_) => {
                let advice = "the `fn` of a `migrate` uses only its row: tables and shared values are made after it";
                lowering.starting_before(&shared.ty.to_type(), advice, |lowering| lowering.opened(name, shared.span))
            }
            _ => continue,
        };
        let (name, ty, per_session) = ((&**name).into(), shared.ty.to_type(), shared.per_session);
        program.shared.push(SharedValue { name, ty, per_session, init });
    }
    let mut names = IndexMap::new();
    for entry in typed.entries() {
        let mut lowered = entry::lower_entry(entry, context, typed, flows);
        lowered.name = numbered(&mut names, lowered.name.to_string()).into();
        program.entries.push(lowered);
    }
    program.types = types::types_of(typed, context.library);
    program.inlined_calls.clone_from(&context.inlined_calls);
    program
}

/// Lowers one flow.
fn lower_flow<'a>(
    context: &mut CheckContext<'a>,
    typed: &'a TypedTree,
    lower: impl FnOnce(&mut Lowering<'a, '_>) -> Flow<Block>,
) -> LoweredFlow {
    let mut lowering = Lowering::new(context, typed);
    let flow = lower(&mut lowering);
    LoweredFlow { flow, inlined: lowering.inlined, asks_service: lowering.asks_service }
}

/// Lowers a `fn` that no flow reaches, as the body of a flow that takes its parameters, for the checks that need the
/// IR. Returns `None` if it takes functions.
pub(crate) fn lower_unreached_fn<'a>(
    at: usize,
    context: &mut CheckContext<'a>,
    typed: &'a TypedTree,
) -> Option<(Vec<Variable>, Block)> {
    let declared = &typed.declarations.functions[at];
    let ItemKind::Function(function) = &context.tree().items[declared.item].kind else { return None };
    if declared.parameters.iter().any(|parameter| matches!(parameter.ty, Ty::Function(_))) {
        return None;
    }
    let mut lowering = Lowering::new(context, typed);
    let parameters = lowering.parameters(typed.fn_locals(at));
    // Only a flow that reaches the `fn` decides whether there is a session.
    lowering.session = Some(Atom::Value(Value::Unit));
    lowering.alone = true;
    let body = lowering.whole(&declared.result.to_type(), |lowering| lowering.block(&function.body));
    Some((parameters, body))
}

/// The state of lowering one flow.
struct Lowering<'a, 'd> {
    context: &'d mut CheckContext<'a>,
    /// The program.
    program: &'a TypedTree,
    /// The code that is being lowered: the program, or a module.
    typed: &'a TypedTree,
    tree: &'a Tree,
    /// The name of the module.
    module: Option<&'a str>,
    vars: VariableSupply,
    names: Names<'a>,
    /// The types that stand for the type parameters of the current code.
    types: Rc<Substitution>,
    frames: Vec<InlineFrame<'a>>,
    frame_count: u32,
    builders: Vec<BlockBuilder>,
    /// The functions replaced by `with`, innermost last.
    replaced: Vec<(CallTarget, Callable<'a>)>,
    /// The key of the flow's session.
    session: Option<Atom>,
    /// The rows of keyed reads that are made before the rounds of a `for`.
    rows_read: BTreeMap<ExprId, PairedRow>,
    /// The names of the rows of groups whose aggregates a table computes.
    grouped_rows: BTreeMap<LocalId, GroupedRows>,
    /// The types of the patterns that bind such groups and their rows.
    group_patterns: BTreeMap<PatternId, Type>,
    /// The atomic steps around the current expression, innermost last.
    steps: Vec<StepScope>,
    /// The values of steps behind placed commits that are refused, by the variables of their transactions.
    refused_commits: BTreeMap<Var, RefusedCommit>,
    /// The statements whose functions are around the current expression, innermost last.
    calling_statements: Vec<CallingStatement>,
    /// The `?` of which the call that is lowered next is the operand.
    tried: Option<TriedCall>,
    /// For each `for` and `fold` around, the number of frames around it.
    loops: Vec<usize>,
    /// For each `race` around, the number of frames around it.
    races: Vec<usize>,
    /// The handlers that run after the steps, loops and races in which the failure arose, by the exits that carry the failures.
    deferred: BTreeMap<InlineFrameId, DeferredHandler<'a>>,
    handled_calls: HandledCalls,
    /// The `fn`s of the program that are inlined, by their indices.
    inlined: BTreeSet<usize>,
    /// True if this lowers a request of a service of the program.
    asks_service: bool,
    /// True if this lowers a `fn` that no flow reaches, whose arguments are unknown.
    alone: bool,
    /// True if this lowers code that runs at the start of the program, or at the start of a session.
    starts: bool,
    /// True if this lowers a flow of an entry point, whose answer and effects wait until its writes are durable.
    answers: bool,
    /// The place of the last statement of the flow that writes tables, or of the last one that reads them.
    statement: StatementPlace,
    /// The variables whose values are known at compile time.
    constants: constants::Constants,
    /// The number of uses of each call path.
    call_paths: IndexMap<String, u32>,
    operations: usize,
    depth: usize,
    /// Set if the flow exceeds a limit. Nothing more is lowered then.
    too_large: bool,
}

impl<'a, 'd> Lowering<'a, 'd> {
    fn new(context: &'d mut CheckContext<'a>, typed: &'a TypedTree) -> Self {
        Lowering {
            tree: context.tree(),
            context,
            program: typed,
            typed,
            module: None,
            vars: VariableSupply::default(),
            names: BTreeMap::new(),
            types: Rc::default(),
            frames: Vec::new(),
            frame_count: 0,
            builders: Vec::new(),
            replaced: Vec::new(),
            session: None,
            rows_read: BTreeMap::new(),
            grouped_rows: BTreeMap::new(),
            group_patterns: BTreeMap::new(),
            steps: Vec::new(),
            refused_commits: BTreeMap::new(),
            calling_statements: Vec::new(),
            tried: None,
            loops: Vec::new(),
            races: Vec::new(),
            deferred: BTreeMap::new(),
            handled_calls: HandledCalls::new(typed),
            inlined: BTreeSet::new(),
            asks_service: false,
            alone: false,
            starts: false,
            answers: false,
            statement: StatementPlace::default(),
            constants: constants::Constants::default(),
            call_paths: IndexMap::new(),
            operations: 0,
            depth: 0,
            too_large: false,
        }
    }

    /// Returns the place of an operation: of its span, or of the call of the module to which it belongs.
    fn origin(&self, span: Span) -> Origin {
        let span = self.context.located(span);
        Origin {
            start: span.start,
            end: span.end,
            inlined_call: self.frames.last().and_then(|frame| frame.inlined_call),
        }
    }

    /// Returns the current code and types.
    fn scope(&self) -> CodeScope<'a> {
        let code = CheckedCode { tree: self.tree, typed: self.typed, module: self.module };
        CodeScope { code, types: self.types.clone() }
    }

    /// Lowers a body that belongs to another scope and is called at `span`.
    fn in_scope<T>(&mut self, scope: CodeScope<'a>, span: Span, body: impl FnOnce(&mut Self) -> T) -> T {
        let outer = (self.scope(), self.context.call_of_module);
        let call = scope.code.module.map(|_| self.context.located(span));
        self.enter(scope);
        self.context.call_of_module = call;
        let value = body(self);
        self.enter(outer.0);
        self.context.call_of_module = outer.1;
        value
    }

    fn enter(&mut self, CodeScope { code, types }: CodeScope<'a>) {
        (self.tree, self.typed, self.module, self.types) = (code.tree, code.typed, code.module, types);
    }

    fn builder(&mut self) -> &mut BlockBuilder {
        self.builders.last_mut().expect("a body is lowered in a scope")
    }

    fn frame(&self) -> &InlineFrame<'a> {
        self.frames.last().expect("a body is lowered in a frame")
    }

    /// Returns the index of the frame that `return` and the `?` of a `fn` with a `Result` exit: that of the innermost `fn`, or the
    /// flow. In a closure it is the `fn` in which its text stands, not one that calls the closure.
    fn body_frame(&self) -> usize {
        let exits = |frame: &InlineFrame<'_>| {
            matches!(frame.kind, InlineFrameKind::Flow | InlineFrameKind::Function | InlineFrameKind::Route)
        };
        self.failure_path().find(|at| exits(&self.frames[*at])).unwrap_or(0)
    }

    /// Returns the frames that a failure passes from the current place, innermost first.
    fn failure_path(&self) -> impl Iterator<Item = usize> {
        std::iter::successors(self.frames.len().checked_sub(1), |at| self.frames[*at].outer)
    }
}

/// Returns the name, with a number from its second use on.
fn numbered(given: &mut IndexMap<String, u32>, name: String) -> String {
    let count = given.entry(name.clone()).or_insert(0);
    *count += 1;
    if *count == 1 { name } else { format!("{name}#{count}") }
}

/// Returns the name that a pattern gives to the whole value, or an empty one.
fn pattern_name(pattern: &ast::Pattern) -> &str {
    match &pattern.kind {
        ast::PatternKind::Bind(name) => name.as_str(),
        _ => "",
    }
}
