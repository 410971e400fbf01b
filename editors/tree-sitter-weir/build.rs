//! Generates the parser from `grammar.js` and compiles it with the scanner.

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the folder"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo names the folder for output"));
    for input in ["grammar.js", "src/scanner.c", "queries/highlights.scm"] {
        println!("cargo::rerun-if-changed={input}");
    }
    let grammar = tree_sitter_generate::load_grammar_file(&here.join("grammar.js"), Some("native"));
    let grammar = grammar.unwrap_or_else(|error| panic!("grammar.js is wrong: {error}"));
    let (_, parser) = tree_sitter_generate::generate_parser_for_grammar(
        &grammar,
        Some((0, 1, 0)),
        tree_sitter_generate::OptLevel::default(),
        &mut Vec::new(),
    )
    .unwrap_or_else(|error| panic!("no parser can be generated: {error}"));
    fs::create_dir_all(out.join("tree_sitter")).expect("the folder can be made");
    fs::write(out.join("parser.c"), parser).expect("the parser can be written");
    fs::write(out.join("tree_sitter/parser.h"), tree_sitter_generate::PARSER_HEADER)
        .expect("the header can be written");
    cc::Build::new()
        .include(&out)
        .file(out.join("parser.c"))
        .file(here.join("src/scanner.c"))
        .warnings(false)
        .compile("tree-sitter-weir");
}
