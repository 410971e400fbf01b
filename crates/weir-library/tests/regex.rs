//! Regular expressions.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use weir::Text;
use weir_library::regex::CompiledPattern;

fn pattern(text: &str) -> CompiledPattern {
    CompiledPattern::compile(text).unwrap()
}

fn texts(list: &[Text]) -> Vec<&str> {
    list.iter().map(Text::as_str).collect()
}

#[test]
fn a_text_is_searched_for_what_matches() {
    assert!(pattern("^[a-z]+@[a-z.]+$").matches("ada@example.org"));
    assert!(!pattern("^[a-z]+$").matches("ada@example.org"));
    assert_eq!(pattern("[0-9]+").find("a 12 b 345").as_deref(), Some("12"));
    assert_eq!(texts(&pattern("[0-9]+").find_all("a 12 b 345").0.unwrap()), ["12", "345"]);
    assert_eq!(texts(&pattern("").find_all("äb").0.unwrap()), ["", "", ""]);
    assert_eq!(texts(&pattern(r"\s*,\s*").split("a , b,c").0.unwrap()), ["a", "b", "c"]);
    assert!(pattern(r"^\p{Lu}").matches("Ärger"));
}

#[test]
fn groups_give_the_parts_of_a_match() {
    let date = pattern("(?<year>[0-9]{4})-(?<month>[0-9]{2})(-([0-9]{2}))?");
    let groups = date.groups("on 2026-11.").unwrap();
    assert_eq!(groups, [Some("2026".into()), Some("11".into()), None, None]);
    let named = date.named("on 2026-11-22").unwrap();
    assert_eq!(
        named.iter().map(|(name, part)| format!("{name}={part}")).collect::<Vec<_>>(),
        ["year=2026", "month=11"]
    );
    assert_eq!((date.groups("never"), date.named("never")), (None, None));
}

#[test]
fn matches_are_replaced() {
    let swap = pattern("(?<a>[a-z]+) ([a-z]+)");
    assert_eq!(swap.replace("one two, three four", "$2 ${a}$$").0.unwrap(), "two one$, four three$");
    assert_eq!(pattern("x").replace("none", "y").0.unwrap(), "none");
    let longer = pattern(".").replace(&"x".repeat(1 << 20), &"y".repeat(100)).0;
    assert!(longer.unwrap_err().message.contains("longer than 67108864 bytes"));
}

#[test]
fn a_wrong_or_large_pattern_is_refused() {
    let refused = |text: &str| CompiledPattern::compile(text).unwrap_err().message.to_string();
    assert!(refused("(a").contains("unclosed group"), "{}", refused("(a"));
    assert!(refused(r"(a)\1").contains("backreferences are not supported"), "{}", refused(r"(a)\1"));
    assert!(refused(r"\w{1000}{1000}").contains("exceeds size limit"), "{}", refused(r"\w{1000}{1000}"));
}

/// A backtracking engine would take longer than the age of the universe.
#[test]
fn time_is_linear_in_the_text() {
    assert!(!pattern("^(a+)+$").matches(&("a".repeat(100_000) + "b")));
}
