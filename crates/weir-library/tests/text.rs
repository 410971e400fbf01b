//! Functions on texts.

use weir_library::text::*;
use weir_library::texts::Texts;

#[test]
fn lengths_and_positions_count_characters() {
    assert_eq!([length(""), length("abc"), length("höß…"), length("👋🏽")], [0, 3, 4, 2]);
    assert_eq!([find("höher", "h"), find("höher", "er"), find("höher", "x")], [Some(0), Some(3), None]);
    assert!(is_empty("") && !is_empty(" "));
}

#[test]
fn slices_end_where_the_text_ends() {
    let slices = [(0, 2), (1, 3), (2, 99), (-5, 1), (3, 1), (9, 12), (i64::MIN, i64::MAX)];
    let found = slices.map(|(from, to)| slice("höß…", from, to));
    assert_eq!(found, ["hö", "öß", "ß…", "h", "", "", "höß…"]);
}

fn pieces(text: &str, separator: &str) -> Vec<String> {
    split(text, separator).iter().map(ToString::to_string).collect()
}

#[test]
fn words_of_ascii_and_of_other_texts_are_the_same() {
    let white = (0_u8..128).map(char::from).filter(|character| character.is_whitespace());
    for separator in white.chain(['\u{85}', '\u{a0}', '\u{3000}']) {
        let text = format!("{separator}a{separator}{separator}bc{separator}");
        assert_eq!(words(&text).iter().collect::<Vec<_>>(), ["a", "bc"], "{separator:?}");
    }
    assert_eq!(words("a\u{1f}b").len(), 1);
}

#[test]
fn parts_are_split_and_joined() {
    assert_eq!(pieces("a,b,,c", ","), ["a", "b", "", "c"]);
    assert_eq!(pieces("", ","), [""]);
    assert_eq!(pieces("äb", ""), ["ä", "b"]);
    assert!(lines("a\r\nb\n\nc").iter().eq(["a", "b", "", "c"]));
    assert_eq!(join(&Texts::from_iter(["a", "b", ""]), ", ").as_deref(), Ok("a, b, "));
    assert_eq!(join(&Texts::default(), ", ").as_deref(), Ok(""));
}

#[test]
fn cases_and_white_space_are_those_of_unicode() {
    assert_eq!(
        (upper("straße"), lower("ΌΣΟΣ"), trim("\u{2003} a b\n")),
        ("STRASSE".into(), "όσος".into(), "a b".into())
    );
}

#[test]
fn parts_are_searched() {
    assert!(contains("weir", "ei") && starts_with("weir", "we") && ends_with("weir", "ir") && contains("weir", ""));
    assert!(!contains("weir", "x") && !starts_with("weir", "ir") && !ends_with("weir", "we"));
    assert_eq!(replace("aXbX", "X", "--").as_deref(), Ok("a--b--"));
    assert_eq!(replace("ab", "", "-").as_deref(), Ok("-a-b-"));
}

#[test]
fn texts_do_not_grow_beyond_their_limit() {
    assert_eq!(repeat("ab", 3).as_deref(), Ok("ababab"));
    assert_eq!([repeat("ab", 0), repeat("ab", -1), repeat("", i64::MAX)], [const { Ok(String::new()) }; 3]);
    assert_eq!(repeat("x", TEXT_BYTES_MAX as i64).map(|text| text.len()), Ok(TEXT_BYTES_MAX));
    assert_eq!([repeat("x", TEXT_BYTES_MAX as i64 + 1), repeat("ab", i64::MAX)], [Err(TooLong), Err(TooLong)]);
    let long = "x".repeat(10_000);
    assert_eq!(replace(&long, "x", &long), Err(TooLong));
    assert_eq!(join(&std::iter::repeat_n(long.as_str(), 10_000).collect(), ""), Err(TooLong));
}

