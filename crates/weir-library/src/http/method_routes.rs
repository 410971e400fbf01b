//! The routes of one method: a path finds the most specific pattern that matches it.
//!
//! Two patterns that match the same path are compared where they first differ: literal characters go before `{name}`, and
//! `{name}` before `{name..}`. A router of `matchit` chooses in the same way, but holds no pattern with `{name..}` where another
//! one has `{name}`, and not every pair of `img-{name}` and `{name}.png`. So the patterns are sorted, the most specific first,
//! and a router that refuses the next one is followed by another router: whatever the first router finds that matches at all is
//! the most specific. The routes of most services are in a single one.

use std::cmp::Reverse;

use hyper::Method;
use matchit::{Match, Router};

/// The index of the route of a method and a path, and the parts of the path that fill the pattern's placeholders.
pub(super) type PathMatch<'r, 'p> = Match<'r, 'p, &'r usize>;

/// The routes that answer the requests of one method. Each method has routers of its own, because the pattern of another method
/// must not hide one that the path matches too.
pub(super) struct MethodRoutes {
    pub(super) method: Method,
    /// The most specific patterns come first. Made from `patterns` by [`MethodRoutes::prepare`].
    routers: Vec<Router<usize>>,
    patterns: Vec<(String, usize)>,
}

impl MethodRoutes {
    /// Adds a route with a pattern of `matchit`.
    ///
    /// # Errors
    /// Fails if a route has this pattern already.
    pub(super) fn add(&mut self, pattern: String, route: usize) -> Result<(), &'static str> {
        if self.patterns.iter().any(|(other, _)| *other == pattern) {
            return Err("is defined twice");
        }
        self.patterns.push((pattern, route));
        Ok(())
    }

    /// Returns the patterns that were added, with the indices of their routes.
    pub(super) fn patterns(&self) -> &[(String, usize)] {
        &self.patterns
    }

    /// Makes the routers, once all routes are added.
    ///
    /// # Errors
    /// Fails with the index of a route whose pattern is none of `matchit`, and the reason.
    pub(super) fn prepare(&mut self) -> Result<(), (usize, String)> {
        let mut patterns = self.patterns.clone();
        patterns.extend(self.empty_rests());
        patterns.sort_by_cached_key(|(pattern, _)| specificity(pattern));
        let mut is_last_alone = false;
        for (pattern, route) in patterns {
            let is_alone = is_alone(&pattern);
            let last = self.routers.last_mut().filter(|_| !is_alone && !is_last_alone);
            let inserted = last.map(|router| router.insert(pattern.clone(), route));
            if !matches!(inserted, Some(Ok(()))) {
                let mut router = Router::new();
                router.insert(pattern, route).map_err(|error| (route, error.to_string()))?;
                self.routers.push(router);
            }
            is_last_alone = is_alone;
        }
        Ok(())
    }

    /// Returns the paths whose rest is empty, unless another route has the path without a rest.
    fn empty_rests(&self) -> Vec<(String, usize)> {
        let before_rests = self.patterns.iter().filter_map(|(pattern, route)| {
            let (before, _) = pattern.split_once("{*")?;
            let has_route = self.patterns.iter().any(|(other, _)| other == before);
            (!has_route).then(|| (before.to_owned(), *route))
        });
        before_rests.collect()
    }

    /// Finds the most specific route of a path.
    #[inline]
    pub(super) fn at<'r, 'p>(&'r self, path: &'p str) -> Option<PathMatch<'r, 'p>> {
        self.routers.iter().find_map(|router| router.at(path).ok())
    }
}

/// Returns the routes of a method, to which one is added.
pub(super) fn of_method(methods: &mut Vec<MethodRoutes>, method: Method) -> &mut MethodRoutes {
    let at = methods.iter().position(|of| of.method == method).unwrap_or_else(|| {
        methods.push(MethodRoutes { method, routers: Vec::new(), patterns: Vec::new() });
        methods.len() - 1
    });
    &mut methods[at]
}

/// Returns true if a pattern needs a router of its own: from `{name}` with characters behind it, such as `/{name}.tar/{file}`,
/// `matchit` does not go back to a less specific pattern if the next parts of the path do not match.
fn is_alone(pattern: &str) -> bool {
    let has_suffix = |segment: &str| segment.contains('}') && !segment.ends_with('}');
    pattern.rsplit('/').skip(1).any(has_suffix)
}

/// Part of a pattern. Of two patterns that match the same path, that with the smaller part is more specific.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum PatternPart {
    Literal(u8),
    /// With the number of literal characters between it and the next `/`: `{name}.tar.gz` is more specific than `{name}.gz`.
    Parameter(Reverse<usize>),
    Rest,
}

/// Returns the parts of a pattern, by which patterns are sorted.
fn specificity(pattern: &str) -> Vec<PatternPart> {
    let (mut parts, mut left) = (Vec::new(), pattern);
    while let Some((before, name, after)) = next_placeholder(left) {
        parts.extend(before.bytes().map(PatternPart::Literal));
        let literals = after.bytes().take_while(|byte| *byte != b'/').count();
        parts.push(if name.starts_with('*') { PatternPart::Rest } else { PatternPart::Parameter(Reverse(literals)) });
        left = after;
    }
    parts.extend(left.bytes().map(PatternPart::Literal));
    parts
}

/// Returns the text before the first placeholder of a pattern, its name, and the text behind it.
pub(super) fn next_placeholder(pattern: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = pattern.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

#[cfg(test)]
mod tests;
