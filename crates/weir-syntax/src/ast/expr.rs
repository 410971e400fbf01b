//! Expressions.

use super::{
    BinaryOperator, Block, ExprId, Literal, Name, Path, Pattern, QueryClauses, TextLiteral, Type, UnaryOperator,
};
use crate::Span;

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    /// Id within the file.
    pub id: ExprId,
    /// Form of the expression.
    pub kind: ExprKind,
    /// Source range, including parentheses around the expression.
    pub span: Span,
    /// True if the expression is in parentheses. They have no meaning; the formatter keeps them.
    pub parenthesized: bool,
}

/// The forms of an expression.
#[derive(Clone, PartialEq, Debug)]
pub enum ExprKind {
    /// `1_000`, `1.5e3`, `true`, `64mb`, `200ms`.
    Literal(Literal),
    /// `"hello {name}"`.
    Text(TextLiteral),
    /// `price:.2` between the braces of an interpolation; its value is a text.
    Formatted {
        /// The value.
        value: Box<Expr>,
        /// Its format.
        format: super::TextFormat,
        /// Source range of the format, behind the colon.
        format_span: Span,
    },
    /// `html"<b>{name}</b>"`: a template.
    Html(TextLiteral),
    /// `name`: a variable, a function, a module, a shared value, or a variant without payload.
    Name(Name),
    /// `object.name`: a field, or a member of a module or of a shared value. Names are resolved later.
    Field {
        /// Expression before the dot.
        object: Box<Expr>,
        /// Name after the dot.
        name: Name,
    },
    /// `pair.0`.
    TupleIndex {
        /// The tuple.
        object: Box<Expr>,
        /// Index of the element, counted from 0.
        index: u32,
        /// Source range of the number.
        index_span: Span,
    },
    /// `object[index]`.
    Index {
        /// The list or map.
        object: Box<Expr>,
        /// Position or key.
        index: Box<Expr>,
    },
    /// `function(a, name: b)`. Also constructs a variant: `Circle(radius: 2.0)`.
    Call {
        /// The called expression.
        function: Box<Expr>,
        /// Arguments, positional ones first; the parser reports a positional argument after a named one.
        arguments: Vec<Argument>,
    },
    /// `value |> function(a)` means `function(value, a)`; `value |> f` has no arguments. A `?` after it applies to the
    /// call: `a |> f()?` is a [`ExprKind::Try`] around the pipe.
    Pipe {
        /// The first argument.
        value: Box<Expr>,
        /// The called function: a name, or names joined by dots ([`ExprKind::Name`] or [`ExprKind::Field`]).
        function: Box<Expr>,
        /// The other arguments.
        arguments: Vec<Argument>,
    },
    /// `-a`, `!a`. A minus before a number is part of the literal.
    Unary {
        /// The operator.
        operator: UnaryOperator,
        /// The operand.
        operand: Box<Expr>,
    },
    /// `a + b`.
    Binary {
        /// The operator.
        operator: BinaryOperator,
        /// Source range of the operator.
        operator_span: Span,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// `value?`: ends the flow (or the `fn`) with the failure if the value is one.
    Try(Box<Expr>),
    /// `value else { … }`, `value else as failure { … }`, `value else other`: handles a failure of `value`. After
    /// `within`, a timeout is a failure like any other.
    Else {
        /// The fallible expression.
        value: Box<Expr>,
        /// Name of the failure in `otherwise`.
        failure: Option<Name>,
        /// Body that runs instead.
        otherwise: Box<Expr>,
    },
    /// `value within 200ms`: fails if the value takes longer.
    Within {
        /// The expression whose time is limited.
        value: Box<Expr>,
        /// The time limit.
        limit: Box<Expr>,
    },
    /// `if condition { … } else { … }`.
    If {
        /// The condition.
        condition: Box<Expr>,
        /// Branch for a true condition.
        then: Block,
        /// An [`ExprKind::Block`] or another [`ExprKind::If`].
        otherwise: Option<Box<Expr>>,
    },
    /// `match value { Some(x) if x > 0 => x, _ => 0 }`.
    Match {
        /// The matched value.
        value: Box<Expr>,
        /// Arms in source order.
        arms: Vec<Arm>,
    },
    /// `for x in items if x.open order by x.name limit 10 { … }`: a list of the values of the body, one for each element.
    For {
        /// Pattern that binds each element.
        pattern: Box<Pattern>,
        /// The list of elements.
        items: Box<Expr>,
        /// Clauses that choose and order the elements.
        query: Box<QueryClauses>,
        /// Body for one element.
        body: Block,
    },
    /// `fold total = 0 for x in items { total + x }`: the body returns the next `total`.
    Fold {
        /// Pattern that binds the accumulator.
        accumulator: Box<Pattern>,
        /// Initial value.
        initial: Box<Expr>,
        /// Pattern that binds each element.
        pattern: Box<Pattern>,
        /// The list of elements.
        items: Box<Expr>,
        /// Body for one element.
        body: Block,
    },
    /// `loop n = 1 { n * 2 } until n > 100 at most 10`: the body returns the next state, which `until` tests.
    Loop {
        /// Pattern that binds the state, in the body and in `until`.
        state: Box<Pattern>,
        /// Initial value.
        initial: Box<Expr>,
        /// Body of one iteration.
        body: Block,
        /// Condition, tested after each iteration; the loop ends with the state if it is true.
        until: Box<Expr>,
        /// Maximum number of iterations; the loop fails if it exceeds them.
        at_most: Box<Expr>,
    },
    /// `return value`.
    Return(Option<Box<Expr>>),
    /// `{ … }`.
    Block(Block),
    /// `atomic accounts, ledger per session { … }`: a step that other flows see as a whole.
    Atomic {
        /// Resources that the step holds; at least one.
        resources: Vec<AtomicResource>,
        /// Body.
        body: Block,
    },
    /// `race { a, b }`: the value of the first body that is ready; the others are cancelled.
    Race(Vec<Expr>),
    /// `retry(3, backoff: 100ms) { … }`: runs the body again if it fails.
    Retry {
        /// Number of attempts and backoff.
        arguments: Vec<Argument>,
        /// Body that is retried.
        body: Block,
    },
    /// `|x, y: Int| x + y`.
    Closure {
        /// Parameters.
        parameters: Vec<ClosureParameter>,
        /// Body.
        body: Box<Expr>,
    },
    /// `Post { ..old, title: "x" }`, `Post { id, title }`.
    Record {
        /// Name of the record.
        path: Path,
        /// The record that supplies the fields which are not named.
        base: Option<Box<Expr>>,
        /// Fields in source order.
        fields: Vec<FieldValue>,
    },
    /// `(a, b)`; `()` is the unit value.
    Tuple(Vec<Expr>),
    /// `[a, b]`.
    List(Vec<Expr>),
    /// `["a": 1, "b": 2]`; `[:]` is empty.
    Map(Vec<MapEntry>),
    /// `with files.read = |name| "x" { … }`, in tests: replaces a function while the body runs.
    With {
        /// Replacements; at least one.
        replacements: Vec<Replacement>,
        /// Body during which the replacements hold.
        body: Block,
    },
    /// Placeholder for a missing expression, which the parser has reported.
    Error,
}

/// An argument of a call.
#[derive(Clone, PartialEq, Debug)]
pub struct Argument {
    /// Name of the parameter, if written.
    pub name: Option<Name>,
    /// Value of the argument.
    pub value: Expr,
    /// Source range of name and value.
    pub span: Span,
}

/// `Pattern if guard => body`.
#[derive(Clone, PartialEq, Debug)]
pub struct Arm {
    /// Pattern that must match.
    pub pattern: Pattern,
    /// Condition that must also hold.
    pub guard: Option<Expr>,
    /// Body of the arm.
    pub body: Expr,
    /// Source range from the pattern to the body.
    pub span: Span,
}

/// One resource of an `atomic`.
#[derive(Clone, PartialEq, Debug)]
pub struct AtomicResource {
    /// Source range of `read`, if it precedes: the step holds the resource together with other readers.
    pub read: Option<Span>,
    /// A shared value or a constraint; one of another module has the name of the module before its own.
    pub path: Path,
    /// True if `per session` follows.
    pub per_session: bool,
    /// Source range of mode, name and scope.
    pub span: Span,
}

/// One parameter of a closure.
#[derive(Clone, PartialEq, Debug)]
pub struct ClosureParameter {
    /// Pattern that binds the argument.
    pub pattern: Pattern,
    /// Type, if written.
    pub ty: Option<Type>,
}

/// One field of a record expression. `title` alone means `title: title`.
#[derive(Clone, PartialEq, Debug)]
pub struct FieldValue {
    /// Name of the field.
    pub name: Name,
    /// Value of the field; in the short form an [`ExprKind::Name`] with the field's name.
    pub value: Expr,
    /// True for the short form.
    pub shorthand: bool,
    /// Source range of name and value.
    pub span: Span,
}

/// `key: value` in a map.
#[derive(Clone, PartialEq, Debug)]
pub struct MapEntry {
    /// The key.
    pub key: Expr,
    /// The value.
    pub value: Expr,
}

/// `files.read = |name| "x"` in a `with`.
#[derive(Clone, PartialEq, Debug)]
pub struct Replacement {
    /// The replaced function.
    pub function: Path,
    /// The replacement.
    pub value: Expr,
    /// Source range of both.
    pub span: Span,
}
