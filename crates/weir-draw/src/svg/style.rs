//! The colours and fonts of the SVG, for light and dark.
//!
//! Each element has its light colours as presentation attributes, which every viewer understands. The style sheet only
//! overrides them in dark mode; it uses no CSS variables, which many viewers and converters lack.

use std::fmt::Write as _;

/// The font of words.
pub(super) const SANS: &str = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif";

/// The colours that distinguish modules, in the order of their first appearance.
pub(super) const MODULES: [&str; 7] = ["#3e80cc", "#803ecc", "#3ecc98", "#cc3e85", "#cc803e", "#3eb9cc", "#ccaf3e"];

/// The colours that distinguish sections.
pub(super) const TINTS: [&str; 5] = ["#2563c9", "#0f9d8a", "#b7791f", "#9333c9", "#c2346b"];

/// The value of a presentation attribute in light and in dark mode.
#[derive(Clone, Copy)]
struct StyleValue {
    light: &'static str,
    dark: &'static str,
}

const fn themed(light: &'static str, dark: &'static str) -> StyleValue {
    StyleValue { light, dark }
}

const fn plain(value: &'static str) -> StyleValue {
    themed(value, value)
}

const NONE: StyleValue = plain("none");
const PAPER: StyleValue = themed("#fbfbf9", "#14171c");
const CARD: StyleValue = themed("#ffffff", "#1f242c");
const INK: StyleValue = themed("#1d2430", "#e8ebf0");
const SOFT: StyleValue = themed("#6a7383", "#949eae");
const LINE: StyleValue = themed("#98a2b3", "#66707f");
const EDGE: StyleValue = themed("#d8dde6", "#363d49");
const ENTER: StyleValue = themed("#2563c9", "#3f7ddc");
const ENTER_INK: StyleValue = plain("#ffffff");
const GOOD: StyleValue = themed("#16794c", "#5cc693");
const GOOD_CARD: StyleValue = themed("#e6f5ed", "#17301f");
const BAD: StyleValue = themed("#b8322a", "#f08379");
const BAD_CARD: StyleValue = themed("#fdecea", "#3a1c1a");
const READ: StyleValue = themed("#0b7f86", "#45bcc4");
const WRITE: StyleValue = themed("#c46a08", "#eba04b");
const FORK: StyleValue = themed("#eef2fb", "#20293a");
const FORK_EDGE: StyleValue = themed("#8aa4d6", "#5d79ad");

const BOLD: StyleValue = plain("600");
const CODE: StyleValue = plain("ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace");

