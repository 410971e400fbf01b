//! The arguments of calls, kept for the failure handlers that use them (Flux §2.4: a handler gets what the failed node got).

use std::collections::BTreeMap;

use weir_ir::expr::Atom;
use weir_syntax::ast::ExprId;

use crate::typed_tree::{LocalId, TypedTree};

/// The arguments of a call by parameter; `None` for a function, and for one that is left out.
pub(super) type ArgumentAtoms = Vec<Option<Atom>>;

/// The arguments of the calls whose failures a `?` may give to a handler.
pub(super) struct HandledCalls {
    /// True if any handler of the program uses arguments; otherwise nothing is kept.
    wanted: bool,
    /// The call that was lowered last.
    last: Option<(ExprId, ArgumentAtoms)>,
    /// The calls whose results are bound to names.
    bound: BTreeMap<LocalId, ArgumentAtoms>,
}

impl HandledCalls {
    pub(super) fn new(typed: &TypedTree) -> HandledCalls {
        let wanted = typed.files.iter().flat_map(|file| file.handlers.values()).any(|handler| handler.uses_arguments);
        HandledCalls { wanted, last: None, bound: BTreeMap::new() }
    }

    /// Returns true if any handler uses arguments.
    pub(super) fn are_wanted(&self) -> bool {
        self.wanted
    }

    /// Notes that a call was lowered.
    pub(super) fn called(&mut self, call: ExprId, arguments: ArgumentAtoms) {
        if self.wanted {
            self.last = Some((call, arguments));
        }
    }

    /// Notes that a name is bound to the value of this expression, which was lowered last.
    pub(super) fn bound(&mut self, local: LocalId, value: ExprId) {
        if self.wanted {
            let arguments = self.of_call(value);
            self.bound.insert(local, arguments);
        }
    }

    /// Returns the arguments of this call, which was lowered last.
    pub(super) fn of_call(&mut self, call: ExprId) -> ArgumentAtoms {
        self.last.take_if(|(last, _)| *last == call).map(|(_, arguments)| arguments).unwrap_or_default()
    }

    /// Returns the arguments of the call whose result the name is bound to.
    pub(super) fn of_local(&self, local: LocalId) -> ArgumentAtoms {
        self.bound.get(&local).cloned().unwrap_or_default()
    }
}
