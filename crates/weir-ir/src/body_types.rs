//! The types around the bodies of an operation, one description for both IRs: of the operation's own operands, of the
//! parameters of its bodies, of what bodies yield and of the result.
//!
//! An operation with bodies has *own operands* (a list or a limit, then initial states), and bodies have *own parameters*
//! (states, then the element). The verifier checks both IRs by [`BodyTypes::required`].

use weir_host::Type;

/// The types around the bodies of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyTypes {
    first: FirstOperand,
    yields: YieldedType,
}

/// The operand before the states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstOperand {
    Nothing,
    /// A list, each element of which is the last own parameter of a body.
    List,
    /// A `Duration`.
    Limit,
    /// Nothing, but the last own parameter of the body tells whether it is the last attempt.
    Attempt,
}

/// The type that bodies yield, and the type of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum YieldedType {
    /// An element, of a list of which the result is.
    Element,
    /// The next state or the tuple of the next states, and so is the result.
    States,
    /// The tuple of the next states and a Boolean; the result is the state or the tuple of the states.
    Round,
    /// A value, of which the result is an `Option`.
    Some,
    /// A value, of which the result is a `Result` whose `Err` is a failure with its position.
    Ok,
    /// The result.
    Result,
}

/// The types that an operation requires.
pub(crate) struct RequiredTypes {
    /// The types of its own operands.
    pub operands: Vec<Type>,
    /// The type that its bodies yield; `None` if they must not yield.
    pub body: Option<Type>,
}

impl BodyTypes {
    pub(crate) const MAP: BodyTypes = BodyTypes { first: FirstOperand::List, yields: YieldedType::Element };
    pub(crate) const FOLD: BodyTypes = BodyTypes { first: FirstOperand::List, yields: YieldedType::States };
    pub(crate) const LOOP: BodyTypes = BodyTypes { first: FirstOperand::Nothing, yields: YieldedType::Round };
    pub(crate) const WITHIN: BodyTypes = BodyTypes { first: FirstOperand::Limit, yields: YieldedType::Some };
    pub(crate) const TRANSACTION: BodyTypes = BodyTypes { first: FirstOperand::Attempt, yields: YieldedType::Result };
    pub(crate) const CATCH: BodyTypes = BodyTypes { first: FirstOperand::Nothing, yields: YieldedType::Ok };
    /// Of bodies that stand for the operation, such as those of a race.
    pub(crate) const RESULT: BodyTypes = BodyTypes { first: FirstOperand::Nothing, yields: YieldedType::Result };

    /// Returns the number of own operands besides the states.
    pub(crate) const fn operands(self) -> usize {
        matches!(self.first, FirstOperand::List | FirstOperand::Limit) as usize
    }

    /// Returns the number of own parameters of a body besides the states.
    pub(crate) const fn parameters(self) -> usize {
        matches!(self.first, FirstOperand::List | FirstOperand::Attempt) as usize
    }

    /// Returns true if the first operand limits the time.
    pub(crate) fn has_limit(self) -> bool {
        self.first == FirstOperand::Limit
    }

    /// Returns true if the operation yields exactly if one of its bodies does.
    pub(crate) fn stands_for_bodies(self) -> bool {
        self.yields == YieldedType::Result
    }

    /// Returns the types that an operation requires whose bodies have these own parameters, and that has this result.
    ///
    /// # Errors
    /// Fails if no such operation has this result.
    pub(crate) fn required(self, own: &[&Type], result: &Type) -> Result<RequiredTypes, String> {
        let lacks = || "the body lacks parameters".to_owned();
        let states = own.len().checked_sub(self.parameters()).ok_or_else(lacks)?;
        let (states, element) = own.split_at(states);
        if states.is_empty() == matches!(self.yields, YieldedType::States | YieldedType::Round) {
            return Err(lacks());
        }
        let states: Vec<Type> = states.iter().copied().cloned().collect();
        let body = self.body(&states, result)?;
        let first = match self.first {
            FirstOperand::Attempt if element != [&Type::Bool] => return Err(lacks()),
            FirstOperand::Nothing | FirstOperand::Attempt => None,
            FirstOperand::List => element.first().copied().cloned().map(Type::list),
            FirstOperand::Limit => Some(Type::Duration),
        };
        Ok(RequiredTypes { operands: first.into_iter().chain(states).collect(), body })
    }

    fn body(self, states: &[Type], result: &Type) -> Result<Option<Type>, String> {
        match (self.yields, result) {
            (YieldedType::Element, Type::List(inner)) | (YieldedType::Some, Type::Option(inner)) => {
                Ok(Some(Type::clone(inner)))
            }
            (YieldedType::Ok, Type::Result(pair)) if pair.1 == caught_failure_type() => Ok(Some(pair.0.clone())),
            (YieldedType::Result, Type::Never) => Ok(None),
            (YieldedType::Result, result) => Ok(Some(result.clone())),
            (YieldedType::States, result) if *result == state_type(states) => Ok(Some(state_type(states))),
            // A loop whose rounds all end the flow never yields.
            (YieldedType::Round, result) if *result == state_type(states) || *result == Type::Never => {
                Ok(Some(round_type(states)))
            }
            (_, result) => Err(format!("does not give {result}")),
        }
    }
}

/// Returns the type of what a loop or fold with states of these types yields: the type of the only state, or a tuple.
#[must_use]
pub fn state_type(types: &[Type]) -> Type {
    match types {
        [only] => only.clone(),
        _ => Type::Tuple(types.into()),
    }
}

/// Returns the type of a failure that was caught: the failure, and its position in the source in bytes.
#[must_use]
pub fn caught_failure_type() -> Type {
    Type::Tuple([Type::Failure, Type::Int].into())
}

/// Returns the type of what a round of a loop with states of these types yields.
#[must_use]
pub fn round_type(types: &[Type]) -> Type {
    Type::Tuple(types.iter().cloned().chain([Type::Bool]).collect())
}
