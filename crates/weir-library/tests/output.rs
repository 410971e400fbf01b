//! Outputs: appending lines to files, and replacing files.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod streaming;

use std::sync::Arc;

use streaming::Place;
use weir::Closing;
use weir_library::files::{Appender, write};
use weir_library::output::Outputs;

#[test]
fn lines_of_all_call_sites_are_written_when_the_program_ends() {
    let place = Place::new("append");
    place.write("log", "before\n");
    let (root, outputs) = (place.root(), Outputs::default());
    let (mut one, mut other) = (Appender, Appender);
    for number in 0..50_000 {
        one.append(&root, &outputs, "log", &format!("one {number}")).unwrap();
        other.append(&root, &outputs, "log", &format!("other {number}")).unwrap();
    }
    outputs.close().unwrap();
    let log = place.read("log");
    assert_eq!(log.lines().next(), Some("before"));
    for name in ["one", "other"] {
        let numbers = log.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<u32>().ok());
        assert!(numbers.eq(0..50_000), "{name}");
    }
}

#[test]
fn the_librarys_environment_closes_its_outputs() {
    let place = Place::new("close");
    let library = weir_library::library();
    let outputs: Arc<Outputs> = library.environment.get().unwrap();
    Appender.append(&place.root(), &outputs, "log", "line").unwrap();
    library.environment.close().unwrap();
    assert_eq!(place.read("log"), "line\n");
}

#[test]
fn a_file_is_replaced_as_a_whole_and_appended_to_after_that() {
    let place = Place::new("replace");
    let (root, outputs) = (place.root(), Outputs::default());
    std::fs::create_dir(place.0.join("sub")).unwrap();
    Appender.append(&root, &outputs, "sub/report", "waits and is replaced").unwrap();
    write(&root, &outputs, "sub/report", b"new\n").unwrap();
    Appender.append(&root, &outputs, "sub/report", "added").unwrap();
    outputs.close().unwrap();
    assert_eq!(place.read("sub/report"), "new\nadded\n");
    assert_eq!(root.list("sub").unwrap(), ["report"], "nothing is left beside it");
}

#[test]
fn nothing_is_written_outside_the_root_or_to_non_files() {
    let place = Place::new("outside");
    let (root, outputs) = (place.root(), Outputs::default());
    std::fs::create_dir(place.0.join("sub")).unwrap();
    std::os::unix::fs::symlink("/tmp", place.0.join("link")).unwrap();
    for path in ["../x", "/tmp/x", "link/x", "sub", "sub/..", "none/x", "", "."] {
        assert!(Appender.append(&root, &outputs, path, "x").is_err(), "{path}");
        if path != "sub" {
            assert!(write(&root, &outputs, path, b"x").is_err(), "{path}");
        }
    }
    let failure = write(&root, &outputs, "sub", b"x").unwrap_err();
    assert!(failure.message.starts_with("`sub` cannot be"), "{failure}");
    assert_eq!(root.list(".").unwrap(), ["link", "sub"], "nothing is left beside it");
}
