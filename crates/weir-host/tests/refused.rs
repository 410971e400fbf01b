//! Mistakes that the attributes refuse, and their messages: each file in `refused/` next to the errors that rustc shows
//! for it.

#[test]
fn mistakes_get_messages_that_say_what_to_do() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
