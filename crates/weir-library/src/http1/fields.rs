//! The header fields of a request, stored as the map that a program sees, so that no conversion is needed.

use weir::{Entries, Failure, HostType, Text, Type, Value};

/// Header fields by lower-case name, in the order of arrival; several fields of one name are joined by `, `.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields(Entries);

impl Fields {
    /// Converts the fields of a parsed head.
    pub(super) fn of(parsed: &[httparse::Header<'_>]) -> Result<Self, Failure> {
        let mut fields = Entries::with_capacity(parsed.len());
        for field in parsed {
            let value = std::str::from_utf8(field.value);
            let value = value.map_err(|_| Failure::function(format!("the field {} is not UTF-8", field.name)))?;
            let name = Value::Text(lower(field.name));
            let joined = fields.get(&name).map(|earlier| format!("{}, {value}", text_of(earlier)));
            fields.insert(name, Value::text(joined.as_deref().unwrap_or(value)));
        }
        Ok(Fields(fields))
    }

    /// Returns the value of a field, whose name may be written in any case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(&Value::Text(lower(name))).map(text_of)
    }
}

impl HostType for Fields {
    fn ty() -> Type {
        Type::map(Type::Text, Type::Text)
    }

    fn from_value(value: Value) -> Result<Self, Failure> {
        match value {
            Value::Map(fields) => Ok(Fields(fields)),
            other => Err(Failure::argument(format!("must be {}, not {other}", Self::ty()))),
        }
    }

    fn into_value(self) -> Result<Value, Failure> {
        Ok(Value::Map(self.0))
    }
}

/// Returns the text of a value; only texts are stored.
fn text_of(value: &Value) -> &str {
    if let Value::Text(text) = value { text } else { "" }
}

/// Converts a name to lower case.
fn lower(name: &str) -> Text {
    /// Names are rarely longer; longer ones cost one more copy.
    const SHORT_MAX: usize = 32;
    let mut place = [0; SHORT_MAX];
    let Some(short) = place.get_mut(..name.len()) else { return name.to_ascii_lowercase().into() };
    short.copy_from_slice(name.as_bytes());
    short.make_ascii_lowercase();
    std::str::from_utf8(short).expect("what was ASCII still is, and the rest is as it was").into()
}
