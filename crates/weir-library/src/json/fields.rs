//! The fields of a JSON object, in its order.

use std::slice;

use foldhash::fast::RandomState;
use indexmap::{IndexMap, map};
use weir::Text;

/// Fields by their keys, in the order in which the keys came first.
#[derive(Clone, Debug)]
pub(super) enum FieldMap<V> {
    /// Up to [`FEW_MAX`] fields, whose keys are compared one after the other.
    Few(Vec<(Text, V)>),
    /// More fields, in a hash table. The hash function is seeded anew in each process.
    Many(IndexMap<Text, V, RandomState>),
}

/// The maximum number of fields without a hash table. To allocate and to fill a table takes longer than to compare as many
/// short keys.
const FEW_MAX: usize = 8;

/// The keys and values of an object.
pub(super) enum FieldIter<'a, V> {
    Few(slice::Iter<'a, (Text, V)>),
    Many(map::Iter<'a, Text, V>),
}

impl<V> Default for FieldMap<V> {
    fn default() -> Self {
        FieldMap::Few(Vec::new())
    }
}

impl<V> FieldMap<V> {
    pub(super) fn len(&self) -> usize {
        match self {
            FieldMap::Few(fields) => fields.len(),
            FieldMap::Many(fields) => fields.len(),
        }
    }

    /// Returns the value under a key.
    pub(super) fn get(&self, key: &str) -> Option<&V> {
        match self {
            FieldMap::Few(fields) => fields.iter().find(|(found, _)| found.as_str() == key).map(|(_, value)| value),
            FieldMap::Many(fields) => fields.get(key),
        }
    }

    pub(super) fn contains_key(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// Adds a field, or replaces the value of the field with this key, which keeps its place.
    pub(super) fn insert(&mut self, key: Text, value: V) {
        let fields = match self {
            FieldMap::Few(fields) => fields,
            FieldMap::Many(fields) => return drop(fields.insert(key, value)),
        };
        if let Some((_, before)) = fields.iter_mut().find(|(found, _)| *found == key) {
            *before = value;
        } else if fields.len() < FEW_MAX {
            fields.push((key, value));
        } else {
            let few = std::mem::take(fields);
            *self = FieldMap::Many(few.into_iter().chain([(key, value)]).collect());
        }
    }

    pub(super) fn iter(&self) -> FieldIter<'_, V> {
        match self {
            FieldMap::Few(fields) => FieldIter::Few(fields.iter()),
            FieldMap::Many(fields) => FieldIter::Many(fields.iter()),
        }
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Text> {
        self.iter().map(|(key, _)| key)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }
}

impl<'a, V> Iterator for FieldIter<'a, V> {
    type Item = (&'a Text, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            FieldIter::Few(fields) => fields.next().map(|(key, value)| (key, value)),
            FieldIter::Many(fields) => fields.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            FieldIter::Few(fields) => fields.size_hint(),
            FieldIter::Many(fields) => fields.size_hint(),
        }
    }
}

impl<V> ExactSizeIterator for FieldIter<'_, V> {}

/// Equal if they have equal values under the same keys, in any order.
impl<V: PartialEq> PartialEq for FieldMap<V> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|(key, value)| other.get(key) == Some(value))
    }
}

impl<V> FromIterator<(Text, V)> for FieldMap<V> {
    fn from_iter<I: IntoIterator<Item = (Text, V)>>(all: I) -> Self {
        let mut fields = FieldMap::default();
        all.into_iter().for_each(|(key, value)| fields.insert(key, value));
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_changes_agree_with_an_ordered_map() {
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        for keys in [1, 3, 8, 9, 30] {
            for _ in 0..50 {
                let (mut fields, mut model) = (FieldMap::default(), IndexMap::new());
                for round in 0..next(40) {
                    let key: Text = format!("a key of some length {}", next(keys)).as_str().into();
                    assert_eq!(fields.get(&key), model.get(&key));
                    fields.insert(key.clone(), round);
                    model.insert(key, round);
                }
                assert!(fields.len() == model.len() && fields.iter().eq(&model));
                assert!(fields == model.iter().rev().map(|(key, value)| (key.clone(), *value)).collect());
                assert_eq!(fields.iter().len(), model.len());
                if let Some((_, value)) = model.first_mut() {
                    *value = u64::MAX;
                    assert!(fields != model.into_iter().collect());
                }
            }
        }
    }
}
