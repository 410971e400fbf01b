//! Places of the IR for messages: two places in the innermost body that contains both, where the call of a `fn` stands for what the
//! `fn` does.

use weir_ir::expr::{InlinedCallId, Origin};
use weir_syntax::Span;

use crate::context::CheckContext;

/// A place in a body, or the call by which this comes to it.
pub(crate) struct CalledPlace<'c> {
    pub(crate) span: Span,
    /// The `fn` that is called there, in the names of the file; `None` if the body contains the place itself.
    pub(crate) function: Option<&'c str>,
}

impl CalledPlace<'_> {
    /// Returns `of`, with the `fn` in which it is: `` the write in `f` ``.
    pub(crate) fn named(&self, of: impl Into<String>) -> String {
        let mut of = of.into();
        self.function.iter().for_each(|function| of += &format!(" in `{function}`"));
        of
    }
}

impl CheckContext<'_> {
    /// Returns two places in the innermost body that contains both.
    pub(crate) fn in_common_body(&self, first: Origin, second: Origin) -> [CalledPlace<'_>; 2] {
        let (of_first, of_second) = (self.calls_around(first), self.calls_around(second));
        let common = of_first.iter().zip(&of_second).take_while(|(one, other)| one == other).count();
        let place = |origin: Origin, calls: &[InlinedCallId]| {
            let call = calls.get(common).and_then(|id| self.inlined_calls.get(id.0 as usize));
            let span = self.span(call.map_or(origin, |call| call.called_at));
            CalledPlace { span, function: call.map(|call| self.name_at(&call.function, span)) }
        };
        [place(first, &of_first), place(second, &of_second)]
    }

    /// Returns the inlined calls around an operation, outermost first.
    fn calls_around(&self, origin: Origin) -> Vec<InlinedCallId> {
        // Every call follows those around it, so that the chain ends.
        let outer = |inner: &InlinedCallId| {
            self.inlined_calls.get(inner.0 as usize)?.called_at.inlined_call.filter(|outer| outer < inner)
        };
        let mut calls: Vec<InlinedCallId> = std::iter::successors(origin.inlined_call, outer).collect();
        calls.reverse();
        calls
    }
}
