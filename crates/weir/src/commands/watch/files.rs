//! Files that a program is made of, with the states in which they were read last: its modules, plan and configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::arguments::RunArguments;
use crate::plan_file;

/// The files of a program.
pub(super) struct WatchedFiles {
    main: PathBuf,
    /// The files that the command line names, or that may stand beside the program. They need not exist.
    fixed: BTreeSet<PathBuf>,
    /// The files that the version that is checked has named so far.
    named: BTreeSet<PathBuf>,
    /// The state of each file before it was read last; `None` before the first check.
    seen: Option<BTreeMap<PathBuf, Option<FileStamp>>>,
}

/// The state of a file by which a change is seen.
#[derive(PartialEq, Eq)]
struct FileStamp {
    inode: u64,
    mode: u32,
    length: u64,
    modified: Option<SystemTime>,
}

impl WatchedFiles {
    pub(super) fn of(arguments: &RunArguments) -> WatchedFiles {
        let plan = plan_file::place(&arguments.file, arguments.execution.plan.as_deref());
        let configuration = arguments.configuration.config.clone();
        let fixed = plan.into_iter().chain(configuration).chain([arguments.file.clone()]).collect();
        WatchedFiles { main: arguments.file.clone(), fixed, named: BTreeSet::new(), seen: None }
    }

    /// Returns true if a file has changed since it was read. A missing main file counts as one that is about to be saved.
    pub(super) fn have_changed(&self) -> bool {
        let Some(seen) = &self.seen else { return true };
        state(&self.main).is_some() && seen.iter().any(|(file, seen)| state(file) != *seen)
    }

    /// Notes the states of all files, which are read next.
    pub(super) fn begin_check(&mut self) {
        self.named.clear();
        let known = self.seen.take().unwrap_or_default().into_keys().chain(self.fixed.iter().cloned());
        self.seen = Some(known.map(|file| (state(&file), file)).map(|(state, file)| (file, state)).collect());
    }

    /// Adds a file of the version that is checked. One that is named for the first time counts as it was read.
    pub(super) fn depend_on(&mut self, file: PathBuf) {
        self.named.insert(file.clone());
        let state = state(&file);
        self.seen.get_or_insert_default().entry(file).or_insert(state);
    }

    /// Forgets the files of older versions.
    pub(super) fn end_check(&mut self) {
        let (fixed, named) = (&self.fixed, &self.named);
        self.seen.get_or_insert_default().retain(|file, _| fixed.contains(file) || named.contains(file));
    }
}

fn state(file: &Path) -> Option<FileStamp> {
    std::fs::metadata(file).ok().map(|metadata: Metadata| FileStamp {
        inode: metadata.ino(),
        mode: metadata.mode(),
        length: metadata.len(),
        modified: metadata.modified().ok(),
    })
}
