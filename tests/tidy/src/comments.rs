//! Rule: no documentation comment opens with an interrogative.

/// The words that a documentation comment does not open with.
const OPENINGS: &[&str] = &[
    "what",
    "whatever",
    "whether",
    "who",
    "whoever",
    "whom",
    "whose",
    "which",
    "whichever",
    "how",
    "where",
    "wherever",
    "when",
    "whenever",
    "why",
    "of what",
    "of which",
    "that which",
    "those",
];

/// Returns the interrogative that the comment opens with.
#[must_use]
pub fn interrogative(comment: &str) -> Option<&'static str> {
    let start = comment.trim_start_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase();
    OPENINGS.iter().copied().find(|opening| {
        start.strip_prefix(opening).is_some_and(|rest| !rest.starts_with(|letter: char| letter.is_alphanumeric()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrogatives_are_found_at_the_beginning_only() {
        assert_eq!(interrogative("Whether threads wait."), Some("whether"));
        assert_eq!(interrogative("**What** it is"), Some("what"));
        assert_eq!(interrogative("That which follows"), Some("that which"));
        assert_eq!(interrogative("Returns what it is, when asked."), None);
        assert_eq!(interrogative("Whence it came"), None);
        assert_eq!(interrogative(""), None);
    }
}
