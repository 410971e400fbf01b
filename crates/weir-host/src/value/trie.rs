//! A persistent sparse array: a radix trie whose nodes are shared by its clones (Bagwell, "Ideal Hash Trees", 2001; with
//! [`WIDTH`] digits as in Clojure's vectors).
//!
//! A node lists only the items that are present, behind a bit mask, so that memory is proportional to the number of
//! items however they are spread. A change copies the nodes on the path to it that are shared, each of at most
//! [`WIDTH`] items, and changes the others in place: a clone costs no more than the paths on which it differs.

use std::slice;

use ecow::EcoVec;

/// Bits of a key that one node decides.
pub(super) const BITS: u32 = 5;
/// The maximum number of items of a node.
const WIDTH: usize = 1 << BITS;

/// A persistent sparse array with keys of 64 bits.
#[derive(Clone)]
pub(super) struct Trie<T> {
    root: TrieNode<T>,
    /// Levels of branches above the leaves.
    height: u32,
}

#[derive(Clone)]
enum TrieNode<T> {
    Branch(Sparse<TrieNode<T>>),
    Leaf(Sparse<T>),
}

/// Up to [`WIDTH`] items by digit; copied only if it is shared and changes.
#[derive(Clone)]
pub(super) struct Sparse<T> {
    /// Bit mask of the digits that have an item.
    present: u32,
    /// The items in the order of their digits.
    items: EcoVec<T>,
}

/// Returns the digit of a key at a distance of `shift` bits from its end.
pub(super) fn digit(key: u64, shift: u32) -> u32 {
    (key >> shift) as u32 & (WIDTH as u32 - 1)
}

impl<T> Default for Sparse<T> {
    fn default() -> Self {
        Sparse { present: 0, items: EcoVec::new() }
    }
}

impl<T> Sparse<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.present == 0
    }

    fn has(&self, digit: u32) -> bool {
        self.present & (1 << digit) != 0
    }

    /// Returns the position of a digit's item, or the position at which it would be.
    fn position(&self, digit: u32) -> usize {
        (self.present & ((1 << digit) - 1)).count_ones() as usize
    }

    pub(super) fn get(&self, digit: u32) -> Option<&T> {
        if self.has(digit) { self.items.get(self.position(digit)) } else { None }
    }
}

impl<T: Clone> Sparse<T> {
    /// Returns the item for a change, after copying all items if they are shared.
    pub(super) fn get_mut(&mut self, digit: u32) -> Option<&mut T> {
        let position = self.position(digit);
        if self.has(digit) { self.items.make_mut().get_mut(position) } else { None }
    }

    /// Returns the item for a change, and inserts it first if it is missing.
    pub(super) fn get_or_insert(&mut self, digit: u32, item: impl FnOnce() -> T) -> &mut T {
        let position = self.position(digit);
        if !self.has(digit) {
            self.items.insert(position, item());
            self.present |= 1 << digit;
        }
        &mut self.items.make_mut()[position]
    }

    pub(super) fn remove(&mut self, digit: u32) -> Option<T> {
        let position = self.position(digit);
        self.has(digit).then(|| {
            self.present &= !(1 << digit);
            self.items.remove(position)
        })
    }
}

impl<T> FromIterator<T> for Sparse<T>
where
    T: Clone,
{
    /// Collects at most [`WIDTH`] items under the digits from 0 on.
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let items: EcoVec<T> = items.into_iter().collect();
        let present = ((1_u64 << items.len()) - 1) as u32;
        Sparse { present, items }
    }
}

impl<T> Default for Trie<T> {
    fn default() -> Self {
        Trie { root: TrieNode::Leaf(Sparse::default()), height: 0 }
    }
}

impl<T> TrieNode<T> {
    fn is_empty(&self) -> bool {
        match self {
            TrieNode::Branch(children) => children.is_empty(),
            TrieNode::Leaf(items) => items.is_empty(),
        }
    }
}

impl<T> Trie<T> {
    /// Returns the item under a key.
    pub(super) fn get(&self, key: u64) -> Option<&T> {
        let (mut node, mut shift) = (&self.root, BITS * self.height);
        if !self.covers(key) {
            return None;
        }
        while let TrieNode::Branch(children) = node {
            node = children.get(digit(key, shift))?;
            shift -= BITS;
        }
        if let TrieNode::Leaf(items) = node { items.get(digit(key, 0)) } else { None }
    }

    /// Returns the least key with its item.
    pub(super) fn first(&self) -> Option<(u64, &T)> {
        let (mut node, mut shift, mut key) = (&self.root, BITS * self.height, 0);
        while let TrieNode::Branch(children) = node {
            key |= u64::from(children.present.trailing_zeros()) << shift;
            node = children.items.first()?;
            shift -= BITS;
        }
        let TrieNode::Leaf(items) = node else { return None };
        items.items.first().map(|item| (key | u64::from(items.present.trailing_zeros()), item))
    }

    /// Iterates over the items in the order of their keys.
    pub(super) fn iter(&self) -> TrieIter<'_, T> {
        TrieIter { open: vec![slice::from_ref(&self.root).iter()], leaf: [].iter() }
    }

    /// Returns `true` if the key has no more digits than the trie has levels.
    fn covers(&self, key: u64) -> bool {
        key.checked_shr(BITS * (self.height + 1)).unwrap_or(0) == 0
    }
}

