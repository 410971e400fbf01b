//! Texts that grow beside others which hold their characters.
#![allow(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

use std::sync::Arc;
use std::thread;

use test_support::random::Random;
use weir_host::Text;

#[test]
fn texts_of_all_lengths_are_their_characters() {
    for length in 0..if cfg!(miri) { 20 } else { 70 } {
        let wanted = "0123456789".repeat(7)[..length].to_owned();
        assert_eq!(Text::from(wanted.as_str()).as_str(), wanted);
        let mut grown = Text::default();
        wanted.chars().for_each(|character| grown.push(character.encode_utf8(&mut [0; 4])));
        assert_eq!(grown.as_str(), wanted);
        let mut reserved = Text::with_capacity(length);
        reserved.push(&wanted);
        assert_eq!(reserved, grown);
        let parts = [&wanted[..length / 3], "", &wanted[length / 3..]];
        let concatenated = Text::concatenated(parts.into_iter());
        assert_eq!(concatenated, grown);
        assert!(
            length <= 15 || concatenated.bytes_to_push(1) == length + 1,
            "its buffer has no more room than it needs"
        );
    }
    assert_eq!(Text::concatenated(std::iter::empty()), Text::default());
    assert_eq!(size_of::<Text>(), 16);
}

#[test]
fn texts_have_the_order_of_their_bytes() {
    let mut random = Random::new(3);
    let mut text = || -> String {
        let length = random.below(18);
        (0..length).map(|_| ["a", "b", "\0", "ä", "\u{10ffff}"][random.below(5) as usize]).collect()
    };
    for _ in 0..if cfg!(miri) { 200 } else { 20_000 } {
        let (one, other) = (text(), text());
        for (one, other) in
            [(&one, &other), (&one, &one), (&one, &format!("{one}\0")), (&one, &format!("{one}{other}"))]
        {
            let texts = [Text::from(one.as_str()), Text::from(other.as_str())];
            assert_eq!(texts[0].cmp(&texts[1]), one.cmp(other), "{one:?} {other:?}");
            assert_eq!(texts[1].cmp(&texts[0]), other.cmp(one), "{one:?} {other:?}");
        }
    }
}

#[test]
fn a_text_that_is_held_keeps_its_characters_when_copies_grow() {
    let held = Text::from("a text that somebody holds");
    let (mut one, mut other) = (held.clone(), held.clone());
    one.push(" and one that grows");
    other.push(", and another one");
    let later = one.clone();
    one.push("!");
    assert_eq!(held.as_str(), "a text that somebody holds");
    assert_eq!(one.as_str(), "a text that somebody holds and one that grows!");
    assert_eq!(other.as_str(), "a text that somebody holds, and another one");
    assert_eq!(later.as_str(), "a text that somebody holds and one that grows");
}

#[test]
fn growing_beside_earlier_states_moves_characters_only_when_the_capacity_doubles() {
    let mut text = Text::from("a text of some length");
    let mut states = vec![text.clone()];
    let mut moves = 0;
    let rounds = if cfg!(miri) { 100 } else { 1_000 };
    for _ in 0..rounds {
        let before = text.as_ptr();
        text.push("ä, ");
        moves += usize::from(text.as_ptr() != before);
        states.push(text.clone());
    }
    assert!(moves <= 9, "{moves} moves");
    for (count, state) in states.iter().enumerate() {
        assert_eq!(state.as_str(), format!("a text of some length{}", "ä, ".repeat(count)));
    }
}

#[test]
fn a_text_grows_in_place_after_the_ones_that_grew_from_it_are_gone() {
    let mut text = Text::with_capacity(100);
    text.push("a text of some length");
    let place = text.as_ptr();
    let mut longer = text.clone();
    longer.push(" and more");
    drop(longer);
    text.push(" and something else");
    assert_eq!((text.as_str(), text.as_ptr()), ("a text of some length and something else", place));
}

#[test]
fn random_texts_are_as_strings() {
    let rounds = if cfg!(miri) { 100 } else { 200_000 };
    let mut random = Random::new(1);
    let mut texts = vec![(Text::default(), String::new())];
    for _ in 0..rounds {
        let mut below = |limit: usize| random.below(limit as u64) as usize;
        let (at, other) = (below(texts.len()), below(texts.len()));
        let added = ["", "x", "ü", " some words", "a longer sequence of characters"][below(5)];
        match below(5) {
            0 if texts.len() < 20 => texts.push(texts[at].clone()),
            1 if texts.len() > 1 => drop(texts.swap_remove(at)),
            2 if texts[at].1.len() < 500 => {
                let (text, string) = texts[other].clone();
                texts[at].0.push(&text);
                texts[at].1.push_str(&string);
            }
            3 => texts[at] = (Text::from(added), added.to_owned()),
            _ => {
                texts[at].0.push(added);
                texts[at].1.push_str(added);
            }
        }
        assert!(texts.iter().all(|(text, string)| text.as_str() == string));
    }
}

#[test]
fn one_of_the_threads_that_extend_a_text_keeps_its_place() {
    let rounds = if cfg!(miri) { 5 } else { 300 };
    for _ in 0..rounds {
        let mut text = Text::with_capacity(1_000);
        text.push("a text of some length");
        let (place, text) = (text.as_ptr() as usize, Arc::new(text));
        let grown = ["0", "1", "2"].map(|name| {
            let text = Arc::clone(&text);
            thread::spawn(move || {
                let mut grown = Text::clone(&text);
                (0..20).for_each(|_| grown.push(name));
                assert_eq!(text.as_str(), "a text of some length");
                grown
            })
        });
        let grown = grown.map(|thread| thread.join().unwrap());
        for (name, text) in grown.iter().enumerate() {
            assert_eq!(text.as_str(), format!("a text of some length{}", name.to_string().repeat(20)));
        }
        assert_eq!(grown.iter().filter(|text| text.as_ptr() as usize == place).count(), 1);
    }
}
