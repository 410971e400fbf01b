//! Attributes of HTML whose values are code, URLs, or on and off.

/// The treatment of interpolations in an attribute.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum AttributeRule {
    /// The value is text.
    Plain,
    /// The attribute is present or not.
    Flag,
    /// The value is a URL.
    Url {
        /// True if the browser runs or shows what it loads from there with the rights of the page.
        of_code: bool,
    },
    /// An interpolation cannot be made safe.
    Refused { message: String, hint: &'static str },
}

/// Attributes that are present or not.
const FLAGS: [&str; 24] = [
    "allowfullscreen",
    "async",
    "autofocus",
    "autoplay",
    "checked",
    "controls",
    "default",
    "defer",
    "disabled",
    "formnovalidate",
    "hidden",
    "inert",
    "ismap",
    "itemscope",
    "loop",
    "multiple",
    "muted",
    "nomodule",
    "novalidate",
    "open",
    "playsinline",
    "readonly",
    "required",
    "reversed",
];

/// Beginnings of the names of attributes that browsers or client-side frameworks run as code.
const CODE: [&str; 8] = ["on", "hx-on", "data-hx-on", "@", ":", "v-", "x-", "ng-"];

/// Attributes whose values are URLs.
const URLS: [&str; 19] = [
    "href",
    "src",
    "action",
    "formaction",
    "poster",
    "cite",
    "background",
    "longdesc",
    "data",
    "ping",
    "xlink:href",
    "manifest",
    "icon",
    "usemap",
    "codebase",
    "classid",
    "archive",
    "profile",
    "lowsrc",
];

/// Elements that run or embed what one of their attributes names.
const LOADERS: [&str; 9] = ["script", "iframe", "frame", "object", "embed", "link", "base", "use", "applet"];

/// Elements of SVG that assign values to attributes of others.
const ANIMATIONS: [&str; 5] = ["animate", "animatemotion", "animatetransform", "animatecolor", "set"];

/// Returns the rule for an attribute of an element, both in lower case.
pub(super) fn rule_of(element: &str, name: &str) -> AttributeRule {
    if CODE.iter().any(|prefix| name.starts_with(prefix)) {
        let hint = "put the value into a `data-` attribute, and let a script read it";
        return AttributeRule::Refused {
            message: format!("`{name}` is code, which cannot contain an interpolation"),
            hint,
        };
    }
    let refused = |message: String, hint| AttributeRule::Refused { message, hint };
    match name {
        "style" => refused("`style` cannot contain an interpolation".into(), "choose between classes: `class=\"{…}\"`"),
        "srcdoc" => {
            refused("`srcdoc` cannot contain an interpolation".into(), "serve the page at a URL, and name it in `src`")
        }
        "srcset" | "imagesrcset" => {
            refused(format!("`{name}` cannot contain an interpolation"), "name one picture in `src`")
        }
        "to" | "from" | "by" | "values" | "attributename" if ANIMATIONS.contains(&element) => {
            refused(format!("`{name}` of an animation cannot contain an interpolation"), "write the value")
        }
        "type" if matches!(element, "script" | "style" | "object" | "embed") => {
            refused(format!("the type of `<{element}>` cannot be an interpolation"), "write the type")
        }
        "http-equiv" | "charset" if element == "meta" => {
            refused(format!("`{name}` cannot be an interpolation"), "write the value")
        }
        _ if FLAGS.contains(&name) => AttributeRule::Flag,
        _ if URLS.contains(&name) => AttributeRule::Url { of_code: LOADERS.contains(&element) },
        _ => AttributeRule::Plain,
    }
}
