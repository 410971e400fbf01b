//! The query of a request, and the route parameters that come from it.
//!
//! Most queries are short and need no decoding; these are searched in place.

use std::borrow::Cow;
use std::iter;

use weir::{RouteParameter, Type, Value};

use super::input::{InputError, NamedTypes, contains, decode_query, expected, is_coded, left_out, scalar_or_error};

/// Maximum number of name-value pairs in a query; a longer query is refused.
const PAIRS_MAX: usize = 1000;

/// The name-value pairs of a query.
pub(super) struct Query<'q> {
    plain: &'q str,
    decoded: Vec<(Cow<'q, str>, Cow<'q, str>)>,
}

/// Number of occurrences of a name in a query.
enum Occurrences<'a> {
    Never,
    Once(&'a str),
    Twice,
}

impl<'q> Query<'q> {
    /// Parses a query.
    ///
    /// # Errors
    /// Fails if there are too many pairs, or one is not in the percent-encoding of UTF-8.
    pub(super) fn new(query: Option<&'q str>) -> Result<Query<'q>, InputError> {
        let query = query.unwrap_or_default();
        // Every pair takes at least one byte, so a short query cannot exceed the limit.
        let is_plain = query.len() <= PAIRS_MAX && !contains(query, is_coded);
        if is_plain { Ok(Query { plain: query, decoded: Vec::new() }) } else { Query::decoded(query) }
    }

    #[cold]
    fn decoded(query: &'q str) -> Result<Query<'q>, InputError> {
        let mut decoded = Vec::new();
        for (name, value) in pairs(query).map(|pair| cut(pair, b'=')) {
            let refused = |what| {
                let place = format!("`{}` in the query", decode_query(name).unwrap_or(Cow::Borrowed(name)));
                InputError::new(place, what)
            };
            let (name, value) = (decode_query(name).map_err(refused)?, decode_query(value).map_err(refused)?);
            if decoded.len() == PAIRS_MAX {
                return Err(InputError::new("the query", format!("more than {PAIRS_MAX} parameters")));
            }
            decoded.push((name, value));
        }
        Ok(Query { plain: "", decoded })
    }

    /// Parses the value of a parameter.
    ///
    /// # Errors
    /// Fails if the query's value is not of the parameter's type, or if a required parameter is missing.
    #[inline]
    pub(super) fn input(&self, parameter: &RouteParameter, definitions: NamedTypes<'_>) -> Result<Value, InputError> {
        let problem = |what| InputError::new(format!("`{}` in the query", parameter.name), what);
        let one = |ty, text| scalar_or_error(ty, text, definitions).map_err(problem);
        if let Type::List(element) = &parameter.ty {
            let given: Vec<Value> =
                self.values(&parameter.name).map(|text| one(element, text)).collect::<Result<_, _>>()?;
            let default = parameter.default.clone().filter(|_| given.is_empty());
            return Ok(default.unwrap_or_else(|| Value::list(given)));
        }
        let found = self.occurrences(&parameter.name);
        // A browser sends a field that was left blank.
        if matches!(found, Occurrences::Once(""))
            && !is_text(&parameter.ty)
            && let Some(value) = left_out(parameter)
        {
            return Ok(value);
        }
        match (found, &parameter.ty) {
            (Occurrences::Once(text), Type::Option(some)) => one(some, text).map(Value::some),
            (Occurrences::Once(text), ty) => one(ty, text),
            (Occurrences::Twice, _) => Err(problem("given twice".into())),
            (Occurrences::Never, ty) => {
                left_out(parameter).ok_or_else(|| problem(format!("missing, expected {}", expected(ty, definitions))))
            }
        }
    }

    fn occurrences<'a>(&'a self, name: &'a str) -> Occurrences<'a> {
        let mut found = Occurrences::Never;
        for value in self.values(name) {
            found = match found {
                Occurrences::Never => Occurrences::Once(value),
                Occurrences::Once(_) | Occurrences::Twice => return Occurrences::Twice,
            };
        }
        found
    }

    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let mut decoded = self.decoded.iter();
        let mut plain = pairs(self.plain);
        iter::from_fn(move || {
            let value = plain.find_map(|pair| value_of(pair, name));
            value.or_else(|| decoded.find(|(other, _)| other == name).map(|(_, value)| &**value))
        })
    }
}

/// Returns whether an empty text is a value of the type.
fn is_text(ty: &Type) -> bool {
    matches!(ty, Type::Text) || matches!(ty, Type::Option(some) if **some == Type::Text)
}

/// Returns the pairs of a query, undecoded.
fn pairs(query: &str) -> impl Iterator<Item = &str> {
    let mut left = query;
    iter::from_fn(move || {
        while !left.is_empty() {
            let (pair, rest) = cut(left, b'&');
            left = rest;
            if !pair.is_empty() {
                return Some(pair);
            }
        }
        None
    })
}

/// Returns the value of the pair if it has this name.
#[inline]
fn value_of<'a>(pair: &'a str, name: &str) -> Option<&'a str> {
    match pair.strip_prefix(name)? {
        "" => Some(""),
        value => value.strip_prefix('='),
    }
}

/// Splits the text at the first occurrence of an ASCII character. A plain loop is faster than `memchr` on such short
/// texts.
#[inline]
fn cut(text: &str, at: u8) -> (&str, &str) {
    match text.bytes().position(|byte| byte == at) {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, ""),
    }
}
