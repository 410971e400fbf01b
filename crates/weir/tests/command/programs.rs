//! Folders as arguments of commands.

use std::path::Path;

use crate::support::{Scratch, said, say, weir};

const GOOD: &[u8] = b"fn one() -> Int {\n  1\n}\n\ntest \"one\" {\n  expect one() == 1\n}\n";
const WRONG: &[u8] = b"fn one() -> Int { two }\n";

/// Creates a folder with these files.
fn folder(files: &[(&str, &[u8])]) -> Scratch {
    let scratch = Scratch::folder("programs");
    for (name, text) in files {
        let path = Path::new(scratch.path()).join(name);
        std::fs::create_dir_all(path.parent().expect("it lies in the folder")).expect("the folder is ours");
        std::fs::write(path, text).expect("the folder is ours");
    }
    scratch
}

#[test]
fn a_folder_is_its_main_program() {
    let file = say(&["graph", "examples/hello/main.weir"]);
    let folder = say(&["graph", "examples/hello"]);
    assert_eq!((file.code, &file.output), (0, &folder.output));
    assert_eq!(say(&["plan", "examples/hello/"]).code, 0);
    assert!(say(&["doc", "examples/hello"]).output.contains("hello"));
}

#[test]
fn without_a_name_it_is_the_folder_where_one_is() {
    let here = folder(&[("main.weir", GOOD), ("other.weir", GOOD)]);
    for arguments in [&["graph"] as &[&str], &["check"], &["fmt", "--check"]] {
        let mut command = weir(arguments);
        command.current_dir(here.path());
        let said = said(command);
        assert_eq!((said.code, said.messages.as_str()), (0, ""), "{arguments:?}");
    }
}

#[test]
fn several_programs_are_all_those_below_a_folder_but_for_hidden_and_built_ones() {
    let all = folder(&[
        ("main.weir", GOOD),
        ("deep/er/two.weir", GOOD),
        ("notes.txt", WRONG),
        (".hidden/three.weir", WRONG),
        ("target/four.weir", WRONG),
    ]);
    let tested = say(&["test", all.path()]);
    assert_eq!((tested.code, tested.messages.as_str()), (0, ""));
    assert!(tested.output.contains("2 passed"), "{}", tested.output);
    assert_eq!(say(&["check", all.path()]).code, 0);
}

#[test]
fn a_folder_without_programs_is_a_fault_and_no_success() {
    let empty = folder(&[("notes.txt", WRONG)]);
    for name in ["check", "test", "fmt"] {
        let said = say(&[name, empty.path()]);
        assert_eq!((said.code, said.output.as_str()), (3, ""), "{name}");
        assert!(said.messages.contains("no program in the folder"), "{}", said.messages);
    }
}

#[test]
fn tests_that_were_not_run_do_not_count_as_passed() {
    let wrong = folder(&[("main.weir", WRONG)]);
    let said = say(&["test", wrong.path()]);
    assert_eq!((said.code, said.output.as_str()), (1, ""));
}

#[test]
fn the_plan_beside_a_program_is_checked_with_it() {
    let program = b"use files, stdio\n\nfor line in files.lines(\"log\") {\n  stdio.print(line)?\n}\n";
    let deprecated = b"engine = \"elastic\"\nqueue = 3\n";
    let wrong = b"engine = \"elastik\"\n";
    let warned = folder(&[("main.weir", program), ("main.plan.toml", deprecated)]);
    let said = say(&["check", warned.path()]);
    assert_eq!(said.code, 0, "{}", said.messages);
    let place = format!("{}/main.plan.toml", warned.path());
    assert_eq!(
        said.messages.replace(&place, "main.plan.toml"),
        "warning: the key `queue` is deprecated\n --> main.plan.toml:2:1\n  |\n2 | queue = 3\n  | ^^^^^\n  \
         = help: rename it to `queue_length_max`\n\n"
    );
    let refused = folder(&[("main.weir", program), ("main.plan.toml", wrong)]);
    let said = say(&["check", refused.path(), "--error-format", "json"]);
    assert_eq!(said.code, 1);
    let found: serde_json::Value = serde_json::from_str(&said.messages).expect("one object on a line");
    assert_eq!(found["message"], "unknown engine `elastik`");
    assert_eq!((&found["labels"][0]["start"]["offset"], &found["labels"][0]["end"]["column"]), (&9.into(), &19.into()));
}
