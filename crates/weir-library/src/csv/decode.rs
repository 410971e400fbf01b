//! Rows as records: reading them as values of any type with columns, and writing them.

use std::borrow::Cow;

use weir::{Failure, Type, TypeArgument, TypeOf, TypeShape, Typed, Value};

use super::{CsvRow, each_row, written};
use crate::input::NamedTypes;
use crate::json::encode::cell;
use crate::named_texts::{NamedTextSource, NamedTexts};
use crate::units;

/// Reads a text whose first row names the columns, and returns each further row as a value of the type that the place of the
/// call expects: `let sales: List(Sale) = csv.decode(text)?`. A field of the record takes the text of the column of its name;
/// a list is read as JSON, `["a","b"]`, and an `Option` is `None` if the text is empty. Other columns are ignored.
///
/// # Errors
/// Fails as `parse` does, and if a column is missing or a text is not of its type; the message names the column and the line:
/// `` `price` in line 3: expected a number, found "abc" ``.
#[weir::function(pure, units = 2 * units::to_divide(text))]
pub fn decode(text: &str, #[default(",")] separator: &str, of: TypeArgument<'a'>) -> Result<Vec<Value>, Failure> {
    each_row(text, separator, |row, line| decoded(&row, &format!(" in line {line}"), &of.0))
}

/// Reads a row as a value of the type that the place of the call expects: `for row in csv.rows("sales.csv") { let sale: Sale =
/// csv.decode_row(row)? … }`.
///
/// # Errors
/// Fails if a column is missing or a text is not of its type; the message names the column.
#[weir::function(pure, units = 2 * units::to_read(row))]
pub fn decode_row(row: CsvRow, of: TypeArgument<'a'>) -> Result<Value, Failure> {
    decoded(&row, "", &of.0)
}

fn decoded(row: &CsvRow, place: &str, of: &TypeOf) -> Result<Value, Failure> {
    let texts = row.iter().filter_map(|(name, text)| match (name, text) {
        (Value::Text(name), Value::Text(text)) => Some((Cow::Borrowed(name.as_str()), Cow::Borrowed(text.as_str()))),
        _ => None,
    });
    let texts: Vec<_> = texts.collect();
    let named = NamedTexts { texts: &texts, files: None, from: NamedTextSource::Row, place };
    Ok(named.decode(&of.ty, NamedTypes(&of.definitions))?)
}

/// Formats a list of records as text: a row with the names of their fields, and a row for each record. Texts, numbers, times,
/// variants without payload and the like are written as they are, and other values as JSON, so that `decode` reads them again.
/// `None`, `()` and numbers that are not finite are written as an empty text, which `decode` reads as the default of the field,
/// or else as `None`: it cannot tell them apart, nor from an empty text in an `Option`.
///
/// # Errors
/// Fails if the value is no list of records, or if the separator is not a single ASCII character.
#[weir::function(pure, units = 2 * units::to_read(rows))]
pub fn encode(rows: Typed<'a'>, #[default(",")] separator: &str) -> Result<String, Failure> {
    let no_records = || Failure::argument(format!("`csv.encode` writes a list of records, not `{}`", rows.of.ty));
    let (Type::List(element), Value::List(list)) = (&rows.of.ty, &rows.value) else { return Err(no_records()) };
    let Type::Named(name) = &**element else { return Err(no_records()) };
    let Some(TypeShape::Record(fields)) = rows.of.shape(name) else { return Err(no_records()) };
    let cells = |row: &Value| -> Result<Vec<Vec<u8>>, Failure> {
        let Value::Record(values) = row else { return Err(no_records()) };
        values.iter().zip(fields).map(|(value, field)| cell(value, &field.ty, &rows.of)).collect()
    };
    let head = fields.iter().map(|field| field.external_name().as_bytes().to_vec()).collect();
    let mut all: Vec<Vec<Vec<u8>>> = vec![head];
    for row in list {
        all.push(cells(&row)?);
    }
    written(all.iter().map(|row| row.iter()), separator)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use weir::{Field, Text, TypeArgument, TypeDefinition};

    use super::*;
    use crate::generated_values::{definitions, types, value_of};

    /// Returns the type of a list of records with columns of these types.
    fn rows_of(columns: &[Type]) -> TypeOf {
        let field = |(number, ty): (usize, &Type)| Field::new(&format!("column {number}"), ty.clone());
        let shape = TypeShape::Record(columns.iter().enumerate().map(field).collect());
        let mut definitions = definitions();
        definitions.push(TypeDefinition { name: "Row".into(), doc: Text::default(), shape });
        TypeOf { ty: Type::list(Type::named("Row")), definitions }
    }

    /// Returns a strategy for types of columns. An `Option(Text)` is left out: `None` and an empty text are both an empty text.
    fn columns() -> impl Strategy<Value = Vec<Type>> {
        let is_text = |ty: &Type| matches!(ty, Type::Option(some) if **some == Type::Text);
        prop::collection::vec(types().prop_filter("an empty text is `None`", move |ty| !is_text(ty)), 1..4)
    }

    fn rows(columns: Vec<Type>) -> impl Strategy<Value = (Vec<Type>, Vec<Value>)> {
        let row: Vec<_> = columns.iter().cloned().map(value_of).collect();
        let rows = prop::collection::vec(row.prop_map(|row| Value::Record(row.into())), 0..4);
        (Just(columns), rows)
    }

    proptest! {
        #[test]
        fn rows_round_trip((columns, rows) in columns().prop_flat_map(rows), separator in "[,;\\t| ]") {
            let of = rows_of(&columns);
            let element = TypeOf { ty: Type::named("Row"), ..of.clone() };
            let text = encode(Typed { value: Value::list(rows.clone()), of: of.into() }, &separator).expect("records");
            let again = decode(&text, &separator, TypeArgument(element.into())).map_err(|failure| failure.message.to_string());
            prop_assert_eq!(again, Ok(rows), "{:?}", text);
        }
    }
}
