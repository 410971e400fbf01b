//! Expressions.

use super::{BinaryOperator, Block, ExprId, Literal, Name, Path, Pattern, TextLiteral, Type, UnaryOperator};
use crate::Span;

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub struct Expr {
    /// Its number in the file.
    pub id: ExprId,
    /// Which expression.
    pub kind: ExprKind,
    /// Its place, with parentheses around it where there are some.
    pub span: Span,
    /// Whether it stands in parentheses of its own. Means nothing; the formatter keeps them.
    pub parenthesized: bool,
}

/// The forms of an expression.
#[derive(Clone, PartialEq, Debug)]
pub enum ExprKind {
    /// `1_000`, `1.5e3`, `true`, `64mb`, `200ms`.
    Literal(Literal),
    /// `"hello {name}"`.
    Text(TextLiteral),
    /// `name`: a variable, a function, a module, a shared value, or a variant without payload.
    Name(Name),
    /// `object.name`: a field, or a member of a module or a shared value. Names are resolved later.
    Field {
        /// What stands before the dot.
        object: Box<Expr>,
        /// What stands behind it.
        name: Name,
    },
    /// `pair.0`.
    TupleIndex {
        /// The tuple.
        object: Box<Expr>,
        /// Which of its values, counted from 0.
        index: u32,
        /// The number's place.
        index_span: Span,
    },
    /// `object[index]`.
    Index {
        /// The list or map.
        object: Box<Expr>,
        /// Position or key.
        index: Box<Expr>,
    },
    /// `function(a, name: b)`; also makes a variant: `Circle(radius: 2.0)`.
    Call {
        /// What is called.
        function: Box<Expr>,
        /// The positional ones come first; the parser reports others behind a named one.
        arguments: Vec<Argument>,
    },
    /// `value |> function(a)` means `function(value, a)`. `value |> f` has no arguments. A `?` behind it holds for the
    /// call: `a |> f()?` is a [`ExprKind::Try`] around this.
    Pipe {
        /// The first argument.
        value: Box<Expr>,
        /// What is called: a name, or names with dots ([`ExprKind::Name`] or [`ExprKind::Field`]).
        function: Box<Expr>,
        /// The other arguments.
        arguments: Vec<Argument>,
    },
    /// `-a`, `!a`. A minus before a literal number is part of the literal.
    Unary {
        /// Which operator.
        operator: UnaryOperator,
        /// What it is applied to.
        operand: Box<Expr>,
    },
    /// `a + b`.
    Binary {
        /// Which operator.
        operator: BinaryOperator,
        /// The operator's place.
        operator_span: Span,
        /// What stands on its left.
        left: Box<Expr>,
        /// What stands on its right.
        right: Box<Expr>,
    },
    /// `value?`: ends the flow (or `fn`) with the failure, if it is one.
    Try(Box<Expr>),
    /// `value else { … }`, `value else as failure { … }`, `value else other`: what to do if `value` fails.
    /// Behind `within`, running out of time is a failure like any other.
    Else {
        /// What may fail.
        value: Box<Expr>,
        /// What the failure is called in `otherwise`.
        failure: Option<Name>,
        /// What happens instead.
        otherwise: Box<Expr>,
    },
    /// `value within 200ms`: fails if it takes longer.
    Within {
        /// What may take long.
        value: Box<Expr>,
        /// How long it may take.
        limit: Box<Expr>,
    },
    /// `if condition { … } else { … }`.
    If {
        /// What decides.
        condition: Box<Expr>,
        /// What happens if it holds.
        then: Block,
        /// An [`ExprKind::Block`] or another [`ExprKind::If`].
        otherwise: Option<Box<Expr>>,
    },
    /// `match value { Some(x) if x > 0 => x, _ => 0 }`.
    Match {
        /// What is looked at.
        value: Box<Expr>,
        /// The cases in order.
        arms: Vec<Arm>,
    },
    /// `for x in items { … }`: the list of what the body gives for each.
    For {
        /// What each element is taken apart with.
        pattern: Box<Pattern>,
        /// Where they come from.
        items: Box<Expr>,
        /// What is done with one.
        body: Block,
    },
    /// `fold total = 0 for x in items { total + x }`: the body gives the next `total`.
    Fold {
        /// What the result so far is taken apart with.
        accumulator: Box<Pattern>,
        /// What it begins as.
        initial: Box<Expr>,
        /// What each element is taken apart with.
        pattern: Box<Pattern>,
        /// Where they come from.
        items: Box<Expr>,
        /// What is done with one.
        body: Block,
    },
    /// `loop n = 1 { n * 2 } until n > 100 at most 10`: the body gives the next state; `until` sees it.
    Loop {
        /// What the state is taken apart with, in the body and behind `until`.
        state: Box<Pattern>,
        /// What it begins as.
        initial: Box<Expr>,
        /// One round.
        body: Block,
        /// Looked at after each round: the loop ends with the state when it holds.
        until: Box<Expr>,
        /// How many rounds at most; the loop fails when they are used up.
        at_most: Box<Expr>,
    },
    /// `return value`.
    Return(Option<Box<Expr>>),
    /// `{ … }`.
    Block(Block),
    /// `atomic accounts, ledger per session { … }`: one step for everybody else.
    Atomic {
        /// What is held meanwhile; at least one.
        resources: Vec<AtomicResource>,
        /// What is done.
        body: Block,
    },
    /// `race { a, b }`: the first to be ready wins, the others leave nothing behind.
    Race(Vec<Expr>),
    /// `retry(3, backoff: 100ms) { … }`: again, if it fails.
    Retry {
        /// How often, and how.
        arguments: Vec<Argument>,
        /// What is tried.
        body: Block,
    },
    /// `|x, y: Int| x + y`.
    Closure {
        /// What it takes.
        parameters: Vec<ClosureParameter>,
        /// What it gives.
        body: Box<Expr>,
    },
    /// `Post { ..old, title: "x" }`, `Post { id, title }`.
    Record {
        /// The record's name.
        path: Path,
        /// The record that gives the fields which are not named.
        base: Option<Box<Expr>>,
        /// The fields in the order of the text.
        fields: Vec<FieldValue>,
    },
    /// `(a, b)`; `()` is the unit value.
    Tuple(Vec<Expr>),
    /// `[a, b]`.
    List(Vec<Expr>),
    /// `["a": 1, "b": 2]`; `[:]` is empty.
    Map(Vec<MapEntry>),
    /// `with files.read = |name| "x" { … }`, in tests: another function takes this one's place meanwhile.
    With {
        /// What is replaced by what; at least one.
        replacements: Vec<Replacement>,
        /// What is done meanwhile.
        body: Block,
    },
    /// The text lacks an expression here, and the parser has said so.
    Error,
}

