//! Primitives: the operations on values that need no host function.

use weir_host::memory::ask;
use weir_host::{Elements, Failure, FailureKind, PropagationSite, Type, Value};

mod arithmetic;
mod checked;
mod detaching;
mod in_place;
mod interpolate;
mod lists;
mod moving;
mod passing;

use arithmetic::{add, divide, multiply, negate, remainder, subtract};
pub use checked::FalliblePrim;
pub use interpolate::{append_part, interpolate};
pub use moving::{elements, move_or_clone, moves, parts};

/// A primitive operation. The verifier checks types; an error that depends on the values is a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Prim {
    /// `a`, as it is.
    Copy,
    /// `a + b` of numbers, durations, sizes, or a time and a duration; the joining of two texts or lists.
    Add,
    /// `a - b`; of two times a duration.
    Subtract,
    /// `a * b` of numbers, or of a duration or size and an integer.
    Multiply,
    /// `a / b`, towards zero for integers; fails if `b` is the integer 0.
    Divide,
    /// `a % b`, with the sign of `a`; fails if `b` is the integer 0.
    Remainder,
    /// `-a`.
    Negate,
    /// `!a`.
    Not,
    /// `a && b` without a branch: used if computing `b` in vain is cheaper than branching.
    And,
    /// `a || b` without a branch.
    Or,
    /// `a == b`.
    Equal,
    /// `a != b`.
    NotEqual,
    /// `a < b`.
    Less,
    /// `a <= b`.
    LessOrEqual,
    /// `a > b`.
    Greater,
    /// `a >= b`.
    GreaterOrEqual,
    /// A text from the parts of an interpolation.
    Interpolate,
    /// A text as it is shown inside of another value: in quotes.
    Quote,
    /// A list of the operands.
    List,
    /// A map of keys and values in turn; a later key replaces an earlier one's value.
    Map,
    /// A tuple or record of the operands.
    Record,
    /// A variant with this tag, and the operands as its payload.
    Variant(u32),
    /// The field of a tuple or record.
    Field(u32),
    /// The record with this field replaced: record, then value.
    WithField(u32),
    /// The field of a variant's payload, whose tag was tested before.
    Payload(u32),
    /// True if a value is the variant with this tag.
    IsVariant(u32),
    /// The number of elements of a list or map, bytes of bytes, or characters of a text.
    Length,
    /// `list[i]`, which fails if there is no such element; `map[k]`, an `Option`.
    Index,
    /// [`Prim::Field`] of a record whose field nothing reads afterwards, so that it may be moved out of the record.
    DetachField(u32),
    /// [`Prim::Index`] of a list or map whose element nothing reads afterwards, so that it may be moved out.
    DetachElement,
    /// The elements of a list from the integer on, which is at most its length.
    Rest,
    /// The elements of a list without a number of the first and of the last ones: the list, then the two numbers.
    Middle,
    /// The pairs of a map, in the order in which their keys were inserted, as a list of tuples.
    Pairs,
    /// Lists with one more element at their end, as [`Prim::Flatten`] sees them. Few elements are copied: it joins the
    /// last lists if they have equal lengths, so that each element is copied once each time the total doubles.
    Collect,
    /// The elements of all lists of a list, in one.
    Flatten,
    /// A failure of the program, with a text as its message.
    Failure,
    /// The value of a `Result` of a call that keeps its failure; fails with the failure if there is one.
    Unwrap,
    /// A failure with more places in its backtrace: a list of the function that failed, the `fn` around it, and the position.
    Propagate,
    /// A primitive that may fail, with its failure as a value: `Ok` of what it yields, or `Err` of the failure.
    Checked(FalliblePrim),
}

