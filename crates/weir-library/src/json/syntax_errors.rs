//! The messages of malformed JSON, in plain words.

/// Returns what a message of the parser says in plain words, for behind "not JSON: ".
pub(super) fn in_plain_words(said: &str) -> &str {
    match said {
        "EOF while parsing a list" => "expected `,` or `]`, found the end",
        "EOF while parsing an object" => "expected `,` or `}`, found the end",
        "EOF while parsing a string" => "expected the closing `\"` of a text, found the end",
        "EOF while parsing a value" => "expected a value, found the end",
        "expected ident" => "expected `true`, `false` or `null`",
        "expected value" => "expected a value: an object, list, text or number, or `true`, `false` or `null`",
        "key must be a string" => "expected a key in double quotation marks",
        "trailing characters" => "expected the end, found more",
        "trailing comma" => "expected a further element behind the comma",
        "invalid number" => "this is no number",
        "number out of range" => "the number is beyond ±1.8·10³⁰⁸",
        "invalid escape" => "`\\` begins none of the escapes `\\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u0000`",
        "lone leading surrogate in hex escape" | "unexpected end of hex escape" => {
            "`\\ud800` to `\\udfff` stand for a character only in pairs"
        }
        "invalid unicode code point" => "the text is not UTF-8",
        _ if said.starts_with("control character") => {
            "a control character in a text is written as an escape, such as `\\n`"
        }
        other => other,
    }
}
