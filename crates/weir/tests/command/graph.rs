//! `weir graph --passes`, `--ir`, `--after`, `--time-passes` and `--regions`.

use crate::support::{Scratch, say};

const PROGRAM: &[u8] = b"use list, stdio\n\nfor line in stdio.lines() {\n  let unused = list.first([1, 2])\n  let limit = 40 + 2\n  let first = line.trim()\n  let second = line.trim()\n  if limit > 41 { stdio.print(\"{first} {second} {limit}\")? }\n}\n";

#[test]
fn the_passes_are_listed_in_their_order() {
    let listed = say(&["graph", "--passes"]);
    assert_eq!(listed.code, 0);
    insta::assert_snapshot!(listed.output);
}

#[test]
fn a_program_is_printed_before_and_after_a_pass() {
    let file = Scratch::new("passes.weir", PROGRAM);
    let printed = |arguments: &[&str]| {
        let said = say(&[&["graph", file.path()], arguments].concat());
        assert_eq!((said.code, said.messages.as_str()), (0, ""), "{arguments:?}");
        said.output
    };
    let stages = [&["--ir", "expr"][..], &["--after", "dead-code"], &["--ir", "graph", "--after", "lowering"]];
    let shown: String = stages.iter().map(|stage| format!("{}\n{}\n", stage.join(" "), printed(stage))).collect();
    insta::assert_snapshot!(shown);
    assert_eq!(printed(&["--ir", "graph"]), printed(&["--after", "fused-conditions"]));
}

#[test]
fn a_pass_over_the_other_representation_is_refused() {
    let file = Scratch::new("passes.weir", PROGRAM);
    let said = say(&["graph", file.path(), "--ir", "graph", "--after", "sinking"]);
    assert_eq!((said.code, said.output.as_str()), (2, ""));
    assert!(said.messages.contains("`sinking` leaves the program behind as `--ir expr`"), "{}", said.messages);
}

#[test]
fn each_pass_has_a_time() {
    let file = Scratch::new("passes.weir", PROGRAM);
    let said = say(&["graph", file.path(), "--time-passes"]);
    let names: Vec<&str> = said.output.lines().filter_map(|line| line.split_whitespace().last()).collect();
    assert_eq!(names.first(), Some(&"lock-order"));
    assert_eq!(names.last(), Some(&"all"));
}

#[test]
fn elements_are_read_added_and_replaced_where_they_are() {
    let program = b"use list, map, stdio, stream\n\nrecord P { name: Text, age: Int }\n\nshared ps: List(P) = []\n\nfor n in stream.range(1, 9) {\n  let counts = fold m = [:] for p in ps { m.with(p.name, (m[p.name] else { 0 }) + 1) }\n  let ages = fold xs = [] for p in ps { xs + [p.age] }\n  let line = fold s = \"\" for p in ps { s + \"{p.name} \" }\n  stdio.print(\"{counts} {ages} {line}\")?\n}\n";
    let file = Scratch::new("elements.weir", program);
    let said = say(&["graph", file.path(), "--regions"]);
    assert_eq!((said.code, said.messages.as_str()), (0, ""));
    // No record is taken out of its list, no `Option` is made, and neither a list nor a text to be added.
    for instruction in ["next_element", "look_up", "replace ", "push ", "append_parts"] {
        assert!(said.output.contains(instruction), "{instruction} is missing:\n{}", said.output);
    }
    for instruction in ["next_value", "prim                  s8, index", ", list s", ", add s"] {
        assert!(!said.output.contains(instruction), "{instruction}:\n{}", said.output);
    }
}

