//! The table of the functions of other languages: each expression in it compiles.

use std::fmt::Write;

use crate::support::{Scratch, repository, say};

/// The expressions of the second column, each with the number of its line.
fn expressions() -> Vec<(usize, String)> {
    let table = std::fs::read_to_string(repository().join("docs/functions.md")).expect("the table is there");
    let rows = table.lines().enumerate().filter(|(_, line)| line.starts_with("| "));
    let columns = rows.map(|(at, line)| (at + 1, line.replace("\\|", "\u{1}")));
    let cells = columns.filter_map(|(at, line)| Some((at, line.split('|').nth(2)?.trim().replace('\u{1}', "|"))));
    let written = cells.filter(|(_, cell)| cell != "Weir" && cell != "–");
    written
        .map(|(at, cell)| {
            let code = cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`'));
            (at, code.unwrap_or_else(|| panic!("docs/functions.md:{at}: `{cell}` is not one expression")).to_owned())
        })
        .collect()
}

/// Returns a program with a test for each expression, whose name is its line.
fn program(expressions: &[(usize, String)]) -> String {
    let mut program = String::from(
        "use base64, bytes, client, files, float, hex, html, json, list, log, map, path, random, regex, text, time, url\n\
         fn keep(_value: a) { }\n",
    );
    for (at, expression) in expressions {
        write!(
            program,
            "fn line{at}(n: Int, m: Int, x: Float, y: Float, s: Text, t: Text, xs: List(Int), ys: List(Int), \
             words: List(Text), ages: Map(Text, Int), others: Map(Text, Int), o: Option(Int), r: Result(Int), b: Bool, \
             data: Bytes, at: Time, later: Time) -> Result(()) {{\n  keep({expression})\n  Ok(())\n}}\n"
        )
        .expect("a text takes all");
    }
    program
}

/// Returns what the compiler reports about the program.
fn errors(text: &str) -> String {
    let said = say(&["check", Scratch::new("functions.weir", text.as_bytes()).path()]);
    said.messages + &said.output
}

#[test]
fn every_expression_of_the_table_compiles() {
    let expressions = expressions();
    assert!(expressions.len() > 100, "the table has {} expressions", expressions.len());
    let reported = errors(&program(&expressions));
    assert!(!reported.contains("error"), "{reported}");
}

#[test]
fn a_function_that_does_not_exist_is_found() {
    assert!(errors(&program(&[(1, "xs.fly()".to_owned())])).contains("E0211"));
}

/// The functions of the standard libraries of Gleam and Elixir, by module.
const FUNCTIONS: [(&str, &str); 13] = [
    (
        "int",
        "absolute_value add base_parse bitwise_and bitwise_exclusive_or bitwise_not bitwise_or \
         bitwise_shift_left bitwise_shift_right clamp compare divide floor_divide is_even is_odd max min \
         modulo multiply negate parse power product random range remainder square_root subtract sum to_base16 \
         to_base2 to_base36 to_base8 to_base_string to_float to_string",
    ),
    (
        "float",
        "absolute_value ceiling clamp exponential floor logarithm loosely_compare loosely_equals max min \
         modulo negate parse power product random round square_root sum to_precision to_string truncate",
    ),
    (
        "string",
        "append byte_size capitalise compare concat contains crop drop_end drop_start ends_with first \
         from_utf_codepoints inspect is_empty join last length lowercase pad_end pad_start pop_grapheme \
         repeat replace reverse slice split split_once starts_with to_graphemes to_option to_utf_codepoints \
         trim trim_end trim_start uppercase utf_codepoint",
    ),
    (
        "list",
        "all any append chunk combination_pairs combinations contains count drop drop_while each filter \
         filter_map find find_map first flat_map flatten fold fold_right fold_until group index_fold \
         index_map interleave intersperse is_empty key_filter key_find key_pop key_set last length map map2 \
         map_fold max partition permutations pop pop_map prepend range reduce repeat rest reverse sample scan \
         shuffle sized_chunk sort split split_while strict_zip take take_while transpose try_each try_fold \
         try_map unique unzip window window_by_2 wrap zip",
    ),
    (
        "dict",
        "combine delete each filter fold from_list get has_key insert is_empty keys map_values merge new size \
         take to_list upsert values",
    ),
    ("option", "all flatten from_result is_none is_some lazy_or lazy_unwrap map or then to_result unwrap values"),
    (
        "result",
        "all flatten is_error is_ok map map_error or partition replace_error try try_recover unwrap \
         unwrap_both unwrap_error values",
    ),
    (
        "Enum",
        "all any at chunk_by chunk_every chunk_while concat count count_until dedup dedup_by drop drop_every \
         drop_while each empty? fetch filter find find_index find_value flat_map flat_map_reduce frequencies \
         frequencies_by group_by intersperse into join map map_every map_intersperse map_join map_reduce max \
         max_by member? min min_by min_max product product_by random reduce reduce_while reject reverse \
         reverse_slice scan shuffle slice slide sort sort_by split split_while split_with sum sum_by take \
         take_every take_random take_while uniq uniq_by unzip with_index zip zip_reduce zip_with",
    ),
    (
        "String",
        "at bag_distance byte_slice capitalise contains downcase duplicate ends_with equivalent? first \
         graphemes jaro_distance last length myers_difference next_codepoint next_grapheme normalize \
         pad_leading pad_trailing printable? replace replace_leading replace_prefix replace_suffix \
         replace_trailing reverse slice split split_at splitter starts_with to_atom to_charlist to_integer \
         trim trim_leading trim_trailing upcase valid?",
    ),
    (
        "Map",
        "delete drop fetch filter from_keys from_struct get get_and_update get_lazy has_key? keys merge new \
         pop put put_new put_new_lazy reject replace replace_lazy split take update values",
    ),
    (
        "List",
        "delete delete_at first flatten foldl foldr improper? insert_at keydelete keyfind keymember? \
         keyreplace keysort keystore keytake last pop_at replace_at update_at wrap zip",
    ),
    ("Integer", "ceil_div digits extended_gcd floor_div gcd is_even is_odd mod parse pow to_string undigits"),
    ("Float", "ceil floor parse pow ratio round to_string"),
];

#[test]
fn the_table_has_every_function_of_gleam_and_elixir() {
    let table =
        std::fs::read_to_string(repository().join("docs/functions.md")).expect("the table is there").to_lowercase();
    let is_part = |character: char| character.is_ascii_alphanumeric() || "_?".contains(character);
    let words: std::collections::BTreeSet<&str> = table.split(|character| !is_part(character)).collect();
    let all = FUNCTIONS.iter().flat_map(|(module, names)| names.split(' ').map(move |name| (module, name)));
    let missing: Vec<_> = all.filter(|(_, name)| !words.contains(name)).collect();
    assert!(missing.is_empty(), "docs/functions.md lacks {missing:?}");
}
