//! The text of an interpolation.

use std::cell::RefCell;
use std::fmt::{self, Write};

use weir_host::memory::{ask, check};
use weir_host::{Failure, Text, Value};

/// The capacity in bytes that a thread's buffer keeps between texts, so that only the text itself is allocated.
const KEPT_BYTES_MAX: usize = 4096;

/// Maximum number of characters of a whole number: a sign and nineteen digits.
const DIGITS_MAX: usize = 20;

thread_local! {
    static TEXT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Concatenates the texts of the parts: [`Prim::Interpolate`](super::Prim::Interpolate) of operands that do not lie in one
/// slice.
///
/// # Errors
/// Fails if there is no room for the text.
pub fn interpolate<'a>(parts: impl Iterator<Item = &'a Value> + Clone) -> Result<Text, Box<Failure>> {
    let size = SizeAtMost::of(parts.clone());
    if let Some(SizeAtMost { bytes, are_texts: true }) = size {
        ask(bytes)?;
        return Ok(Text::concatenated(parts.map(|part| if let Value::Text(text) = part { text.as_str() } else { "" })));
    }
    // Not `with`, which is inlined only if the whole program is optimised at link time.
    let whole = TEXT.try_with(|text| {
        let text = &mut *text.borrow_mut();
        text.clear();
        let whole = appended(text, parts, size).map(|()| Text::from(text.as_str()));
        if text.capacity() > KEPT_BYTES_MAX {
            text.clear();
            text.shrink_to(KEPT_BYTES_MAX);
        }
        whole
    });
    whole.expect("no flow runs on a thread that has ended")
}

/// Adds the text of a part of an interpolation at the end of a text, without making it first.
///
/// # Errors
/// Fails if there is no room for the text.
pub fn append_part(text: &mut Text, part: &Value) -> Result<(), Box<Failure>> {
    match part {
        Value::Text(part) => {
            ask(text.bytes_to_push(part.len()))?;
            text.push(part);
        }
        Value::Int(part) => text.push(itoa::Buffer::new().format(*part)),
        other => text.push(&interpolate(std::iter::once(other))?),
    }
    Ok(())
}

/// Adds the texts of the parts to an empty text.
fn appended<'a>(
    text: &mut String,
    parts: impl Iterator<Item = &'a Value>,
    size: Option<SizeAtMost>,
) -> Result<(), Box<Failure>> {
    let Some(SizeAtMost { bytes: bytes @ 0..=KEPT_BYTES_MAX, .. }) = size else { return append_each(text, parts) };
    // Most texts are short and consist of texts and numbers. They are asked for once, for the copy.
    ask(bytes)?;
    parts.for_each(|part| match part {
        Value::Text(part) => text.push_str(part),
        Value::Int(part) => text.push_str(itoa::Buffer::new().format(*part)),
        _ => unreachable!("it consists of texts and whole numbers"),
    });
    Ok(())
}

/// The size of a text that consists of texts and whole numbers.
#[derive(Clone, Copy)]
struct SizeAtMost {
    /// A number of bytes that suffices: the size itself, if there are no numbers.
    bytes: usize,
    are_texts: bool,
}

impl SizeAtMost {
    /// Returns the size of the text of these parts; `None` if there is a value of another kind.
    fn of<'a>(mut parts: impl Iterator<Item = &'a Value>) -> Option<SizeAtMost> {
        parts.try_fold(SizeAtMost { bytes: 0, are_texts: true }, |SizeAtMost { bytes, are_texts }, part| match part {
            Value::Text(part) => Some(SizeAtMost { bytes: bytes.saturating_add(part.len()), are_texts }),
            Value::Int(_) => Some(SizeAtMost { bytes: bytes.saturating_add(DIGITS_MAX), are_texts: false }),
            _ => None,
        })
    }
}

#[inline(never)]
fn append_each<'a>(text: &mut String, mut parts: impl Iterator<Item = &'a Value>) -> Result<(), Box<Failure>> {
    parts.try_for_each(|part| append(text, part))?;
    // For the copy.
    ask(text.len())
}

fn append(text: &mut String, part: &Value) -> Result<(), Box<Failure>> {
    match part {
        Value::Text(part) => push(text, part)?,
        Value::Int(part) => text.push_str(itoa::Buffer::new().format(*part)),
        // People read it; its kind is for tools.
        Value::Failure(failure) => push(text, &failure.message)?,
        other => {
            let mut shown = ShownValue { text, refused: None };
            // The only reason why a `String` does not take everything.
            if write!(shown, "{other}").is_err() {
                return Err(shown.refused.unwrap_or_else(|| Box::new(Failure::function("the value cannot be shown"))));
            }
        }
    }
    Ok(())
}

fn push(text: &mut String, part: &str) -> Result<(), Box<Failure>> {
    ask(part.len())?;
    text.push_str(part);
    Ok(())
}

/// The text of a value while it is written. A small value can be long as a text, because its parts may be shared.
struct ShownValue<'a> {
    text: &'a mut String,
    refused: Option<Box<Failure>>,
}

impl Write for ShownValue<'_> {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.text.capacity() - self.text.len() < part.len()
            && let Err(failure) = ask(self.text.capacity()).and_then(|()| check())
        {
            self.refused = Some(failure);
            return Err(fmt::Error);
        }
        self.text.push_str(part);
        Ok(())
    }
}
