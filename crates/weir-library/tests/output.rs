//! Outputs: appending lines to files, and replacing files.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod streaming;

use std::fs;

use streaming::Place;
use weir_library::files::{Appender, write};

#[test]
fn lines_of_all_call_sites_keep_their_order() {
    let place = Place::new("append");
    place.write("log", "before\n");
    let root = place.root();
    let (mut one, mut other) = (Appender, Appender);
    for number in 0..50_000 {
        one.append(&root, "log", &format!("one {number}")).unwrap();
        other.append(&root, "log", &format!("other {number}")).unwrap();
    }
    let log = place.read("log");
    assert_eq!(log.lines().next(), Some("before"));
    for name in ["one", "other"] {
        let numbers = log.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse::<u32>().ok());
        assert!(numbers.eq(0..50_000), "{name}");
    }
}

#[test]
fn an_appended_line_is_in_the_file_when_the_call_returns() {
    let place = Place::new("handed");
    let root = place.root();
    for number in 0..100 {
        Appender.append(&root, "log", &number.to_string()).unwrap();
        assert_eq!(place.read("log").lines().count(), number + 1);
    }
}

#[test]
fn appending_goes_on_in_the_new_file_after_a_rotation() {
    let place = Place::new("rotated");
    let root = place.root();
    Appender.append(&root, "log", "before").unwrap();
    fs::rename(place.0.join("log"), place.0.join("log.1")).unwrap();
    Appender.append(&root, "log", "after").unwrap();
    fs::remove_file(place.0.join("log")).unwrap();
    Appender.append(&root, "log", "after its removal").unwrap();
    assert_eq!((place.read("log.1").as_str(), place.read("log").as_str()), ("before\n", "after its removal\n"));
}

#[test]
fn a_last_line_without_an_end_gets_one() {
    let place = Place::new("unended");
    let root = place.root();
    for (before, after) in [("begun", "begun\nline\nline\n"), ("", "line\nline\n"), ("whole\n", "whole\nline\nline\n")]
    {
        place.write("log", before);
        let mut appender = Appender;
        fs::rename(place.0.join("log"), place.0.join("other")).unwrap();
        fs::copy(place.0.join("other"), place.0.join("log")).unwrap();
        (0..2).for_each(|_| appender.append(&root, "log", "line").unwrap());
        assert_eq!(place.read("log"), after);
    }
}

#[test]
fn unused_files_make_room_for_others() {
    let place = Place::new("many");
    let root = place.root();
    for number in 0..1100 {
        Appender.append(&root, &number.to_string(), "line").unwrap();
    }
    Appender.append(&root, "0", "another").unwrap();
    assert_eq!(place.read("0"), "line\nanother\n");
}

#[test]
fn a_file_is_replaced_as_a_whole_and_appended_to_after_that() {
    let place = Place::new("replace");
    let root = place.root();
    std::fs::create_dir(place.0.join("sub")).unwrap();
    Appender.append(&root, "sub/report", "is replaced").unwrap();
    write(&root, "sub/report", b"new\n").unwrap();
    Appender.append(&root, "sub/report", "added").unwrap();
    assert_eq!(place.read("sub/report"), "new\nadded\n");
    assert_eq!(root.list("sub").unwrap(), ["report"], "nothing is left beside it");
}

#[test]
fn nothing_is_written_outside_the_root_or_to_non_files() {
    let place = Place::new("outside");
    let root = place.root();
    std::fs::create_dir(place.0.join("sub")).unwrap();
    std::os::unix::fs::symlink("/tmp", place.0.join("link")).unwrap();
    for path in ["../x", "/tmp/x", "link/x", "sub", "sub/..", "none/x", "", "."] {
        assert!(Appender.append(&root, path, "x").is_err(), "{path}");
        if path != "sub" {
            assert!(write(&root, path, b"x").is_err(), "{path}");
        }
    }
    let failure = write(&root, "sub", b"x").unwrap_err();
    assert!(failure.to_string().starts_with("`sub` cannot be written"), "{failure}");
    assert_eq!(root.list(".").unwrap(), ["link", "sub"], "nothing is left beside it");
}
