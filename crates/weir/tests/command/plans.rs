//! Plans: what `weir plan` shows of them, and how their faults are reported.

use super::messages::all;
use crate::support::{Scratch, Served, say, weir};

const PLAN: &[u8] = b"engine = \"staged\"\nthreads = 2\n\n[[section]]\nname = \"codec\"\nnodes = [\"image.*\"]\nreason = \"it is where the time goes\"\n";

#[test]
fn a_plan_says_which_calls_are_in_which_section_and_why() {
    let plan = Scratch::new("images.plan.toml", PLAN);
    let said = all(&["plan", "examples/image_server/main.weir", "--plan", plan.path()]);
    insta::assert_snapshot!(said.replace(plan.path(), "images.plan.toml"));
}

#[test]
fn without_a_plan_an_engine_says_how_it_would_cut_the_program() {
    let shapes = "use stdio, stream, text\n\nfor n in stream.range(0, 3) {\n  let line = text.upper(\"{n} lines\")\n  \
                  stdio.print(line)?\n}\n";
    let program = Scratch::new("shapes.weir", shapes.as_bytes());
    let cut = |engine| all(&["plan", program.path(), "--engine", engine, "--threads", "3"]);
    insta::assert_snapshot!(["dedicated", "elastic", "pool"].map(cut).join("\n"));
}

#[test]
fn elastic_divides_streams_and_leaves_requests_whole() {
    let both = "use http, stdio, stream, text\n\nservice pages on http(port: 0) {\n  get \"/\" {\n    \
                http.ok(text.upper(\"page\").to_bytes())\n  }\n}\n\nfor n in stream.range(0, 3) {\n  stdio.print(\"{n}\")?\n}\n";
    let program = Scratch::new("both.weir", both.as_bytes());
    let elastic = all(&["plan", program.path(), "--engine", "elastic", "--threads", "3"]);
    assert!(elastic.contains("engine elastic, threads 1 to 3, shared"), "{elastic}");
    assert!(elastic.contains("each flow as a whole\n  get /: text.upper"), "{elastic}");
}

#[test]
fn pool_says_which_calls_hold_their_thread() {
    let waits = "use tcp, time\n\nfor connection in tcp.listen(port: 0) {\n  loop round = 0 {\n    \
                 let _line = tcp.read_line(connection)?\n    time.sleep(10ms)\n    round + 1\n  } until round == 3 at most 3\n}\n";
    let program = Scratch::new("waits.weir", waits.as_bytes());
    let pool = all(&["plan", program.path(), "--engine", "pool"]);
    let held = "calls that hold their thread while they wait, so that no other flow has it\n  \
                tcp.listen: time.sleep\n";
    assert!(pool.ends_with(held) || pool.contains(held), "{pool}");
    assert!(!all(&["plan", program.path(), "--engine", "event"]).contains("hold"));
}

#[test]
fn a_fold_that_adds_several_terms_or_takes_bounds_runs_on_several_cores() {
    let folds = "use stdio, stream\n\nfor n in stream.range(0, 3) {\n  let numbers = [n, n + 1, n * n]\n  \
                 let (sum, least, most) = fold (s, l, m) = (0, 100, 0) for k in numbers {\n    \
                 (s + k + k * k + 7, l.min(3 * k), m.max(k).max(n - k))\n  }\n  \
                 let product = fold p = 1 for k in numbers { p * k }\n  \
                 stdio.print(\"{sum} {least} {most} {product}\")?\n}\n";
    let program = Scratch::new("folds.weir", folds.as_bytes());
    let said = all(&["plan", program.path()]);
    assert!(said.contains("  stream.range: fold\n"), "{said}");
    assert!(said.contains("  stream.range: fold#2: no, `fold#2/multiply"), "{said}");
    let adds = b"use stdio, stream\n\nshared total = 0\n\nfor n in stream.range(0, 3) {\n  for k in [n, 7] { total.add(k) }\n  \
                 stdio.print(\"{total}\")?\n}\n";
    let program = Scratch::new("adds.weir", adds);
    let said = all(&["plan", program.path()]);
    assert!(said.contains("  stream.range: for: no, `state.add` writes `shared total`\n"), "{said}");
}

