//! References of documents: the files, packages and identifiers that their text names.

use std::path::Path;

/// Endings of the files that documents name.
const ENDINGS: &[&str] = &[".rs", ".md", ".toml", ".weir", ".svg", ".js", ".c", ".scm"];

/// The code spans of a Markdown text, with their lines; blocks of code are left out.
#[must_use]
pub fn code_spans(markdown: &str) -> Vec<(usize, &str)> {
    let mut block = false;
    let mut spans = Vec::new();
    for (at, line) in markdown.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            block = !block;
        } else if !block {
            spans.extend(line.split('`').skip(1).step_by(2).map(|span| (at + 1, span)));
        }
    }
    spans
}

/// The targets of links to files in a Markdown text, without the section, with their lines.
#[must_use]
pub fn links(markdown: &str) -> Vec<(usize, &str)> {
    let targets = markdown.lines().enumerate().flat_map(|(at, line)| {
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        targets.map(move |target| (at + 1, target))
    });
    targets.filter(|(_, target)| !target.is_empty() && !target.contains("://")).collect()
}

/// The links to sections in a Markdown text, with their lines: the file, which is empty for the text itself, and the anchor.
#[must_use]
pub fn section_links(markdown: &str) -> Vec<(usize, &str, &str)> {
    let targets = markdown.lines().enumerate().flat_map(|(at, line)| {
        let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next()?.split_once('#'));
        targets.map(move |(file, anchor)| (at + 1, file, anchor))
    });
    targets.filter(|(_, file, _)| !file.contains("://")).collect()
}

/// The anchors of the headings of a Markdown text, as GitHub makes them: in lower case, with `-` for each blank, and
/// without punctuation.
#[must_use]
pub fn anchors(markdown: &str) -> Vec<String> {
    let headings = markdown.lines().filter(|line| line.starts_with('#'));
    let kept = |letter: &char| letter.is_alphanumeric() || "-_ ".contains(*letter);
    let anchor = |heading: &str| heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-");
    headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

/// Returns true if the span is the path of a file.
#[must_use]
pub fn is_path(span: &str) -> bool {
    span.contains('/')
        && ENDINGS.iter().any(|ending| span.ends_with(ending))
        && span.chars().all(|letter| letter.is_alphanumeric() || "/._-".contains(letter))
}

/// Returns true if a file exists at this path from one of the folders.
#[must_use]
pub fn exists(path: &str, folders: &[&Path]) -> bool {
    folders.iter().any(|folder| folder.join(path).exists())
}

/// The words of the text that have the form of a package of this workspace: `weir-…`, or the argument of `-p`.
pub fn packages(text: &str) -> impl Iterator<Item = &str> {
    let of_weir = words(text).filter(|word| word.starts_with("weir-") && *word != "weir-");
    let arguments = text.split(" -p ").skip(1).filter_map(|rest| words(rest).next());
    of_weir.chain(arguments)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '-' && letter != '_');
    words.filter(|word| !word.is_empty())
}

/// Returns true if the span is an identifier or a path of identifiers, as in `module::Type`.
#[must_use]
pub fn is_identifier(span: &str) -> bool {
    let start = span.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    start && span.replace("::", "_").chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "See `a::B` and\n```sh\n`no` run -p weir-x\n```\n`c/d.rs`, [e](f.md#g) and [h](https://i.j).";

    #[test]
    fn spans_and_links_are_found_outside_of_code() {
        assert_eq!(code_spans(TEXT), [(1, "a::B"), (5, "c/d.rs")]);
        assert_eq!(links(TEXT), [(5, "f.md")]);
    }

    #[test]
    fn identifiers_and_paths_are_told_apart() {
        assert!(is_identifier("a::B") && is_identifier("f_1") && !is_identifier("c/d.rs") && !is_identifier("8 kb"));
        assert!(is_path("c/d.rs") && !is_path("d.rs") && !is_path("application/json") && !is_path("c/*.rs"));
    }

    #[test]
    fn packages_are_found_in_text_and_in_commands() {
        let text = "`weir-events` and cargo test -p tidy; weir-UID and weir are others";
        assert_eq!(packages(text).collect::<Vec<_>>(), ["weir-events", "tidy"]);
    }
}
