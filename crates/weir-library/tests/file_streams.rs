//! Streams of lines, rows and values of files, read to the end or followed.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod streaming;

use std::fs;
use std::io::Write;

use streaming::{Place, Running, open, run_to_end};
use weir::{Progress, Value};

fn all(source: &str, place: &Place, arguments: &[Value]) -> (Vec<String>, String) {
    let (elements, ended) = Running::start(source, arguments, Some(place)).rest();
    (elements, ended.map_or_else(|failure| failure.message.to_string(), |()| "ended".to_owned()))
}

#[test]
fn lines_come_in_order_and_then_the_stream_ends() {
    let place = Place::new("lines");
    let numbers: Vec<String> = (0..20_000).map(|number| format!("line {number}")).collect();
    place.write("log", numbers.join("\r\n"));
    assert!(all("files.lines", &place, &[Value::text("log")]) == (numbers, "ended".to_owned()));
    place.write("empty", "");
    assert_eq!(all("files.lines", &place, &[Value::text("empty")]), (vec![], "ended".to_owned()));
}

#[test]
fn an_invalid_line_ends_a_strict_source_with_its_number() {
    let place = Place::new("no-text");
    place.write("log", b"one\ntwo\n\xff\xfe\nfour\n");
    let (lines, ended) = all("files.lines", &place, &[Value::text("log"), Value::Bool(true)]);
    assert_eq!((lines, ended.as_str()), (vec!["one".to_owned(), "two".to_owned()], "log: line 3 is not UTF-8"));
}

/// Reads a source to its end; returns its elements and the messages of those that it skipped.
fn elements_and_skipped(source: &str, place: &Place) -> (Vec<String>, Vec<String>) {
    let running = Running::start(source, &[Value::text("log")], Some(place));
    assert!(running.wait().is_ok(), "{source}");
    (running.elements_so_far(), running.skipped())
}

