//! Attributes of HTML whose values are code, URLs, or on and off.

/// The treatment of interpolations in an attribute.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum AttributeRule {
    /// The value is text.
    Plain,
    /// The value is a color, or `url(…)`.
    Paint,
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
const FLAGS: [&str; 42] = [
    "allowfullscreen",
    "alpha",
    "async",
    "autofocus",
    "autoplay",
    "checked",
    "compact",
    "controls",
    "credentialless",
    "declare",
    "default",
    "defer",
    "disabled",
    "disablepictureinpicture",
    "disableremoteplayback",
    "formnovalidate",
    "hidden",
    "inert",
    "ismap",
    "itemscope",
    "loop",
    "multiple",
    "muted",
    "nohref",
    "nomodule",
    "noresize",
    "noshade",
    "novalidate",
    "nowrap",
    "open",
    "playsinline",
    "readonly",
    "required",
    "reversed",
    "selected",
    "shadowrootclonable",
    "shadowrootcustomelementregistry",
    "shadowrootdelegatesfocus",
    "shadowrootserializable",
    "truespeed",
    "typemustmatch",
    "webkitdirectory",
];

/// Beginnings of the names of attributes that client-side frameworks run as code.
const CODE_OF_FRAMEWORKS: [&str; 5] = ["hx-", "ng-", "v-", "x-", "_"];

/// Attributes of htmx that are text, selectors or times, and not code.
const TEXT_OF_HTMX: [&str; 5] = ["hx-confirm", "hx-prompt", "hx-target", "hx-indicator", "hx-swap-oob"];

/// Attributes of htmx whose values are URLs, from which it loads parts of the page.
const URLS_OF_HTMX: [&str; 7] =
    ["hx-get", "hx-post", "hx-put", "hx-patch", "hx-delete", "hx-push-url", "hx-replace-url"];

/// Attributes that restrict what code may do.
const RESTRICTIONS: [&str; 6] = ["sandbox", "allow", "csp", "integrity", "crossorigin", "referrerpolicy"];

/// Attributes of SVG that can load pictures and effects by `url(…)`.
const PAINTS: [&str; 9] =
    ["fill", "stroke", "filter", "mask", "clip-path", "cursor", "marker-start", "marker-mid", "marker-end"];

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
    let plain_name = name.strip_prefix("data-").unwrap_or(name);
    if URLS_OF_HTMX.contains(&plain_name) {
        return AttributeRule::Url { of_code: true };
    }
    if is_code(name, plain_name) {
        return AttributeRule::Refused {
            message: format!("`{name}` is code, which cannot contain an interpolation"),
            hint: "put the value into a `data-` attribute, and let a script read it",
        };
    }
    if let Some(refused) = refused(element, name) {
        return refused;
    }
    match name {
        _ if FLAGS.contains(&name) => AttributeRule::Flag,
        _ if URLS.contains(&name) => AttributeRule::Url { of_code: LOADERS.contains(&element) },
        _ if PAINTS.contains(&name) => AttributeRule::Paint,
        _ => AttributeRule::Plain,
    }
}

/// Returns true for an attribute that browsers or client-side frameworks run as code. `plain_name` is its name without
/// `data-`, which frameworks accept before their names.
fn is_code(name: &str, plain_name: &str) -> bool {
    let is_xml = ["xlink:", "xml:", "xmlns:"].iter().any(|prefix| name.starts_with(prefix));
    let has_sign = !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_') || !c.is_ascii());
    let of_framework = CODE_OF_FRAMEWORKS.iter().any(|prefix| plain_name.starts_with(prefix));
    let in_data = name != plain_name && ["on", "bind"].contains(&plain_name.split('-').next().unwrap_or_default());
    name.starts_with("on")
        || (has_sign && !is_xml)
        || (of_framework && !TEXT_OF_HTMX.contains(&plain_name))
        || in_data
        || plain_name == "script"
}

/// Returns the rule for an attribute in which no value from outside is safe.
fn refused(element: &str, name: &str) -> Option<AttributeRule> {
    let (message, hint) = match name {
        "style" => ("`style` cannot contain an interpolation".into(), "choose between classes: `class=\"{…}\"`"),
        "srcdoc" => {
            ("`srcdoc` cannot contain an interpolation".into(), "serve the page at a URL, and name it in `src`")
        }
        "srcset" | "imagesrcset" => (format!("`{name}` cannot contain an interpolation"), "name one picture in `src`"),
        "to" | "from" | "by" | "values" | "attributename" if ANIMATIONS.contains(&element) => {
            (format!("`{name}` of an animation cannot contain an interpolation"), "write the value")
        }
        "type" if matches!(element, "script" | "style" | "object" | "embed") => {
            (format!("the type of `<{element}>` cannot be an interpolation"), "write the type")
        }
        "rel" | "as" if element == "link" => {
            (format!("`{name}` of `<link>` cannot be an interpolation"), "write the value")
        }
        "http-equiv" | "charset" if element == "meta" => {
            (format!("`{name}` cannot be an interpolation"), "write the value")
        }
        _ if RESTRICTIONS.contains(&name) => {
            (format!("`{name}` restricts what code may do, and cannot contain an interpolation"), "write the value")
        }
        _ => return None,
    };
    Some(AttributeRule::Refused { message, hint })
}
