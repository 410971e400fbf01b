//! The grammar for editors accepts every program that the parser accepts.

use std::fs;
use std::path::{Path, PathBuf};
use tree_sitter::{Node, Parser, Query, Tree};
use tree_sitter_weir::{HIGHLIGHTS_QUERY, LANGUAGE};
use weir_syntax::ast::{Block, Expr, ExprKind, Visitor, walk_block, walk_expr, walk_tree};

fn read(text: &str) -> Tree {
    let mut parser = Parser::new();
    parser.set_language(&LANGUAGE.into()).expect("the grammar is of this library's version");
    parser.parse(text, None).expect("nothing stops it")
}

/// Returns the position of the first syntax error.
fn fault(node: Node<'_>) -> Option<Node<'_>> {
    if node.is_error() || node.is_missing() {
        return Some(node);
    }
    let mut cursor = node.walk();
    node.children(&mut cursor).find_map(fault)
}

#[track_caller]
fn assert_read(name: &str, text: &str) {
    let tree = read(text);
    if let Some(fault) = fault(tree.root_node()) {
        let line = text.lines().nth(fault.start_position().row).unwrap_or_default();
        panic!("{name}: the grammar does not understand {:?} at\n{line}\nin\n{text}", fault.to_sexp());
    }
    assert_eq!(Counts::of_grammar(tree.root_node()), Counts::of_parser(text), "{name}: the trees differ in\n{text}");
}

/// Counts the nodes of some kinds; a line end in the wrong place changes these numbers.
#[derive(Default, PartialEq, Debug)]
struct Counts {
    items: usize,
    statements: usize,
    calls: usize,
    operators: usize,
    arms: usize,
}

impl Counts {
    fn of_grammar(root: Node<'_>) -> Self {
        let mut counts = Self::default();
        let mut nodes = vec![root];
        while let Some(node) = nodes.pop() {
            let mut cursor = node.walk();
            let children: Vec<_> = node.named_children(&mut cursor).filter(|child| !child.is_extra()).collect();
            match node.kind() {
                "source_file" => counts.items += children.len(),
                "block" => counts.statements += children.iter().filter(|child| child.kind() != "session").count(),
                "call_expression" => counts.calls += 1,
                "binary_expression" => counts.operators += 1,
                "arm" => counts.arms += 1,
                _ => {}
            }
            nodes.extend(children);
        }
        counts
    }

    fn of_parser(text: &str) -> Self {
        let tree = weir_syntax::parse(weir_syntax::SourceId(0), text).tree;
        let mut counts = Self { items: tree.items.len(), ..Self::default() };
        walk_tree(&mut counts, &tree);
        counts
    }
}

impl<'a> Visitor<'a> for Counts {
    fn block(&mut self, block: &'a Block) {
        self.statements += block.statements.len();
        walk_block(self, block);
    }

    fn expr(&mut self, expr: &'a Expr) {
        match &expr.kind {
            ExprKind::Call { .. } => self.calls += 1,
            // In the grammar, the function after a pipe is a call if it has arguments.
            ExprKind::Pipe { arguments, .. } if !arguments.is_empty() => self.calls += 1,
            ExprKind::Binary { .. } => self.operators += 1,
            ExprKind::Match { arms, .. } => self.arms += arms.len(),
            _ => {}
        }
        walk_expr(self, expr);
    }
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let mut found: Vec<PathBuf> = files.into_iter().filter(|path| path.to_string_lossy().ends_with(ending)).collect();
    folders.iter().for_each(|folder| found.extend(self::files(folder, ending)));
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn is_right(text: &str) -> bool {
    weir_syntax::parse(weir_syntax::SourceId(0), text).diagnostics.is_empty()
}

#[test]
fn every_example_is_read() {
    let examples = files(&root().join("examples"), ".weir");
    assert!(!examples.is_empty());
    for path in examples {
        assert_read(&path.to_string_lossy(), &fs::read_to_string(&path).expect("it is read"));
    }
}

#[test]
fn every_right_case_of_the_suites_is_read() {
    let mut count = 0;
    for folder in ["suite", "format"] {
        for path in files(&root().join("crates/weir-syntax/tests").join(folder), ".weir") {
            let suite = fs::read_to_string(&path).expect("it is read");
            let cases = suite.split("=== ").skip(1).filter_map(|case| case.split_once('\n'));
            for (name, text) in cases.filter(|(_, text)| is_right(text)) {
                assert_read(name, text);
                count += 1;
            }
        }
    }
    assert!(count > 60, "only {count} cases are right");
}

#[test]
fn every_mended_example_of_a_diagnostic_is_read() {
    for path in files(&root().join("crates/weir-syntax/src/codes"), ".md") {
        let page = fs::read_to_string(&path).expect("it is read");
        let examples = page.split("```weir\n").skip(1).filter_map(|block| block.split("```").next());
        for example in examples.filter(|example| is_right(example)) {
            assert_read(&path.to_string_lossy(), example);
        }
    }
}

#[test]
fn every_program_of_the_documentation_is_read() {
    let mut read = String::new();
    for path in files(&root().join("docs"), ".md") {
        let page = fs::read_to_string(&path).expect("it is read");
        // The words behind `weir` say what tests do with a program.
        let blocks = page.split("```weir").skip(1).filter_map(|block| block.split("```").next()?.split_once('\n'));
        for (_, program) in blocks.filter(|(_, program)| is_right(program)) {
            assert_read(&path.to_string_lossy(), program);
            read += program;
        }
    }
    for part in ["pub table ", ".group_by(", " limit 2\n", "existing("] {
        assert!(read.contains(part), "no program has `{part}`");
    }
}

#[test]
fn the_queries_name_only_what_there_is() {
    Query::new(&LANGUAGE.into(), HIGHLIGHTS_QUERY).expect("the query is right");
}