#[test]
fn loops_that_keep_rounds_from_overlapping_are_named_with_the_reason() {
    let program = "use stdio, stream, text\n\nfor n in stream.range(0, 3) {\n  let done = for m in [n, n] {\n    \
                   let lines = for k in [m] { text.upper(\"{k}\") }\n    for line in lines { stdio.print(line)? }\n    \
                   loop line = \"\" { text.trim(text.lower(line)) } until line == \"\" at most 3\n  }\n  \
                   stdio.print(\"{done.length()}\")?\n}\n";
    let program = Scratch::new("moving.weir", program.as_bytes());
    let section = |name: &str, nodes: &str| format!("[[section]]\nname = \"{name}\"\nnodes = [\"{nodes}\"]\n");
    let said = |sections: &[String]| {
        let plan = Scratch::new("moving.plan.toml", format!("engine = \"manual\"\n{}", sections.concat()).as_bytes());
        all(&["plan", program.path(), "--plan", plan.path()])
    };
    let heading = "loops that keep the rounds of the `for` around them from overlapping\n";
    let upper = section("upper", "text.upper");
    let two = said(&[upper.clone(), section("lower", "text.lower")]);
    let lines = two.split_once(heading).map(|(_, lines)| lines.split("\n\n").next().unwrap_or_default());
    insta::assert_snapshot!(lines.unwrap_or(&two));
    assert!(!said(&[]).contains(heading), "a plan that divides no loop");
}

#[test]
fn an_engine_that_cannot_cut_is_refused_where_the_plan_does() {
    let plan = Scratch::new("cut.plan.toml", PLAN);
    let arguments = ["examples/image_server/main.weir", "--plan", plan.path(), "--engine", "pool"];
    for command in ["plan", "run"] {
        let said = say(&[&[command], &arguments[..]].concat());
        assert_eq!(said.code, 1);
        assert_eq!(
            said.messages,
            "error: the plan does not fit: engine `pool` has no sections\n  \
             hint: options override the plan: omit `--engine`, or remove the sections from the plan\n"
        );
    }
}

#[test]
fn a_plan_that_is_there_and_cannot_be_read_is_an_error() {
    let folder = Scratch::folder("unreadable-plan");
    let file = |name: &str| format!("{}/{name}", folder.path());
    std::fs::write(file("main.weir"), "use stream\n\nfor n in stream.range(0, 3) {\n  n + 1\n}\n").expect("ours");
    let refused = |why: &str| {
        for command in ["check", "plan", "run", "tables"] {
            let said = say(&[command, folder.path()]);
            assert_eq!((said.code, said.messages.contains(why)), (3, true), "{command}: {}", said.messages);
        }
    };
    std::os::unix::fs::symlink("nowhere", file("main.plan.toml")).expect("the name is free");
    refused("main.plan.toml` is a link to a file that does not exist");
    std::fs::remove_file(file("main.plan.toml")).expect("it is there");
    std::fs::create_dir(file("main.plan.toml")).expect("the name is free");
    refused("main.plan.toml` is a folder, not a plan");
}

#[test]
fn a_flow_that_the_drain_timeout_ends_is_told_in_the_log() {
    let text = "use stream, stdio, time\n\nfor n in stream.range(0, 1) { stdio.print_error(\"{n}\")? } at end {\n  stdio.print_error(\"summary begins\")?\n  \
                time.sleep(1h)\n}\n";
    let (program, plan) =
        (Scratch::new("late.weir", text.as_bytes()), Scratch::new("late.toml", b"drain_timeout = \"1s\"\n"));
    for engine in weir_runtime::ENGINES {
        let arguments = ["run", program.path(), "--plan", plan.path(), "--engine", engine.name];
        let mut running = Served::without_banner(weir(&arguments));
        running.wait_for("summary begins");
        let (code, log) = running.stop();
        let expected = "flows given up: 1 in progress when the time to stop was over (`drain_timeout` of the plan)";
        assert_eq!((code, log.contains(expected)), (Some(0), true), "{}: {log}", engine.name);
    }
}

