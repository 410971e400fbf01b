//! The order in which declarations that depend on one another are checked. A chain of them may be as long as the program, so
//! that it is followed without recursion.

use std::hash::Hash;

use indexmap::IndexMap;

/// Declarations in the order of their dependencies.
pub(crate) struct DependencyOrder<N> {
    /// Each declaration after those that it depends on, unless they depend on it in turn.
    pub(crate) order: Vec<N>,
    /// At least one declaration of each circle, without which there is none, each with one of its circles: the declaration,
    /// one that it depends on, and so on, at most [`CIRCLE_MEMBERS_MAX`] of them.
    pub(crate) circular: IndexMap<N, Vec<N>>,
}

/// Maximum length of a circle that is kept for a message. A circle may be as long as the program.
const CIRCLE_MEMBERS_MAX: usize = CIRCLE_SHOWN_MAX + 1;

/// Maximum number of declarations of a circle that a message names.
pub(crate) const CIRCLE_SHOWN_MAX: usize = 8;

/// Formats a circle: `` `a` → `b` → `a` ``.
pub(crate) fn circle_shown(members: &[String]) -> String {
    let mut shown: Vec<String> = members.iter().take(CIRCLE_SHOWN_MAX).map(|member| format!("`{member}`")).collect();
    if members.len() > CIRCLE_SHOWN_MAX {
        shown.push("…".to_owned());
    }
    shown.extend(members.first().map(|first| format!("`{first}`")));
    shown.join(" → ")
}

/// Orders declarations; `of` returns those that one depends on directly.
pub(crate) fn dependencies_first<N: Clone + Eq + Hash>(
    all: impl IntoIterator<Item = N>,
    of: impl Fn(&N) -> Vec<N>,
) -> DependencyOrder<N> {
    let mut found = DependencyOrder { order: Vec::new(), circular: IndexMap::new() };
    // For each declaration that has been reached, its place in the path, or `None` if all that it depends on is in the order.
    let mut places: IndexMap<N, Option<usize>> = IndexMap::new();
    for first in all {
        if places.contains_key(&first) {
            continue;
        }
        places.insert(first.clone(), Some(0));
        let mut path = vec![(of(&first).into_iter(), first)];
        while let Some((left, node)) = path.last_mut() {
            match left.next() {
                Some(next) => match places.get(&next) {
                    None => {
                        places.insert(next.clone(), Some(path.len()));
                        path.push((of(&next).into_iter(), next));
                    }
                    Some(Some(place)) if !found.circular.contains_key(&next) => {
                        let members = path[*place..].iter().take(CIRCLE_MEMBERS_MAX);
                        let circle = members.map(|(_, member)| member.clone()).collect();
                        found.circular.insert(next, circle);
                    }
                    Some(_) => {}
                },
                None => {
                    places.insert(node.clone(), None);
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
        assert_eq!((ordered.order.len(), ordered.circular.len()), (100_000, 1));
        assert_eq!(ordered.circular[&0], (0..9).collect::<Vec<_>>());
    }

    #[test]
    fn a_circle_begins_with_its_declaration() {
        let next = |node: &u32| [vec![1], vec![2], vec![3], vec![1, 3]].concat()[*node as usize..][..1].to_vec();
        let ordered = dependencies_first(0..4, next);
        assert_eq!(ordered.circular.into_iter().collect::<Vec<_>>(), [(1, vec![1, 2, 3])]);
    }
}
