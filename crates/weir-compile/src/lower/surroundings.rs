//! The surroundings of an expression that is lowered: the values of names, inline frames, and atomic steps.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use weir_host::{Text, Type};
use weir_ir::expr::{Atom, Block, InlinedCallId, Variable};
use weir_syntax::Span;
use weir_syntax::ast::{ClosureParameter, Expr, ExprId, FailureHandler, Tree};

use super::block_builder::InlineFrameId;
use super::handled_calls::ArgumentAtoms;
use crate::typed_tree::{CallTarget, FailureTarget, LocalId, TypedTree};
use crate::types::Substitution;

/// The value that a local name stands for.
#[derive(Clone)]
pub(super) enum Binding<'a> {
    Atom(Atom),
    Callable(Callable<'a>),
}

/// Something that is inlined where it is called.
#[derive(Clone)]
pub(super) enum Callable<'a> {
    Closure {
        parameters: &'a [ClosureParameter],
        body: &'a Expr,
        names: Rc<Names<'a>>,
        scope: CodeScope<'a>,
        /// The index of the frame that it is written in.
        frame: usize,
    },
    /// A `fn` of some code, by its index.
    Function(usize, CodeScope<'a>),
    Host(Text),
}

/// A checked text: the program, or a module of the library that is written in Weir.
#[derive(Clone, Copy)]
pub(super) struct CheckedCode<'a> {
    pub(super) tree: &'a Tree,
    pub(super) typed: &'a TypedTree,
    /// The name of the module.
    pub(super) module: Option<&'a str>,
}

/// The code that an expression belongs to, and the types that stand for the type parameters there.
#[derive(Clone)]
pub(super) struct CodeScope<'a> {
    pub(super) code: CheckedCode<'a>,
    pub(super) types: Rc<Substitution>,
}

pub(super) type Names<'a> = BTreeMap<LocalId, Binding<'a>>;

/// The kind of an inline frame, which decides what exits it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum InlineFrameKind {
    /// The flow itself. `return` and `?` end it.
    Flow,
    /// An inlined `fn`. `return` exits it.
    Function,
    /// A route that a test requests. `return` exits it, and a failure that nothing handles is answered.
    Route,
    /// One try of a `retry`. Only a `?` exits it.
    Retry,
    /// A closure, which nothing exits. Its failures go where those of its surrounding text go: to the handlers, the `retry` or the
    /// `fn` around its text, not to those of the `fn` that calls it.
    Closure,
}

/// One inlined call of a `fn`.
pub(super) struct InlineFrame<'a> {
    pub(super) id: InlineFrameId,
    /// The prefix of the call paths inside it, with a trailing slash.
    pub(super) call_path: String,
    /// The type of its result.
    pub(super) result: Type,
    pub(super) kind: InlineFrameKind,
    /// The index of the frame that a failure goes to from here; none for a flow.
    pub(super) outer: Option<usize>,
    /// The name of the inlined `fn`.
    pub(super) function: Option<Arc<str>>,
    /// The call that is inlined.
    pub(super) called_at: Span,
    /// The inlined call of a `fn` of the program that the operations in the frame belong to; for a closure that of its text.
    pub(super) inlined_call: Option<InlinedCallId>,
    /// The arguments of that call, kept if handlers use arguments.
    pub(super) arguments: ArgumentAtoms,
    /// The failure handlers that apply in it, innermost first.
    pub(super) handlers: Vec<&'a FailureHandler>,
    /// The bindings of its parameters, kept if it has handlers.
    pub(super) parameters: Names<'a>,
    /// Its code, and the types that stand for its type parameters.
    pub(super) scope: CodeScope<'a>,
}

/// An atomic step around the current expression.
pub(super) struct StepScope {
    /// The names in the program of the resources that it holds.
    pub(super) resources: Vec<Arc<str>>,
    /// The constraints that it holds as a reader, each with its `read`.
    pub(super) readers: Vec<(Arc<str>, Span)>,
    /// The number of frames around the step; those behind it are inlined into the step.
    pub(super) frame_count: usize,
    /// The transaction, if the step names tables.
    pub(super) transaction: Option<Transaction>,
}

/// The value that a step has behind its placed commit, if that is refused.
pub(super) struct RefusedCommit {
    /// The variable of the failure.
    pub(super) failure: Variable,
    pub(super) value: Block,
}

/// The transaction of an atomic step over tables.
#[derive(Clone)]
pub(super) struct Transaction {
    /// The number of the transaction.
    pub(super) number: Atom,
    /// The `atomic`, or the statement.
    pub(super) span: Span,
    /// The tables that it names: the stored ones, then those in memory.
    pub(super) tables: Vec<Text>,
    /// True if it is that of one statement.
    pub(super) is_own: bool,
}

impl Transaction {
    /// Returns the place of the word `atomic`.
    pub(super) fn head(&self) -> Span {
        let Span { source, start, end } = self.span;
        Span { source, start, end: end.min(start.saturating_add("atomic".len() as u32)) }
    }
}

/// A statement that holds its table while it calls a function.
#[derive(Clone)]
pub(super) struct CallingStatement {
    /// Its name, such as `update`.
    pub(super) name: &'static str,
    pub(super) table: Text,
    pub(super) span: Span,
    /// The number of frames around it.
    pub(super) frame_count: usize,
    /// True if it is in a transaction.
    pub(super) is_in_transaction: bool,
    /// The reason why it is in a transaction, if its place in the text does not show it.
    pub(super) around: Option<(Span, &'static str)>,
    /// True if the function is known to write a table.
    pub(super) is_reported: bool,
}

/// A call that is the operand of a `?`.
#[derive(Clone)]
pub(super) struct TriedCall {
    /// The call.
    pub(super) call: ExprId,
    /// The place of the `?`.
    pub(super) span: Span,
    /// The target of its failure.
    pub(super) to: FailureTarget,
    /// The callee.
    pub(super) of: Option<CallTarget>,
}

/// A handler that runs after an atomic step, when its locks are released, after a loop, whose rounds it then does not end, or after a race,
/// which the body with the failure has won.
#[derive(Clone)]
pub(super) struct DeferredHandler<'a> {
    pub(super) handler: &'a FailureHandler,
    /// The index of the frame that has the handler.
    pub(super) frame: usize,
    /// The number of steps around the step in which the failure arose.
    pub(super) step: usize,
    /// The number of loops around the loop in which the failure arose.
    pub(super) around_loop: usize,
    /// The number of races around the race in which the failure arose.
    pub(super) around_race: usize,
    /// The type of what leaves them: the failure, or a tuple of it and the arguments that the handler uses.
    pub(super) leaves: Type,
}