impl Prim {
    /// Every primitive, in the order of the declaration; those with an index have 0.
    pub const ALL: [Prim; 45] = [
        Prim::Copy,
        Prim::Add,
        Prim::Subtract,
        Prim::Multiply,
        Prim::Divide,
        Prim::Remainder,
        Prim::Negate,
        Prim::Not,
        Prim::And,
        Prim::Or,
        Prim::Equal,
        Prim::NotEqual,
        Prim::Less,
        Prim::LessOrEqual,
        Prim::Greater,
        Prim::GreaterOrEqual,
        Prim::Interpolate,
        Prim::Quote,
        Prim::List,
        Prim::Map,
        Prim::Record,
        Prim::Variant(0),
        Prim::Field(0),
        Prim::WithField(0),
        Prim::Payload(0),
        Prim::IsVariant(0),
        Prim::Length,
        Prim::Index,
        Prim::DetachField(0),
        Prim::DetachElement,
        Prim::Rest,
        Prim::Middle,
        Prim::Pairs,
        Prim::Collect,
        Prim::Flatten,
        Prim::Failure,
        Prim::Unwrap,
        Prim::Propagate,
        Prim::Checked(FalliblePrim::Add),
        Prim::Checked(FalliblePrim::Subtract),
        Prim::Checked(FalliblePrim::Multiply),
        Prim::Checked(FalliblePrim::Divide),
        Prim::Checked(FalliblePrim::Remainder),
        Prim::Checked(FalliblePrim::Negate),
        Prim::Checked(FalliblePrim::Index),
    ];

