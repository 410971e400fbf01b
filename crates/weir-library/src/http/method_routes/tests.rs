//! Random patterns and paths: the routers find what a comparison of all patterns finds.

use hyper::Method;

use super::{MethodRoutes, of_method, specificity};

/// The next of a sequence of random numbers (xorshift), below `end`.
fn random(state: &mut u64, end: usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state % end as u64) as usize
}

/// Returns the routes of a method with these patterns.
fn routes(patterns: &[String]) -> MethodRoutes {
    let mut methods = Vec::new();
    let of = of_method(&mut methods, Method::GET);
    for (route, pattern) in patterns.iter().enumerate() {
        _ = of.add(pattern.clone(), route);
    }
    of.prepare().expect("patterns of matchit");
    methods.remove(0)
}

/// Returns true if the pattern matches the path.
fn matches(pattern: &str, path: &str) -> bool {
    match pattern.as_bytes().first() {
        None => path.is_empty(),
        Some(b'{') => {
            let (name, after) = pattern[1..].split_once('}').expect("a placeholder");
            let end = if name.starts_with('*') { path.len() } else { path.find('/').unwrap_or(path.len()) };
            let may_be_empty = name.starts_with('*');
            (usize::from(!may_be_empty)..=end).any(|taken| matches(after, &path[taken..]))
        }
        Some(byte) => path.as_bytes().first() == Some(byte) && matches(&pattern[1..], &path[1..]),
    }
}

fn random_pattern(state: &mut u64) -> String {
    let mut pattern = String::new();
    for segment in 0..=random(state, 3) {
        let texts = ["a", "b", "ab", "", "{N}", "{N}", "a{N}", "{N}b"];
        pattern.push('/');
        pattern.push_str(&texts[random(state, texts.len())].replace('N', &segment.to_string()));
    }
    if random(state, 3) == 0 {
        pattern.push_str("/{*9}");
    }
    pattern
}

fn random_path(state: &mut u64) -> String {
    let texts = ["a", "b", "ab", "abb", "c", "", "cb", "ac"];
    (0..=random(state, 4)).map(|_| format!("/{}", texts[random(state, texts.len())])).collect()
}

#[test]
fn a_path_finds_the_most_specific_of_random_patterns() {
    let (state, mut found, mut several) = (&mut 1, 0, 0);
    for _ in 0..3000 {
        let mut patterns: Vec<String> = (0..=random(state, 6)).map(|_| random_pattern(state)).collect();
        patterns.sort();
        patterns.dedup();
        let routes = routes(&patterns);
        several += usize::from(routes.routers.len() > 1);
        for _ in 0..20 {
            let path = random_path(state);
            let matching = patterns.iter().enumerate().filter(|(_, pattern)| matches(pattern, &path));
            let expected = matching.min_by_key(|(_, pattern)| specificity(pattern)).map(|(route, _)| route);
            found += usize::from(expected.is_some());
            assert_eq!(routes.at(&path).map(|found| *found.value), expected, "{path} in {patterns:?}");
        }
    }
    assert!(found > 5000 && several > 500, "{found} paths were found, {several} methods have several routers");
}
