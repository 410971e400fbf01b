//! Parsing and checking of plans.

use std::fmt::Write;

use weir_host::Mode;

use super::*;
use crate::graph::{Graph, NodeKind, ResourceUse};
use crate::program::{Entry, Flow, FormerSite};

const ENGINES: &[EngineFact<'_>] = &[
    EngineFact { name: "event", has_sections: false },
    EngineFact { name: "manual", has_sections: true },
    EngineFact { name: "elastic", has_sections: true },
];

fn node(name: &str, uses: &[Resource]) -> Node {
    let used = |resource: &Resource| ResourceUse { resource: resource.clone(), mode: Mode::Write, held: false };
    Node {
        name: name.into(),
        kind: NodeKind::Call { function: name.into() },
        inputs: Vec::new(),
        outputs: Vec::new(),
        control: None,
        after: Vec::new(),
        uses: uses.iter().map(used).collect(),
        within: None,
        origin: crate::program::Origin::default(),
    }
}

fn program() -> Program {
    let nodes = vec![
        node("files.read", &[]),
        node("thumbnail/image.scale", &[]),
        node("thumbnail/image.to_jpeg", &[]),
        node("log.append", &[Resource::State("log.append".into())]),
    ];
    let body = Graph { nodes, ..Graph::default() };
    let result = weir_host::Type::Unit;
    let flow = Flow {
        name: "get /{name}".into(),
        route: None,
        parameters: Vec::new(),
        result,
        body,
        former_sites: Vec::new(),
    };
    let arguments = Graph::default();
    let (name, source) = ("images".into(), "http.http".into());
    Program {
        entries: vec![Entry { name, source, arguments, ordered: false, flows: vec![flow] }],
        ..Program::default()
    }
}

fn report(text: &str) -> String {
    let (plan, mut problems) = Plan::parse(text);
    problems.extend(plan.check(&program(), ENGINES));
    let mut said = String::new();
    for problem in &problems {
        let (line, column) = problem.line_column(text);
        _ = writeln!(said, "{line}:{column}: {}", problem.message);
        problem.help.iter().for_each(|help| _ = writeln!(said, "  help: {help}"));
    }
    said
}

#[test]
fn a_plan_prints_as_it_is_read() {
    let text = "engine = \"manual\"\nthreads = 2\nqueue = 64\nsessions = 500\nsession_idle = \"90m\"\n\n[[section]]\nname = \"codec\"\nnodes = [\"*/image.*\"]\n\
                threads = 2\nreplicas = 2\nwhy = \"97 % of the \\\"time\\\"\"\n";
    let (plan, problems) = Plan::parse(text);
    assert_eq!(problems, []);
    assert_eq!(plan.to_string(), text);
    assert_eq!(report(text), "");
}

#[test]
fn nodes_belong_to_the_section_that_names_them() {
    let (plan, _) = Plan::parse(
        "[[section]]\nname = \"a\"\nnodes = [\"post *: files.*\"]\n[[section]]\nname = \"b\"\nnodes = [\"files.*\"]\n",
    );
    assert_eq!(plan.section_of("post /x", "files.read"), Some(0));
    assert_eq!(plan.section_of("get /x", "files.read"), Some(1));
    assert_eq!(plan.section_of("get /x", "image.scale"), None);
}

#[test]
fn a_call_that_was_merged_into_another_one_answers_to_its_name() {
    let mut program = program();
    let former = |site: &str, now: Option<&str>| FormerSite { site: site.into(), now: now.map(Into::into) };
    program.entries[0].flows[0].former_sites =
        vec![former("thumbnail/image.scale#2", Some("thumbnail/image.scale")), former("text.upper", None)];
    let (plan, _) = Plan::parse(
        "[[section]]\nname = \"a\"\nnodes = [\"*/image.scale#2\"]\n[[section]]\nname = \"b\"\nnodes = [\"text.upper\", \"files.*\"]\n",
    );
    assert_eq!(plan.check(&program, ENGINES), []);
    assert_eq!(plan.section_of("get /{name}", "thumbnail/image.scale"), None);
    let plan = plan.following(&program);
    assert_eq!(plan.section_of("get /{name}", "thumbnail/image.scale"), Some(0));
}