#[test]
fn a_malformed_element_is_skipped_and_reported() {
    let place = Place::new("skipped");
    let long = "x".repeat(3 << 20);
    place.write("log", [b"1\n\xff\n".as_slice(), long.as_bytes(), b"\n2\n", long.as_bytes()].concat());
    let not_utf8 = "log: line 2 is not UTF-8";
    let too_long = [3, 5].map(|line| format!("log: line {line} is longer than 1048576 bytes"));
    let (lines, skipped) = elements_and_skipped("files.lines", &place);
    assert_eq!(
        (lines, skipped),
        (vec!["1".into(), "2".into()], vec![not_utf8.into(), too_long[0].clone(), too_long[1].clone()])
    );
    let (values, skipped) = elements_and_skipped("json.lines", &place);
    assert_eq!((values.len(), &skipped[1..]), (2, too_long.as_slice()));
    place.write("log", b"a,b\n1,2\n3\n\xff,x\n4,5\n");
    let (rows, skipped) = elements_and_skipped("csv.rows", &place);
    assert_eq!(rows, [r#"["a": "1", "b": "2"]"#, r#"["a": "4", "b": "5"]"#]);
    assert_eq!(skipped, ["log: line 3: 1 field, but there are 2 columns", "log: line 4 is not UTF-8"]);
}

#[test]
fn following_goes_on_after_a_malformed_line() {
    let place = Place::new("follow-malformed");
    place.write("log", "");
    let running = follow(&place, true);
    append(&place, b"one\n\xff\xfe\ntwo\n");
    assert_eq!(running.shown(2), ["one", "two"]);
    // The line is reported as soon as it is too long, and its rest is discarded when it arrives.
    append(&place, "x".repeat(2 << 20));
    append(&place, "x".repeat(2 << 20) + "\nthree\n");
    assert_eq!(running.shown(1), ["three"]);
    assert_eq!(running.skipped(), ["log: line 2 is not UTF-8", "log: line 4 is longer than 1048576 bytes"]);
}

#[test]
fn a_source_that_cannot_be_opened_fails_at_start() {
    let place = Place::new("closed");
    let says = |source, arguments: &[Value], place| open(source, arguments, place).err().unwrap().message.to_string();
    for source in ["files.lines", "files.follow", "csv.rows", "csv.checked_rows", "json.lines", "json.checked_lines"] {
        assert_eq!(says(source, &[Value::text("none")], Some(&place)), "`none` does not exist", "{source}");
        assert_eq!(says(source, &[Value::text("../x")], Some(&place)), "`../x` leads out of the root");
        assert_eq!(says(source, &[Value::text("x")], None), "this program has no directory for its files");
    }
}

#[test]
fn a_stopped_source_ends_without_a_failure() {
    let place = Place::new("stopped");
    place.write("log", "line\n".repeat(1_000_000));
    let running = Running::start("files.lines", &[Value::text("log")], Some(&place));
    assert_eq!(running.shown(2), ["line", "line"]);
    assert!(running.stop().is_ok());
}

fn append(place: &Place, text: impl AsRef<[u8]>) {
    fs::OpenOptions::new().append(true).open(place.0.join("log")).unwrap().write_all(text.as_ref()).unwrap();
}

fn follow(place: &Place, whole: bool) -> Running {
    Running::start("files.follow", &[Value::text("log"), Value::Bool(whole), Value::Duration(1_000_000)], Some(place))
}

#[test]
fn following_emits_appended_lines() {
    let place = Place::new("follow");
    place.write("log", "old\n");
    let (whole, added) = (follow(&place, true), follow(&place, false));
    append(&place, "one\ntwo, first half");
    assert_eq!(whole.shown(2), ["old", "one"]);
    assert_eq!(added.shown(1), ["one"]);
    append(&place, ", second half\r\nthree\n");
    for running in [whole, added] {
        assert_eq!(running.shown(2), ["two, first half, second half", "three"]);
        assert!(running.stop().is_ok());
    }
}

#[test]
fn following_continues_after_truncation_and_rotation() {
    let place = Place::new("rotate");
    place.write("log", "");
    let running = follow(&place, true);
    append(&place, "a long first line\n");
    assert_eq!(running.shown(1), ["a long first line"]);
    place.write("log", "new\n");
    assert_eq!(running.shown(1), ["new"]);
    append(&place, "last of the old file");
    fs::rename(place.0.join("log"), place.0.join("log.1")).unwrap();
    place.write("log.2", "first of the new file\n");
    fs::rename(place.0.join("log.2"), place.0.join("log")).unwrap();
    assert_eq!(running.shown(2), ["last of the old file", "first of the new file"]);
    fs::remove_file(place.0.join("log")).unwrap();
    place.write("log", "again\n");
    assert_eq!(running.shown(1), ["again"]);
}

/// Waits until this process has the file open.
fn wait_until_open(path: &std::path::Path) {
    let is_open = || {
        let open = fs::read_dir("/proc/self/fd").unwrap();
        open.filter_map(Result::ok).any(|file| fs::read_link(file.path()).is_ok_and(|open| open == path))
    };
    while !is_open() {
        std::thread::yield_now();
    }
}

#[test]
fn following_misses_no_file_while_its_flows_wait() {
    let place = Place::new("follow-slowly");
    let path = |name: &str| place.0.join(name);
    place.write("log", "");
    let running = follow(&place, true);
    running.is_full.store(true, std::sync::atomic::Ordering::SeqCst);
    append(&place, "one\n");
    for (rotated, line) in [("log.1", "two\n"), ("log.2", "three\n"), ("log.3", "four\n")] {
        fs::rename(path("log"), path(rotated)).unwrap();
        place.write("new", line);
        fs::rename(path("new"), path("log")).unwrap();
        wait_until_open(&path("log"));
    }
    running.is_full.store(false, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(running.shown(4), ["one", "two", "three", "four"]);
    assert_eq!(running.skipped(), [""; 0]);
}

#[test]
fn a_line_that_the_followed_file_has_begun_is_emitted_as_a_whole() {
    for before in ["", "old\n"] {
        let place = Place::new("follow-half");
        place.write("log", format!("{before}half"));
        let running = follow(&place, false);
        append(&place, " and half\nnext\n");
        assert_eq!(running.shown(2), ["half and half", "next"]);
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_value() {
    let place = Place::new("byte-order-mark");
    place.write("log", "\u{feff}{\"a\": 1}\n{\"a\": 2}\n");
    let (values, skipped) = elements_and_skipped("json.lines", &place);
    assert_eq!((values.len(), skipped), (2, vec![]));
}

#[test]
fn following_waits_while_something_else_has_the_name() {
    let place = Place::new("follow-directory");
    place.write("log", "one\n");
    let running = follow(&place, true);
    assert_eq!(running.shown(1), ["one"]);
    fs::remove_file(place.0.join("log")).unwrap();
    fs::create_dir(place.0.join("log")).unwrap();
    while running.skipped().is_empty() {
        std::thread::yield_now();
    }
    fs::remove_dir(place.0.join("log")).unwrap();
    place.write("log", b"two\n\xff\n");
    assert_eq!(running.shown(1), ["two"]);
    while running.skipped().len() < 2 {
        std::thread::yield_now();
    }
    assert_eq!(running.skipped(), ["tries again: `log` is not a file", "log: line 2 is not UTF-8"]);
    assert!(running.stop().is_ok());
}

#[test]
fn a_line_of_the_maximum_length_may_end_with_crlf_in_two_pieces() {
    let place = Place::new("follow-longest");
    place.write("log", "");
    let running = follow(&place, true);
    let longest = "x".repeat(1 << 20);
    append(&place, format!("{longest}\r"));
    append(&place, "\n");
    assert!(running.shown(1) == [longest]);
}

#[test]
fn rows_map_the_names_of_the_columns_to_their_fields() {
    let place = Place::new("rows");
    place.write("users", "name,says\nanna,\"a, b\"\nbert,\"two\nlines\"\n");
    let (rows, ended) = all("csv.rows", &place, &[Value::text("users")]);
    assert_eq!(rows, [r#"["name": "anna", "says": "a, b"]"#, r#"["name": "bert", "says": "two\nlines"]"#]);
    assert_eq!(ended, "ended");
    let many: String = (0..10_000).map(|number| format!("{number};x\n")).collect();
    place.write("many", format!("n;x\n{many}"));
    let (rows, _) = all("csv.rows", &place, &[Value::text("many"), Value::text(";")]);
    assert_eq!((rows.len(), rows[9_999].as_str()), (10_000, r#"["n": "9999", "x": "x"]"#));
}

#[test]
fn a_malformed_row_ends_a_strict_source_with_its_line() {
    let place = Place::new("bad-rows");
    place.write("users", "a,b\n1,2\n3\n4,5\n");
    let (rows, ended) = all("csv.rows", &place, &[Value::text("users"), Value::text(","), Value::Bool(true)]);
    assert_eq!((rows.len(), ended.as_str()), (1, "users: line 3: 1 field, but there are 2 columns"));
    place.write("twice", "a,a\n1,2\n");
    let says = |arguments: &[Value]| open("csv.rows", arguments, Some(&place)).err().unwrap().message.to_string();
    assert_eq!(says(&[Value::text("twice")]), "twice: two columns are named \"a\"");
    assert_eq!(says(&[Value::text("users"), Value::text("ab")]), "`separator` must be one ASCII character, not \"ab\"");
}

#[test]
fn each_line_is_a_json_value() {
    use weir::HostType;
    use weir_library::json::{Json, write};

    let place = Place::new("json");
    place.write("events", "{\"b\": 1, \"a\": [null]}\n\n3\n\"x\"");
    let running = Running::start("json.lines", &[Value::text("events")], Some(&place));
    let values: Vec<String> = (0..3).map(|_| write(&Json::from_value(running.next()).unwrap())).collect();
    assert_eq!(values, [r#"{"b":1,"a":[null]}"#, "3", r#""x""#]);
    assert!(running.rest().1.is_ok());
    place.write("events", "1\n\n{\n");
    let (_, ended) = all("json.lines", &place, &[Value::text("events"), Value::Bool(true)]);
    assert_eq!(ended, "events: line 3, column 1: not JSON: expected `,` or `}`, found the end");
}

#[test]
fn checked_rows_continue_after_a_malformed_row() {
    let place = Place::new("checked-rows");
    place.write("users", b"a,b\n1,2\n3\n\xff,x\n\"4\n4\",5\n6,7,8\n9,10\n");
    let (rows, ended) = all("csv.checked_rows", &place, &[Value::text("users")]);
    assert_eq!(ended, "ended");
    assert_eq!(
        rows,
        [
            r##"#0(["a": "1", "b": "2"])"##,
            r##"#1(failure("users: line 3: 1 field, but there are 2 columns"))"##,
            r##"#1(failure("users: line 4 is not UTF-8"))"##,
            r##"#0(["a": "4\n4", "b": "5"])"##,
            r##"#1(failure("users: line 7: 3 fields, but there are 2 columns; enclose a field that contains \",\" in quotation marks"))"##,
            r##"#0(["a": "9", "b": "10"])"##,
        ]
    );
}

#[test]
fn an_endless_row_is_not_buffered() {
    let place = Place::new("endless-row");
    let mut text = b"a,b\n1,2\n\"3".to_vec();
    text.resize(40 * 1024 * 1024, b'x');
    place.write("users", &text);
    an_endless_row_ends_the_source(&place);
    let with_returns = String::from_utf8(text).unwrap().replace('\n', "\r\n");
    place.write("users", with_returns);
    an_endless_row_ends_the_source(&place);
}

fn an_endless_row_ends_the_source(place: &Place) {
    for source in ["csv.rows", "csv.checked_rows"] {
        let (rows, ended) = all(source, place, &[Value::text("users")]);
        let why = "users: line 3: the row is longer than 16777216 bytes; a quotation mark in line 3 may be unclosed";
        assert!(ended.contains(why), "{ended}");
        assert_eq!(rows.len(), 1);
    }
}

#[test]
fn lines_of_a_field_that_is_too_long_are_not_taken_for_rows() {
    let place = Place::new("long-field");
    place.write("in", format!("item,count\npen,1\n\"{}\",2\nink,3\n", "pen,1000000\n".repeat(1_500_000)));
    let (rows, ended) = all("csv.rows", &place, &[Value::text("in")]);
    assert_eq!(rows, [r#"["item": "pen", "count": "1"]"#]);
    assert!(ended.contains("in: line 3: the row is longer than 16777216 bytes"), "{ended}");
}

#[test]
fn an_unclosed_quotation_mark_is_reported() {
    let place = Place::new("unclosed");
    place.write("short", "a,b\n1,2\n\"3,4\n5,6\n7,8\n");
    let (rows, _) = all("csv.checked_rows", &place, &[Value::text("short")]);
    let swallowed = "short: lines 3 to 5: 1 field, but there are 2 columns; a quotation mark in line 3 may be unclosed";
    assert_eq!(rows[1..], [format!("#1(failure({swallowed:?}))")]);
}

#[test]
fn checked_lines_continue_after_malformed_json() {
    let place = Place::new("checked-lines");
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    place.write("events", [b"1\n\n{\"a\": 1]\n\xff\n2 3\n".as_slice(), deep.as_bytes(), b"\n1e999\n\"x\""].concat());
    let (lines, ended) = all("json.checked_lines", &place, &[Value::text("events")]);
    assert_eq!(ended, "ended");
    assert_eq!(
        lines,
        [
            "#0(<json.Value>)",
            r##"#1(failure("events: line 3, column 8: not JSON: expected `,` or `}`"))"##,
            r##"#1(failure("events: line 4 is not UTF-8"))"##,
            r##"#1(failure("events: line 5, column 3: not JSON: expected the end, found more"))"##,
            r##"#1(failure("events: line 6, column 128: JSON nests more than 127 deep"))"##,
            r##"#1(failure("events: line 7, column 5: not JSON: the number is beyond ±1.8·10³⁰⁸"))"##,
            "#0(<json.Value>)",
        ]
    );
}

#[test]
fn finite_input_reports_progress() {
    let place = Place::new("progress");
    place.write("log", "{}\n\n1\n\"2\"");
    place.write("table", "a,b\n1,2\n3,4\n");
    for (source, elements) in [("files.lines", 4), ("csv.rows", 2), ("json.lines", 3)] {
        let path = if source == "csv.rows" { "table" } else { "log" };
        let whole = std::fs::metadata(place.0.join(path)).unwrap().len();
        let opened = open(source, &[Value::text(path)], Some(&place)).unwrap();
        assert_eq!(opened.progress(), Some(Progress { elements: 0, done: 0, whole }), "{source}");
        run_to_end(&opened);
        assert_eq!(opened.progress(), Some(Progress { elements, done: whole, whole }), "{source}");
    }
    let range = open("stream.range", &[Value::Int(-2), Value::Int(3)], None).unwrap();
    run_to_end(&range);
    assert_eq!(range.progress(), Some(Progress { elements: 5, done: 5, whole: 5 }));
    let backwards = open("stream.range", &[Value::Int(i64::MAX), Value::Int(i64::MIN)], None).unwrap();
    assert_eq!(backwards.progress(), Some(Progress { elements: 0, done: 0, whole: 0 }));
    assert_eq!(open("files.follow", &[Value::text("log")], Some(&place)).unwrap().progress(), None);
}
