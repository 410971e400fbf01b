//! Laws of the editors' grammars: they know every word of the language.

use std::collections::BTreeSet;

use tidy::root;

/// Returns the words of the grammar in the reference, which stand there in quotes.
fn words() -> BTreeSet<String> {
    let reference = std::fs::read_to_string(root().join("docs/reference.md")).unwrap_or_default();
    let grammar = reference.split_once("```ebnf").and_then(|(_, rest)| rest.split_once("```")).map_or("", |it| it.0);
    let quoted = grammar.split('"').skip(1).step_by(2);
    quoted.filter(|text| text.chars().all(|letter| letter == '_' || letter.is_lowercase())).map(str::to_owned).collect()
}

#[test]
fn every_word_of_the_grammar_is_highlighted() {
    let words = words();
    assert!(words.len() > 60, "the grammar has its words in quotes");
    // The first shows truth values, and `_` is no word.
    let by_another_rule = ["_", "true", "false"];
    for path in ["editors/tree-sitter-weir/queries/highlights.scm", "editors/vscode/syntaxes/weir.tmLanguage.json"] {
        let text = std::fs::read_to_string(root().join(path)).unwrap_or_default();
        let known: BTreeSet<&str> = text.split(|letter: char| letter != '_' && !letter.is_lowercase()).collect();
        let missing = words.iter().filter(|word| !by_another_rule.contains(&word.as_str()));
        let missing: Vec<_> = missing.filter(|word| !is_known(word, &known)).collect();
        assert!(missing.is_empty(), "{path} does not highlight {missing:?}");
    }
}

/// Returns whether the grammar has the word, also behind an escape such as `\b`.
fn is_known(word: &str, known: &BTreeSet<&str>) -> bool {
    known.contains(word) || ["b", "s"].iter().any(|escape| known.contains(format!("{escape}{word}").as_str()))
}
