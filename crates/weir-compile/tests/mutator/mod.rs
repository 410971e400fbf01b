//! Mutated programs: texts with a few pieces removed, duplicated, swapped or copied from others.

/// A portable random number generator (Marsaglia, "Xorshift RNGs", 2003).
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below.max(1) as u64) as usize
    }
}

/// Returns one of the texts with up to five mutations. Each text is split into [`pieces`].
pub(crate) fn mutated(corpus: &[Vec<&str>], numbers: &mut Numbers) -> String {
    let mut own = corpus[numbers.next(corpus.len())].clone();
    let other = &corpus[numbers.next(corpus.len())];
    for _ in 0..=numbers.next(4) {
        mutate(&mut own, other, numbers);
        if own.is_empty() {
            own.push("fn");
        }
    }
    own.concat()
}

fn mutate<'t>(own: &mut Vec<&'t str>, other: &[&'t str], numbers: &mut Numbers) {
    let at = numbers.next(own.len());
    match numbers.next(7) {
        0 => _ = own.remove(at),
        1 => own.insert(at, other[numbers.next(other.len())]),
        2 => own[at] = other[numbers.next(other.len())],
        3 => {
            let with = numbers.next(own.len());
            own.swap(at, with);
        }
        4 => {
            let from = numbers.next(other.len());
            let to = (from + numbers.next(20)).min(other.len());
            own.splice(at..at, other[from..to].iter().copied());
        }
        5 => own[at] = own[numbers.next(own.len())],
        _ => swap_alike(own, at, numbers),
    }
}

/// Replaces a piece by another of the same kind, so that the result is often still a program.
fn swap_alike(own: &mut [&str], at: usize, numbers: &mut Numbers) {
    let kind = own[at].chars().next().map(kind);
    let alike: Vec<&str> = own.iter().copied().filter(|piece| piece.chars().next().map(self::kind) == kind).collect();
    own[at] = alike[numbers.next(alike.len())];
}

/// Splits a text into words, numbers, spaces and symbols.
pub(crate) fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let letters: Vec<(usize, char)> = text.char_indices().collect();
    for pair in letters.windows(2) {
        if kind(pair[0].1) != kind(pair[1].1) || kind(pair[0].1) == 2 {
            pieces.push(&text[start..pair[1].0]);
            start = pair[1].0;
        }
    }
    pieces.push(&text[start..]);
    pieces
}

fn kind(letter: char) -> u8 {
    match letter {
        letter if letter.is_alphanumeric() || letter == '_' => 0,
        ' ' | '\n' => 1,
        _ => 2,
    }
}