impl<T: Clone> Trie<T> {
    /// Returns the item under a key for a change.
    pub(super) fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        if !self.covers(key) {
            return None;
        }
        let (mut node, mut shift) = (&mut self.root, BITS * self.height);
        loop {
            match node {
                TrieNode::Branch(children) => node = children.get_mut(digit(key, shift))?,
                TrieNode::Leaf(items) => return items.get_mut(digit(key, 0)),
            }
            shift -= BITS;
        }
    }

    /// Stores an item under a key that has none.
    pub(super) fn insert(&mut self, key: u64, item: T) {
        while !self.covers(key) {
            let below = std::mem::take(self);
            let root = if below.root.is_empty() { Sparse::default() } else { [below.root].into_iter().collect() };
            *self = Trie { root: TrieNode::Branch(root), height: below.height + 1 };
        }
        let (mut node, mut shift) = (&mut self.root, BITS * self.height);
        while let TrieNode::Branch(children) = node {
            node = children.get_or_insert(digit(key, shift), || empty(shift - BITS));
            shift -= BITS;
        }
        if let TrieNode::Leaf(items) = node {
            items.get_or_insert(digit(key, 0), || item);
        }
    }

    /// Removes the item under a key, and the nodes that become empty.
    pub(super) fn remove(&mut self, key: u64) -> Option<T> {
        self.get(key)?;
        let item = remove(&mut self.root, key, BITS * self.height);
        if self.root.is_empty() {
            *self = Trie::default();
        }
        item
    }

    /// Moves all items to the end of a vector, in the order of their keys; clones those that are shared.
    pub(super) fn append_to(self, all: &mut Vec<T>) {
        append(self.root, all);
    }
}

fn empty<T>(shift: u32) -> TrieNode<T> {
    if shift == 0 { TrieNode::Leaf(Sparse::default()) } else { TrieNode::Branch(Sparse::default()) }
}

fn remove<T: Clone>(node: &mut TrieNode<T>, key: u64, shift: u32) -> Option<T> {
    let digit = digit(key, shift);
    match node {
        TrieNode::Leaf(items) => items.remove(digit),
        TrieNode::Branch(children) => {
            let child = children.get_mut(digit)?;
            let item = remove(child, key, shift - BITS);
            if child.is_empty() {
                children.remove(digit);
            }
            item
        }
    }
}

fn append<T: Clone>(node: TrieNode<T>, all: &mut Vec<T>) {
    match node {
        TrieNode::Branch(children) => children.items.into_iter().for_each(|child| append(child, all)),
        TrieNode::Leaf(items) => all.extend(items.items),
    }
}

/// The items in the order of their keys.
#[derive(Clone)]
pub(super) struct TrieIter<'v, T> {
    open: Vec<slice::Iter<'v, TrieNode<T>>>,
    leaf: slice::Iter<'v, T>,
}

impl<'v, T> Iterator for TrieIter<'v, T> {
    type Item = &'v T;

    #[inline]
    fn next(&mut self) -> Option<&'v T> {
        loop {
            if let Some(item) = self.leaf.next() {
                return Some(item);
            }
            match self.open.last_mut()?.next() {
                Some(TrieNode::Branch(children)) => self.open.push(children.items.iter()),
                Some(TrieNode::Leaf(items)) => self.leaf = items.items.iter(),
                None => drop(self.open.pop()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Compares the trie with a sorted map.
    fn assert_same(trie: &Trie<u64>, model: &BTreeMap<u64, u64>) {
        assert!(trie.iter().eq(model.values()));
        assert_eq!(trie.first(), model.first_key_value().map(|(key, item)| (*key, item)));
    }

    #[test]
    fn random_changes_agree_with_a_sorted_map_and_leave_snapshots_alone() {
        let mut random = 7_u64;
        let (mut trie, mut model, mut snapshots) = (Trie::default(), BTreeMap::new(), Vec::new());
        for round in 0..20_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Keys of all lengths, most of them near others.
            let key = ((random >> 40) % 500) << ((random >> 33) % 4 * 18);
            match (random >> 20) % 4 {
                0 | 1 if !model.contains_key(&key) => {
                    trie.insert(key, round);
                    model.insert(key, round);
                }
                0 | 1 => {
                    *trie.get_mut(key).expect("the model has the key") =
                        *model.entry(key).and_modify(|item| *item += 1).or_default()
                }
                2 => assert_eq!(trie.remove(key), model.remove(&key)),
                _ => assert_eq!(trie.get(key), model.get(&key)),
            }
            if round % 1_000 == 0 {
                snapshots.push((trie.clone(), model.clone()));
            }
        }
        snapshots.push((trie, model));
        snapshots.iter().for_each(|(trie, model)| assert_same(trie, model));
        let mut all = Vec::new();
        let (trie, model) = snapshots.swap_remove(3);
        trie.append_to(&mut all);
        assert!(all.iter().eq(model.values()));
    }

    #[test]
    fn the_greatest_key_has_its_place() {
        let mut trie = Trie::default();
        trie.insert(5, 5);
        trie.insert(u64::MAX, 6);
        assert_eq!((trie.get(u64::MAX), trie.get(5)), (Some(&6), Some(&5)));
        assert_eq!((trie.remove(u64::MAX), trie.get(u64::MAX), trie.get(5)), (Some(6), None, Some(&5)));
    }
}
