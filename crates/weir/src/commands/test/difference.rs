//! The difference of two long values: the message of an expectation shows where they begin to differ.

/// Longest value that a message shows as a whole, in characters.
const VALUE_MAX: usize = 100;
/// Number of characters before and behind the first difference that are shown of a longer value.
const BEFORE: usize = 30;
const BEHIND: usize = 60;

/// Returns the message of a failure. If it compares two values and one is long, only the surroundings of their first
/// difference are shown.
pub(super) fn shortened(message: &str) -> String {
    let value_of = |name: &str| message.lines().find_map(|line| line.trim_start().strip_prefix(name));
    let (Some(left), Some(right)) = (value_of("left: "), value_of("right: ")) else { return message.to_owned() };
    if left.chars().count().max(right.chars().count()) <= VALUE_MAX {
        return message.to_owned();
    }
    let same = left.chars().zip(right.chars()).take_while(|(left, right)| left == right).count();
    let lines = message.lines().map(|line| match line.trim_start() {
        shown if shown.starts_with("left: ") => format!("   left: {}\n", around(left, same)),
        shown if shown.starts_with("right: ") => format!("  right: {}\n", around(right, same)),
        _ => format!("{line}\n"),
    });
    lines.collect::<String>() + &format!("  they differ from character {} on\n", same + 1)
}

/// Returns the part of a value around a character.
fn around(value: &str, at: usize) -> String {
    let (from, to) = (at.saturating_sub(BEFORE), at + BEHIND);
    let part: String = value.chars().skip(from).take(to - from).collect();
    let before = if from > 0 { "\u{2026}" } else { "" };
    let behind = if value.chars().nth(to).is_some() { "\u{2026}" } else { "" };
    format!("{before}{part}{behind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_shown_around_their_first_difference() {
        let long = |end: &str| format!("{}{end}{}", "a".repeat(500), "z".repeat(500));
        let message = format!("expected `x == y`\n   left: {}\n  right: {}", long("1"), long("2"));
        let part = |middle: &str| format!("\u{2026}{}{middle}{}\u{2026}", "a".repeat(30), "z".repeat(59));
        let wanted = format!(
            "expected `x == y`\n   left: {}\n  right: {}\n  they differ from character 501 on\n",
            part("1"),
            part("2")
        );
        assert_eq!(shortened(&message), wanted);
    }

    #[test]
    fn short_values_and_other_messages_stay() {
        for message in ["no comparison", "expected `x == 1`\n   left: 2\n  right: 1"] {
            assert_eq!(shortened(message), message);
        }
    }

    #[test]
    fn a_value_that_is_the_beginning_of_the_other_ends_at_the_difference() {
        let message = format!("expected `x`\n   left: {}\n  right: {}", "b".repeat(50), "b".repeat(200));
        let shown = shortened(&message);
        assert!(shown.contains(&format!("   left: \u{2026}{}\n", "b".repeat(30))), "{shown}");
        assert!(shown.ends_with("  they differ from character 51 on\n"), "{shown}");
    }
}