#[test]
fn stars_stand_for_any_characters() {
    let names = |pattern: &str, node: &str| NodePattern::new(pattern).names("flow", node);
    assert!(names("*", "") && names("a*c", "abbc") && names("a*b*c", "aXbXbYc") && names("*read", "files.read"));
    assert!(!names("a*c", "abcd") && !names("", "a") && !names("read", "files.read"));
    assert!(!names(&"*a".repeat(200), &"b".repeat(10_000)));
}

#[test]
fn what_is_wrong_is_said_with_its_place_and_what_to_do() {
    let text = "engine = \"manuel\"\nthreads = 0\nquue = 3\n\n[[section]]\nname = \"codec\"\nnodes = [\"thumbnail/image.scal\", \
                \"nothing-like-it\"]\nreplicas = \"two\"\n\n[[section]]\nname = \"codec\"\nnodes = []\n";
    assert_eq!(
        report(text),
        "3:1: a plan has no `quue`\n  help: did you mean `queue`?\n\
         2:11: `threads` is from 1 to 1024\n\
         8:12: `replicas` is a whole number, and not of the type string\n\
         12:9: the section `codec` names no nodes\n  help: name them by patterns, as in `nodes = [\"image.*\"]`\n\
         1:10: there is no engine `manuel`\n  help: did you mean `manual`?\n\
         11:8: there is a section `codec` already\n  help: give it another name\n\
         7:10: no node is called `thumbnail/image.scal`\n  help: did you mean `thumbnail/image.scale`?\n\
         7:34: no node is called `nothing-like-it`\n  help: `weir plan` shows the names of all nodes where there is no plan\n"
    );
}

#[test]
fn a_call_that_is_named_without_its_function_is_found() {
    assert_eq!(
        report("[[section]]\nname = \"a\"\nnodes = [\"image.scale\"]\n"),
        "3:10: no node is called `image.scale`\n  help: did you mean `thumbnail/image.scale`?\n"
    );
}

#[test]
fn sections_of_an_engine_without_them() {
    let text = "engine = \"event\"\n[[section]]\nname = \"io\"\nnodes = [\"files.*\"]\n";
    assert_eq!(
        report(text),
        "3:8: `event` runs each flow as one, and has no sections\n  help: sections are for `manual`, `elastic`\n"
    );
}

#[test]
fn replicas_of_a_state_and_a_node_in_two_sections() {
    let text =
        "[[section]]\nname = \"a\"\nnodes = [\"log.*\"]\nreplicas = 2\n[[section]]\nname = \"b\"\nnodes = [\"*\"]\n";
    assert_eq!(
        report(text),
        "4:12: `log.append` has a state, so that the section `a` works alone\n  \
         help: leave `replicas` out, or put the node into a section of its own\n\
         7:10: `log.append` belongs to the section `a` already\n"
    );
}

#[test]
fn text_that_is_no_toml() {
    assert!(report("engine = = 3\n").starts_with("1:10: this is not TOML: "), "{}", report("engine = = 3\n"));
}

#[test]
fn how_long_sessions_are_kept_is_a_time() {
    let said = |idle: &str| report(&format!("session_idle = {idle}"));
    assert_eq!(["\"90s\"", "\"30m\"", "\"2h\"", "\"365d\""].map(said), ["", "", "", ""]);
    let refused =
        "1:16: `session_idle` is a time of at most 365 days\n  help: write it as \"90s\", \"30m\" or \"2h\"\n";
    assert_eq!(["\"30\"", "\"m\"", "\"-1s\"", "\"366d\"", "\"9999999999999999999d\""].map(said), [refused; 5]);
    assert_eq!(said("30"), "1:16: `session_idle` is a text, and not of the type integer\n");
}

#[test]
fn of_what_is_no_toml_only_that_is_said() {
    let said = report("engin = \n[[section]]\n");
    assert!(said.starts_with("1:9: this is not TOML") && !said.contains("section"), "{said}");
}

#[test]
fn a_section_without_a_name() {
    let said = "1:1: this section has no name\n  help: add `name = \"…\"`\n";
    assert_eq!(report("[[section]]\nname = \" \"\nnodes = [\"image.scale\"]\n"), said);
}
