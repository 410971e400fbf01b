//! What pictures of known programs look like.

mod common;

use weir_draw::{Detail, Drawing, dot, outline, svg};
use weir_ir::expr::Program;

fn draw(program: &Program, detail: Detail, how: impl Fn(&Drawing<'_>) -> String) -> String {
    let library = common::library();
    let program = weir_ir::lower(program, &library);
    how(&Drawing { program: &program, library: Some(&library), detail })
}

#[test]
fn the_image_server_as_an_outline() {
    insta::assert_snapshot!(draw(&common::image_server(), Detail::Folded, outline));
}

#[test]
fn everything_of_the_image_server_as_an_outline() {
    insta::assert_snapshot!(draw(&common::image_server(), Detail::Everything, outline));
}

#[test]
fn the_image_server_for_graphviz() {
    insta::assert_snapshot!(draw(&common::image_server(), Detail::Folded, dot));
}

#[test]
fn bodies_and_steps_as_an_outline() {
    insta::assert_snapshot!(draw(&common::ledger(), Detail::Folded, outline));
}

#[test]
fn bodies_and_steps_for_graphviz() {
    insta::assert_snapshot!(draw(&common::ledger(), Detail::Folded, dot));
}

#[test]
fn the_same_program_gives_the_same_picture() {
    for program in [common::image_server(), common::ledger()] {
        for detail in [Detail::Folded, Detail::Everything] {
            let picture = || draw(&program, detail, |drawing| svg(drawing).expect("a small picture"));
            let first = picture();
            if let Ok(folder) = std::env::var("WEIR_PICTURES") {
                let name = format!("{folder}/{}-{detail:?}.svg", program.entries[0].name);
                std::fs::write(name, &first).expect("the folder of pictures can be written");
            }
            assert_eq!(first, picture());
        }
    }
}
