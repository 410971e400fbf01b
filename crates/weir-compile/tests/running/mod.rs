//! Compiles programs of the tests and runs their flows on the reference evaluator.

#![allow(dead_code, reason = "each test file uses its part")]

use weir::{Failure, Library, Value};
use weir_ir::evaluate::Evaluator;
use weir_ir::expr::Program;
use weir_ir::passes::ProgramStage;
use weir_syntax::{Severity, SourceFile, Sources, Style, render};

use test_support::fixture;

/// Compiles a text. Returns the program, the library, the rendered diagnostics, and whether one of them is an error.
pub(crate) fn compiled(text: &str) -> (Option<Program>, Library, String, bool) {
    compiled_with(text, fixture::library())
}

/// Returns the library of the fixture with the standard functions on lists, maps, options and results.
pub(crate) fn library_of_lists() -> Library {
    let (mut library, standard) = (fixture::library(), weir_library::library());
    for name in ["list", "map", "option", "result"] {
        library.modules.insert(name.into(), standard.modules[name].clone());
    }
    library
}

/// Compiles a text with a library.
pub(crate) fn compiled_with(text: &str, library: Library) -> (Option<Program>, Library, String, bool) {
    let mut sources = Sources::new();
    let file = SourceFile::new("case.weir", text);
    let source = sources.add(file.clone());
    let compiled = weir_compile::compile(source, &file, &library);
    // A small program about one construct need not use all that it declares.
    let found = compiled.diagnostics.iter().filter(|found| !found.code.is_unnecessary());
    let drawn: Vec<_> = found.map(|found| render(&sources, found, Style::Plain)).collect();
    let wrong = compiled.diagnostics.iter().any(|found| found.severity == Severity::Error);
    (compiled.expr, library, drawn.join("\n\n"), wrong)
}

/// Compiles a text that must have no diagnostics.
pub(crate) fn program(text: &str) -> (Program, Library) {
    let (program, library, said, _) = compiled(text);
    assert!(said.is_empty(), "{said}\n{text}");
    (program.unwrap(), library)
}

/// Returns the answer of the first flow: the text of a response, or the message of the failure.
pub(crate) fn answer(text: &str, inputs: Vec<Value>) -> Result<String, String> {
    run_with(text, inputs).map_err(|failure| failure.to_string())
}

/// Returns the result of `fn main`, which a route of a service calls, as text.
pub(crate) fn run(text: &str) -> Result<String, Failure> {
    run_with(text, Vec::new())
}

/// Returns the answer of the first flow of a program: the text of a response.
pub(crate) fn run_with(text: &str, inputs: Vec<Value>) -> Result<String, Failure> {
    let (program, library) = program(text);
    evaluated(&program, &library, inputs)
}

/// Returns the answer of the first flow of a program that uses the standard functions on lists, and must have no errors. The
/// passes must not change it.
pub(crate) fn run_on_lists(text: &str) -> Result<String, Failure> {
    let (program, library, said, wrong) = compiled_with(text, library_of_lists());
    assert!(!wrong, "{said}\n{text}");
    let program = program.unwrap();
    let answer = evaluated(&program, &library, Vec::new());
    let mut optimized = program.clone();
    _ = weir_ir::passes::optimize_with(&program, &library, &mut |_, stage| {
        if let ProgramStage::Expr(program) = stage {
            optimized = program.clone();
        }
    });
    assert_eq!(answer, evaluated(&optimized, &library, Vec::new()), "with passes\n{text}");
    answer
}

fn evaluated(program: &Program, library: &Library, inputs: Vec<Value>) -> Result<String, Failure> {
    let mut evaluator = Evaluator::new(program, library)?;
    let answer = evaluator.run(0, 0, inputs).map_err(|failure| *failure)?;
    let body = fixture::body_of(&answer).expect("the answer is a response");
    Ok(String::from_utf8(body.to_vec()).unwrap())
}

/// Returns the answer of a service whose only route shows `main()`.
pub(crate) fn shown(declarations: &str) -> String {
    run(&served(declarations)).unwrap()
}

/// Returns a service whose only route shows `main()`.
pub(crate) fn served(declarations: &str) -> String {
    format!(
        "use http\n\n{declarations}\nservice web on http(port: 1) {{ get \"/\" {{ http.text(\"{{main()}}\") }} }}\n"
    )
}
