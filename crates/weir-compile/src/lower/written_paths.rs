//! The writes on the paths of an attempt of a `retry`: by which statements, and if a value is which of its variants.

use std::collections::{BTreeMap, BTreeSet};

use weir_ir::expr::Var;

/// The statements that have written on a path, by their variables.
pub(super) type Written = BTreeSet<(Var, WriteState)>;

/// The state of what a statement has written.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WriteState {
    /// True if its transaction has not committed yet.
    pub(super) is_open: bool,
    /// True if it was written in an earlier round of a loop than the current one.
    pub(super) is_earlier: bool,
    /// True if it has failed, perhaps because its connection was lost: then nobody knows whether it was written.
    pub(super) is_uncertain: bool,
}

impl WriteState {
    /// Returns the state of a write that has failed.
    pub(super) fn uncertain(self) -> WriteState {
        WriteState { is_open: false, is_uncertain: true, ..self }
    }
}

/// The writes on a path, by the variant that a value is.
#[derive(Clone, Default)]
pub(super) struct WrittenByVariant {
    /// The writes if the variant is not known.
    pub(super) all: Written,
    /// The variants that the value may be; the others are those of `rest`.
    pub(super) variants: BTreeMap<u32, WrittenVariant>,
    /// The writes if the value is another variant; `None` if it is none.
    pub(super) rest: Option<Written>,
}

#[derive(Clone, Default)]
pub(super) struct WrittenVariant {
    pub(super) written: Written,
    pub(super) payload: Option<Box<WrittenByVariant>>,
    /// The uncertain writes whose failure the payload is.
    pub(super) failure_of: Written,
}

/// Returns what was written by the variants of a value that is one of these, on each path what was written and its variants.
pub(super) fn joined(values: &[(Written, Option<WrittenByVariant>)]) -> WrittenByVariant {
    let known = values.iter().filter_map(|(_, variants)| variants.as_ref());
    let tags: BTreeSet<u32> = known.flat_map(|of| of.variants.keys().copied()).collect();
    let rest = |(written, variants): &(Written, Option<WrittenByVariant>)| match variants {
        Some(of) => narrowed(written, of, of.rest.as_ref()),
        None => Some(written.clone()),
    };
    let with_tag = |tag: u32| {
        let mut failure_of = Written::new();
        let of_each = values.iter().filter_map(|value| {
            let known = value.1.as_ref().and_then(|of| Some((of, of.variants.get(&tag)?)));
            Some(match known {
                Some((of, variant)) => {
                    failure_of.extend(&variant.failure_of);
                    (narrowed(&value.0, of, Some(&variant.written))?, variant.payload.as_deref().cloned())
                }
                None => (rest(value)?, None),
            })
        });
        let of_each: Vec<_> = of_each.collect();
        let written = of_each.iter().flat_map(|(written, _)| written.iter().copied()).collect();
        let is_known = of_each.iter().any(|(_, payload)| payload.is_some());
        (tag, WrittenVariant { written, payload: is_known.then(|| Box::new(joined(&of_each))), failure_of })
    };
    WrittenByVariant {
        all: values.iter().flat_map(|(written, _)| written.iter().copied()).collect(),
        variants: tags.into_iter().map(with_tag).collect(),
        rest: values.iter().map(rest).fold(None, union),
    }
}

/// Returns what was written on a path on which a value turns out to be a variant, with which this was written.
pub(super) fn narrowed(path: &Written, of: &WrittenByVariant, with_variant: Option<&Written>) -> Option<Written> {
    let with_variant = with_variant?;
    Some(path.iter().filter(|written| !of.all.contains(written) || with_variant.contains(written)).copied().collect())
}

pub(super) fn union(one: Option<Written>, other: Option<Written>) -> Option<Written> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.union(&other).copied().collect()),
        (one, other) => one.or(other),
    }
}