#[test]
fn regions_are_shown_with_their_instructions_and_why_they_end() {
    let program = b"use stdio, stream\n\nfor n in stream.range(1, 9) {\n  let sum = fold s = 0 for i in [1, 2, n] { s + i * 3 % 7 }\n  stdio.print(\"{sum}\")?\n}\n";
    let file = Scratch::new("regions.weir", program);
    let said = say(&["graph", file.path(), "--regions"]);
    assert_eq!((said.code, said.messages.as_str()), (0, ""));
    let end = "It ends here because `stdio.print` has state of its own, and may wait for its turn.";
    assert!(said.output.contains(end), "{}", said.output);
    assert!(said.output.contains("remainder_int"), "{}", said.output);
    assert!(said.output.contains("stay steps: without a loop or 4 operations on numbers"), "{}", said.output);
}

#[test]
fn counting_under_a_condition_takes_no_jump() {
    let program = b"use stdio, stream\n\nfor n in stream.range(1, 9) {\n  let all = for i in [1, 2, n] { i % 2 == 0 }\n  let count = fold c = 0 for is_even in all { if is_even { c + 1 } else { c } }\n  stdio.print(\"{count}\")?\n}\n";
    let file = Scratch::new("counting.weir", program);
    let said = say(&["graph", file.path(), "--regions"]);
    assert_eq!((said.code, said.messages.as_str()), (0, ""));
    assert!(said.output.contains("add_int") && !said.output.contains("jump_"), "{}", said.output);
}

#[test]
fn rounds_of_one_typed_call_run_at_once() {
    let program = b"use int, stdio, stream\n\nfor n in stream.range(1, 9) {\n  let signs = for i in [1, 2, n] { i.sign() }\n  stdio.print(\"{signs}\")?\n}\n";
    let file = Scratch::new("calls.weir", program);
    let said = say(&["graph", file.path(), "--regions"]);
    assert_eq!((said.code, said.messages.as_str()), (0, ""));
    let at_once = said.output.lines().find(|line| line.contains(" rounds  ")).unwrap_or_default();
    assert!(at_once.contains("int.sign"), "{}", said.output);
}

/// An effect behind a check hangs on the arm that goes on; a `retry` is one, without the rounds that it is compiled to; a call
/// shows the `fn` that it is inlined from.
#[test]
fn a_picture_shows_what_happens_after_checks_and_in_tries() {
    let text = b"use files, http, text\n\nfn signed(p: Text) -> Bool { p.length() > 3 }\n\n\
        service web on http(port: 80) {\n  get \"/{p}\" (p: Text) {\n    \
        if !signed(p) { return http.bad_request(\"no\") }\n    files.append(\"a.log\", p)?\n    \
        let n = retry(3, backoff: 100ms) { text.parse_int(p)? } else { return http.bad_request(\"x\") }\n    \
        http.text(\"{n}\")\n  }\n}\n";
    let file = Scratch::new("picture.weir", text);
    let drawn = say(&["graph", file.path(), "--format", "dot"]);
    assert_eq!((drawn.code, drawn.messages.as_str()), (0, ""));
    insta::assert_snapshot!(drawn.output);
}

/// An early answer follows the effects before it, an answer the waits; bodies that may be given up keep the order of the text;
/// the labels of nested checks are those of the arms that lead there.
const CHECKS: &[u8] = br#"use files, http, time

fn store(name: Text) -> Result(()) {
  files.append("a.log", name)?
  if name == "z" { return Ok(()) }
  files.append("b.log", name)?
  Ok(())
}

shared users: Map(Text, Int) = [:]

service web on http(port: 8080) {
  post "/early/{name}" (name: Text) {
    files.append("first.log", name)?
    if name.length() > 3 { return http.bad_request("long") }
    files.append("second.log", name)?
    time.sleep(50ms)
    http.text("done")
  }
  post "/nested/{name}" (name: Text) {
    if name == "x" { if users.length() > 100 { return http.text("x") } else { users.put("y", 1) } }
    http.text("done")
  }
  post "/bodies/{name}" (name: Text) {
    store(name)?
    let all = { files.append("c.log", name)?; time.sleep(10ms); files.append("d.log", name)?; 3 } within 50ms else { 0 }
    let first = race { { time.sleep(10ms); users.put("q", 1); 1 }, 2 }
    http.text("done {all} {first}")
  }
}
"#;

