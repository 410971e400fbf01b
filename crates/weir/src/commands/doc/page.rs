//! Documentation pages as data, and their HTML.

/// A page.
pub(super) struct DocPage {
    pub(super) title: String,
    /// HTML below the title.
    pub(super) lead: String,
    pub(super) sections: Vec<PageSection>,
}

/// A section with a heading.
pub(super) struct PageSection {
    pub(super) title: String,
    /// HTML below the heading.
    pub(super) lead: String,
    pub(super) entries: Vec<PageEntry>,
}

/// A documented item.
#[derive(Default)]
pub(super) struct PageEntry {
    /// Name in the table of contents.
    pub(super) name: String,
    /// Declaration, or method and path of a route.
    pub(super) signature: String,
    /// HTML of the documentation.
    pub(super) doc: String,
    /// Effects.
    pub(super) effects: Option<String>,
    /// Named parts as rows: name, type, HTML.
    pub(super) parts: Vec<[String; 3]>,
}

const STYLE: &str = r"
:root { color-scheme: light dark; --paper: #fbfbf9; --ink: #1d2430; --soft: #667085; --edge: #e2e5ea; --card: #fff;
  --link: #2563c9; --word: #8a3ffc; --type: #0b7f86; --chip: #eef2fb; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171c; --ink: #e8ebf0; --soft: #98a2b3; --edge: #2c323c;
  --card: #1b2027; --link: #7ba7f0; --word: #c09af7; --type: #58c7ce; --chip: #20293a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.55 ui-sans-serif, system-ui, sans-serif; }
.page { display: grid; grid-template-columns: 15rem minmax(0, 46rem); gap: 3rem; max-width: 68rem; margin: 0 auto;
  padding: 2.5rem 1.5rem 6rem; }
nav { position: sticky; top: 2.5rem; align-self: start; max-height: calc(100vh - 5rem); overflow: auto; font-size: .9rem; }
nav h2 { font-size: .8rem; color: var(--soft); margin: 1.1rem 0 .25rem; }
nav a { display: block; padding: .1rem 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
a { color: var(--link); text-decoration: none; } a:hover { text-decoration: underline; }
h1 { margin: 0 0 .5rem; font-size: 1.9rem; line-height: 1.2; overflow-wrap: anywhere; }
main h2 { margin: 2.75rem 0 .75rem; font-size: 1.3rem; }
code, pre { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; font-size: .88em; }
p code, li code, td code { background: var(--chip); padding: .08em .32em; border-radius: 4px; }
pre { margin: 0; overflow-x: auto; white-space: pre-wrap; }
article { background: var(--card); border: 1px solid var(--edge); border-radius: 10px; padding: 1rem 1.2rem; margin: 0 0 1rem; }
article > pre:first-child { font-weight: 600; }
article p, article ul { margin: .6rem 0 0; } article h4 { margin: .8rem 0 -.4rem; font-size: .87rem; color: var(--soft); }
main > pre, section > pre, article > div > pre, td pre { margin: .7rem 0 0; background: var(--chip); padding: .7rem; border-radius: 6px;
  white-space: pre; }
.word { color: var(--word); } .type { color: var(--type); }
.effects { color: var(--soft); font-size: .87rem; } .effects b { font-weight: 600; color: var(--ink); }
table { border-collapse: collapse; margin-top: .7rem; font-size: .92rem; } td { padding: .2rem 1.2rem .2rem 0; vertical-align: top; } td p { margin: 0; }
.picture { max-width: 100%; height: auto; }
@media (max-width: 48rem) { .page { grid-template-columns: minmax(0, 1fr); gap: 1rem; } nav { position: static; max-height: none; } }
";

impl DocPage {
    /// Returns the whole document.
    pub(super) fn html(&self) -> String {
        let title = escape(&self.title);
        let contents: String = self.sections.iter().map(contents).collect();
        let sections: String = self.sections.iter().map(section).collect();
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
             <style>{STYLE}</style>\n</head>\n<body>\n<div class=\"page\">\n<nav>\n{contents}</nav>\n<main>\n\
             <h1>{title}</h1>\n{}\n{sections}</main>\n</div>\n</body>\n</html>\n",
            self.lead
        )
    }
}

fn contents(section: &PageSection) -> String {
    let links = section.entries.iter().map(|entry| {
        format!("<a href=\"#{}\"><code>{}</code></a>\n", anchor(&section.title, &entry.name), escape(&entry.name))
    });
    format!("<h2>{}</h2>\n{}", to(section), links.collect::<String>())
}

/// Returns the title of a section for the table of contents; a link if the section has no entries.
fn to(section: &PageSection) -> String {
    let title = escape(&section.title);
    if section.entries.is_empty() { format!("<a href=\"#{}\">{title}</a>", anchor(&section.title, "")) } else { title }
}

fn section(section: &PageSection) -> String {
    let entries: String = section.entries.iter().map(|each| entry(&section.title, each)).collect();
    let (title, anchor) = (escape(&section.title), anchor(&section.title, ""));
    format!("<section id=\"{anchor}\">\n<h2>{title}</h2>\n{}\n{entries}</section>\n", section.lead)
}

fn entry(section: &str, entry: &PageEntry) -> String {
    let effects = entry.effects.as_ref().map(|effects| format!("<p class=\"effects\">{}</p>\n", escape(effects)));
    let rows = entry.parts.iter().map(|[name, ty, doc]| {
        let ty = if ty.is_empty() { String::new() } else { format!("<code>{}</code>", coloured(ty)) };
        format!("<tr><td><code>{}</code></td><td>{ty}</td><td>{doc}</td></tr>\n", escape(name))
    });
    let rows: String = rows.collect();
    let table = if rows.is_empty() { String::new() } else { format!("<table>\n{rows}</table>\n") };
    format!(
        "<article id=\"{}\">\n<pre>{}</pre>\n<div>{}</div>\n{table}{}</article>\n",
        anchor(section, &entry.name),
        coloured(&entry.signature),
        entry.doc,
        effects.unwrap_or_default()
    )
}

/// Returns the anchor of an entry. Its case tells a type from a function: `files.Open` from `files.open`.
fn anchor(section: &str, name: &str) -> String {
    let plain =
        |text: &str| -> String { text.chars().map(|each| if each.is_alphanumeric() { each } else { '-' }).collect() };
    format!("{}.{}", plain(section), plain(name))
}

/// Highlights keywords and types in a signature.
fn coloured(signature: &str) -> String {
    const WORDS: [&str; 8] = ["fn", "record", "enum", "type", "source", "shared", "of", "module"];
    let mut html = String::new();
    for word in signature.split_inclusive(|each: char| !each.is_alphanumeric() && each != '_') {
        let end = word.trim_end_matches(|each: char| !each.is_alphanumeric() && each != '_').len();
        let (name, rest) = word.split_at(end);
        let class = match name.chars().next() {
            _ if WORDS.contains(&name) && rest == " " => "word",
            Some(first) if first.is_uppercase() && name.chars().any(char::is_lowercase) => "type",
            _ => "",
        };
        match class {
            "" => html.push_str(&escape(name)),
            class => html.push_str(&format!("<span class=\"{class}\">{}</span>", escape(name))),
        }
        html.push_str(&escape(rest));
    }
    html
}

/// Escapes a text for HTML.
pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
