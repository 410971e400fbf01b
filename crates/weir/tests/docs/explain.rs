//! The examples on the pages of `weir explain`: the wrong one shows its code, and the corrected one compiles, with the
//! standard library.

use weir_compile::ProgramFiles;
use weir_syntax::{Code, Sources, codes};

/// Codes whose mistake no text can show: a file of 16 MiB, one that is not UTF-8, and invisible characters.
const NOT_IN_A_TEXT: [&str; 3] = ["E0109", "E0110", "E0124"];

/// Returns the Weir code blocks of a page.
fn examples(page: &str) -> Vec<&str> {
    let blocks = page.split("```weir\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap_or_default()).collect()
}

/// Returns the codes of the diagnostics of a program.
fn found(text: &str) -> Vec<Code> {
    let (mut sources, library) = (Sources::new(), weir_library::library());
    let program = ProgramFiles::in_text("example.weir", text, &library, &mut sources);
    let file = sources.file(program.source());
    let compiled = weir_compile::compile_program(program, file, &library);
    compiled.diagnostics.iter().map(|diagnostic| diagnostic.code).collect()
}

#[test]
fn the_wrong_example_of_each_page_shows_its_code_and_the_fixed_one_compiles() {
    let mut faults = Vec::new();
    for code in codes::ALL {
        let [wrong, fixed] = examples(code.page())[..] else { panic!("{code} has not two examples") };
        let shown = found(wrong);
        if !shown.contains(code) && !NOT_IN_A_TEXT.contains(&code.id()) {
            faults.push(format!("the wrong example of {code} shows {shown:?}"));
        }
        // A short example need not use all that it declares, unless that is its subject.
        let mut left = found(fixed);
        left.retain(|other| other == code || !other.is_unnecessary());
        if !left.is_empty() {
            faults.push(format!("the fixed example of {code} shows {left:?}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