    /// Returns the name in the printed IR, without the index.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Prim::Copy => "copy",
            Prim::Add => "add",
            Prim::Subtract => "subtract",
            Prim::Multiply => "multiply",
            Prim::Divide => "divide",
            Prim::Remainder => "remainder",
            Prim::Negate => "negate",
            Prim::Not => "not",
            Prim::And => "and",
            Prim::Or => "or",
            Prim::Equal => "equal",
            Prim::NotEqual => "not_equal",
            Prim::Less => "less",
            Prim::LessOrEqual => "less_or_equal",
            Prim::Greater => "greater",
            Prim::GreaterOrEqual => "greater_or_equal",
            Prim::Interpolate => "interpolate",
            Prim::Quote => "quote",
            Prim::List => "list",
            Prim::Map => "map",
            Prim::Record => "record",
            Prim::Variant(_) => "variant",
            Prim::Field(_) => "field",
            Prim::WithField(_) => "with_field",
            Prim::Payload(_) => "payload",
            Prim::IsVariant(_) => "is_variant",
            Prim::Length => "length",
            Prim::Index => "index",
            Prim::DetachField(_) => "detach_field",
            Prim::DetachElement => "detach_element",
            Prim::Rest => "rest",
            Prim::Middle => "middle",
            Prim::Pairs => "pairs",
            Prim::Collect => "collect",
            Prim::Flatten => "flatten",
            Prim::Failure => "failure",
            Prim::Unwrap => "unwrap",
            Prim::Propagate => "propagate",
            Prim::Checked(fallible) => fallible.checked_name(),
        }
    }

    /// Returns the index, if the primitive has one.
    #[must_use]
    pub fn index(self) -> Option<u32> {
        match self {
            Prim::Variant(index)
            | Prim::Field(index)
            | Prim::WithField(index)
            | Prim::DetachField(index)
            | Prim::Payload(index)
            | Prim::IsVariant(index) => Some(index),
            _ => None,
        }
    }

    /// Returns the same primitive with another index; has no effect on primitives without one.
    #[must_use]
    pub fn with_index(self, index: u32) -> Prim {
        match self {
            Prim::Variant(_) => Prim::Variant(index),
            Prim::Field(_) => Prim::Field(index),
            Prim::WithField(_) => Prim::WithField(index),
            Prim::DetachField(_) => Prim::DetachField(index),
            Prim::Payload(_) => Prim::Payload(index),
            Prim::IsVariant(_) => Prim::IsVariant(index),
            other => other,
        }
    }

    /// Returns the number of operands; `None` for any number.
    #[must_use]
    pub fn arity(self) -> Option<usize> {
        match self {
            Prim::Interpolate | Prim::List | Prim::Map | Prim::Record | Prim::Variant(_) => None,
            Prim::Copy
            | Prim::Negate
            | Prim::Not
            | Prim::Quote
            | Prim::Field(_)
            | Prim::DetachField(_)
            | Prim::Payload(_)
            | Prim::IsVariant(_)
            | Prim::Length
            | Prim::Pairs
            | Prim::Flatten
            | Prim::Failure
            | Prim::Unwrap => Some(1),
            Prim::Middle => Some(3),
            Prim::Checked(fallible) => fallible.prim().arity(),
            _ => Some(2),
        }
    }

    /// Returns true if it may fail: by overflow, division by zero, an index out of range, or the failure of a call.
    #[must_use]
    pub fn may_fail(self) -> bool {
        matches!(
            self,
            Prim::Add
                | Prim::Subtract
                | Prim::Multiply
                | Prim::Divide
                | Prim::Remainder
                | Prim::Negate
                | Prim::Index
                | Prim::DetachElement
                | Prim::Unwrap
        )
    }

    /// Returns true if it compares two values or combines Booleans: a switch may evaluate it as part of its condition.
    #[must_use]
    pub fn decides(self) -> bool {
        matches!(
            self,
            Prim::Not
                | Prim::And
                | Prim::Or
                | Prim::Equal
                | Prim::NotEqual
                | Prim::Less
                | Prim::LessOrEqual
                | Prim::Greater
                | Prim::GreaterOrEqual
        )
    }

    /// Evaluates the operations of most conditions, so that engines can inline them: comparisons of two integers, and
    /// `and` and `or` of two truth values. Returns `None` for everything else.
    #[inline]
    #[must_use]
    pub fn decide(self, a: &Value, b: &Value) -> Option<bool> {
        match (a, b) {
            (Value::Int(a), Value::Int(b)) => match self {
                Prim::Equal => Some(a == b),
                Prim::NotEqual => Some(a != b),
                Prim::Less => Some(a < b),
                Prim::LessOrEqual => Some(a <= b),
                Prim::Greater => Some(a > b),
                Prim::GreaterOrEqual => Some(a >= b),
                _ => None,
            },
            (Value::Bool(a), Value::Bool(b)) => match self {
                Prim::And => Some(*a && *b),
                Prim::Or => Some(*a || *b),
                _ => None,
            },
            _ => None,
        }
    }

    /// Applies the primitive and leaves the operands as they are.
    ///
    /// # Errors
    /// Fails only if [`Prim::may_fail`].
    ///
    /// # Panics
    /// Panics on operands that the verifier refuses: a wrong number or a wrong type.
    #[inline]
    pub fn apply(self, operands: &[&Value]) -> Result<Value, Box<Failure>> {
        if let [a, b] = operands
            && let Some(decided) = self.decide(a, b)
        {
            return Ok(Value::Bool(decided));
        }
        match (self, operands) {
            (Prim::Copy, [a]) => Ok((*a).clone()),
            (Prim::Add, [a, b]) => add(a, b),
            (Prim::Subtract, [a, b]) => subtract(a, b),
            (Prim::Multiply, [a, b]) => multiply(a, b),
            (Prim::Divide, [a, b]) => divide(a, b),
            (Prim::Remainder, [a, b]) => remainder(a, b),
            (Prim::Negate, [a]) => negate(a),
            (Prim::Not, [Value::Bool(a)]) => Ok(Value::Bool(!a)),
            (Prim::Equal, [a, b]) => Ok(Value::Bool(equal(a, b))),
            (Prim::NotEqual, [a, b]) => Ok(Value::Bool(!equal(a, b))),
            (Prim::Less, [a, b]) => Ok(Value::Bool(compare(a, b).is_some_and(|o| o.is_lt()))),
            (Prim::LessOrEqual, [a, b]) => Ok(Value::Bool(compare(a, b).is_some_and(|o| o.is_le()))),
            (Prim::Greater, [a, b]) => Ok(Value::Bool(compare(a, b).is_some_and(|o| o.is_gt()))),
            (Prim::GreaterOrEqual, [a, b]) => Ok(Value::Bool(compare(a, b).is_some_and(|o| o.is_ge()))),
            (Prim::Interpolate, parts) => Ok(Value::Text(interpolate(parts.iter().copied())?)),
            (Prim::Quote, [Value::Text(text)]) => {
                ask(2 * text.len()).map(|()| Value::Text(format!("{:?}", text.as_str()).into()))
            }
            (Prim::List, elements) => Ok(Value::List(cloned(elements))),
            (Prim::Map, entries) => {
                Ok(Value::Map(entries.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()))
            }
            (Prim::Record, fields) => Ok(Value::Record(cloned(fields))),
            (Prim::Variant(tag), []) => Ok(Value::Variant(tag, None)),
            (Prim::Variant(tag), payload) => Ok(Value::Variant(tag, Some(cloned(payload)))),
            (Prim::Field(index) | Prim::DetachField(index), [Value::Record(fields)]) => {
                Ok(fields[index as usize].clone())
            }
            (Prim::WithField(index), [Value::Record(fields), value]) => Ok(with_field(fields, index, value)),
            (Prim::Payload(index), [Value::Variant(_, Some(payload))]) => Ok(payload[index as usize].clone()),
            (Prim::IsVariant(tag), [Value::Variant(actual, _)]) => Ok(Value::Bool(*actual == tag)),
            (Prim::Length, [a]) => Ok(Value::Int(length(a))),
            (Prim::Index | Prim::DetachElement, [collection, key]) => index(collection, key),
            (Prim::Rest, [Value::List(elements), Value::Int(from)]) => lists::middle(elements, *from, 0),
            (Prim::Middle, [Value::List(elements), Value::Int(front), Value::Int(back)]) => {
                lists::middle(elements, *front, *back)
            }
            (Prim::Pairs, [Value::Map(map)]) => lists::pairs(map),
            (Prim::Collect, [Value::List(lists), element]) => lists::collect(lists, (*element).clone()),
            (Prim::Failure, [Value::Text(message)]) => {
                Ok(Value::Failure(Box::new(Failure::new(FailureKind::Program, message.clone()))))
            }
            (Prim::Unwrap, [Value::Variant(Value::OK, Some(payload))]) => Ok(payload[0].clone()),
            (Prim::Unwrap, [Value::Variant(Value::ERR, Some(payload))]) => Err(failure_of(payload[0].clone())),
            (Prim::Propagate, [Value::Failure(failure), Value::List(sites)]) => Ok(propagated(failure, sites)),
            (Prim::Flatten, [Value::List(lists)]) => lists::flatten(lists),
            (Prim::Checked(fallible), operands) => Ok(fallible.apply_checked(operands)),
            (prim, operands) => panic!("{} of {operands:?} passed the verifier", prim.name()),
        }
    }
}

