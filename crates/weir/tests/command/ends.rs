//! `at end`: runs once, after all elements, under each engine.

use std::io::{BufRead, BufReader};

use crate::streams::{Folder, engines};
use crate::support::{Served, say, weir};

/// Half of the elements wait, so that the last ones to begin are not the last ones to end.
const TOTAL: &str = r#"use stdio, stream, time

shared sum = 0

for number in stream.range(0, 2_000) {
  if number % 2 == 0 { time.sleep(1ms) }
  sum.add(number)
} at end {
  stdio.print("{sum}")?
}
"#;

#[test]
fn the_end_comes_once_and_after_every_element_under_every_engine() {
    for engine in engines() {
        let folder = Folder::new(&format!("total-{engine}"), TOTAL);
        let said = say(&["run", &folder.program(), "--engine", engine, "--threads", "3"]);
        assert_eq!((said.code, said.output.as_str()), (0, "1999000\n"), "{engine}: {}", said.messages);
    }
}

#[test]
fn a_source_without_elements_has_an_end_too() {
    let folder = Folder::new(
        "empty-end",
        "use files, stdio\n\nfor line in files.lines(\"in\") {\n  stdio.print(line)?\n} at end {\n  stdio.print(\"end\")?\n}\n",
    );
    folder.write("in", "");
    let said = say(&["run", &folder.program()]);
    assert_eq!((said.code, said.output.as_str()), (0, "end\n"), "{}", said.messages);
}

#[test]
fn each_source_has_an_end_of_its_own_which_waits_for_no_other() {
    let program = r#"use files, stdio, stream

for line in files.follow("in") {
  stdio.print("line {line}")?
} at end {
  stdio.print("no more lines")?
}

for number in stream.range(0, 3) {
} at end {
  files.append("in", "counted")?
}
"#;
    let folder = Folder::new("two-ends", program);
    folder.write("in", "");
    let mut process = weir(&["run", &folder.program()]).spawn().expect("the command starts");
    let mut output = BufReader::new(process.stdout.take().expect("standard output is piped"));
    let mut line = String::new();
    // The element arrives through the second `at end`, while the first source still reads.
    output.read_line(&mut line).expect("it writes");
    assert_eq!(line, "line counted\n");
    let killed = std::process::Command::new("kill").args(["-TERM", &process.id().to_string()]).status();
    assert!(killed.expect("`kill` is there").success());
    line.clear();
    output.read_line(&mut line).expect("it writes");
    assert_eq!(line, "no more lines\n", "a program that is stopped ends its streams in order");
    assert_eq!(process.wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_source_that_fails_has_no_end() {
    let program = "use csv, stdio\n\nshared sum = 0\n\nfor row in csv.rows(\"in\", strict: true) {\n  sum.add(1)\n} at end {\n  stdio.print(\"{sum} in all\")?\n}\n";
    let folder = Folder::new("failed-end", program);
    folder.write("in", "a,b\n1,2\n3\n");
    let said = say(&["run", &folder.program()]);
    assert_eq!((said.code, said.output.as_str()), (3, ""), "{}", said.messages);
}

#[test]
fn a_failure_of_the_end_is_logged_with_its_place() {
    let program = "use stream\n\nfor number in stream.range(0, 3) {\n  let square = number * number\n} at end {\n  fail(\"nothing to say\")\n}\n";
    let folder = Folder::new("end-fails", program);
    let said = say(&["run", &folder.program()]);
    assert_eq!(said.code, 0, "{}", said.messages);
    assert!(said.messages.contains("stream.range at end at"), "{}", said.messages);
    assert!(said.messages.contains("nothing to say"), "{}", said.messages);
}

#[test]
fn a_source_on_many_event_loops_has_one_end() {
    let program = "use files, tcp\n\nfor connection in tcp.listen(port: 0) {\n  connection.close()\n} at end {\n  files.append(\"ends\", \"end\")?\n}\n";
    let folder = Folder::new("loops-end", program);
    let served = Served::spawn(weir(&["run", &folder.program(), "--engine", "event", "--threads", "4"]));
    drop(served.connect());
    let (code, messages) = served.stop();
    assert_eq!((code, folder.read("ends").as_str()), (Some(0), "end\n"), "{messages}");
}

#[test]
fn the_rows_of_the_example_become_json_and_bad_ones_are_named_and_counted() {
    let rows = [
        r#"{"item":"pump","count":2,"note":null}"#,
        r#"{"item":"hose, green","count":12,"note":"for the garden"}"#,
        r#"{"item":"seal \"B\"","count":40,"note":null}"#,
    ];
    for engine in engines() {
        let said = say(&["run", "examples/orders", "--engine", engine, "--threads", "2"]);
        assert_eq!((said.code, said.output), (0, rows.map(|row| format!("{row}\n")).concat()), "{engine}");
        let faults = [
            "left out: \"two\" is not a whole number of 64 bits\n",
            "left out: orders.csv: line 5: 1 field, but there are 3 columns\n",
            "left out: an order of nothing\n3 written, 3 left out\n",
        ];
        assert!(said.messages.ends_with(&faults.concat()), "{engine}: {}", said.messages);
    }
}