#[test]
fn options_beyond_what_a_plan_allows_and_a_port_of_several_are_refused_with_advice() {
    let two = "use http\n\nservice a on http(port: 1080) { get \"/\" { http.text(\"a\") } }\n\n\
               service b on http(port: 1081) { get \"/\" { http.text(\"b\") } }\n";
    let program = Scratch::new("two.weir", two.as_bytes());
    let said = say(&["run", program.path(), "--flows-max", "1048577"]);
    assert_eq!((said.code, said.messages.contains("1..=1048576")), (2, true), "{}", said.messages);
    let said = say(&["run", program.path(), "--port", "0"]);
    assert_eq!(
        said.messages,
        "error: `--port` is ambiguous: this program listens on 2 ports\n  \
         hint: declare the ports, as in `config port: Int = 8080`, and choose each with `--set port=…`\n"
    );
}

#[test]
fn without_a_plan_it_is_said_what_one_may_name() {
    let nowhere = Scratch::new(
        "plain.weir",
        b"use stream\n\nfor n in stream.range(0, 3) {\n  let all = for m in [n, n] { m + 1 }\n  \
                                               let sum = fold s = 0 for m in all { s + m }\n}\n",
    );
    let said = all(&["plan", nowhere.path()]);
    insta::assert_snapshot!(said);
}

#[test]
fn a_plan_that_is_no_file_of_text_is_said_to_be_a_plan() {
    let noise = Scratch::new("noise.plan.toml", b"engine = \"\xff\"");
    let said = [("nowhere.plan.toml", "no such plan"), ("docs", "`docs` is a folder"), (noise.path(), "is not UTF-8")]
        .map(|(plan, expected)| (say(&["plan", "examples/hello", "--plan", plan]), expected));
    for (said, expected) in said {
        assert!(said.code == 3 && said.messages.contains(expected), "{}", said.messages);
    }
}

#[test]
fn a_plan_that_does_not_fit_is_shown_with_its_place() {
    let wrong = String::from_utf8_lossy(PLAN).replace("staged", "stagged").replace("image.*", "imago.*");
    let plan = Scratch::new("wrong.plan.toml", wrong.as_bytes());
    let said = all(&["run", "examples/image_server/main.weir", "--plan", plan.path()]);
    insta::assert_snapshot!(said.replace(plan.path(), "wrong.plan.toml"));
}

/// `weir plan` shows no password, and refuses an address with which the program would not start.
#[test]
fn the_address_of_tables_in_a_plan_is_checked_and_shown_without_its_password() {
    let planned = |address: &str| {
        let plan = Scratch::new("tables.plan.toml", format!("tables = \"{address}\"\n").as_bytes());
        say(&["plan", "examples/hello", "--plan", plan.path()])
    };
    let unencoded = planned("postgres://shop:hunter@2@db.example/shop");
    assert_eq!(unencoded.code, 1);
    assert!(
        unencoded.messages.contains("as `%40`") && !unencoded.messages.contains("hunter"),
        "{}",
        unencoded.messages
    );
    let shown = planned("postgres://shop:hunter%402@db.example/shop").output;
    assert!(shown.contains("tables \"postgres://shop:…@db.example/shop\"") && !shown.contains("hunter"), "{shown}");
    let shown = planned("postgres://shop@db.example/shop").output;
    assert!(shown.contains("tables \"postgres://shop@db.example/shop\""), "{shown}");
    let refused = planned("mysql://db.example/shop");
    assert_eq!(refused.code, 1);
    let kinds = "tables are in a PostgreSQL database, with an address such as `postgres://user@host:5432/database`, or in an SQLite file";
    assert!(refused.messages.contains(kinds), "{}", refused.messages);
}
