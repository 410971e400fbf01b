//! A `weir` command with functions of its own, for programs that `use words`.

/// Counts the occurrences of a word in a text.
#[weir::function(pure)]
pub fn count(text: &str, word: &str) -> i64 {
    text.split_whitespace().filter(|other| *other == word).fold(0, |count, _| count + 1)
}

weir::library!(
    /// Functions on words.
    pub words: count
);

fn main() -> weir::Exit {
    weir::cli().with(words).run()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_word_is_counted_as_a_whole() {
        assert_eq!(super::count("la lala la", "la"), 2);
    }
}
