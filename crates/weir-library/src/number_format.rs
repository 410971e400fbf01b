//! Formats of numbers: commas between thousands, and zeros in front.

/// Maximum number of digits behind the point, and of characters that zeros fill.
const FORMAT_MAX: usize = 1_000;

/// Returns a number of digits or characters within the limit.
pub(crate) fn bounded(count: i64) -> usize {
    usize::try_from(count).unwrap_or(0).min(FORMAT_MAX)
}

/// Returns the number with commas between thousands, if wanted, and with zeros in front up to a number of characters.
pub(crate) fn formatted(number: &str, thousands: bool, zeros_to: i64) -> String {
    let (sign, rest) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (whole, fraction) = rest.split_at(digits);
    // Not-a-number and infinities have no digits, and an exponent no thousands.
    if whole.is_empty() {
        return number.to_owned();
    }
    let separate = thousands && !fraction.contains('e');
    let whole = if separate { with_commas(whole) } else { whole.to_owned() };
    let zeros = bounded(zeros_to).saturating_sub(sign.len() + whole.len() + fraction.len());
    format!("{sign}{}{whole}{fraction}", "0".repeat(zeros))
}

fn with_commas(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_commas_and_zeros() {
        for (number, thousands, zeros_to, wanted) in [
            ("0", true, 0, "0"),
            ("-1234567", true, 0, "-1,234,567"),
            ("123456.789", true, 0, "123,456.789"),
            ("-7", false, 4, "-007"),
            ("-1234.5", true, 9, "-01,234.5"),
            ("NaN", true, 9, "NaN"),
            ("7", false, -3, "7"),
            ("1e300", true, 0, "1e300"),
        ] {
            assert_eq!(formatted(number, thousands, zeros_to), wanted);
        }
        assert_eq!(formatted("7", false, i64::MAX).len(), FORMAT_MAX);
    }
}
