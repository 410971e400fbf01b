//! Reading below a root, and every known way to escape from it.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use weir_library::files::{FileError, Root};

/// A directory with a `root`, and a `secret` next to it; removed when dropped.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("weir-files-{}-{name}", std::process::id()));
        fs::create_dir_all(path.join("root/sub/deep")).unwrap();
        fs::write(path.join("secret"), "secret").unwrap();
        fs::write(path.join("root/a.txt"), "a").unwrap();
        fs::write(path.join("root/sub/b.txt"), "b").unwrap();
        Place(path)
    }

    fn root(&self) -> Root {
        Root::open(&self.0.join("root")).unwrap()
    }

    fn link(&self, target: impl AsRef<std::path::Path>, name: &str) {
        symlink(target, self.0.join("root").join(name)).unwrap();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn files_below_the_root_are_read_whole() {
    let place = Place::new("whole");
    let large = vec![7; 1_000_000];
    fs::write(place.0.join("root/large"), &large).unwrap();
    fs::write(place.0.join("root/empty"), "").unwrap();
    fs::write(place.0.join("root/schön %2e%2e …"), "name").unwrap();
    let root = place.root();
    assert_eq!(root.read("a.txt").unwrap(), "a");
    assert_eq!(root.read("./sub//b.txt").unwrap(), "b");
    assert_eq!(root.read("large").unwrap(), large);
    assert_eq!(root.read("empty").unwrap(), "");
    assert_eq!(root.read("schön %2e%2e …").unwrap(), "name");
}

/// Paths that other systems, decoders or shells would take for paths to `secret`: here they are names of files that do not
/// exist.
const NAMES_OF_NOTHING: &[&str] = &[
    "%2e%2e/secret",
    "%2e%2e%2fsecret",
    "%252e%252e/secret",
    "..%2fsecret",
    "..%5csecret",
    "..%00/secret",
    "..%c0%afsecret",
    "..\\secret",
    "\\..\\secret",
    "C:\\secret",
    "C:/secret",
    "．．/secret",
    "‥/secret",
    "..\u{2215}secret",
    "..\u{ff0f}secret",
    "..;/secret",
    ".. /secret",
    " ../secret",
    ".../secret",
    "....//secret",
    "~/secret",
    "$HOME/secret",
    "`echo ..`/secret",
    "file:///etc/passwd",
    "a.txt ",
    "a.txt.",
    "a.txt::$DATA",
];

#[test]
fn no_path_leads_out_of_the_root() {
    let place = Place::new("out");
    place.link(&place.0, "above");
    place.link("../secret", "relative");
    place.link(place.0.join("secret"), "absolute");
    place.link("relative", "twice");
    place.link("/proc/self/root", "magic");
    place.link("sub/../../secret", "through");
    let root = place.root();
    let absolute = place.0.join("secret").display().to_string();
    for path in [
        "../secret",
        "..",
        "/",
        "//",
        "/etc/passwd",
        "./../secret",
        "sub/../../secret",
        "sub/../a.txt",
        "sub/..",
        "..//secret",
        &absolute,
        "above/secret",
        "relative",
        "absolute",
        "twice",
        "magic/etc/passwd",
        "through",
        "../",
        "./..",
        "../..",
        "../../secret",
        ".././secret",
        "../root",
        "./sub/../a.txt",
        "sub/../..",
        "sub/../sub/b.txt",
        "sub//../../secret",
        "sub/./../../secret",
        "/..",
        "/a.txt",
        "///etc/passwd",
        "/dev/null",
        "/proc/self/environ",
        "above",
        "above/..",
        "magic",
        "magic/../secret",
    ] {
        let error = root.read(path).unwrap_err();
        assert!(matches!(error, FileError::Outside(_)), "{path}: {error}");
        assert!(!root.exists(path) && root.list(path).is_err(), "{path}");
    }
    for path in NAMES_OF_NOTHING {
        assert!(matches!(root.read(path), Err(FileError::NotFound(_))), "{path}");
    }
}

#[test]
fn an_invalid_path_is_refused() {
    let place = Place::new("none");
    for path in ["", "a.txt\0", "\0", "a\0/../../secret", &"x".repeat(300), &"x/".repeat(3000)] {
        let error = place.root().read(path).unwrap_err();
        assert!(matches!(error, FileError::NotAPath(_) | FileError::Outside(_)), "{error}");
    }
}

#[test]
fn links_that_stay_below_are_followed() {
    let place = Place::new("links");
    place.link("sub", "directory");
    place.link("../a.txt", "sub/up");
    place.link("loop", "loop");
    let root = place.root();
    if cfg!(target_os = "linux") {
        assert_eq!(root.read("directory/b.txt").unwrap(), "b");
        assert_eq!(root.read("sub/up").unwrap(), "a");
    }
    assert!(matches!(root.read("loop"), Err(FileError::Outside(_))));
}

#[test]
fn only_regular_files_are_read_and_nothing_blocks() {
    let place = Place::new("kinds");
    let pipe = place.0.join("root/pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let _socket = UnixListener::bind(place.0.join("root/socket")).unwrap();
    let root = place.root();
    for path in ["sub", "sub/", ".//sub", "pipe", "socket"] {
        assert!(matches!(root.read(path), Err(FileError::NotAFile(_))), "{path}");
        assert!(root.exists(path), "{path}");
    }
    assert!(matches!(root.read("a.txt/b"), Err(FileError::NotADirectory(_))));
    assert!(matches!(root.read("missing"), Err(FileError::NotFound(path)) if path == "missing"));
}

#[test]
fn a_file_above_the_limit_is_not_read() {
    let place = Place::new("limit");
    fs::write(place.0.join("root/ten"), "0123456789").unwrap();
    assert_eq!(place.root().with_file_bytes_max(10).read("ten").unwrap(), "0123456789");
    let error = place.root().with_file_bytes_max(9).read("ten").unwrap_err();
    assert_eq!(error.to_string(), "`ten` exceeds the limit of 9");
}

#[test]
fn names_are_listed_in_order() {
    let place = Place::new("list");
    let root = place.root();
    assert_eq!(root.list(".").unwrap(), ["a.txt", "sub"]);
    assert_eq!(root.list(".").unwrap().len(), 2, "listing again begins anew");
    assert_eq!(root.list("sub").unwrap(), ["b.txt", "deep"]);
    assert!(matches!(root.list("a.txt"), Err(FileError::NotADirectory(_))));
    assert!(matches!(root.list("missing"), Err(FileError::NotFound(_))));
}

#[test]
fn a_root_can_leave_out_programs_and_plans() {
    let place = Place::new("programs");
    for name in ["main.weir", "main.plan.toml", "sub/Other.WEIR", "notes.weir.txt"] {
        fs::write(place.0.join("root").join(name), name).unwrap();
    }
    let root = place.root().without_private_files();
    for hidden in ["main.weir", "./main.weir", "main.plan.toml", "sub/Other.WEIR"] {
        assert!(matches!(root.read(hidden), Err(FileError::NotFound(_))), "{hidden}");
        assert!(!root.exists(hidden));
        let said = format!("`{hidden}` cannot be written: it belongs to the program");
        assert_eq!(root.open_to_append(hidden).unwrap_err().to_string(), said);
        assert_eq!(root.replace(hidden, b"").unwrap_err().to_string(), said);
        assert_eq!(place.root().read(hidden).unwrap(), hidden.trim_start_matches("./"), "{hidden}");
    }
    assert_eq!(root.read("notes.weir.txt").unwrap(), "notes.weir.txt");
    assert_eq!(root.list(".").unwrap(), ["a.txt", "notes.weir.txt", "sub"]);
    assert_eq!(root.list("sub").unwrap(), ["b.txt", "deep"]);
}

#[test]
fn a_missing_root_fails_immediately() {
    let place = Place::new("absent");
    assert!(Root::open(&place.0.join("absent")).is_err());
    assert!(Root::open(&place.0.join("secret")).is_err());
}

#[test]
fn files_are_deleted_renamed_and_copied() {
    let place = Place::new("changed");
    let root = place.root();
    root.copy("a.txt", "sub/c.txt").unwrap();
    root.rename("sub/b.txt", "b.txt").unwrap();
    assert_eq!([root.read("a.txt"), root.read("sub/c.txt"), root.read("b.txt")].map(Result::unwrap), ["a", "a", "b"]);
    assert_eq!([root.delete("a.txt").unwrap(), root.delete("a.txt").unwrap()], [true, false]);
    assert_eq!(root.list(".").unwrap(), ["b.txt", "sub"]);
    assert_eq!(root.list("sub").unwrap(), ["c.txt", "deep"], "no temporary file is left");
    // What was there is replaced.
    root.copy("b.txt", "sub/c.txt").unwrap();
    assert_eq!(root.read("sub/c.txt").unwrap(), "b");
    root.rename("sub/c.txt", "b.txt").unwrap();
    assert_eq!((root.read("b.txt").unwrap(), root.exists("sub/c.txt")), ("b".into(), false));
}

#[test]
fn a_copy_is_as_long_as_its_file() {
    let place = Place::new("long");
    fs::write(place.0.join("root/long"), vec![7; 3_000_000]).unwrap();
    // It is not read into memory.
    place.root().with_file_bytes_max(10).copy("long", "copy").unwrap();
    assert_eq!(place.root().read("copy").unwrap(), vec![7; 3_000_000]);
}

#[test]
fn a_link_is_deleted_and_renamed_itself() {
    let place = Place::new("changed-links");
    place.link("../secret", "out");
    place.link("a.txt", "in");
    let root = place.root();
    assert!(matches!(root.copy("out", "copy"), Err(FileError::Outside(_))));
    root.rename("in", "sub/in").unwrap();
    assert!([root.delete("out"), root.delete("sub/in")].into_iter().all(Result::unwrap));
    assert_eq!(fs::read_to_string(place.0.join("secret")).unwrap(), "secret");
    assert_eq!(root.read("a.txt").unwrap(), "a");
}

#[test]
fn what_is_no_file_of_the_root_is_not_changed() {
    let place = Place::new("unchanged");
    place.link("..", "above");
    fs::write(place.0.join("root/main.weir"), "main").unwrap();
    let root = place.root().without_private_files();
    let said = |error: FileError| error.to_string();
    let changes = |path: &str| {
        [root.delete(path).map(drop), root.rename(path, "new"), root.rename("a.txt", path), root.copy("a.txt", path)]
    };
    for path in ["../secret", "above/secret", "/etc/passwd"] {
        let errors = changes(path).map(|change| change.unwrap_err());
        assert!(errors.iter().all(|error| matches!(error, FileError::Outside(_))), "{path}: {errors:?}");
    }
    for path in ["main.weir", ".env", "sub/x.db"] {
        let belongs = format!("`{path}` cannot be written: it belongs to the program");
        assert_eq!(changes(path).map(|change| said(change.unwrap_err())), [(); 4].map(|()| belongs.clone()));
    }
    assert!(matches!(root.copy("main.weir", "new"), Err(FileError::NotFound(_))));
    for path in [".", "./", "sub/", "sub/.."] {
        assert!(changes(path).into_iter().all(|change| change.is_err()), "{path}");
    }
    for path in ["", "\0"] {
        assert!(changes(path).into_iter().all(|change| matches!(change, Err(FileError::NotAPath(_)))), "{path:?}");
    }
    assert_eq!(said(root.delete("sub").unwrap_err()), "`sub` is not a file");
    assert_eq!(said(root.rename("sub", "new").unwrap_err()), "`sub` is not a file");
    assert_eq!(said(root.rename("a.txt", "sub").unwrap_err()), "`sub` is not a file");
    assert_eq!(said(root.rename("none", "new").unwrap_err()), "`none` does not exist");
    assert_eq!(said(root.rename("a.txt", "none/new").unwrap_err()), "`none` does not exist");
    assert_eq!(said(root.copy("none", "new").unwrap_err()), "`none` does not exist");
    assert!(!root.delete("none/file").unwrap());
    assert_eq!(root.list(".").unwrap(), ["a.txt", "above", "sub"]);
    assert_eq!(
        (place.root().read("a.txt").unwrap(), place.root().read("main.weir").unwrap()),
        ("a".into(), "main".into())
    );
}

#[test]
fn the_root_is_a_directory_that_exists() {
    let place = Place::new("itself");
    let root = place.root();
    for path in [".", "./", "./."] {
        assert!(matches!(root.read(path), Err(FileError::NotAFile(_))), "{path}");
        assert!(root.exists(path) && root.list(path).is_ok(), "{path}");
    }
}
