//! Finds the word that was probably meant.

/// The candidate nearest to `word`, if it is near enough to be a slip of the hand: at most a third of the letters wrong.
pub(crate) fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    let scored = candidates.into_iter().filter(|candidate| *candidate != word && !candidate.is_empty());
    let scored = scored.map(|candidate| (distance(word, candidate, allowed), candidate));
    scored.filter(|(distance, _)| *distance <= allowed).min().map(|(_, candidate)| candidate)
}

/// The longest word that is compared; longer ones are never suggested.
const WORD_CHARS_MAX: usize = 64;

/// How many letters have to be put in, taken out, changed, or swapped with their neighbour (Damerau 1964), ignoring case.
/// Words whose lengths differ by more than `allowed` are not looked at.
fn distance(a: &str, b: &str, allowed: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (letters(a), letters(b));
    if a.len().abs_diff(b.len()) > allowed || a.len().max(b.len()) > WORD_CHARS_MAX {
        return usize::MAX;
    }
    let (mut before, mut last) = (vec![0; b.len() + 1], (0..=b.len()).collect::<Vec<_>>());
    for i in 1..=a.len() {
        let mut row = vec![0; b.len() + 1];
        next_row(i, (&a, &b), (&before, &last), &mut row);
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

fn letters(word: &str) -> Vec<char> {
    word.chars().flat_map(char::to_lowercase).collect()
}

fn next_row(i: usize, (a, b): (&[char], &[char]), (before, last): (&[usize], &[usize]), row: &mut [usize]) {
    row[0] = i;
    for j in 1..=b.len() {
        let changed = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
        row[j] = changed.min(last[j] + 1).min(row[j - 1] + 1);
        if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
            row[j] = row[j].min(before[j - 2] + 1);
        }
    }
}