/// An argument of a call.
#[derive(Clone, PartialEq, Debug)]
pub struct Argument {
    /// The parameter's name, where written.
    pub name: Option<Name>,
    /// What it gets.
    pub value: Expr,
    /// Name and value.
    pub span: Span,
}

/// `Pattern if guard => body`.
#[derive(Clone, PartialEq, Debug)]
pub struct Arm {
    /// What must match.
    pub pattern: Pattern,
    /// What must hold besides.
    pub guard: Option<Expr>,
    /// What happens then.
    pub body: Expr,
    /// From the pattern to the body.
    pub span: Span,
}

/// One resource of an `atomic`.
#[derive(Clone, PartialEq, Debug)]
pub struct AtomicResource {
    /// A shared value or a constraint.
    pub name: Name,
    /// Whether `per session` is written behind it.
    pub per_session: bool,
    /// Name and scope.
    pub span: Span,
}

/// One parameter of a closure.
#[derive(Clone, PartialEq, Debug)]
pub struct ClosureParameter {
    /// What the argument is taken apart with.
    pub pattern: Pattern,
    /// Its type, where written.
    pub ty: Option<Type>,
}

/// One field of a record that is made. `title` alone stands for `title: title`.
#[derive(Clone, PartialEq, Debug)]
pub struct FieldValue {
    /// The field.
    pub name: Name,
    /// What it gets; for the short form an [`ExprKind::Name`] of the field's name.
    pub value: Expr,
    /// Whether the short form is written.
    pub shorthand: bool,
    /// Name and value.
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
    /// The function that is replaced.
    pub function: Path,
    /// What takes its place.
    pub value: Expr,
    /// Both.
    pub span: Span,
}
