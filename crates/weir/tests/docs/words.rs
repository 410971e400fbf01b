//! The module `words` of the guide to host functions, which shows the code below.

/// Returns how often a word occurs in a text.
#[weir::function(pure)]
pub fn count(text: &str, word: &str) -> i64 {
    text.split_whitespace().filter(|other| *other == word).count() as i64
}

weir::library! {
    /// Words in texts.
    pub words: count
}
