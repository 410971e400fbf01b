//! Files that change while they are read repeatedly: the cache never returns anything but their current contents.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io::{Seek, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use weir_library::files::{FileCacheOptions, Root};

/// A directory with a `root` and something `outside` of it; removed when dropped.
struct Place {
    path: PathBuf,
    /// Caches files of any age.
    root: Root,
    /// Caches nothing.
    plain: Root,
}

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("weir-kept-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("root/sub/deep")).unwrap();
        fs::create_dir_all(path.join("outside")).unwrap();
        for file in ["a", "b", "sub/a", "sub/deep/a"] {
            fs::write(path.join("root").join(file), file).unwrap();
        }
        let open = |keeping| Root::open(&path.join("root")).unwrap().with_cache_options(keeping);
        let root = open(FileCacheOptions { unchanged_min: Duration::ZERO, ..FileCacheOptions::default() });
        let plain = open(FileCacheOptions { bytes_max: 0, ..FileCacheOptions::default() });
        Place { path, root, plain }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.path.join("root").join(path)
    }

    /// Overwrites the beginning of a file in place.
    fn overwrite(&self, path: &str, bytes: &[u8]) {
        let file = OpenOptions::new().write(true).open(self.at(path));
        file.and_then(|mut file| file.write_all(bytes)).unwrap_or(());
        self.tick();
    }

    /// Waits until the clock that stamps files has ticked, because these tests cache files that are younger than a
    /// tick.
    fn tick(&self) {
        let probe = self.path.join("probe");
        let stamp = || {
            fs::write(&probe, "").unwrap();
            let status = fs::metadata(&probe).unwrap();
            (status.ctime(), status.ctime_nsec())
        };
        let before = stamp();
        while stamp() == before {
            std::thread::yield_now();
        }
    }

    /// Asserts twice that both roots return the same; the second result of `root` comes from its cache.
    #[track_caller]
    fn same(&self, path: &str) {
        for _ in 0..2 {
            let say = |root: &Root| root.read(path).map_err(|error| error.to_string());
            assert_eq!(say(&self.root), say(&self.plain), "{path}");
        }
    }

    #[track_caller]
    fn reads(&self, path: &str, text: &str) {
        self.same(path);
        assert_eq!(self.root.read(path).unwrap(), text);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[test]
fn cached_bytes_are_returned_without_a_copy() {
    let place = Place::new("again");
    let (first, second) = (place.root.read("sub/a").unwrap(), place.root.read("sub/a").unwrap());
    assert_eq!(first.as_ptr(), second.as_ptr());
    let (first, second) = (place.plain.read("sub/a").unwrap(), place.plain.read("sub/a").unwrap());
    assert_ne!(first.as_ptr(), second.as_ptr());
}

#[test]
fn a_young_file_is_read_each_time() {
    let place = Place::new("young");
    let root = Root::open(&place.path.join("root")).unwrap();
    let (first, second) = (root.read("a").unwrap(), root.read("a").unwrap());
    assert_ne!(first.as_ptr(), second.as_ptr());
}

#[test]
fn changed_bytes_of_the_same_length_are_detected_whatever_the_modification_time() {
    let place = Place::new("length");
    place.reads("a", "a");
    let modified = fs::metadata(place.at("a")).unwrap().modified().unwrap();
    place.overwrite("a", b"x");
    File::options().write(true).open(place.at("a")).unwrap().set_modified(modified).unwrap();
    place.reads("a", "x");
}

#[test]
fn appending_truncating_replacing_and_deleting_are_detected() {
    let place = Place::new("changes");
    place.reads("a", "a");
    File::options().append(true).open(place.at("a")).unwrap().write_all(b"bc").unwrap();
    place.reads("a", "abc");
    File::options().write(true).open(place.at("a")).unwrap().set_len(2).unwrap();
    place.reads("a", "ab");
    fs::rename(place.at("b"), place.at("a")).unwrap();
    place.reads("a", "b");
    fs::remove_file(place.at("a")).unwrap();
    place.same("a");
    fs::write(place.at("a"), "new").unwrap();
    place.reads("a", "new");
}

#[test]
fn a_write_through_another_name_is_detected() {
    let place = Place::new("names");
    fs::hard_link(place.at("a"), place.at("sub/other")).unwrap();
    place.reads("a", "a");
    place.overwrite("sub/other", b"x");
    place.reads("a", "x");
}

#[test]
fn a_mode_that_forbids_reading_is_respected() {
    let place = Place::new("mode");
    place.reads("sub/a", "sub/a");
    for path in ["sub/a", "sub"] {
        fs::set_permissions(place.at(path), Permissions::from_mode(0o0)).unwrap();
        place.same("sub/a");
        fs::set_permissions(place.at(path), Permissions::from_mode(0o755)).unwrap();
        place.reads("sub/a", "sub/a");
    }
}

#[test]
fn a_replaced_directory_is_detected() {
    let place = Place::new("directory");
    place.reads("sub/a", "sub/a");
    fs::rename(place.at("sub"), place.at("old")).unwrap();
    place.same("sub/a");
    fs::create_dir(place.at("sub")).unwrap();
    fs::write(place.at("sub/a"), "other").unwrap();
    place.reads("sub/a", "other");
    fs::remove_dir_all(place.at("sub")).unwrap();
    fs::rename(place.at("old"), place.at("sub")).unwrap();
    place.reads("sub/a", "sub/a");
}

#[test]
fn a_file_or_directory_replaced_by_a_link_out_of_the_root_is_not_returned() {
    let place = Place::new("leaves");
    for (path, moved) in [("a", "a"), ("sub/a", "sub"), ("sub/deep/a", "sub"), ("sub/deep/a", "sub/deep")] {
        place.same(path);
        let away = place.path.join("outside/away");
        fs::rename(place.at(moved), &away).unwrap();
        symlink(&away, place.at(moved)).unwrap();
        assert_eq!(fs::read_to_string(place.at(path)).unwrap(), path, "the system follows the link");
        assert!(place.root.read(path).is_err(), "{path} is outside");
        place.same(path);
        fs::remove_file(place.at(moved)).unwrap();
        fs::rename(&away, place.at(moved)).unwrap();
        place.reads(path, path);
    }
}

#[test]
fn the_target_of_a_link_is_not_cached() {
    let place = Place::new("link");
    symlink("sub", place.at("link")).unwrap();
    symlink("a", place.at("sub/to")).unwrap();
    for path in ["link/a", "sub/to"] {
        place.same(path);
        place.overwrite("sub/a", path.as_bytes());
        place.same(path);
    }
}

#[test]
fn each_root_has_its_own_limit() {
    let place = Place::new("limits");
    place.reads("sub/a", "sub/a");
    let narrow = place.root.clone().with_file_bytes_max(4);
    assert_eq!(narrow.read("sub/a").unwrap_err().to_string(), "`sub/a` exceeds the limit of 4");
    place.reads("sub/a", "sub/a");
}

/// An action of another process, or a read.
#[derive(Clone, Debug)]
enum Step {
    Write(usize, u8),
    Overwrite(usize, u8),
    Append(usize, u8),
    Truncate(usize, u64),
    Rename(usize, usize),
    Link(usize, usize),
    Symlink(usize, usize),
    Delete(usize),
    Mode(usize, bool),
    Modified(usize),
    Away,
    Back,
    Read(usize),
}

const PATHS: [&str; 5] = ["a", "b", "sub/a", "sub/deep/a", "sub/deep/b"];

fn step() -> impl Strategy<Value = Step> {
    let path = || 0..PATHS.len();
    prop_oneof![
        1 => (path(), 0_u8..3).prop_map(|(path, byte)| Step::Write(path, byte)),
        1 => (path(), 0_u8..3).prop_map(|(path, byte)| Step::Overwrite(path, byte)),
        1 => (path(), 0_u8..3).prop_map(|(path, byte)| Step::Append(path, byte)),
        1 => (path(), 0_u64..3).prop_map(|(path, length)| Step::Truncate(path, length)),
        1 => (path(), path()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => (path(), path()).prop_map(|(from, to)| Step::Link(from, to)),
        1 => (path(), path()).prop_map(|(from, to)| Step::Symlink(from, to)),
        1 => path().prop_map(Step::Delete),
        1 => (path(), any::<bool>()).prop_map(|(path, forbids)| Step::Mode(path, forbids)),
        1 => path().prop_map(Step::Modified),
        1 => Just(Step::Away),
        1 => Just(Step::Back),
        4 => path().prop_map(Step::Read),
    ]
}

impl Step {
    /// Performs the action if possible; the file may not exist.
    fn take(&self, place: &Place) {
        let at = |path: &usize| place.at(PATHS[*path]);
        let writing = |path: &usize| OpenOptions::new().write(true).open(at(path));
        let (sub, away) = (place.at("sub"), place.path.join("outside/sub"));
        let _ = match self {
            Step::Write(path, byte) => fs::write(at(path), [*byte; 2]),
            Step::Overwrite(path, byte) => writing(path).and_then(|mut file| file.write_all(&[*byte])),
            Step::Append(path, byte) => writing(path).and_then(|mut file| {
                file.seek(std::io::SeekFrom::End(0))?;
                file.write_all(&[*byte])
            }),
            Step::Truncate(path, length) => writing(path).and_then(|file| file.set_len(*length)),
            Step::Rename(from, to) => fs::rename(at(from), at(to)),
            Step::Link(from, to) => fs::hard_link(at(from), at(to)),
            Step::Symlink(from, to) => symlink(at(from), at(to)),
            Step::Delete(path) => fs::remove_file(at(path)),
            Step::Mode(path, forbids) => {
                fs::set_permissions(at(path), Permissions::from_mode(if *forbids { 0 } else { 0o644 }))
            }
            Step::Modified(path) => {
                let times = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
                writing(path).and_then(|file| file.set_times(times))
            }
            Step::Away => fs::rename(&sub, &away).and_then(|()| symlink(&away, &sub)),
            Step::Back if away.exists() => fs::remove_file(&sub).and_then(|()| fs::rename(&away, &sub)),
            Step::Back => Ok(()),
            Step::Read(path) => {
                place.same(PATHS[*path]);
                Ok(())
            }
        };
        place.tick();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_cached_root_reads_like_an_uncached_one(steps in prop::collection::vec(step(), 1..60)) {
        let place = Place::new("random");
        PATHS.iter().for_each(|path| place.same(path));
        for step in steps {
            step.take(&place);
        }
        PATHS.iter().for_each(|path| place.same(path));
    }
}
