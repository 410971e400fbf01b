//! Words in diagnostics: the candidate closest to a misspelt word, and lists of words.

/// Returns the candidate closest to `word` if at most a third of the letters differ.
pub(crate) fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let letters = letters(word);
    let allowed = (letters.len() / 3).clamp(1, 3);
    let scored = candidates.into_iter().filter(|candidate| *candidate != word && !candidate.is_empty());
    let scored = scored.map(|candidate| (distance(&letters, candidate, allowed), candidate));
    scored.filter(|(distance, _)| *distance <= allowed).min().map(|(_, candidate)| candidate)
}

/// The longest word that is compared; longer ones are never suggested.
const WORD_CHARS_MAX: usize = 64;

/// The length of a row: one letter becomes up to three in lower case. A byte can hold every distance.
const ROW_MAX: usize = 3 * WORD_CHARS_MAX + 1;

/// Returns the number of insertions, deletions, substitutions and swaps of neighbours (Damerau 1964) between two words,
/// ignoring case. Skips words whose lengths differ by more than `allowed`.
fn distance(a: &[char], b: &str, allowed: usize) -> usize {
    let b_len = b.chars().flat_map(char::to_lowercase).count();
    if a.len().abs_diff(b_len) > allowed || a.len().max(b_len) > WORD_CHARS_MAX {
        return usize::MAX;
    }
    let b = letters(b);
    // No allocation except for the candidate's letters: every name of the library is a candidate.
    let mut rows = [[0; ROW_MAX]; 3];
    rows[0] = std::array::from_fn(|at| at as u8);
    for i in 1..=a.len() {
        let [last, before, row] = &mut rows;
        next_row(i, (a, &b), (before, last), row);
        rows.rotate_right(1);
    }
    usize::from(rows[0][b.len()])
}

fn letters(word: &str) -> Vec<char> {
    word.chars().flat_map(char::to_lowercase).collect()
}

fn next_row(i: usize, (a, b): (&[char], &[char]), (before, last): (&[u8], &[u8]), row: &mut [u8]) {
    row[0] = i as u8;
    for j in 1..=b.len() {
        let changed = last[j - 1] + u8::from(a[i - 1] != b[j - 1]);
        row[j] = changed.min(last[j] + 1).min(row[j - 1] + 1);
        if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
            row[j] = row[j].min(before[j - 2] + 1);
        }
    }
}

/// Formats a list of words: `` `a`, `b` and `c` ``.
pub(crate) fn listed(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_a_slip_of_the_hand_away() {
        for (word, near) in [("thubmnails", "thumbnails"), ("lenght", "length"), ("GET", "get"), ("Strase", "strasse")]
        {
            assert_eq!(nearest(word, ["put", "get", "length", "thumbnails", "strasse"]), Some(near));
        }
        assert_eq!(nearest("frob", ["put", "get", "length"]), None);
    }

    #[test]
    fn letters_that_grow_in_lower_case_are_counted_as_they_are() {
        let long = "İ".repeat(WORD_CHARS_MAX);
        assert_eq!(nearest(&long, [long.to_lowercase().as_str(), "x"]), None, "too long to be compared");
        assert_eq!(nearest("İİİ", ["İİ"]), Some("İİ"));
    }
}
