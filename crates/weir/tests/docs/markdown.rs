//! Reads the fenced blocks of Markdown files.

use std::path::{Path, PathBuf};

use crate::support::repository;

/// A fenced block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// File, relative to the repository, and line of the opening fence.
    pub(crate) place: String,
    /// Info string after the opening fence.
    pub(crate) info: String,
    /// Lines between the fences.
    pub(crate) text: String,
}

/// Returns all blocks of the guides, by file, in order.
pub(crate) fn blocks() -> Vec<Vec<Block>> {
    let blocks: Vec<_> = guides().iter().map(|path| blocks_of(path)).collect();
    assert!(blocks.iter().flatten().count() > 0, "the guides have blocks");
    blocks
}

/// Returns all blocks whose info string is exactly `info`.
pub(crate) fn blocks_named(info: &str) -> Vec<Block> {
    blocks().into_iter().flatten().filter(|block| block.info == info).collect()
}

/// Returns the README files and everything in `docs/` and `docs/tasks/`.
fn guides() -> Vec<PathBuf> {
    let mut guides = vec![repository().join("README.md"), repository().join("examples/README.md")];
    guides.extend(pages_in("docs"));
    guides.extend(pages_in("docs/tasks"));
    guides
}

/// Returns the pages in a folder, by name.
fn pages_in(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(repository().join(folder)).expect("the folder is there");
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages
}

fn blocks_of(path: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(path).expect("a guide can be read");
    let name = path.strip_prefix(repository()).expect("guides are in the repository").display().to_string();
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (at, line) in text.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => {
                let place = format!("{name}:{}", at + 1);
                open = Some(Block { place, info: info.trim().to_owned(), text: String::new() });
            }
            (Some(_), Some("")) => blocks.extend(open.take()),
            (Some(block), _) => block.text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{name}: a block does not end");
    blocks
}