const HANDLED: &str = r#"use http, text

fn number(word: Text) -> Int { text.parse_int(word)? * 2 }

fn strict(word: Text) -> Result(Int) { Ok(text.parse_int(word)? + 1) }

service web on http(port: 8080) {
  get "/handled/{word}" (word: Text) {
    on failure of text.parse_int { http.bad_request(word) }
    http.text("{number(word)}")
  }
  get "/early/{word}" (word: Text) {
    let n = strict(word) else { return http.bad_request(word) }
    http.text("{n}")
  }
}
"#;

#[test]
fn pictures_show_which_edge_of_a_fn_leads_to_the_handler_of_its_failure() {
    let file = Scratch::new("handled.weir", HANDLED.as_bytes());
    for arguments in
        [&["graph", file.path(), "--format", "dot"][..], &["graph", file.path(), "--format", "dot", "--fold"]]
    {
        let said = say(arguments).output;
        let (_, handled) = said.split_once("get /handled/{word}").expect("the first flow");
        let of = |name: &str| {
            let line = handled.lines().find(|line| line.ends_with(&format!("label=\"{name}\"];"))).expect("a node");
            line.split_whitespace().next().expect("its name").to_owned()
        };
        let (handler, answer) = (of("http.bad_request"), of("http.text"));
        assert!(said.contains(&format!("f0m1 -> {handler} [label=\"err\"];")), "{said}");
        assert!(said.contains(&format!("f0m1 -> {answer};")), "{said}");
        assert!(said.contains("[shape=diamond, label=\"strict\"];"), "{said}");
    }
}

#[test]
fn pictures_show_the_order_of_effects_and_the_frames_of_fns() {
    let file = Scratch::new("checks.weir", CHECKS);
    let whole = say(&["graph", file.path(), "--format", "dot"]);
    assert_eq!(whole.code, 0, "{}", whole.messages);
    insta::assert_snapshot!(whole.output);
    let folded = say(&["graph", file.path(), "--format", "dot", "--fold"]);
    let (_, bodies) = folded.output.split_once("post /bodies/{name}").expect("the last flow");
    assert!(bodies.contains("[shape=box, label=\"fn.store?\"]"), "{bodies}");
    assert!(!bodies.contains("subgraph cluster_f2m1 "), "{bodies}");
    assert_eq!(say(&["graph", file.path(), "--fold"]).code, 2);
}

/// The calls of a `for` in the rounds of another one belong to the section in which its rounds are executed, also those that the
/// plan does not name.
#[test]
fn pictures_show_an_inner_for_in_its_section() {
    let program = "use files, stream, text\n\nfor n in stream.range(0, 3) {\n  for a in [\"x\", \"y\"] {\n    \
                   let parts = for b in [\"u\", \"v\"] {\n      let name = text.upper(b)\n      \
                   files.write(\"{n}{a}{name}.out\", name.to_bytes())?\n      name\n    }\n    \
                   files.append(\"log\", \"{parts}\")?\n  }\n}\n";
    let program = Scratch::new("inner.weir", program.as_bytes());
    let plan = b"engine = \"manual\"\n\n[[section]]\nname = \"write\"\nnodes = [\"files.write\"]\n";
    let plan = Scratch::new("inner.plan.toml", plan);
    let planned = say(&["plan", program.path(), "--plan", plan.path()]);
    assert!(planned.output.contains("  stream.range: for, files.write\n"), "{}", planned.output);
    let drawn = say(&["graph", program.path(), "--plan", plan.path(), "--format", "svg"]);
    assert_eq!(drawn.code, 0, "{}", drawn.messages);
    let of_sections =
        drawn.output.split("<g class=\"section\"").skip(1).map(|group| group.split("</g>").next().unwrap());
    let marks: Vec<usize> = of_sections.map(|group| group.matches("<rect").count()).collect();
    // The element, the name, its bytes, the write and the end of a round are in `write`.
    assert_eq!(marks.get(1), Some(&5), "{marks:?}");
}
