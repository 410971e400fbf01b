//! Documentation of the library as text for a terminal: `weir doc`, `weir doc http` and `weir doc list.map`.

use std::fmt::Write as _;

use weir_compile::WeirModules;
use weir_host::{Library, Module};

use super::library::entries;
use super::page::PageEntry;

/// Returns the modules, one a line.
pub(super) fn overview(library: &Library) -> String {
    let mut text = String::new();
    for module in library.modules.values().filter(|module| !module.is_internal()) {
        _ = writeln!(text, "{:<10} {}", module.name, first_line(&module.doc));
    }
    text + "\n`weir doc http` shows a module, `weir doc http.json` a function, `weir doc --open` everything as a page.\n"
}

/// Returns the documentation of a module or of one of its items; `None` if the library has no such module, and an error if the
/// module has no such item.
pub(super) fn of_name(name: &str, library: &Library) -> Option<Result<String, String>> {
    let (module, item) = name.split_once('.').map_or((name, None), |(module, item)| (module, Some(item)));
    let module = library.modules.get(module).filter(|module| !module.is_internal())?;
    let entries = entries(module, library, &WeirModules::default());
    let Some(item) = item else { return Some(Ok(of_module(module, &entries))) };
    let items: Vec<String> = entries.iter().filter(|entry| entry.name == name).map(of_item).collect();
    Some(if items.is_empty() { Err(format!("`{}` has no `{item}`", module.name)) } else { Ok(items.join("\n")) })
}

fn of_module(module: &Module, entries: &[PageEntry]) -> String {
    let mut text = format!("{}\n", module.doc.trim());
    for entry in entries {
        _ = write!(text, "\n{}\n    {}\n", entry.signature, first_line(&entry.doc));
    }
    text
}

fn of_item(entry: &PageEntry) -> String {
    let mut text = format!("{}\n\n{}\n", entry.signature, entry.doc.trim());
    for [name, ty, default] in &entry.parts {
        let of = if ty.is_empty() { String::new() } else { format!(": {ty}") };
        let default = if default.is_empty() { String::new() } else { format!(" = {default}") };
        _ = write!(text, "\n    {name}{of}{default}");
    }
    if !entry.parts.is_empty() {
        text.push('\n');
    }
    if let Some(effects) = &entry.effects {
        _ = writeln!(text, "\nEffects: {effects}.");
    }
    text
}

/// Returns the first sentence of a text in Markdown, or its first line if that is shorter.
fn first_line(doc: &str) -> String {
    let paragraph = doc.trim().split("\n\n").next().unwrap_or_default().replace('\n', " ");
    match paragraph.find(". ") {
        Some(end) => paragraph[..=end].to_owned(),
        None => paragraph,
    }
}
