//! The text of an interpolation.

use std::cell::RefCell;
use std::fmt::Write;

use weir_host::{Text, Value};

/// The capacity in bytes that a thread's buffer keeps between texts, so that only the text itself is allocated.
const KEPT_BYTES_MAX: usize = 4096;

thread_local! {
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Concatenates the texts of the parts: [`Prim::Interpolate`](super::Prim::Interpolate) of operands that do not lie in one
/// slice.
#[must_use]
pub fn interpolate<'a>(parts: impl Iterator<Item = &'a Value>) -> Text {
    TEXT.with_borrow_mut(|text| {
        text.clear();
        parts.for_each(|part| append(text, part));
        let whole = Text::from(text.as_str());
        text.shrink_to(KEPT_BYTES_MAX);
        whole
    })
}

/// Adds the text of a part of an interpolation at the end of a text, without making it first.
pub fn append_part(text: &mut Text, part: &Value) {
    match part {
        Value::Text(part) => text.push(part),
        Value::Int(part) => text.push(itoa::Buffer::new().format(*part)),
        other => text.push(&interpolate(std::iter::once(other))),
    }
}

fn append(text: &mut String, part: &Value) {
    match part {
        Value::Text(part) => text.push_str(part),
        Value::Int(part) => text.push_str(itoa::Buffer::new().format(*part)),
        // People read it; its kind is for tools.
        Value::Failure(failure) => text.push_str(&failure.message),
        other => write!(text, "{other}").expect("a `String` takes everything"),
    }
}
