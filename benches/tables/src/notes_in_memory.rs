//! Notes in memory, by hand: a map by key, and one by board.
#![expect(clippy::disallowed_types, reason = "the map that a server by hand would have")]

use std::collections::{BTreeMap, BTreeSet, HashMap};

use parking_lot::RwLock;

use crate::servers::TEXT;

/// The notes.
#[derive(Default)]
pub(crate) struct NotesInMemory(RwLock<Notes>);

#[derive(Default)]
struct Notes {
    by_id: HashMap<i64, String>,
    by_board: BTreeMap<String, BTreeSet<i64>>,
    last: i64,
}

impl NotesInMemory {
    pub(crate) fn note(&self, id: i64) -> Option<String> {
        self.0.read().by_id.get(&id).cloned()
    }

    pub(crate) fn board(&self, board: &str) -> Vec<String> {
        let notes = self.0.read();
        let ids = notes.by_board.get(board).into_iter().flat_map(|ids| ids.iter().rev()).take(10);
        ids.filter_map(|id| notes.by_id.get(id).cloned()).collect()
    }

    pub(crate) fn insert(&self, board: String) -> i64 {
        let mut notes = self.0.write();
        notes.last += 1;
        let id = notes.last;
        notes.by_id.insert(id, TEXT.to_owned());
        notes.by_board.entry(board).or_default().insert(id);
        id
    }
}
