//! Documentation page of a program: its services, shared values, types, functions and graph.

use std::collections::BTreeMap;
use std::sync::Arc;

use weir_compile::{Checked, Symbol};
use weir_draw::{DetailLevel, Drawing};
use weir_host::{Library, Mode, Resource, Text, TypeDefinition, source_text};
use weir_ir::graph::{Graph, Node, NodeKind, Program};
use weir_ir::program::{Entry as ProgramEntry, Flow};
use weir_syntax::ast::{FieldDeclaration, Item, ItemKind, ServiceMemberKind, Variant};

use super::page::{DocPage, PageEntry, PageSection, escape};
use super::table_uses::ProgramTables;
use super::{library, markdown};
use crate::read_type::read_type;

/// Returns the page of a checked program.
pub(super) fn page(title: &str, checked: &Checked, program: &Program, library: &Library) -> DocPage {
    let entries = program.entries.iter().enumerate();
    let tables = checked.expr.as_ref().map(ProgramTables::of).unwrap_or_default();
    let about = AboutProgram { checked, library, types: &program.types, tables };
    let mut sections: Vec<PageSection> = entries.map(|(at, entry)| served(at, entry, &about)).collect();
    sections.push(PageSection {
        title: "Configuration".into(),
        lead: String::new(),
        entries: main_items(checked, library, configured),
    });
    sections.push(PageSection {
        title: "Shared values and tables".into(),
        lead: String::new(),
        // Routes write those of modules, too.
        entries: items(checked, library, shared).collect(),
    });
    sections.push(PageSection {
        title: "Types".into(),
        lead: String::new(),
        entries: main_items(checked, library, types),
    });
    sections.push(PageSection {
        title: "Functions".into(),
        lead: String::new(),
        entries: main_items(checked, library, functions),
    });
    sections.push(picture(program, library));
    sections.retain(|section| !section.entries.is_empty() || !section.lead.is_empty());
    DocPage { title: title.into(), lead: markdown::html(&checked.parsed.tree.docs.text()), sections }
}

/// Returns a section with the graph as an embedded image, or an empty one if the graph is too large.
fn picture(program: &Program, library: &Library) -> PageSection {
    let drawing = Drawing { program, library: Some(library), plan: None, detail: DetailLevel::Folded };
    let image = weir_draw::svg(&drawing).map(|svg| {
        format!("<img class=\"picture\" alt=\"The graph of the program\" src=\"data:image/svg+xml,{}\">", in_url(&svg))
    });
    PageSection { title: "The graph".into(), lead: image.unwrap_or_default(), entries: Vec::new() }
}

/// Percent-encodes a text for a URL.
fn in_url(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b" -_.~()*!/:;,=@$".contains(&byte);
    let encoded =
        text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") });
    encoded.collect()
}

/// The program around an entry point.
struct AboutProgram<'p> {
    checked: &'p Checked,
    library: &'p Library,
    types: &'p [TypeDefinition],
    tables: ProgramTables,
}

fn served(at: usize, entry: &ProgramEntry<Graph>, about: &AboutProgram<'_>) -> PageSection {
    let docs = route_docs(at, about.checked);
    let bodies = about.checked.expr.as_ref().and_then(|program| program.entries.get(at));
    let flows = entry.flows.iter().enumerate().map(|(index, flow)| {
        let doc = docs.get(index).map(|doc| markdown::html(doc)).unwrap_or_default();
        let body = bodies.and_then(|entry| entry.flows.get(index));
        let of_tables = body.map(|flow| about.tables.uses_in(&flow.body)).unwrap_or_default();
        let others = effects(&flow.body, about.library, &|resource| about.tables.has(resource) || is_state(resource));
        self::flow((flow, about.types), doc, of_tables.into_iter().chain(others).collect())
    });
    let kind = if entry.flows.iter().any(|flow| flow.route.is_some()) { "Service" } else { "For each of" };
    PageSection { title: format!("{kind} {}", entry.name), lead: String::new(), entries: flows.collect() }
}

/// Returns the documentation of each flow of an entry point.
fn route_docs(at: usize, checked: &Checked) -> Vec<String> {
    let entries = |item: &&Arc<Item>| matches!(item.kind, ItemKind::Service(_) | ItemKind::Entry(_));
    match checked.parsed.tree.items.iter().filter(entries).nth(at).map(|item| &**item) {
        Some(Item { kind: ItemKind::Service(service), .. }) => {
            let routes = service.members.iter().filter(|member| matches!(member.kind, ServiceMemberKind::Route(_)));
            routes.map(|route| route.docs.text()).collect()
        }
        Some(item) => vec![item.docs.text()],
        None => Vec::new(),
    }
}

fn flow((flow, types): (&Flow<Graph>, &[TypeDefinition]), doc: String, effects: Vec<String>) -> PageEntry {
    let signature = match &flow.route {
        Some(route) => format!("{} {}", route.method, route.pattern),
        None => flow.name.to_string(),
    };
    let parameters = flow.parameters.iter().enumerate().map(|(index, variable)| {
        let parameter = flow.route.as_ref().and_then(|route| route.parameters.get(index));
        let found = parameter.map(|parameter| match parameter.from {
            weir_host::ParameterFrom::Path => "in the path",
            weir_host::ParameterFrom::Query => "in the query",
            weir_host::ParameterFrom::Header => "in the header",
            weir_host::ParameterFrom::Cookie => "a cookie",
            weir_host::ParameterFrom::UnprefixedCookie => "a cookie without a prefix",
            weir_host::ParameterFrom::EncryptedCookie => "an encrypted cookie",
            weir_host::ParameterFrom::Form => "the form in the body",
            weir_host::ParameterFrom::Body => "the body",
        });
        let default = parameter.and_then(|parameter| parameter.default.as_ref());
        let default = default.map(|value| source_text(value, &variable.ty, types));
        let default = default.map(|default| format!(", or <code>{}</code>", escape(&default)));
        let words = format!("{}{}", found.unwrap_or_default(), default.unwrap_or_default());
        [variable.name.to_string(), read_type(flow, variable).to_string(), words]
    });
    let parts = parameters.filter(|[name, ..]| !name.is_empty()).collect();
    let effects = if effects.is_empty() { "no effects".into() } else { effects.join(", ") };
    PageEntry { name: signature.clone(), signature, doc, effects: Some(effects), parts }
}

