//! The order in which declarations that depend on one another are checked. A chain of them may be as long as the program, so
//! that it is followed without recursion.

use std::hash::Hash;

use indexmap::{IndexMap, IndexSet};

/// Declarations in the order of their dependencies.
pub(crate) struct DependencyOrder<N> {
    /// Each declaration after those that it depends on, unless they depend on it in turn.
    pub(crate) order: Vec<N>,
    /// At least one declaration of each circle: without them there is none.
    pub(crate) circular: IndexSet<N>,
}

/// Orders declarations; `of` returns those that one depends on directly.
pub(crate) fn dependencies_first<N: Clone + Eq + Hash>(
    all: impl IntoIterator<Item = N>,
    of: impl Fn(&N) -> Vec<N>,
) -> DependencyOrder<N> {
    let mut found = DependencyOrder { order: Vec::new(), circular: IndexSet::new() };
    // For each declaration that has been reached, whether all that it depends on is in the order.
    let mut finished: IndexMap<N, bool> = IndexMap::new();
    for first in all {
        if finished.contains_key(&first) {
            continue;
        }
        finished.insert(first.clone(), false);
        let mut path = vec![(of(&first).into_iter(), first)];
        while let Some((left, node)) = path.last_mut() {
            match left.next() {
                Some(next) => match finished.get(&next) {
                    None => {
                        finished.insert(next.clone(), false);
                        path.push((of(&next).into_iter(), next));
                    }
                    Some(false) => _ = found.circular.insert(next),
                    Some(true) => {}
                },
                None => {
                    finished.insert(node.clone(), true);
                    found.order.push(node.clone());
                    path.pop();
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::dependencies_first;

    #[test]
    fn a_declaration_follows_those_that_it_depends_on() {
        let ordered = dependencies_first(0..4, |node| if *node < 3 { vec![3, node + 1] } else { Vec::new() });
        assert_eq!(ordered.order, [3, 2, 1, 0]);
        assert!(ordered.circular.is_empty());
    }

    #[test]
    fn a_long_circle_is_found() {
        let ordered = dependencies_first(0..100_000, |node| vec![(node + 1) % 100_000]);
        assert_eq!((ordered.order.len(), ordered.circular.into_iter().collect::<Vec<_>>()), (100_000, vec![0]));
    }
}
