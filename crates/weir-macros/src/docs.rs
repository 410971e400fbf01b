//! Documentation: extracts the doc comments of an item as a single text.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// Returns the doc comments among `attributes`, one line each, without the space that follows `///`.
pub(crate) fn text(attributes: &[Attribute]) -> String {
    let lines: Vec<String> = attributes.iter().filter_map(line).collect();
    lines.join("\n").trim().to_owned()
}

fn line(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value else { return None };
    let text = text.value();
    pair.path.is_ident("doc").then(|| text.strip_prefix(' ').unwrap_or(&text).to_owned())
}
