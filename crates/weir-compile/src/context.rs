//! The context of a check: the file, its tree, the library, and the diagnostics so far.

use std::ops::Range;

use weir_host::{Library, Parameter};
use weir_ir::expr::{InlinedCall, InlinedCallId, Origin};
use weir_syntax::ast::Tree;
use weir_syntax::{Code, Diagnostic, Parsed, SourceId, Span};

use crate::bypassed_handlers::HandlerUses;
use crate::checked::QueryRest;
use crate::program_files::FileModules;
use crate::weir_modules::WeirModules;

/// The findings of the lowering of one flow, or of everything before it.
#[derive(Default)]
pub(crate) struct FlowFindings {
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) handlers: HandlerUses,
    /// The inlined calls of the flow, with ids counted from its first one.
    pub(crate) inlined_calls: Vec<InlinedCall>,
    pub(crate) query_rests: Vec<QueryRest>,
}

/// The inputs that every phase shares, and the diagnostics that the phases report.
pub(crate) struct CheckContext<'a> {
    pub(crate) source: SourceId,
    pub(crate) text: &'a str,
    pub(crate) parsed: &'a Parsed,
    pub(crate) files: &'a FileModules,
    pub(crate) library: &'a Library,
    pub(crate) modules: &'a WeirModules,
    /// The call at which the code of a module in Weir is shown, while that code is lowered.
    pub(crate) call_of_module: Option<Span>,
    /// The handlers that the flows lowered so far use and bypass.
    pub(crate) handlers: HandlerUses,
    /// The inlined calls of the flows lowered so far.
    pub(crate) inlined_calls: Vec<InlinedCall>,
    /// The parts of queries that the flows lowered so far evaluate themselves.
    pub(crate) query_rests: Vec<QueryRest>,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> CheckContext<'a> {
    /// Returns the name by which the file at a place names a declaration of the program.
    pub(crate) fn name_at<'n>(&self, name: &'n str, place: Span) -> &'n str {
        let Some((module, own)) = name.rsplit_once('.') else { return name };
        match self.files.names().get(self.files.index_at(place.start)) {
            Some(here) if here.as_str() == module => own,
            _ => module.rsplit_once('.').map_or(name, |(folders, _)| &name[folders.len() + 1..]),
        }
    }

    pub(crate) fn new(
        (source, text, parsed): (SourceId, &'a str, &'a Parsed),
        files: &'a FileModules,
        library: &'a Library,
        modules: &'a WeirModules,
    ) -> Self {
        CheckContext {
            source,
            text,
            parsed,
            files,
            library,
            modules,
            call_of_module: None,
            handlers: HandlerUses::default(),
            inlined_calls: Vec::new(),
            query_rests: Vec::new(),
            diagnostics: Vec::new(),
        }
    }

    /// Returns a context of the same program in which nothing has been found yet.
    pub(crate) fn empty(&self) -> Self {
        CheckContext::new((self.source, self.text, self.parsed), self.files, self.library, self.modules)
    }

    pub(crate) fn tree(&self) -> &'a Tree {
        &self.parsed.tree
    }

    /// Returns the indices of the items of a file.
    pub(crate) fn file_items(&self, file: usize) -> Range<usize> {
        let begin = |file| self.tree().items.partition_point(|item| usize::from(item.file) < file);
        begin(file)..begin(file + 1)
    }

    /// Returns the parameters of a host function; none if the library lacks it.
    pub(crate) fn parameters(&self, path: &str) -> &'a [Parameter] {
        self.library.function(path).map_or(&[], |function| function.signature.written())
    }

    /// Returns the place in the file that an operation of the IR comes from.
    pub(crate) fn span(&self, origin: Origin) -> Span {
        Span { source: self.source, start: origin.start, end: origin.end }
    }

    /// Returns the span, or the call of the module in Weir that the span belongs to.
    pub(crate) fn located(&self, span: Span) -> Span {
        if span.source == self.source {
            span
        } else {
            self.call_of_module.unwrap_or(Span { source: self.source, ..span })
        }
    }

    /// Moves the labels of a diagnostic in the code of a module to its call, and drops edits of that code.
    fn relocated(&self, mut diagnostic: Diagnostic) -> Diagnostic {
        let Some(call) = self.call_of_module else { return diagnostic };
        let is_foreign = |span: Span| span.source != self.source;
        diagnostic.labels.retain(|label| label.primary || !is_foreign(label.span));
        for label in diagnostic.labels.iter_mut().filter(|label| is_foreign(label.span)) {
            label.span = call;
        }
        diagnostic.help.retain(|hint| !hint.edit.as_ref().is_some_and(|edit| is_foreign(edit.span)));
        diagnostic
    }

    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        let diagnostic = self.relocated(diagnostic);
        self.diagnostics.push(diagnostic);
    }

    /// Adds a hint to the diagnostics with this code that follow the first `before`.
    pub(crate) fn advise_since(&mut self, before: usize, code: Code, hint: &str) {
        for diagnostic in self.diagnostics[before..].iter_mut().filter(|diagnostic| diagnostic.code == code) {
            *diagnostic = diagnostic.clone().hint(hint);
        }
    }

    pub(crate) fn report_all(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.diagnostics.extend(diagnostics);
    }

    /// Reports a diagnostic unless it was reported before: a `fn` that is inlined twice has the same error twice.
    pub(crate) fn report_once(&mut self, diagnostic: Diagnostic) {
        let diagnostic = self.relocated(diagnostic);
        if !self.diagnostics.contains(&diagnostic) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Returns the text at a place of the program in one line.
    pub(crate) fn text_at(&self, span: Span) -> String {
        let text = if span.source == self.source { self.text.get(span.range()) } else { None };
        text.unwrap_or("…").split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Notes a part of a query that the program evaluates itself. A `fn` that is inlined twice has it once.
    pub(crate) fn note_query_rest(&mut self, query: Span, what: String) {
        let rest = QueryRest { query: self.located(query), what };
        if !self.query_rests.contains(&rest) {
            self.query_rests.push(rest);
        }
    }

    /// Returns the number of diagnostics that were reported.
    pub(crate) fn reported(&self) -> usize {
        self.diagnostics.len()
    }

    /// Returns whether the parser or a phase reported an error.
    pub(crate) fn has_errors(&self) -> bool {
        self.parsed.diagnostics.iter().chain(&self.diagnostics).any(Diagnostic::is_error)
    }

    /// Begins a flow, whose findings are kept apart. Returns those before, for [`Self::end_flow`].
    pub(crate) fn begin_flow(&mut self) -> FlowFindings {
        self.replace_findings(FlowFindings::default())
    }

    /// Ends a flow: returns its findings.
    pub(crate) fn end_flow(&mut self, before: FlowFindings) -> FlowFindings {
        self.replace_findings(before)
    }

    fn replace_findings(&mut self, by: FlowFindings) -> FlowFindings {
        FlowFindings {
            diagnostics: std::mem::replace(&mut self.diagnostics, by.diagnostics),
            handlers: std::mem::replace(&mut self.handlers, by.handlers),
            inlined_calls: std::mem::replace(&mut self.inlined_calls, by.inlined_calls),
            query_rests: std::mem::replace(&mut self.query_rests, by.query_rests),
        }
    }

    /// Adds the findings of a flow. Returns the id of its first inlined call.
    pub(crate) fn add_flow(&mut self, found: FlowFindings) -> u32 {
        for diagnostic in found.diagnostics {
            // They are at their places already.
            if !self.diagnostics.contains(&diagnostic) {
                self.diagnostics.push(diagnostic);
            }
        }
        self.handlers.add(found.handlers);
        for rest in found.query_rests {
            if !self.query_rests.contains(&rest) {
                self.query_rests.push(rest);
            }
        }
        self.add_calls(found.inlined_calls)
    }

    /// Adds the inlined calls of a flow. Returns the id of the first one.
    fn add_calls(&mut self, mut calls: Vec<InlinedCall>) -> u32 {
        let first = u32::try_from(self.inlined_calls.len()).unwrap_or(u32::MAX);
        for call in &mut calls {
            let outer = &mut call.called_at.inlined_call;
            *outer = outer.map(|id| InlinedCallId(id.0.saturating_add(first)));
        }
        self.inlined_calls.append(&mut calls);
        first
    }

    pub(crate) fn diagnostics_mut(&mut self) -> &mut Vec<Diagnostic> {
        &mut self.diagnostics
    }

    pub(crate) fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics
    }
}
