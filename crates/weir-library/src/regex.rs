//! Regular expressions: searching in texts, in time linear in the text.
//!
//! The syntax is that of the crate `regex`, without back-references and look-around. A pattern is compiled once for each call in
//! the text of a program, when the program starts, so that it has to be known then.

use indexmap::IndexMap;
use regex::{Regex, RegexBuilder};
use weir::{Failure, FailureKind, Text};

use crate::limited::Limited;
use crate::text::TEXT_BYTES_MAX;
use crate::units;

weir::library! {
    /// Regular expressions: searching in texts, in time linear in the text.
    pub(crate) regex: CompiledPattern::matches, CompiledPattern::find, CompiledPattern::find_all, CompiledPattern::groups,
        CompiledPattern::named, CompiledPattern::replace, CompiledPattern::split
}

/// Maximum size of a compiled pattern in bytes.
const COMPILED_BYTES_MAX: usize = 1024 * 1024;

/// A compiled pattern.
#[derive(Debug)]
pub struct CompiledPattern(Regex);

#[weir::function(pure)]
impl CompiledPattern {
    /// Compiles a regular expression. It is part of the program: `pattern: "[0-9]+"`.
    ///
    /// # Errors
    /// Fails if the pattern has an error, or takes more than 1 MiB when it is compiled.
    #[new]
    pub fn compile(pattern: &str) -> Result<Self, Failure> {
        let built = RegexBuilder::new(pattern).size_limit(COMPILED_BYTES_MAX).build();
        built
            .map(CompiledPattern)
            .map_err(|error| Failure::argument(format!("the pattern {pattern:?} is refused: {error}")))
    }

    /// Returns `true` if a part of the text matches; `^` and `$` stand for its ends.
    #[weir::function(units = units::to_transform(text))]
    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Returns the first part that matches.
    #[weir::function(room = 2 * text.len(), units = units::to_transform(text))]
    pub fn find(&self, text: &str) -> Option<String> {
        self.0.find(text).map(|found| found.as_str().to_owned())
    }

    /// Returns all parts that match, without those that overlap earlier ones.
    #[weir::function(units = units::to_match(text))]
    pub fn find_all(&self, text: &str) -> Limited<Vec<Text>> {
        Limited(collected(self.0.find_iter(text).map(|found| found.as_str())))
    }

    /// Returns the parts of the first match that the groups in parentheses stand for, in their order; `None` for a group that has
    /// no part in the match.
    #[weir::function(room = 2 * text.len(), units = units::to_transform(text))]
    pub fn groups(&self, text: &str) -> Option<Vec<Option<Text>>> {
        let found = self.0.captures(text)?;
        Some(found.iter().skip(1).map(|group| group.map(|group| group.as_str().into())).collect())
    }

    /// Returns the parts of the first match that the named groups stand for, such as `(?<year>[0-9]+)`, by name.
    #[weir::function(room = 2 * text.len(), units = units::to_transform(text))]
    pub fn named(&self, text: &str) -> Option<IndexMap<Text, Text>> {
        let found = self.0.captures(text)?;
        let group = |name: Option<&str>| Some((name?.into(), found.name(name?)?.as_str().into()));
        Some(self.0.capture_names().filter_map(group).collect())
    }

    /// Replaces every part that matches. In `by`, `$1` or `$\{1}` stands for the first group, `$\{name}` for a named
    /// one, and `$$` for `$`; a group that the pattern does not have stands for nothing.
    /// A result of more than 64 MiB ends the flow.
    #[weir::function(units = units::to_match(text))]
    pub fn replace(&self, text: &str, by: &str) -> Limited<String> {
        Limited(self.replaced(text, by))
    }

    /// Splits the text at every part that matches.
    #[weir::function(units = units::to_match(text))]
    pub fn split(&self, text: &str) -> Limited<Vec<Text>> {
        Limited(collected(self.0.split(text)))
    }
}

impl CompiledPattern {
    fn replaced(&self, text: &str, by: &str) -> Result<String, Failure> {
        let (mut result, mut end) = (String::new(), 0);
        for found in self.0.captures_iter(text) {
            let Some(whole) = found.get(0) else { continue };
            result.push_str(&text[end..whole.start()]);
            found.expand(by, &mut result);
            end = whole.end();
            if result.len() > TEXT_BYTES_MAX {
                return Err(Failure::new(
                    FailureKind::Limit,
                    format!("the text would be longer than {TEXT_BYTES_MAX} bytes"),
                ));
            }
            weir::memory::ask(result.len()).map_err(|failure| *failure)?;
        }
        result.push_str(&text[end..]);
        Ok(result)
    }
}

/// Collects parts of a text; checks from time to time that there is memory for them.
fn collected<'t>(parts: impl Iterator<Item = &'t str>) -> Result<Vec<Text>, Failure> {
    /// Number of parts after which memory is checked.
    const CHECKED_PARTS: usize = 1024;
    let mut collected: Vec<Text> = Vec::new();
    for part in parts {
        if collected.len().is_multiple_of(CHECKED_PARTS) {
            weir::memory::check().map_err(|failure| *failure)?;
        }
        collected.push(part.into());
    }
    Ok(collected)
}
