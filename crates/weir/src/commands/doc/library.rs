//! Documentation page of a library: every module with its functions, sources and types.

use weir_host::{
    Function, Library, Module, Parameter, Passing, Signature, SourceSignature, Text, TypeDefinition, TypeShape, World,
};

use weir_compile::{SymbolInfo, WeirModules};

use super::markdown;
use super::page::{DocPage, PageEntry, PageSection, escape};

/// Returns the page of all modules.
pub(super) fn page(library: &Library) -> DocPage {
    let modules = WeirModules::default();
    let sections = library
        .modules
        .values()
        .filter(|module| !module.is_internal())
        .map(|module| section(module, library, &modules))
        .collect();
    let lead = "<p>The modules that a program can import with <code>use</code>. By default a function writes the state \
                of its module, so that its calls keep their order.</p>";
    DocPage { title: "The library of Weir".into(), lead: lead.into(), sections }
}

fn section(module: &Module, library: &Library, modules: &WeirModules) -> PageSection {
    let entries = entries(module, library, modules).into_iter().map(in_html).collect();
    PageSection { title: module.name.to_string(), lead: markdown::html(&module.doc), entries }
}

/// Returns an item of a module with its documentation in HTML.
fn in_html(mut entry: PageEntry) -> PageEntry {
    entry.doc = markdown::html(&entry.doc);
    for [_, _, default] in entry.parts.iter_mut().filter(|[.., default]| !default.is_empty()) {
        *default = format!("<code>{}</code>", escape(default));
    }
    entry
}

/// Returns the public items of a module, with their documentation in Markdown and their defaults in Weir.
pub(super) fn entries(module: &Module, library: &Library, modules: &WeirModules) -> Vec<PageEntry> {
    let sources = module.sources.values().map(|(signature, _)| source(module, signature));
    let functions = module.public_functions().map(|each| function(module, each));
    let in_weir = modules.names(&module.name, library).into_iter().filter_map(|name| {
        let path = format!("{}.{name}", module.name);
        let described = modules.describe(&path, library)?;
        Some(weir_function(path, &described))
    });
    let types = module.types.values().filter(|definition| belongs(module, definition)).map(definition);
    sources.chain(functions).chain(in_weir).chain(types).collect()
}

/// Documents a function that is written in Weir.
fn weir_function(path: String, described: &SymbolInfo) -> PageEntry {
    PageEntry {
        name: path,
        signature: described.signature.clone(),
        doc: described.doc.to_string(),
        effects: described.effects.as_ref().map(|effects| match described.signature.contains("fn(") {
            true => format!("{effects}, apart from the functions that it takes"),
            false => effects.clone(),
        }),
        parts: Vec::new(),
    }
}

/// Returns true if the module defines the type; false if it only mentions it.
fn belongs(module: &Module, definition: &TypeDefinition) -> bool {
    definition.name.split_once('.').is_none_or(|(owner, _)| *owner == *module.name)
}

fn source(module: &Module, signature: &SourceSignature) -> PageEntry {
    let path = path(module, &signature.name);
    let shown = if *signature.name == *module.name { module.name.to_string() } else { path.clone() };
    let of = signature.element.as_ref().map(|element| format!(" of {element}")).unwrap_or_default();
    let order = if signature.ordered {
        "ordered: flows keep the order of the elements"
    } else {
        "unordered: flows are independent"
    };
    PageEntry {
        name: shown.clone(),
        signature: format!("source {shown}({}){of}", required(&signature.parameters)),
        doc: signature.doc.to_string(),
        effects: Some(order.into()),
        parts: optional(&signature.parameters),
    }
}

fn function(module: &Module, function: &Function) -> PageEntry {
    let signature = &function.signature;
    PageEntry {
        name: path(module, &signature.name),
        signature: format!(
            "fn {}({}) -> {}",
            path(module, &signature.name),
            all(signature.written()),
            signature.call_type()
        ),
        doc: signature.doc.to_string(),
        effects: Some(effects(signature, &module.name)),
        parts: Vec::new(),
    }
}

fn path(module: &Module, name: &Text) -> String {
    format!("{}.{name}", module.name)
}

fn all(parameters: &[Parameter]) -> String {
    parameters.iter().map(Parameter::shown).collect::<Vec<_>>().join(", ")
}

fn required(parameters: &[Parameter]) -> String {
    let required = parameters.iter().filter(|parameter| parameter.default.is_none()).map(Parameter::shown);
    let more =
        if parameters.iter().any(|parameter| parameter.default.is_some()) { vec!["…".to_owned()] } else { vec![] };
    required.chain(more).collect::<Vec<_>>().join(", ")
}

/// Returns the optional parameters with their defaults.
fn optional(parameters: &[Parameter]) -> Vec<[String; 3]> {
    let rows = parameters.iter().filter_map(|parameter| {
        let default = parameter.shown_default()?;
        Some([parameter.name.to_string(), parameter.ty.to_string(), default])
    });
    rows.collect()
}

/// Summarises the effects of a function in a line.
fn effects(signature: &Signature, module: &str) -> String {
    let (effects, parameters) = (&signature.effects, &signature.parameters);
    let mut words: Vec<String> = Vec::new();
    match effects.world {
        World::Pure => {}
        World::Reads => words.push(format!("reads the state of {module}")),
        World::Writes => words.push(format!("writes the state of {module}")),
    }
    words.extend(
        parameters
            .iter()
            .filter(|parameter| parameter.passing == Passing::Change)
            .map(|parameter| format!("changes {}", parameter.name)),
    );
    let made_of: Vec<&str> = signature.start_parameters().map(|index| parameters[index].name.as_str()).collect();
    let state = match made_of.len() {
        0 => "has private state at each call".to_owned(),
        _ => format!("has private state at each call, created from {} at start", made_of.join(" and ")),
    };
    let marks = [
        (signature.state.is_some(), state.as_str()),
        (effects.waits, "may wait"),
        (effects.barrier, "holds up what follows in the text"),
        (effects.blocking, "blocks a thread"),
        (effects.deferrable, "may run after the response"),
        (effects.idempotent && effects.world != World::Pure, "may be retried"),
        (effects.fresh_ns.is_some(), "may be cached"),
    ];
    words.extend(marks.iter().filter(|(marked, _)| *marked).map(|(_, words)| (*words).to_owned()));
    if words.is_empty() { "pure".into() } else { words.join(", ") }
}

/// Documents a record, an enum or a host type, in Markdown.
pub(super) fn definition(definition: &TypeDefinition) -> PageEntry {
    let (word, parts) = match &definition.shape {
        TypeShape::Record(fields) => (
            "record",
            fields.iter().map(|field| [field.name.to_string(), field.ty.to_string(), String::new()]).collect(),
        ),
        TypeShape::Enum(variants) => ("enum", variants.iter().map(variant).collect()),
        TypeShape::Opaque { .. } => ("type", Vec::new()),
    };
    let moved = matches!(definition.shape, TypeShape::Opaque { shareable: false });
    PageEntry {
        name: definition.name.to_string(),
        signature: format!("{word} {}", definition.name),
        doc: definition.doc.to_string(),
        effects: moved.then(|| "moved, not copied".into()),
        parts,
    }
}

fn variant(variant: &weir_host::Variant) -> [String; 3] {
    let fields: Vec<String> = variant.fields.iter().map(|field| field.ty.to_string()).collect();
    [variant.name.to_string(), fields.join(", "), String::new()]
}
