//! Parsing and checking of plans.

use std::fmt::Write;

use weir_host::{Mode, Resource};

use super::*;
use crate::graph::{Graph, Node, NodeKind, ResourceUse};
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
        kind: NodeKind::Call { function: name.into(), keeps_failure: false, may_end: false },
        inputs: Vec::new(),
        outputs: Vec::new(),
        control: None,
        after: Vec::new(),
        uses: uses.iter().map(used).collect(),
        within: None,
        condition_of: None,
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
    let text = "engine = \"manual\"\nthreads = 2\nqueue_length_max = 64\nsessions_max = 500\nsession_idle_timeout = \"90m\"\ndrain_timeout = \"5s\"\nhosts = [\"a.example\", \"*.b.example\", \"::1\"]\ntables = \"postgres://shop@db.example/shop\"\ntable_connections = 12\n\n[[section]]\nname = \"codec\"\nnodes = [\"*/image.*\"]\n\
                threads = 2\nreplicas = 2\nreason = \"97 % of the \\\"time\\\"\"\n";
    let (plan, problems) = Plan::parse(text);
    assert_eq!(problems, []);
    assert_eq!(plan.to_string(), text);
    assert_eq!(report(text), "");
}

#[test]
fn a_number_of_connections_with_which_no_engine_works_is_reported() {
    for few in ["0", "-1", "2", "10001"] {
        let said = report(&format!("table_connections = {few}\n"));
        assert_eq!(said, "1:21: `table_connections` must be from 3 to 10000\n");
    }
    assert_eq!(
        report("table_connections = \"4\"\n"),
        "1:21: `table_connections` must be a whole number, found string\n"
    );
    assert_eq!(report("table_connections = 3\n"), "");
}

#[test]
fn a_text_that_is_no_host_is_reported() {
    let said = report("hosts = [\"a.example\", \"https://b.example\", 7]\n");
    assert_eq!(
        said,
        "1:23: `https://b.example` is not a host\n  help: write a name such as \"api.example\" or \"*.cdn.example\", or an \
         address\n1:44: `hosts` must be a list of hosts, found integer\n"
    );
    assert_eq!(report("hosts = \"a.example\"\n"), "1:9: `hosts` must be a list of hosts, found string\n");
}