#[test]
fn numbers_are_parsed_completely_or_not_at_all() {
    assert_eq!(
        ["0", "-12", "+7", "9223372036854775807"].map(|text| parse_int(text, 10).ok()),
        [0, -12, 7, i64::MAX].map(Some)
    );
    for text in ["", " 1", "1.0", "0x10", "1_000", "9223372036854775808", "٣"] {
        assert!(parse_int(text, 10).is_err(), "{text:?}");
    }
    assert_eq!(
        [("ff", 16), ("-Zz", 36), ("101", 2)].map(|(text, base)| parse_int(text, base).ok()),
        [255, -1295, 5].map(Some)
    );
    for (text, base) in [("2", 2), ("1", 1), ("1", 37), ("1", -1), ("1", i64::MAX), ("", 16), ("0x1", 16)] {
        assert!(parse_int(text, base).is_err(), "{text:?} in base {base}");
    }
    assert_eq!(["1", "-0.5", "1e3"].map(|text| parse_float(text).ok()), [1.0, -0.5, 1000.0].map(Some));
    for text in ["", "1,5", "inf", "NaN", "1e999", " 1"] {
        assert!(parse_float(text).is_err(), "{text:?}");
    }
    assert_eq!(parse_int("twelve", 10).unwrap_err().to_string(), "\"twelve\" is not a whole number of 64 bits");
}

#[test]
fn texts_become_bytes_and_bytes_texts() {
    assert_eq!(from_bytes(&to_bytes("höß…")).as_deref(), Ok("höß…"));
    let message = from_bytes(b"a\xff").unwrap_err().to_string();
    assert_eq!(message, "invalid utf-8 sequence of 1 bytes from index 1");
}

#[test]
fn texts_are_padded_to_a_number_of_characters() {
    let padded =
        |text, length, fill| [pad_start(text, length, fill).0.unwrap(), pad_end(text, length, fill).0.unwrap()];
    assert_eq!(padded("é!", 4, "ü"), ["üüé!", "é!üü"]);
    assert_eq!(padded("é!", 2, " "), ["é!", "é!"]);
    assert_eq!(padded("", i64::MIN, " "), ["", ""]);
    let refused = |length, fill| pad_end("a", length, fill).0.unwrap_err().message.to_string();
    assert_eq!(refused(4, "ab"), "`fill` must be one character, not \"ab\"");
    assert_eq!(refused(4, ""), "`fill` must be one character, not \"\"");
    assert_eq!(refused(i64::MAX, "é"), TooLong.to_string());
}

#[test]
fn ends_are_removed() {
    assert_eq!((trim_start(" \u{3000}a "), trim_end(" a\n")), ("a ".to_owned(), " a".to_owned()));
    assert_eq!((strip_prefix("sha256=ab", "sha256="), strip_prefix("ab", "b")), (Some("ab".to_owned()), None));
    assert_eq!((strip_suffix("a.txt", ".txt"), strip_suffix("a.txt", "a")), (Some("a".to_owned()), None));
}

#[test]
fn characters_are_turned_and_counted() {
    assert_eq!([capitalize("ärger mit"), capitalize("ß"), capitalize("")], ["Ärger mit", "SS", ""]);
    assert_eq!([reverse("aß…"), reverse("")], ["…ßa", ""]);
    assert_eq!([count("aaaa", "aa"), count("ab", "x"), count("äb", ""), count("", "")], [2, 0, 3, 1]);
}

#[test]
fn characters_and_parts_are_found() {
    assert_eq!([at("aé", 1), at("aé", 2), at("a", -1)], [Some("é".to_owned()), None, None]);
    let parts = |text, separator| split_once(text, separator).map(|(one, other)| format!("{one}|{other}"));
    assert_eq!([parts("a=b=c", "="), parts("a", "=")], [Some("a|b=c".to_owned()), None]);
    let visible: Vec<String> = graphemes("e\u{301}🇩🇪👍🏽a").iter().map(|part| part.to_string()).collect();
    assert_eq!(visible, ["e\u{301}", "🇩🇪", "👍🏽", "a"]);
}
