//! Trace contexts: the distributed trace to which the work of a flow belongs (W3C Trace Context).
//!
//! 1. A flow inherits the context that is entered where it begins ([`FlowTrace::inherited`]): a server enters the one that
//!    came with the request.
//! 2. An engine enters the context of a flow whenever it takes up the flow ([`FlowTrace::enter`]).
//! 3. Host functions that the flow calls read it ([`FlowTrace::current`]), or begin one that the flow keeps
//!    ([`FlowTrace::begin`]).

use std::cell::Cell;
use std::fmt::Write;
use std::sync::Arc;

/// A position in a distributed trace, as a request to another service passes it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// Identity of the trace.
    pub trace_id: [u8; 16],
    /// Flags of the trace, such as the one that it is recorded.
    pub flags: u8,
    /// Messages of the participants of the trace to each other, as the field `tracestate` holds them; empty if there are none.
    pub state: Arc<str>,
}

impl TraceContext {
    /// Returns the identity of the trace in hexadecimal digits, as logs show it.
    #[must_use]
    pub fn trace_id(&self) -> String {
        let mut digits = String::with_capacity(32);
        self.trace_id.iter().for_each(|byte| _ = write!(digits, "{byte:02x}"));
        digits
    }
}

thread_local! {
    /// The context of the flow that runs on this thread.
    static CURRENT: Cell<Option<Arc<TraceContext>>> = const { Cell::new(None) };
}

/// The trace context of a flow, which may have none yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowTrace(Option<Arc<TraceContext>>);

/// The running flow of a thread, as far as traces are concerned. Dropping it gives the flow its context back, and the thread
/// the one before.
#[must_use]
pub struct EnteredTrace<'f>(&'f mut FlowTrace);

impl FlowTrace {
    /// Returns the trace context of a flow whose source knows it.
    #[must_use]
    pub fn of(context: TraceContext) -> Self {
        FlowTrace(Some(Arc::new(context)))
    }

    /// Returns the trace context that is entered on this thread, for a flow that begins.
    #[inline]
    #[must_use]
    pub fn inherited() -> Self {
        FlowTrace(FlowTrace::current())
    }

    /// Returns the trace context that is entered on this thread, if there is one.
    #[inline]
    #[must_use]
    pub fn current() -> Option<Arc<TraceContext>> {
        of_thread(|current| {
            let context = current.take();
            current.set(context.clone());
            context
        })
    }

    /// Begins a trace for the flow that runs on this thread.
    pub fn begin(context: TraceContext) -> Arc<TraceContext> {
        let context = Arc::new(context);
        of_thread(|current| current.set(Some(Arc::clone(&context))));
        context
    }

    /// Enters the trace context of a flow, which runs on this thread until the result is dropped.
    #[inline]
    pub fn enter(&mut self) -> EnteredTrace<'_> {
        self.swap();
        EnteredTrace(self)
    }

    /// Returns the context, if the flow has one.
    #[must_use]
    pub fn context(&self) -> Option<&TraceContext> {
        self.0.as_deref()
    }

    #[inline]
    fn swap(&mut self) {
        of_thread(|current| self.0 = current.replace(self.0.take()));
    }
}

/// Gives access to the context of this thread. Inlined, which [`LocalKey::with`](std::thread::LocalKey::with) is only if the
/// whole program is optimised at link time.
#[inline(always)]
fn of_thread<R>(access: impl FnOnce(&Cell<Option<Arc<TraceContext>>>) -> R) -> R {
    CURRENT.try_with(access).expect("no flow runs on a thread that has ended")
}

impl Drop for EnteredTrace<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.swap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(byte: u8) -> TraceContext {
        TraceContext { trace_id: [byte; 16], flags: 1, state: "".into() }
    }

    #[test]
    fn a_flow_has_its_context_only_while_it_runs() {
        let (mut first, mut second) = (FlowTrace::of(context(1)), FlowTrace::default());
        {
            let _first = first.enter();
            assert_eq!(FlowTrace::current().as_deref(), Some(&context(1)));
            {
                let _second = second.enter();
                assert_eq!(FlowTrace::current(), None);
                FlowTrace::begin(context(2));
            }
            assert_eq!(FlowTrace::inherited().context(), Some(&context(1)));
        }
        assert_eq!(FlowTrace::current(), None);
        assert_eq!((first.context(), second.context()), (Some(&context(1)), Some(&context(2))));
    }

    #[test]
    fn identities_are_shown_with_all_their_digits() {
        assert_eq!(context(7).trace_id(), "07".repeat(16));
    }
}