#[test]
fn a_plan_with_too_many_sections_ends_at_the_first_one_beyond_the_limit() {
    let sections = |count: usize| {
        let section = |number| format!("[[section]]\nname = \"s{number}\"\nnodes = [\"files.*\"]\n");
        (0..count).map(section).collect::<String>()
    };
    assert_eq!(Plan::parse(&sections(1024)).0.sections.len(), 1024);
    let said = report(&sections(22_000));
    assert_eq!(
        said,
        "3073:1: a plan has at most 1024 sections, and this one has 22000\n  help: one section can have several nodes, \
         as in `nodes = [\"image.*\", \"files.read\"]`\n"
    );
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
fn errors_have_a_position_and_a_hint() {
    let text = "engine = \"manuel\"\nthreads = 0\nquuee_length_max = 3\n\n[[section]]\nname = \"codec\"\nnodes = [\"thumbnail/image.scal\", \
                \"nothing-like-it\"]\nreplicas = \"two\"\n\n[[section]]\nname = \"codec\"\nnodes = []\n";
    assert_eq!(
        report(text),
        "3:1: unknown key `quuee_length_max` in a plan\n  help: did you mean `queue_length_max`?\n\
         2:11: `threads` must be from 1 to 1024\n\
         8:12: `replicas` must be a whole number, found string\n\
         12:9: section `codec` has no nodes\n  help: list patterns of node names, as in `nodes = [\"image.*\"]`\n\
         1:10: unknown engine `manuel`\n  help: did you mean `manual`?\n\
         7:10: no node matches `thumbnail/image.scal`\n  help: did you mean `thumbnail/image.scale`?\n\
         7:34: no node matches `nothing-like-it`\n  help: run `weir plan` without a plan to list the nodes\n\
         11:8: duplicate section `codec`\n  help: choose another name\n"
    );
}

#[test]
fn the_section_of_all_other_nodes_has_its_name_for_itself() {
    let said = report("engine = \"manual\"\n\n[[section]]\nname = \"rest\"\nnodes = [\"image.*\"]\n");
    let expected = "4:8: `rest` is the section of all nodes that the plan does not name\n  help: choose another name\n";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn a_call_that_is_named_without_its_function_is_found() {
    assert_eq!(
        report("[[section]]\nname = \"a\"\nnodes = [\"image.scale\"]\n"),
        "3:10: no node matches `image.scale`\n  help: did you mean `thumbnail/image.scale`?\n"
    );
}

#[test]
fn sections_of_an_engine_without_them() {
    let text = "engine = \"event\"\n[[section]]\nname = \"io\"\nnodes = [\"files.*\"]\n";
    assert_eq!(
        report(text),
        "1:10: engine `event` has no sections\n  help: the engines with sections are `manual`, `elastic`\n"
    );
}

#[test]
fn the_engine_of_a_section_does_not_give_sections_to_that_of_the_plan() {
    let section = "[[section]]\nname = \"io\"\nnodes = [\"files.*\"]\n";
    let help = "  help: the engines with sections are `manual`, `elastic`\n";
    assert_eq!(
        report(&format!("engine = \"event\"\n{section}engine = \"manual\"\nthreads = 3\n")),
        format!("1:10: engine `event` has no sections\n{help}")
    );
    assert_eq!(
        report(&format!("engine = \"manual\"\n{section}engine = \"event\"\n")),
        format!("5:10: engine `event` has no sections\n{help}")
    );
}

#[test]
fn replicas_of_a_state_and_a_node_in_two_sections() {
    let text =
        "[[section]]\nname = \"a\"\nnodes = [\"log.*\"]\nreplicas = 2\n[[section]]\nname = \"b\"\nnodes = [\"*\"]\n";
    assert_eq!(
        report(text),
        "4:12: section `a` cannot have replicas: `log.append` has private state\n  \
         help: remove `replicas`, or move the node to a section of its own\n\
         7:10: `log.append` already belongs to section `a`\n"
    );
}

#[test]
fn memory_with_which_no_request_is_answered_and_names_that_control_the_terminal() {
    assert_eq!(
        report("memory_per_flow = \"1b\""),
        "1:19: `memory_per_flow` must be a size of at least 64kb\n  help: write it as \"64mb\" or \"2gb\"\n"
    );
    assert_eq!(report("memory_per_flow = \"64kb\""), "");
    let section = "[[section]]\nname = \"a\\u001b[31m\"\nnodes = [\"files.*\"]\n";
    assert_eq!(report(section), "2:8: `name` must not contain control characters\n");
}

#[test]
fn text_that_is_no_toml() {
    assert!(report("engine = = 3\n").starts_with("1:10: invalid TOML: "), "{}", report("engine = = 3\n"));
}

#[test]
fn the_idle_timeout_of_sessions_is_a_duration() {
    let said = |idle: &str| report(&format!("session_idle_timeout = {idle}"));
    assert_eq!(["\"90s\"", "\"30m\"", "\"2h\"", "\"365d\""].map(said), ["", "", "", ""]);
    let refused = "1:24: `session_idle_timeout` must be a duration longer than zero and of at most 365 days\n  help: write whole seconds, minutes, hours or days: \"90s\", \"30m\", \"2h\" or \"1d\"\n";
    assert_eq!(
        ["\"30\"", "\"m\"", "\"-1s\"", "\"0s\"", "\"366d\"", "\"9999999999999999999d\""].map(said),
        [refused; 6]
    );
    assert_eq!(
        said("30"),
        "1:24: `session_idle_timeout` must be a duration, found integer\n  help: write whole seconds, minutes, hours or days: \"90s\", \"30m\", \"2h\" or \"1d\"\n"
    );
}

#[test]
fn invalid_toml_is_reported_alone() {
    let said = report("engin = \n[[section]]\n");
    assert!(said.starts_with("1:9: invalid TOML") && !said.contains("section"), "{said}");
}

#[test]
fn a_section_without_a_name() {
    let said = "1:1: section without a name\n  help: add `name = \"…\"`\n";
    assert_eq!(report("[[section]]\nname = \" \"\nnodes = [\"image.scale\"]\n"), said);
}

#[test]
fn a_deprecated_key_works_and_warns_with_the_new_name() {
    let text = "flows = 8\nqueue = 64\nsessions = 500\nsession_idle = \"90m\"\n\n[[section]]\nname = \"a\"\n\
                nodes = [\"files.*\"]\nqueue = 3\nwhy = \"it is slow\"\n";
    let (plan, problems) = Plan::parse(text);
    assert!(problems.iter().all(|problem| !problem.is_error()));
    assert_eq!(
        report(text).lines().filter(|line| line.starts_with("  help")).collect::<Vec<_>>(),
        [
            "  help: rename it to `flows_max`",
            "  help: rename it to `queue_length_max`",
            "  help: rename it to `sessions_max`",
            "  help: rename it to `session_idle_timeout`",
            "  help: rename it to `queue_length_max`",
            "  help: rename it to `reason`"
        ]
    );
    let renamed = "flows_max = 8\nqueue_length_max = 64\nsessions_max = 500\nsession_idle_timeout = \"90m\"\n\n\
                   [[section]]\nname = \"a\"\nnodes = [\"files.*\"]\nqueue_length_max = 3\nreason = \"it is slow\"\n";
    assert_eq!(plan.to_string(), renamed);
    assert_eq!(report(renamed), "");
}

#[test]
fn a_key_under_both_names_is_an_error() {
    assert_eq!(
        report("queue = 3\nqueue_length_max = 4\n"),
        "1:1: `queue` is the former name of `queue_length_max`, which is set too\n  help: remove `queue`\n"
    );
}

#[test]
fn the_example_of_the_reference_is_a_plan_with_every_key() {
    let reference = plan_reference();
    let (_, example) = reference.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let (plan, problems) = Plan::parse(example);
    assert_eq!(problems, []);
    assert_eq!(plan.to_string(), example);
}

/// A `for` whose rounds make a call and run the loops.
fn rounds(inner: Vec<Node>) -> Graph {
    let nodes = std::iter::once(node("read", &[])).chain(inner).collect();
    let kind = NodeKind::Map { body: Box::new(Graph { nodes, ..Graph::default() }) };
    Graph { nodes: vec![Node { kind, ..node("for", &[]) }], ..Graph::default() }
}

fn repeated(name: &str, kind: impl FnOnce(Box<Graph>) -> NodeKind, nodes: Vec<Node>) -> Node {
    Node { kind: kind(Box::new(Graph { nodes, ..Graph::default() })), ..node(name, &[]) }
}

#[test]
fn a_loop_in_rounds_belongs_to_the_first_call_in_it_that_takes_turns() {
    let calls = || {
        let state = |name: &str| node(name, &[Resource::State(name.into())]);
        vec![node("parse", &[]), state("pack"), state("write")]
    };
    let body = rounds(vec![repeated("pairs", |body| NodeKind::Map { body }, calls())]);
    let section = |name: &str, node: &str| format!("[[section]]\nname = \"{name}\"\nnodes = [\"{node}\"]\n");
    let of_pairs = |sections: &[String]| {
        let plan = Plan::parse(&sections.concat()).0;
        let outer = &body.nodes[0];
        let pairs = plan.section_of_inner_node("", outer, &outer.bodies()[0].nodes[1]);
        assert_eq!(plan.section_of_node("", outer), None, "the rounds are in several sections");
        assert_eq!(plan.home_of_rounds("", outer, None), pairs, "the flow stays there");
        (pairs, plan.holding_loops("", &body, |_| false).first().map(|holding| holding.reason))
    };
    let [parse, pack, write] = ["parse", "pack", "write"].map(|name| section(name, name));
    assert_eq!(of_pairs(std::slice::from_ref(&pack)), (Some(0), None));
    let in_turns = Some(HoldReason::CallsInTurns(Some(0)));
    assert_eq!(of_pairs(&[write.clone(), pack]), (Some(1), in_turns), "`pack` comes first in the text");
    let plan = Plan::parse(&[write.clone(), section("pack", "pack")].concat()).0;
    assert_eq!(plan.holding_loops("", &body, |call| *call.name == *"write"), [], "`write` takes its turns in a queue");
    assert_eq!(of_pairs(&[parse.clone(), write]), (Some(1), None), "`parse` takes no turns");
    assert_eq!(of_pairs(&[parse]), (None, None));
}

#[test]
fn loops_that_keep_the_rounds_around_them_from_overlapping_are_found() {
    let map = |body| NodeKind::Map { body };
    let again = |body| NodeKind::Loop { body, states: 1, at_most: 9 };
    let pairs = repeated("pairs", map, vec![node("pack", &[])]);
    let others = repeated("others", map, vec![node("write", &[])]);
    let body = rounds(vec![pairs, others, repeated("loop", again, vec![node("trim", &[]), node("pack", &[])])]);
    let sections = [("a", "pack"), ("b", "write")];
    let plan = sections.map(|(name, node)| format!("[[section]]\nname = \"{name}\"\nnodes = [\"{node}\"]\n")).concat();
    let (plan, _) = Plan::parse(&plan);
    let holding = plan.holding_loops("", &body, |_| false);
    let found: Vec<_> = holding.iter().map(|of| (of.rounds.name.as_str(), of.inner.name.as_str(), of.reason)).collect();
    let elsewhere = |of_loop| HoldReason::OtherSection { of_loop, home: Some(0) };
    assert_eq!(found, [("for", "others", elsewhere(Some(1))), ("for", "loop", elsewhere(None))]);
    let in_turns = rounds(vec![repeated("loop", again, vec![node("trim", &[]), node("pack", &[])])]);
    let holding = plan.holding_loops("", &in_turns, |_| false);
    assert_eq!(holding.iter().map(|of| of.reason).collect::<Vec<_>>(), [HoldReason::DependentRounds]);
}
