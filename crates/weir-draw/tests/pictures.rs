//! Drawings of known programs.

mod common;

use weir_draw::{DetailLevel, Drawing, dot, outline, svg};
use weir_ir::expr::Program;

fn draw(program: &Program, detail: DetailLevel, how: impl Fn(&Drawing<'_>) -> String) -> String {
    let library = common::library();
    let program = weir_ir::lower(program, &library);
    how(&Drawing { program: &program, library: Some(&library), plan: None, detail })
}

#[test]
fn the_image_server_as_an_outline() {
    insta::assert_snapshot!(draw(&common::image_server(), DetailLevel::Folded, outline));
}

#[test]
fn everything_of_the_image_server_as_an_outline() {
    insta::assert_snapshot!(draw(&common::image_server(), DetailLevel::Everything, outline));
}

#[test]
fn the_image_server_for_graphviz() {
    insta::assert_snapshot!(draw(&common::image_server(), DetailLevel::Folded, dot));
}

#[test]
fn bodies_and_steps_as_an_outline() {
    insta::assert_snapshot!(draw(&common::ledger(), DetailLevel::Folded, outline));
}

#[test]
fn bodies_and_steps_for_graphviz() {
    insta::assert_snapshot!(draw(&common::ledger(), DetailLevel::Folded, dot));
}

#[test]
fn the_same_program_gives_the_same_picture() {
    for program in [common::image_server(), common::ledger()] {
        for detail in [DetailLevel::Folded, DetailLevel::Everything] {
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

#[test]
fn the_svg_is_well_formed_and_shows_every_call() {
    for (program, calls) in [(common::image_server(), 8), (common::ledger(), 5)] {
        for detail in [DetailLevel::Folded, DetailLevel::Everything] {
            let picture = draw(&program, detail, |drawing| svg(drawing).expect("a small picture"));
            assert_eq!(unclosed(&picture), Vec::<String>::new());
            assert_eq!(picture.matches("class=\"card\"").count(), calls);
        }
    }
}

/// Returns the elements of an XML document that are not closed, or closed out of order; fails on invalid XML.
fn unclosed(xml: &str) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    for part in xml.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("every tag ends");
        let entities = text.split('&').skip(1);
        assert!(
            entities.into_iter().all(|rest| rest.split_once(';').is_some_and(|(name, _)| name.len() <= 4)),
            "{text}"
        );
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.split_whitespace().next().unwrap_or_default();
        match name.strip_prefix('/') {
            Some(closed) if open.last().is_some_and(|last| last == closed) => drop(open.pop()),
            Some(closed) => open.push(format!("/{closed}")),
            None if tag.ends_with('/') => {}
            None => open.push(name.to_owned()),
        }
    }
    open
}

#[test]
fn a_plan_names_its_sections_in_the_picture() {
    let (plan, problems) = weir_ir::plan::Plan::parse("[[section]]\nname = \"codec\"\nnodes = [\"image.*\"]\n");
    assert_eq!(problems, []);
    let picture = draw(&common::image_server(), DetailLevel::Folded, |drawing| {
        svg(&Drawing { plan: Some(&plan), ..*drawing }).expect("a small picture")
    });
    for name in ["rest", "codec"] {
        assert!(picture.contains(&format!(">{name}</text>")), "{name}");
    }
}
