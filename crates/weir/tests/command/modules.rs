//! Programs of several files.

use std::fs;
use std::path::Path;

use crate::support::{Scratch, Served, say};

/// Writes files into a new folder.
fn folder(name: &str, files: &[(&str, &str)]) -> Scratch {
    let folder = Scratch::folder(name);
    for (file, text) in files {
        write(&folder, file, text);
    }
    folder
}

fn write(folder: &Scratch, file: &str, text: &str) {
    let path = Path::new(folder.path()).join(file);
    fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("the folder is ours");
    fs::write(path, text).expect("the folder is ours");
}

/// The main file of a service whose answer is made by a module.
const GREETS: &str = "use greetings, http\n\nservice s on http(port: 80) {\n  get \"/{name}\" (name: Text) { http.text(\"{greetings.count()} {greetings.greeting(name)?}\") }\n}\n";

const GREETINGS: &str = "shared greeted: List(Text) = []\n\npub fn count() -> Int { greeted.length() }\n\n\
    pub fn greeting(name: Text) -> Result(Text) {\n  if name == \"nobody\" { return Err(Failure(\"nobody is there\")) }\n  \
    atomic greeted {\n    greeted.push(name)\n  }\n  Ok(\"Hello, {name}\")\n}\n";

#[test]
fn modules_are_used_in_any_order_and_their_tests_may_have_one_name() {
    let folder = folder(
        "order",
        &[
            ("main.weir", "use b, a\n\ntest \"t\" { expect a.one() + b.two() == 5 }\n"),
            ("a.weir", "use b\n\npub fn one() -> Int { b.two() + 1 }\n\ntest \"t\" { expect one() == 3 }\n"),
            ("b.weir", "pub fn two() -> Int { 2 }\n\ntest \"t\" { expect two() == 2 }\n"),
        ],
    );
    assert_eq!(say(&["check", folder.path()]).code, 0);
    let tested = say(&["test", folder.path()]);
    assert!(tested.output.contains("3 passed") && !tested.output.contains('#'), "{}{}", tested.output, tested.messages);
}

#[test]
fn the_example_of_several_files_is_right_and_its_tests_pass() {
    let checked = say(&["check", "--deny-warnings", "examples/stationery", "examples/money"]);
    assert_eq!(checked.code, 0, "{}", checked.messages);
    let tested = say(&["test", "examples/stationery"]);
    assert!(
        tested.output.contains("3 passed"),
        "the tests of modules run, those of a library do not: {}",
        tested.output
    );
    assert!(tested.output.contains("examples/stationery/orders.weir\n"), "{}", tested.output);
    let module = say(&["test", "examples/stationery/billing/invoices.weir", "examples/money"]);
    assert!(module.output.contains("3 passed"), "a module is tested without the program: {}", module.output);
}

#[test]
fn a_module_with_a_shared_value_answers_alike_under_every_engine() {
    let program = folder("greets", &[("main.weir", GREETS), ("greetings.weir", GREETINGS)]);
    for engine in ["event", "pool", "staged", "elastic", "manual", "thread-per-flow", "dedicated"] {
        let served = Served::start(program.path(), &["--engine", engine]);
        let texts = ["Ada", "Bob"].map(|name| String::from_utf8(served.get(&format!("/{name}")).body).expect("a text"));
        assert_eq!(texts, ["0 Hello, Ada", "1 Hello, Bob"], "{engine}");
    }
}

#[test]
fn the_log_shows_the_file_in_which_a_flow_failed() {
    let program = folder("fails", &[("main.weir", GREETS), ("greetings.weir", GREETINGS)]);
    let mut served = Served::start(program.path(), &[]);
    assert_eq!(served.get("/nobody").status, 500);
    served.wait_for("main.weir:4");
    let failing = GREETINGS.replace("return Err(Failure(\"nobody is there\"))", "fail(\"nobody\")");
    let failing = failing.replace("-> Result(Text)", "-> Text").replace("Ok(\"Hello, {name}\")", "\"Hello, {name}\"");
    write(&program, "greetings.weir", &failing);
    write(&program, "main.weir", &GREETS.replace("greeting(name)?", "greeting(name)"));
    let mut served = Served::start(program.path(), &[]);
    assert_eq!(served.get("/nobody").status, 500);
    served.wait_for("greetings.weir:6");
}

