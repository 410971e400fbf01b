//! Laws of the editors' grammars: they know every word of the language.

use std::collections::BTreeSet;

use regex::Regex;
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

/// The words of clauses are coloured only behind the beginning of a declaration, because they are names elsewhere.
#[test]
fn the_clauses_of_a_table_on_one_line_are_highlighted() {
    let path = root().join("editors/vscode/syntaxes/weir.tmLanguage.json");
    let grammar = std::fs::read_to_string(path).unwrap_or_default();
    let rules = grammar.split_once("\"clauses\": {").expect("rules of clauses").1;
    let begin = pattern(rules, "begin");
    let words = pattern(rules.split_once("\"clause-words\": {").expect("words of clauses").1, "match");
    let pages = ["docs/tables.md", "docs/tables-reference.md"];
    let page: String = pages.iter().filter_map(|page| std::fs::read_to_string(root().join(page)).ok()).collect();
    let declares = |line: &&str| line.starts_with("table ") || line.starts_with("pub table ");
    let lines: Vec<&str> = page.lines().filter(declares).filter(|line| line.contains(" key ")).collect();
    assert!(lines.iter().any(|line| line.starts_with("pub ")), "the pages declare one");
    for line in lines {
        assert!(begin.is_match(line), "the editor does not see that a declaration begins: {line}");
        let found: BTreeSet<&str> = words.find_iter(line).map(|word| word.as_str()).collect();
        assert!(found.contains("key"), "{line}: {found:?}");
    }
}

/// Returns the pattern of a rule with this name, without what it looks for behind a word and before it.
fn pattern(rule: &str, name: &str) -> Regex {
    let rest = rule.split_once(&format!("\"{name}\": \"")).expect("a pattern").1;
    let text = rest.lines().next().and_then(|line| line.trim_end_matches(',').strip_suffix('"')).expect("a text");
    let text = text.replace("\\\\", "\\");
    let looks = Regex::new(r"\(\?(?:=|!|<!|<=)(?:[^()\[\]]|\[[^\]]*\])*\)").expect("a pattern");
    Regex::new(&looks.replace_all(&text, "")).expect("the rest needs no more")
}

/// Returns whether the grammar has the word, also behind an escape such as `\b`.
fn is_known(word: &str, known: &BTreeSet<&str>) -> bool {
    known.contains(word) || ["b", "s"].iter().any(|escape| known.contains(format!("{escape}{word}").as_str()))
}
