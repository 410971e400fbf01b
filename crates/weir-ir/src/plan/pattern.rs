//! Patterns of node names.

use weir_host::Text;

/// A pattern of node names: `image.*`, `thumbnail/*`, `get /{name}: files.read`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePattern {
    text: Text,
    /// The length of the part before the last `: `, which is a pattern of flow names.
    flows: Option<usize>,
}

/// The characters between the pattern of flow names and that of node names.
const SEPARATOR: &str = ": ";

impl NodePattern {
    /// Creates a pattern from its text.
    #[must_use]
    pub fn new(text: &str) -> NodePattern {
        NodePattern { text: text.into(), flows: text.rfind(SEPARATOR) }
    }

    /// Returns the text of the pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if the pattern names this node of this flow.
    #[must_use]
    pub fn names(&self, flow: &str, node: &str) -> bool {
        match self.flows {
            Some(length) => {
                matches(&self.text[..length], flow) && matches(&self.text[length + SEPARATOR.len()..], node)
            }
            None => matches(&self.text, node),
        }
    }
}

/// Matches a text with a pattern in which `*` stands for any characters. Each `*` takes as few characters as possible,
/// and only the last one is ever extended, so the time is bounded by the product of the lengths.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at + 1, seen));
            at += 1;
        } else if pattern.get(at) == text.get(seen) {
            at += 1;
            seen += 1;
        } else if let Some((after, taken)) = star {
            star = Some((after, taken + 1));
            at = after;
            seen = taken + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|rest| *rest == b'*')
}
