//! Source text, spans, diagnostics, the parser and the formatter of Weir.