#[test]
fn a_watched_program_is_run_again_when_a_module_has_changed() {
    let program = folder("watched", &[("main.weir", GREETS), ("greetings.weir", GREETINGS)]);
    let mut served = Served::start(program.path(), &["--watch"]);
    assert_eq!(served.get("/Ada").body, b"0 Hello, Ada");
    write(&program, "greetings.weir", "pub fn count() -> Int {");
    served.wait_for("keeps running");
    write(&program, "greetings.weir", &GREETINGS.replace("Hello", "Goodbye"));
    served.greet();
    assert_eq!(served.get("/Ada").body, b"0 Goodbye, Ada");
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn a_library_is_a_folder_that_the_program_declares() {
    let library = folder(
        "library",
        &[
            ("dates.weir", "use years\n\npub fn year() -> Int { years.first() }\n"),
            ("years.weir", "pub fn first() -> Int { 1970 }\n"),
        ],
    );
    let main = format!(
        "use common.dates\n\nlibrary common = \"{}\"\n\ntest \"year\" {{ expect dates.year() == 1970 }}\n",
        library.path()
    );
    let program = folder("shares", &[("main.weir", &main)]);
    let said = say(&["test", program.path()]);
    assert!(said.output.contains("1 passed"), "{}{}", said.output, said.messages);
    write(&library, "years.weir", "pub fn first() -> Int { \"1970\" }\n");
    let said = say(&["check", program.path()]);
    assert!(said.messages.contains(&format!("{}/years.weir:1:25", library.path())), "{}", said.messages);
    let nowhere = main.replace(library.path(), "../nowhere-at-all");
    write(&program, "main.weir", &nowhere);
    assert!(say(&["check", program.path()]).messages.contains("of the library cannot be read"));
}

#[test]
fn nothing_outside_of_the_declared_folders_is_read() {
    let outside = folder("outside", &[("secrets.weir", "pub fn key() -> Int { 7 }\n")]);
    let main = "use secrets\n\ntest \"key\" { expect secrets.key() == 7 }\n";
    let program = folder("inside", &[("main.weir", main)]);
    let link = Path::new(program.path()).join("secrets.weir");
    std::os::unix::fs::symlink(Path::new(outside.path()).join("secrets.weir"), &link).expect("a link of our own");
    let said = say(&["test", program.path()]);
    assert_eq!(said.code, 1);
    assert!(said.messages.contains("error[E0216]") && said.messages.contains("leads out of"), "{}", said.messages);
    assert!(!said.messages.contains("pub fn key"), "the file is not shown: {}", said.messages);
}

#[test]
fn every_command_names_the_file_that_is_wrong() {
    let program =
        folder("wrong", &[("main.weir", GREETS), ("greetings.weir", "pub fn greeting(name: Text) -> Text { 1 }\n")]);
    for command in ["check", "test", "graph", "plan", "doc", "run"] {
        let said = say(&[command, program.path()]);
        assert_eq!(said.code, 1, "{command}");
        let place = format!("{}/greetings.weir:1:39", program.path());
        assert!(said.messages.contains(&place), "{command}: {}", said.messages);
    }
    let json = say(&["check", "--error-format", "json", program.path()]).messages;
    assert!(json.contains("greetings.weir\",\"start\":{\"offset\":38,\"line\":1,\"column\":39}"), "{json}");
}

#[test]
fn a_file_with_public_items_cannot_have_the_name_of_a_module_of_the_library() {
    let main = "use text\n\ntest \"t\" { expect text.trim(\" a\") == \"a\" }\n";
    let program = folder("names", &[("main.weir", main), ("text.weir", "pub fn trim(a: Text) -> Text { a }\n")]);
    assert!(say(&["check", program.path()]).messages.contains("error[E0216]: there are two modules `text`"));
    write(&program, "text.weir", "test \"another program\" { expect 1 == 1 }\n");
    assert_eq!(say(&["check", program.path()]).code, 0, "a program beside it may be called as it likes");
}

/// A text does not depend on the file that is the main file.
#[test]
fn records_are_shown_without_their_module() {
    let files = [
        ("main.weir", "use deep.shapes\n\ntest \"main\" { expect \"{shapes.one()}\" == \"R \\{ x: 1, e: B(2) }\" }\n"),
        (
            "deep/shapes.weir",
            "pub record R { x: Int, e: E }\npub enum E { A, B(Int) }\n\npub fn one() -> R { R { x: 1, e: E.B(2) } }\n\n\
             test \"module\" { expect \"{one()}\" == \"R \\{ x: 1, e: B(2) }\" }\n",
        ),
    ];
    let folder = folder("shown", &files);
    let tested = say(&["test", folder.path()]);
    assert!(tested.output.contains("2 passed"), "{}{}", tested.output, tested.messages);
}

#[test]
fn tables_of_a_program_with_modules_are_shown() {
    let main = "use http, names\n\nrecord Row { name: Text, size: Int }\n\ntable rows: Row key name\n\n\
                service s on http(port: 80) { get \"/\" { http.text(\"{names.all()} {rows.count()}\") } }\n";
    let folder = folder("tables", &[("main.weir", main), ("names.weir", "pub fn all() -> Int { 1 }\n")]);
    let shown = say(&["tables", folder.path()]);
    assert_eq!(shown.code, 0, "{}", shown.messages);
    assert!(shown.output.contains("rows"), "{}", shown.output);
}

#[test]
fn the_page_of_a_program_has_the_tables_of_its_modules() {
    let main = "use http, names\n\nfn all() -> Int { 2 }\n\nshared count = 0\n\n\
                service s on http(port: 80) { get \"/\" { http.text(\"{names.all()} {all()} {count}\") } }\n";
    let module = "pub record Row { name: Text }\n\n/// All names.\npub table rows: Row key name\n\nshared seen = 0\n\n\
                  pub fn all() -> Int {\n  seen.add(1)\n  rows.count()\n}\n";
    let folder = folder("page", &[("main.weir", main), ("names.weir", module)]);
    let page = say(&["doc", folder.path()]);
    assert_eq!(page.code, 0, "{}", page.messages);
    for expected in ["reads names.rows", ">names.rows<", "All names.", ">names.seen<", ">count<"] {
        assert!(page.output.contains(expected), "{expected} is missing: {}", page.output);
    }
    assert!(!page.output.contains("world state"), "{}", page.output);
    // The `fn` of the module has the same name.
    assert_eq!(page.output.matches("<code>all</code>").count(), 1, "{}", page.output);
}

/// Reading a device or a pipe may never end.
#[test]
fn a_file_that_is_no_regular_file_is_refused() {
    let folder = folder("special", &[("main.weir", "use pipe\n\ntest \"t\" { expect pipe.one() == 1 }\n")]);
    let pipe = Path::new(folder.path()).join("pipe.weir");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo is there").success());
    for path in [pipe.to_str().expect("a path of ASCII"), "/dev/zero"] {
        let said = say(&["check", path]);
        assert_eq!(said.code, 3, "{}", said.messages);
        assert!(said.messages.contains("it is no regular file"), "{}", said.messages);
    }
    let said = say(&["check", &format!("{}/main.weir", folder.path())]);
    assert_eq!(said.code, 1, "{}", said.messages);
    assert!(said.messages.contains("is no regular file"), "{}", said.messages);
}

#[test]
fn a_library_with_folders_is_tested_by_itself() {
    let files = [
        (
            "sums.weir",
            "use deep.amounts\n\npub fn sum() -> Int { amounts.two() + 1 }\n\ntest \"sum\" { expect sum() == 3 }\n",
        ),
        (
            "deep/amounts.weir",
            "use deep.units\n\npub fn two() -> Int { units.one() + 1 }\n\ntest \"two\" { expect two() == 2 }\n",
        ),
        ("deep/units.weir", "pub fn one() -> Int { 1 }\n\ntest \"one\" { expect one() == 1 }\n"),
    ];
    let folder = folder("library", &files);
    let tested = say(&["test", folder.path()]);
    assert!(tested.output.contains("3 passed"), "{}{}", tested.output, tested.messages);
    assert_eq!(say(&["check", folder.path()]).code, 0);
}

#[test]
fn libraries_below_a_folder_are_tested_together_with_the_programs_that_use_them() {
    let files = [
        (
            "shop/main.weir",
            "library money = \"../money\"\n\nuse money.sums\n\ntest \"main\" { expect sums.sum() == 2 }\n",
        ),
        (
            "money/sums.weir",
            "use deep.amounts\n\npub fn sum() -> Int { amounts.one() + 1 }\n\ntest \"sum\" { expect sum() == 2 }\n",
        ),
        (
            "money/deep/amounts.weir",
            "use deep.units\n\npub fn one() -> Int { units.one() }\n\ntest \"one\" { expect one() == 1 }\n",
        ),
        ("money/deep/units.weir", "pub fn one() -> Int { 1 }\n"),
    ];
    let folder = folder("shared", &files);
    for path in [folder.path().to_owned(), format!("{}/", folder.path()), format!("{}/money", folder.path())] {
        let said = say(&["check", &path]);
        assert_eq!(said.code, 0, "{path}: {}", said.messages);
    }
    let tested = say(&["test", folder.path()]);
    assert!(tested.output.contains("3 passed"), "{}{}", tested.output, tested.messages);
}

#[test]
fn a_path_with_parent_folders_finds_the_main_file() {
    let files = [
        ("main.weir", "use inner.part\n\ntest \"main\" { expect part.one() == 1 }\n"),
        (
            "inner/part.weir",
            "use other\n\npub fn one() -> Int { other.zero() + 1 }\n\ntest \"part\" { expect one() == 1 }\n",
        ),
        ("other.weir", "pub fn zero() -> Int { 0 }\n"),
    ];
    let folder = folder("parents", &files);
    for path in ["inner/../inner/part.weir", "inner/../main.weir", "inner/../other.weir", "inner/.."] {
        let said = say(&["check", &format!("{}/{path}", folder.path())]);
        assert_eq!(said.code, 0, "{path}: {}", said.messages);
    }
}

#[test]
fn suggestions_rename_no_parameter_that_another_file_names() {
    let main = "use http, prices\n\nservice s on http(port: 80) {\n  get \"/{n}\" (n: Int, debug: Bool, page: Int = 1) {\n    \
                http.text(\"{prices.total(count: n, unit: 3)}\")\n  }\n}\n";
    let prices = "pub fn total(count: Int, unit: Int) -> Int { own(unit, 1) }\n\n\
                  fn own(unit: Int, spare: Int) -> Int { unit * 2 }\n";
    let folder = folder("named", &[("main.weir", main), ("prices.weir", prices)]);
    say(&["fix", "--suggestions", folder.path()]);
    let read = |file: &str| fs::read_to_string(Path::new(folder.path()).join(file)).expect("the file is ours");
    // The callers of a public `fn` name its parameters, and the route requires `debug`.
    assert_eq!(read("main.weir"), main.replace(", page: Int = 1", ""));
    assert_eq!(read("prices.weir"), prices.replace("spare", "_spare"));
    assert_eq!(say(&["check", folder.path()]).code, 0);
}
