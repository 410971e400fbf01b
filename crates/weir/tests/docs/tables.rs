//! The tables of the reference are complete.

use weir_syntax::ast::BinaryOperator;

use crate::support::repository;

fn reference() -> String {
    std::fs::read_to_string(repository().join("docs/reference.md")).expect("the reference is there")
}

/// Fails with all names that begin no row of a table.
fn have_rows(kind: &str, names: impl IntoIterator<Item = String>) {
    let reference = reference();
    let rows: Vec<&str> = reference.lines().filter_map(|line| line.strip_prefix("| `")).collect();
    let in_row =
        |name: &str| rows.iter().any(|row| row.strip_prefix(name).is_some_and(|rest| rest.starts_with(['`', '('])));
    let missing: Vec<String> = names.into_iter().filter(|name| !in_row(name)).collect();
    assert!(missing.is_empty(), "no row of the reference is about the {kind} {missing:?}");
}

#[test]
fn every_source_has_a_row() {
    let library = weir_library::library();
    let sources = library.modules.values().flat_map(|module| module.sources.values()).map(|(signature, _)| signature);
    let streams = sources.filter(|signature| signature.element.is_some());
    have_rows("sources", streams.map(|signature| format!("{}.{}", signature.module, signature.name)));
}

#[test]
fn every_limit_of_a_service_has_a_row() {
    let library = weir_library::library();
    let (signature, _) = &library.modules["http"].sources["http"];
    have_rows("arguments of `http`", signature.parameters.iter().map(|parameter| parameter.name.to_string()));
}

#[test]
fn every_engine_has_a_row() {
    have_rows("engines", weir_runtime::ENGINES.iter().map(|engine| engine.name.to_owned()));
}

#[test]
fn every_operator_is_there() {
    let (_, table) =
        reference().split_once("### Operators").map(|(a, b)| (a.to_owned(), b.to_owned())).expect("a table");
    for operator in BinaryOperator::ALL {
        let symbol = operator.symbol().replace('|', "\\|");
        assert!(table.contains(&symbol), "the table of operators does not have `{symbol}`");
    }
}

#[test]
fn the_keys_of_a_plan_are_those_of_its_table() {
    let generated = weir_ir::plan::plan_reference();
    assert!(reference().contains(&generated), "docs/reference.md must contain this text:\n\n{generated}");
}
