//! What the attributes refuse, and what they say: each file in `refused/` beside the messages that rustc shows for it.

#[test]
fn mistakes_get_messages_that_say_what_to_do() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
