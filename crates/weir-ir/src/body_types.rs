//! The types around the bodies of an operation, one description for both IRs: of the operation's own operands, of the
//! parameters of its bodies, of what bodies yield and of the result.
//!
//! An operation with bodies has *own operands* (a list or a limit, then initial states), and bodies have *own parameters*
//! (states, then the element). The verifier checks both IRs by [`BodyTypes::required`].

use weir_host::Type;

/// The types around the bodies of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BodyTypes {
    first: First,
    yields: Yields,
}

/// The operand before the states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Nothing,
    /// A list, each element of which is the last own parameter of a body.
    List,
    /// A `Duration`.
    Limit,
}

/// The type that bodies yield, and the type of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Yields {
    /// An element, of a list of which the result is.
    Element,
    /// The next state or the tuple of the next states, and so is the result.
    States,
    /// The tuple of the next states and a Boolean; the result is the state or the tuple of the states.
    Round,
    /// A value, of which the result is an `Option`.
    Some,
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
    pub(crate) const MAP: BodyTypes = BodyTypes { first: First::List, yields: Yields::Element };
    pub(crate) const FOLD: BodyTypes = BodyTypes { first: First::List, yields: Yields::States };
    pub(crate) const LOOP: BodyTypes = BodyTypes { first: First::Nothing, yields: Yields::Round };
    pub(crate) const WITHIN: BodyTypes = BodyTypes { first: First::Limit, yields: Yields::Some };
    /// Of bodies that stand for the operation, such as those of a race.
    pub(crate) const RESULT: BodyTypes = BodyTypes { first: First::Nothing, yields: Yields::Result };

    /// Returns the number of own operands besides the states.
    pub(crate) const fn operands(self) -> usize {
        !matches!(self.first, First::Nothing) as usize
    }

    /// Returns the number of own parameters of a body besides the states.
    pub(crate) const fn parameters(self) -> usize {
        matches!(self.first, First::List) as usize
    }

    /// Returns true if the first operand limits the time.
    pub(crate) fn has_limit(self) -> bool {
        self.first == First::Limit
    }

    /// Returns true if the operation yields exactly if one of its bodies does.
    pub(crate) fn stands_for_bodies(self) -> bool {
        self.yields == Yields::Result
    }

    /// Returns the types that an operation requires whose bodies have these own parameters, and that has this result.
    ///
    /// # Errors
    /// Fails if no such operation has this result.
    pub(crate) fn required(self, own: &[&Type], result: &Type) -> Result<RequiredTypes, String> {
        let lacks = || "the body lacks parameters".to_owned();
        let states = own.len().checked_sub(self.parameters()).ok_or_else(lacks)?;
        let (states, element) = own.split_at(states);
        if states.is_empty() == matches!(self.yields, Yields::States | Yields::Round) {
            return Err(lacks());
        }
        let states: Vec<Type> = states.iter().copied().cloned().collect();
        let body = self.body(&states, result)?;
        let first = match self.first {
            First::Nothing => None,
            First::List => element.first().copied().cloned().map(Type::list),
            First::Limit => Some(Type::Duration),
        };
        Ok(RequiredTypes { operands: first.into_iter().chain(states).collect(), body })
    }

    fn body(self, states: &[Type], result: &Type) -> Result<Option<Type>, String> {
        match (self.yields, result) {
            (Yields::Element, Type::List(inner)) | (Yields::Some, Type::Option(inner)) => Ok(Some(Type::clone(inner))),
            (Yields::Result, Type::Never) => Ok(None),
            (Yields::Result, result) => Ok(Some(result.clone())),
            (Yields::States, result) if *result == state_type(states) => Ok(Some(state_type(states))),
            // A loop whose rounds all end the flow never yields.
            (Yields::Round, result) if *result == state_type(states) || *result == Type::Never => {
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

/// Returns the type of what a round of a loop with states of these types yields.
#[must_use]
pub fn round_type(types: &[Type]) -> Type {
    Type::Tuple(types.iter().cloned().chain([Type::Bool]).collect())
}