/// A class of elements, with its presentation attributes.
type StyleClass = (&'static str, &'static [(&'static str, StyleValue)]);

/// All classes. If an element has several, the later one wins.
const CLASSES: &[StyleClass] = &[
    ("document", &[("fill", INK), ("font-size", plain("12"))]),
    ("paper", &[("fill", PAPER)]),
    ("code", &[("font-family", CODE)]),
    ("heading", &[("font-size", plain("13")), ("font-weight", BOLD), ("fill", SOFT), ("letter-spacing", plain(".26"))]),
    ("title", &[("font-size", plain("13")), ("font-weight", BOLD)]),
    ("over", &[("font-size", plain("10.5")), ("fill", SOFT)]),
    ("card", &[("fill", CARD), ("stroke", EDGE)]),
    ("enter", &[("fill", ENTER)]),
    ("enter-text", &[("fill", ENTER_INK)]),
    ("enter-over", &[("fill", ENTER_INK), ("opacity", plain(".82")), ("font-size", plain("10.5"))]),
    ("begin", &[("fill", CARD), ("stroke", ENTER)]),
    ("fork", &[("fill", FORK), ("stroke", FORK_EDGE)]),
    ("prim", &[("fill", PAPER), ("stroke", EDGE)]),
    ("prim-text", &[("fill", SOFT), ("font-size", plain("11"))]),
    ("answer", &[("fill", GOOD_CARD), ("stroke", GOOD)]),
    ("answer-text", &[("fill", GOOD), ("font-weight", BOLD), ("font-size", plain("11.5"))]),
    ("failure", &[("fill", BAD_CARD), ("stroke", BAD)]),
    ("failure-text", &[("fill", BAD), ("font-weight", BOLD), ("font-size", plain("11.5"))]),
    ("frame", &[("fill", NONE), ("stroke", LINE), ("stroke-dasharray", plain("5 4"))]),
    ("frame-text", &[("fill", SOFT), ("font-size", plain("11.5")), ("font-weight", BOLD)]),
    ("fn", &[("stroke-dasharray", NONE)]),
    ("step", &[("stroke", WRITE), ("stroke-dasharray", NONE), ("stroke-width", plain("1.5"))]),
    ("step-text", &[("fill", WRITE)]),
    ("edge", &[("fill", NONE), ("stroke", LINE), ("stroke-width", plain("1.4"))]),
    ("order", &[("stroke-dasharray", plain("2 4"))]),
    ("head", &[("fill", LINE)]),
    (
        "label",
        &[
            ("font-size", plain("11")),
            ("font-weight", BOLD),
            ("fill", SOFT),
            ("paint-order", plain("stroke")),
            ("stroke", PAPER),
            ("stroke-width", plain("4")),
            ("stroke-linejoin", plain("round")),
        ],
    ),
    ("store", &[("fill", CARD), ("stroke", LINE)]),
    (
        "life",
        &[
            ("fill", NONE),
            ("stroke", EDGE),
            ("stroke-width", plain("1.4")),
            ("stroke-dasharray", plain("1 4")),
            ("stroke-linecap", plain("round")),
        ],
    ),
    ("read", &[("fill", NONE), ("stroke", READ), ("stroke-width", plain("1.4"))]),
    ("read-head", &[("fill", READ)]),
    ("write", &[("fill", NONE), ("stroke", WRITE), ("stroke-width", plain("1.4"))]),
    ("write-head", &[("fill", WRITE)]),
    ("section", &[("opacity", themed(".1", ".17")), ("stroke-linejoin", plain("round"))]),
    ("section-way", &[("fill", NONE), ("stroke-width", plain("40")), ("stroke-linecap", plain("round"))]),
    ("section-name", &[("font-style", plain("italic"))]),
];

/// Returns the `class` attribute of an element, and the presentation attributes that its classes have in light mode.
pub(super) fn class(names: &str) -> String {
    let mut attributes: Vec<(&str, &str)> = Vec::new();
    let wanted = |name: &str| names.split(' ').any(|wanted| wanted == name);
    for (attribute, value) in CLASSES.iter().filter(|(name, _)| wanted(name)).flat_map(|(_, attributes)| *attributes) {
        match attributes.iter_mut().find(|(known, _)| known == attribute) {
            Some((_, known)) => *known = value.light,
            None => attributes.push((attribute, value.light)),
        }
    }
    let mut text = format!("class=\"{names}\"");
    for (attribute, value) in attributes {
        let _ = write!(text, " {attribute}=\"{value}\"");
    }
    text
}

/// Returns the style sheet: the attributes that differ in dark mode.
pub(super) fn sheet() -> String {
    let mut text =
        String::from("<style>\n:root { color-scheme: light dark; }\n@media (prefers-color-scheme: dark) {\n");
    for (name, attributes) in CLASSES {
        let themed = attributes.iter().filter(|(_, value)| value.light != value.dark);
        let rules: Vec<String> = themed.map(|(attribute, value)| format!("{attribute}: {};", value.dark)).collect();
        if !rules.is_empty() {
            let _ = writeln!(text, "  .{name} {{ {} }}", rules.join(" "));
        }
    }
    text.push_str("}\n</style>\n");
    text
}

#[cfg(test)]
pub(super) fn class_names() -> impl Iterator<Item = &'static str> {
    CLASSES.iter().map(|(name, _)| *name)
}