/// Returns whether an effect is that of the functions of all shared values, beside the effect on the value.
fn is_state(resource: &Resource) -> bool {
    matches!(resource, Resource::World(module) if module.as_str() == "state")
}

/// Returns the effects of a flow on resources that are not left out.
fn effects(graph: &Graph, library: &Library, is_left_out: &impl Fn(&Resource) -> bool) -> Vec<String> {
    let mut touched: BTreeMap<&Resource, Mode> = BTreeMap::new();
    for usage in graph.nodes.iter().flat_map(|node| &node.uses) {
        let mode = touched.entry(&usage.resource).or_insert(usage.mode);
        *mode = (*mode).max(usage.mode);
    }
    let touched = touched.iter().filter(|(resource, _)| !is_left_out(resource));
    let words = touched.map(|(resource, mode)| match mode {
        Mode::Read => format!("reads {resource}"),
        Mode::Write => format!("writes {resource}"),
    });
    let waits = graph.nodes.iter().any(|node| waits(node, library)).then(|| "may wait".to_owned());
    words.chain(waits).collect()
}

fn waits(node: &Node, library: &Library) -> bool {
    match &node.kind {
        // Answers wait until what they tell is durable, which the tables say.
        NodeKind::Call { function, .. } if ["tables.settle", "tables.committed"].contains(&function.as_str()) => false,
        NodeKind::Call { function, .. } => {
            let effects = library.function(function).map(|function| &function.signature.effects);
            effects.is_some_and(|effects| effects.waits || effects.blocking)
        }
        _ => node.bodies().iter().flat_map(|body| &body.nodes).any(|node| waits(node, library)),
    }
}

type ItemDocs = fn(&Item, &Checked, &Library) -> Option<PageEntry>;

/// Documents items of the main file.
fn main_items(checked: &Checked, library: &Library, documented: ItemDocs) -> Vec<PageEntry> {
    let items = checked.parsed.tree.items.iter().filter(|item| item.file == 0);
    items.filter_map(|item| documented(item, checked, library)).collect()
}

/// Documents items of all files.
fn items(checked: &Checked, library: &Library, documented: ItemDocs) -> impl Iterator<Item = PageEntry> {
    checked.parsed.tree.items.iter().filter_map(move |item| documented(item, checked, library))
}

fn configured(item: &Item, checked: &Checked, library: &Library) -> Option<PageEntry> {
    let (name, symbol): (_, fn(Text) -> Symbol) = match &item.kind {
        ItemKind::Config(config) => (config.name.as_str(), Symbol::Config),
        ItemKind::Constant(constant) => (constant.name.as_str(), Symbol::Constant),
        _ => return None,
    };
    described(name, &symbol(name.into()), checked, library)
}

fn shared(item: &Item, checked: &Checked, library: &Library) -> Option<PageEntry> {
    let shared = match &item.kind {
        ItemKind::Shared(shared) => &shared.name,
        ItemKind::Table(table) => &table.name,
        _ => return None,
    };
    let name = checked.whole_name(item.span.start, shared.as_str());
    described(&name, &Symbol::Shared(name.clone()), checked, library)
}

fn functions(item: &Item, checked: &Checked, library: &Library) -> Option<PageEntry> {
    let ItemKind::Function(function) = &item.kind else { return None };
    described(function.name.as_str(), &Symbol::Function(function.name.as_str().into()), checked, library)
}

fn types(item: &Item, checked: &Checked, library: &Library) -> Option<PageEntry> {
    let (name, rows): (_, Vec<[String; 3]>) = match &item.kind {
        ItemKind::Record(record) => (&record.name, record.fields.iter().map(field_docs).collect()),
        ItemKind::Enum(each) => (&each.name, each.variants.iter().map(variant_docs).collect()),
        ItemKind::Alias(alias) => (&alias.name, Vec::new()),
        _ => return None,
    };
    let definition = checked.expr.as_ref()?.types.iter().find(|definition| *definition.name == *name.as_str());
    let mut entry = definition.map_or_else(PageEntry::default, library::definition);
    if definition.is_none() {
        entry = described(name.as_str(), &Symbol::Type(name.as_str().into()), checked, library)?;
    }
    for (part, [_, _, doc]) in entry.parts.iter_mut().zip(rows) {
        part[2] = doc;
    }
    entry.doc = markdown::html(&item.docs.text());
    Some(entry)
}

fn field_docs(field: &FieldDeclaration) -> [String; 3] {
    [field.name.as_str().to_owned(), String::new(), markdown::html(&field.docs.text())]
}

fn variant_docs(variant: &Variant) -> [String; 3] {
    [variant.name.as_str().to_owned(), String::new(), markdown::html(&variant.docs.text())]
}

fn described(name: &str, symbol: &Symbol, checked: &Checked, library: &Library) -> Option<PageEntry> {
    let described = checked.describe(symbol, library)?;
    Some(PageEntry {
        name: name.to_owned(),
        signature: described.signature,
        doc: markdown::html(&described.doc),
        effects: described.effects,
        parts: Vec::new(),
    })
}
