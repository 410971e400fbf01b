//! The commands in the guides.

use crate::markdown::blocks_named;
use crate::support::say;

/// Prefixes with which a line of a guide calls the command, in the repository and installed.
const CALLS: [&str; 4] = ["weir ", "cargo run -- ", "cargo run --release -- ", "cargo run -q -- "];

/// Returns the arguments of a line that calls the command.
fn arguments(line: &str) -> Option<Vec<&str>> {
    let line = line.split(" #").next().unwrap_or_default();
    let rest = CALLS.iter().find_map(|call| line.trim().strip_prefix(call))?;
    Some(rest.split_whitespace().take_while(|word| !["|", "<", ">", "&", "&&"].contains(word)).collect())
}

/// Returns the parts of a call that do not exist.
fn fault(arguments: &[&str]) -> Option<String> {
    let (command, rest) = arguments.split_first()?;
    if command.starts_with('-') || *command == "help" {
        let said = say(&["--help"]);
        return (!said.output.contains(command)).then(|| format!("there is no `{command}`"));
    }
    let help = say(&[command, "--help"]);
    if help.code != 0 {
        return Some(format!("there is no command `{command}`"));
    }
    let options = rest.iter().filter(|word| word.starts_with("--"));
    let names = options.map(|option| option.split('=').next().unwrap_or_default());
    names.map(|name| name.to_owned()).find(|name| !names_option(&help.output, name))
}

fn names_option(help: &str, name: &str) -> bool {
    help.split(|c: char| c.is_whitespace() || ",=[]".contains(c)).any(|word| word == name)
}

#[test]
fn every_command_and_option_exists() {
    let mut calls = 0;
    for block in blocks_named("sh") {
        for line in block.text.lines() {
            let Some(arguments) = arguments(line) else { continue };
            calls += 1;
            assert_eq!(fault(&arguments), None, "{}: {line}", block.place);
        }
    }
    assert!(calls > 0, "the guides have calls");
}

#[test]
fn what_does_not_exist_is_found() {
    assert!(fault(&["fly"]).is_some());
    assert!(fault(&["run", "x.weir", "--fast"]).is_some());
    assert_eq!(fault(&["run", "x.weir", "--engine", "pool"]), None);
}
