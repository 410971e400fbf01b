//! A program of a guide as a file, for the command to read.

use std::path::PathBuf;

use crate::markdown::Block;

/// A file that is removed when dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(program: &Block) -> Scratch {
        let place = program.place.replace(['/', ':'], "-");
        let path = std::env::temp_dir().join(format!("weir-{}-{place}.weir", std::process::id()));
        std::fs::write(&path, &program.text).expect("a file of our own");
        Scratch(path)
    }

    pub(crate) fn path(&self) -> &str {
        self.0.to_str().expect("a path of ASCII")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If it cannot be removed, it only occupies space.
        let _ = std::fs::remove_file(&self.0);
    }
}
