//! Handlers that do not handle: warns of `on failure of f` if failures of `f` pass it by, because a `fn` between them
//! returns a `Result`, and of a handler that no failure reaches at all.
//!
//! A `?` in a `fn` that returns a `Result` gives the failure to the caller as an `Err`; handlers further out do not see it,
//! and are *bypassed*. That is as it should be if the caller handles the `Err`. It is reported if no failure at all
//! reaches the handler, or if the failure ends the flow in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use weir_syntax::ast::FailureHandler;
use weir_syntax::{Code, Diagnostic, Span};

/// The handlers that flows use and bypass.
#[derive(Clone, Default)]
pub(crate) struct HandlerUses {
    /// The handlers around the code of flows, by their positions: the name of the function whose failures each handles, and its
    /// place.
    seen: BTreeMap<u32, (String, Span)>,
    /// The positions of the handlers that some failure reaches.
    used: BTreeSet<u32>,
    /// The positions of the handlers whose bypass ends a flow, which `around` has reported.
    reported: BTreeSet<u32>,
    /// The bypasses in each `fn`, by its name.
    bypasses: BTreeMap<Arc<str>, Vec<Bypass>>,
}

/// A place where a failure bypasses a handler.
#[derive(Clone, PartialEq)]
struct Bypass {
    /// The name of the function whose failures are handled.
    handled: String,
    /// The place of that name.
    handler: Span,
    /// The position of the handler.
    position: u32,
    /// The `?` that gives the failure to the caller.
    given: Span,
    /// The name of the `fn` with the `?`.
    function: Arc<str>,
}

impl HandlerUses {
    /// Notes that a flow has code inside of these handlers.
    pub(crate) fn seen(&mut self, handlers: &[&FailureHandler]) {
        for handler in handlers {
            let function = &handler.function;
            self.seen.entry(handler.span.start).or_insert_with(|| (function.to_string(), function.span));
        }
    }

    /// Notes that a failure reaches the handler.
    pub(crate) fn used(&mut self, handler: &FailureHandler) {
        self.used.insert(handler.span.start);
    }

    /// Notes that a failure leaves the `fn` as an `Err` at the place `given`, past this handler, if any; `inner` is the `fn`
    /// that it comes from.
    pub(crate) fn bypassed(
        &mut self,
        function: Arc<str>,
        inner: Option<Arc<str>>,
        handler: Option<&FailureHandler>,
        given: Span,
    ) {
        let inherited = match inner {
            Some(inner) => self.bypasses.get(&inner).cloned().unwrap_or_default(),
            None => Vec::new(),
        };
        let own = handler.map(|handler| Bypass {
            handled: handler.function.to_string(),
            handler: handler.function.span,
            position: handler.span.start,
            given,
            function: function.clone(),
        });
        let known = self.bypasses.entry(function).or_default();
        for bypass in own.into_iter().chain(inherited) {
            if !known.contains(&bypass) {
                known.push(bypass);
            }
        }
    }

    /// Adds what another flow uses and bypasses.
    pub(crate) fn add(&mut self, other: HandlerUses) {
        self.seen.extend(other.seen);
        self.used.extend(other.used);
        self.reported.extend(other.reported);
        for (function, bypasses) in other.bypasses {
            let known = self.bypasses.entry(function).or_default();
            for bypass in bypasses {
                if !known.contains(&bypass) {
                    known.push(bypass);
                }
            }
        }
    }

    /// Returns the same uses of a program whose text has moved.
    pub(crate) fn relocated(&self, place: &mut impl FnMut(u32) -> u32) -> HandlerUses {
        let mut relocated = HandlerUses::default();
        for (position, (function, span)) in &self.seen {
            relocated.seen.insert(place(*position), (function.clone(), moved(*span, place)));
        }
        relocated.used = self.used.iter().map(|position| place(*position)).collect();
        relocated.reported = self.reported.iter().map(|position| place(*position)).collect();
        for (function, bypasses) in &self.bypasses {
            let bypasses = bypasses.iter().map(|bypass| Bypass {
                handler: moved(bypass.handler, place),
                position: place(bypass.position),
                given: moved(bypass.given, place),
                ..bypass.clone()
            });
            relocated.bypasses.insert(function.clone(), bypasses.collect());
        }
        relocated
    }

    /// Returns the positions of everything that it names.
    pub(crate) fn positions(&self) -> impl Iterator<Item = u32> {
        let seen = self.seen.iter().flat_map(|(position, (_, span))| [*position, span.start, span.end]);
        let bypasses = self.bypasses.values().flatten();
        let of_bypass = |bypass: &Bypass| {
            let Bypass { handler, position, given, .. } = bypass;
            [*position, handler.start, handler.end, given.start, given.end]
        };
        seen.chain(self.used.iter().copied()).chain(self.reported.iter().copied()).chain(bypasses.flat_map(of_bypass))
    }

    /// Returns a warning for each of these handlers that a failure inside the `fn` bypasses, to end the flow around them.
    pub(crate) fn around(&mut self, function: &str, handlers: &[&FailureHandler]) -> Vec<Diagnostic> {
        let bypasses = self.bypasses.get(function).into_iter().flatten();
        let here = bypasses.filter(|bypass| handlers.iter().any(|handler| handler.span.start == bypass.position));
        let mut warnings = Vec::new();
        for bypass in here {
            self.reported.insert(bypass.position);
            let function = &bypass.function;
            warnings.push(
                bypass.warning().hint(format!("handle the failures of `{function}`: `on failure of {function}`")),
            );
        }
        warnings
    }

    /// Returns a warning for each handler around the code of flows that no failure reaches, not even to bypass it.
    pub(crate) fn unreached(&self) -> Vec<Diagnostic> {
        let bypassed: BTreeSet<u32> = self.bypasses.values().flatten().map(|bypass| bypass.position).collect();
        let unreached = self.seen.iter().filter(|(at, _)| !self.used.contains(at) && !bypassed.contains(at));
        let warning = |(_, (function, place)): (&u32, &(String, Span))| {
            Diagnostic::new(Code::UnreachedHandler, format!("no failure of `{function}` reaches this handler"))
                .at(*place, "never runs")
                .note(format!("a handler takes the failure of a `?` on a call of `{function}` inside of its block"))
                .hint("remove it, or name the `fn` whose call has the `?`")
        };
        unreached.map(warning).collect()
    }

    /// Returns a warning for each handler that is only bypassed, although no such failure ends a flow.
    pub(crate) fn unused(&self) -> Vec<Diagnostic> {
        let known =
            |bypass: &&Bypass| !self.used.contains(&bypass.position) && !self.reported.contains(&bypass.position);
        let warning = |bypass: &Bypass| {
            let function = &bypass.function;
            bypass.warning().hint(format!(
                "no failure reaches it: remove it if the callers of `{function}` handle the `Err`, else write `on failure of {function}`"
            ))
        };
        self.bypasses.values().flatten().filter(known).map(warning).collect()
    }
}

fn moved(span: Span, place: &mut impl FnMut(u32) -> u32) -> Span {
    Span { start: place(span.start), end: place(span.end), ..span }
}

impl Bypass {
    fn warning(&self) -> Diagnostic {
        let Bypass { handled, function, .. } = self;
        Diagnostic::new(Code::BypassedHandler, format!("a failure of `{handled}` bypasses this handler"))
            .at(self.handler, "does not see it")
            .because(self.given, format!("goes to the caller of `{function}` here, as an `Err`"))
    }
}