/// Returns the failure of a call.
fn failure_of(value: Value) -> Box<Failure> {
    match value {
        Value::Failure(failure) => failure,
        other => panic!("the failure {other:?} passed the verifier"),
    }
}

/// Returns the type of the second operand of [`Prim::Propagate`].
pub(crate) fn propagation_sites() -> Type {
    Type::list(Type::Tuple(vec![Type::Text, Type::Text, Type::Int].into()))
}

/// Appends the sites to the backtrace of a failure.
fn propagated(failure: &Failure, sites: &Elements) -> Value {
    let mut failure = Box::new(failure.clone());
    for site in sites.iter() {
        if let Value::Record(parts) = &*site
            && let [Value::Text(failed), Value::Text(function), Value::Int(position)] = &**parts
        {
            let position = u32::try_from(*position).unwrap_or_default();
            failure.propagated(PropagationSite { failed: failed.clone(), function: function.clone(), position });
        }
    }
    Value::Failure(failure)
}

fn cloned<C: FromIterator<Value>>(values: &[&Value]) -> C {
    values.iter().map(|value| (*value).clone()).collect()
}

/// Compares two floats as IEEE 754 defines, everything else by structure.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(x), Value::Float(y)) => x == y,
        _ => a == b,
    }
}

/// Compares two floats as IEEE 754 defines, so that NaN is unordered; everything else by the total order.
fn compare(a: &Value, b: &Value) -> Option<std::cmp::Ordering> {
    match (a, b) {
        (Value::Float(x), Value::Float(y)) => x.partial_cmp(y),
        _ => Some(a.cmp(b)),
    }
}

fn with_field(fields: &[Value], index: u32, value: &Value) -> Value {
    let mut fields: Vec<Value> = fields.to_vec();
    fields[index as usize] = value.clone();
    Value::Record(fields.into())
}

fn length(value: &Value) -> i64 {
    let length = match value {
        Value::List(elements) => elements.len(),
        Value::Map(map) => map.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Text(text) => text.chars().count(),
        other => panic!("length of {other:?} passed the verifier"),
    };
    i64::try_from(length).unwrap_or(i64::MAX)
}

fn index(collection: &Value, key: &Value) -> Result<Value, Box<Failure>> {
    match (collection, key) {
        (Value::Map(map), key) => Ok(map.get(key).map_or_else(Value::none, |value| Value::some(value.clone()))),
        (Value::List(elements), Value::Int(at)) => {
            let found = usize::try_from(*at).ok().and_then(|at| elements.get(at));
            found.ok_or_else(|| no_element(*at, elements.len()))
        }
        _ => panic!("index of {collection:?} by {key:?} passed the verifier"),
    }
}

fn no_element(at: i64, length: usize) -> Box<Failure> {
    Box::new(Failure::new(FailureKind::Arithmetic, format!("index {at} of a list of {length}")))
}
