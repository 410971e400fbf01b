//! The parsed files of the last state of a program: after an edit of one file, the others are not parsed again.
//!
//! A tree contains positions in the text of the whole program, so that it stays valid only in its place. Each file therefore
//! has *room* behind it in which it can grow without moving the files behind it (gopls reserves ranges of positions for the
//! same reason). If a file outgrows its room, those behind it move and are parsed again. The cache has the files of one state
//! of one program, and no others.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use weir_host::Text;
use weir_syntax::{FilePlace, Parsed, SourceId};

/// The room of a file in proportion to its text, and at least.
const ROOM_SHARE: usize = 4;
const ROOM_BYTES_MIN: usize = 1024;

/// The parsed files of the last state of a program.
#[derive(Clone, Default)]
pub struct KeptTrees {
    /// The files of the last state.
    before: BTreeMap<Text, KeptTree>,
    /// The files of the current state, so far.
    now: BTreeMap<Text, KeptTree>,
}

#[derive(Clone)]
struct KeptTree {
    source: SourceId,
    place: FilePlace,
    /// The number of bytes from its first one to that of the next file.
    room: usize,
    content: u64,
    /// `None` until it is parsed.
    parsed: Option<Arc<Parsed>>,
}

/// A file in the text of its program.
pub(super) struct PlacedFile<'t> {
    /// The name of the module; empty for the main file.
    pub(super) module: &'t Text,
    pub(super) source: SourceId,
    /// The text of the program up to the end of the file.
    pub(super) text: &'t str,
    pub(super) place: FilePlace,
}

impl KeptTrees {
    /// Begins a new state of the program.
    pub(super) fn begin(&mut self) {
        self.before = std::mem::take(&mut self.now);
    }

    /// Drops the files that the new state of the program does not have.
    pub(super) fn end(&mut self) {
        self.before = BTreeMap::new();
    }

    /// Adds a file to the new state of the program, and returns the fingerprint of its text.
    pub(super) fn place(&mut self, file: &PlacedFile<'_>) -> u64 {
        let own = &file.text[file.place.offset as usize..];
        let content = fingerprint(own);
        let before = self.before.remove(file.module);
        let room = before.as_ref().map(|kept| kept.room).filter(|room| own.len() < *room);
        let room = room.unwrap_or(own.len() + (own.len() / ROOM_SHARE).max(ROOM_BYTES_MIN));
        let same = |kept: &KeptTree| kept.content == content && kept.place == file.place && kept.source == file.source;
        let parsed = before.filter(same).and_then(|kept| kept.parsed);
        let kept = KeptTree { source: file.source, place: file.place, room, content, parsed };
        self.now.insert(file.module.clone(), kept);
        content
    }

    /// Returns the tree of a file whose text and place are as before, or that has been parsed since.
    pub(super) fn parsed(&self, module: &Text) -> Option<Arc<Parsed>> {
        self.now.get(module)?.parsed.clone()
    }

    /// Keeps the tree of a file that has been placed.
    pub(super) fn keep(&mut self, module: &Text, parsed: Arc<Parsed>) {
        if let Some(kept) = self.now.get_mut(module) {
            kept.parsed = Some(parsed);
        }
    }

    /// Returns the offset of the file behind this one.
    pub(super) fn behind(&self, module: &Text) -> usize {
        self.now.get(module).map_or(0, |kept| kept.place.offset as usize + kept.room)
    }
}

/// Returns the hash of a text. Two texts have the same with a probability of 1 in 2⁶⁴.
pub(crate) fn fingerprint(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
