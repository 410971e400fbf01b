//! Formats of interpolated values: `{price:,.2}`, `{name:<20}`, `{number:08}`.

use std::fmt;

/// The format of an interpolated value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TextFormat {
    /// Side to which a value that is shorter than the width is aligned.
    pub alignment: Option<Alignment>,
    /// True if zeros fill a number up to the width.
    pub zeros: bool,
    /// Least number of characters.
    pub width: Option<u16>,
    /// True if commas separate the thousands of a number.
    pub thousands: bool,
    /// Number of digits behind the decimal point.
    pub decimals: Option<u16>,
}

/// The side to which a text is aligned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Alignment {
    /// `<`: blanks follow.
    Left,
    /// `>`: blanks come first.
    Right,
}

impl TextFormat {
    /// Maximum width, and number of decimals.
    pub const MAX: u16 = 1_000;

    /// Parses `[< | >] [0] [width] [,] [. decimals]`; `None` for any other text, and for an empty one.
    #[must_use]
    pub fn parse(text: &str) -> Option<TextFormat> {
        let mut format = TextFormat::default();
        let mut rest = text.trim();
        if rest.is_empty() {
            return None;
        }
        for (sign, alignment) in [("<", Alignment::Left), (">", Alignment::Right)] {
            if let Some(behind) = rest.strip_prefix(sign) {
                (format.alignment, rest) = (Some(alignment), behind);
            }
        }
        if let Some(behind) = rest.strip_prefix('0') {
            (format.zeros, rest) = (true, behind);
        }
        (format.width, rest) = digits(rest)?;
        if let Some(behind) = rest.strip_prefix(',') {
            (format.thousands, rest) = (true, behind);
        }
        if let Some(behind) = rest.strip_prefix('.') {
            (format.decimals, rest) = digits(behind)?;
            format.decimals?;
        }
        let aligns = format.alignment.is_some() || format.zeros;
        let is_whole = rest.is_empty() && !(aligns && format.width.is_none());
        let is_clear = !(format.zeros && format.alignment.is_some());
        (is_whole && is_clear).then_some(format)
    }
}

/// Reads a number up to [`TextFormat::MAX`], if there is one, and returns the rest; `None` for a larger number.
fn digits(text: &str) -> Option<(Option<u16>, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    if end == 0 {
        return Some((None, text));
    }
    let number = text[..end].parse().ok().filter(|number| *number <= TextFormat::MAX)?;
    Some((Some(number), &text[end..]))
}

impl fmt::Display for TextFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.alignment {
            Some(Alignment::Left) => "<",
            Some(Alignment::Right) => ">",
            None => "",
        })?;
        f.write_str(if self.zeros { "0" } else { "" })?;
        self.width.map_or(Ok(()), |width| write!(f, "{width}"))?;
        f.write_str(if self.thousands { "," } else { "" })?;
        self.decimals.map_or(Ok(()), |decimals| write!(f, ".{decimals}"))
    }
}
