//! The query of a request, and the parameters of a route that come from it.
//!
//! Most queries are short and have nothing to decode: those are looked through where they are.

use std::borrow::Cow;
use std::iter;

use weir::{RouteParameter, Type, Value};

use super::input::{InputError, TypeDefinitions, decode_query, expected, left_out, scalar_or_error};

/// Pairs of a query that are looked at; further ones are refused.
const PAIRS_MAX: usize = 1000;

/// The pairs of a query.
pub(super) struct Query<'q> {
    plain: &'q str,
    decoded: Vec<(Cow<'q, str>, Cow<'q, str>)>,
}

/// How often a query has a name.
enum Occurrences<'a> {
    Never,
    Once(&'a str),
    Twice,
}

impl<'q> Query<'q> {
    /// The pairs of this query.
    ///
    /// # Errors
    /// Fails where there are too many, or one is not UTF-8 in percent-encoding.
    pub(super) fn new(query: Option<&'q str>) -> Result<Query<'q>, InputError> {
        let query = query.unwrap_or_default();
        // No byte takes part in two pairs, so that a short query has few.
        let is_plain = query.len() <= PAIRS_MAX && !query.bytes().any(|byte| matches!(byte, b'%' | b'+'));
        if is_plain { Ok(Query { plain: query, decoded: Vec::new() }) } else { Query::decoded(query) }
    }

    #[cold]
    fn decoded(query: &'q str) -> Result<Query<'q>, InputError> {
        let mut decoded = Vec::new();
        for (name, value) in pairs(query).map(|pair| cut(pair, b'=')) {
            let (Some(name), Some(value)) = (decode_query(name), decode_query(value)) else {
                let place = format!("`{}` in the query", decode_query(name).unwrap_or(Cow::Borrowed(name)));
                return Err(InputError::new(place, "not UTF-8 in percent-encoding"));
            };
            if decoded.len() == PAIRS_MAX {
                return Err(InputError::new("the query", format!("has more than {PAIRS_MAX} parameters")));
            }
            decoded.push((name, value));
        }
        Ok(Query { plain: "", decoded })
    }

    /// The input that is this parameter.
    ///
    /// # Errors
    /// What the query says is not of its type, or it is not there and has to be.
    #[inline]
    pub(super) fn input(
        &self,
        parameter: &RouteParameter,
        definitions: TypeDefinitions<'_>,
    ) -> Result<Value, InputError> {
        let problem = |what| InputError::new(format!("`{}` in the query", parameter.name), what);
        let one = |ty, text| scalar_or_error(ty, text, definitions).map_err(problem);
        if let Type::List(element) = &parameter.ty {
            let given: Vec<Value> =
                self.values(&parameter.name).map(|text| one(element, text)).collect::<Result<_, _>>()?;
            let default = parameter.default.clone().filter(|_| given.is_empty());
            return Ok(default.unwrap_or_else(|| Value::list(given)));
        }
        match (self.occurrences(&parameter.name), &parameter.ty) {
            (Occurrences::Once(text), Type::Option(some)) => one(some, text).map(Value::some),
            (Occurrences::Once(text), ty) => one(ty, text),
            (Occurrences::Twice, _) => Err(problem("is given twice".into())),
            (Occurrences::Never, ty) => left_out(parameter)
                .ok_or_else(|| problem(format!("is missing, expected {}", expected(ty, definitions)))),
        }
    }

    fn occurrences<'a>(&'a self, name: &'a str) -> Occurrences<'a> {
        let mut values = self.values(name);
        match (values.next(), values.next()) {
            (None, _) => Occurrences::Never,
            (Some(value), None) => Occurrences::Once(value),
            (Some(_), Some(_)) => Occurrences::Twice,
        }
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

/// The names with their values of a query, as they are written.
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

/// The value in a pair of this name.
#[inline]
fn value_of<'a>(pair: &'a str, name: &str) -> Option<&'a str> {
    match pair.strip_prefix(name)? {
        "" => Some(""),
        value => value.strip_prefix('='),
    }
}

/// What is before the first of these ASCII characters, and what is behind it. For texts too short to search by words.
#[inline]
fn cut(text: &str, at: u8) -> (&str, &str) {
    match text.bytes().position(|byte| byte == at) {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, ""),
    }
}
