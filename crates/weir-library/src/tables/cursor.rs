//! Cursors: the place of a row in the order of a query, as a text that a client keeps until it asks for the next page.
//!
//! A cursor has the values of the columns by which the rows are ordered, and a hash of these values and of the order. So a
//! page goes on behind the row also if that row or others are gone, and a text that is no cursor of the query is refused.

use std::sync::Arc;

use data_encoding::BASE64URL_NOPAD;
use weir::{Failure, FailureKind, Value};

use super::dialect::stable_hash_of;
use super::query_site::QuerySite;
use super::schema::{ColumnSchema, PageStart, Schema, TableQuery, TableSearch};

impl TableSearch {
    /// Returns the search for the rows of a query. One for a page finds one row more than the page has.
    ///
    /// # Errors
    /// Fails if the cursor of a page is none of the query.
    pub(super) fn for_rows(
        schema: &Schema,
        query: impl Into<Arc<QuerySite>>,
        arguments: Value,
    ) -> Result<TableSearch, Failure> {
        let mut search = TableSearch::new(query, arguments);
        let Some(Value::Variant(tag, held)) = search.values.get(1).cloned() else { return Ok(search) };
        search.limit = if search.limit == 0 { 0 } else { search.limit.saturating_add(1) };
        search.limit_value = Value::Int(i64::try_from(search.limit).unwrap_or(i64::MAX));
        if let (Value::SOME, Some(Value::Text(cursor))) = (tag, held.as_ref().and_then(|held| held.first())) {
            let mut after = page_start(schema, &search.query, cursor.as_str())?;
            after.retain(|start| search.equal(start.column).is_none());
            search.after = Some(after);
        }
        Ok(search)
    }
}

/// Returns the columns by which the rows of a query are ordered, each with its direction: its own ones, then the key.
pub(super) fn whole_order(schema: &Schema, query: &TableQuery) -> Vec<(usize, bool)> {
    let own = query.order.iter().map(|order| (order.column, order.descending));
    let mut whole: Vec<(usize, bool)> = Vec::new();
    for (column, descending) in own.chain(schema.key.iter().map(|at| (*at, false))) {
        if whole.iter().all(|(known, _)| *known != column) {
            whole.push((column, descending));
        }
    }
    whole
}

/// Returns the cursor of a row.
pub(super) fn cursor(schema: &Schema, query: &TableQuery, row: &[Value]) -> String {
    let order = whole_order(schema, query);
    let mut values = Vec::new();
    for (column, _) in &order {
        write_value(&schema.columns[*column], &row[*column], &mut values);
    }
    let mut whole = hash(schema, &order, &values).to_be_bytes().to_vec();
    whole.append(&mut values);
    BASE64URL_NOPAD.encode(&whole)
}

/// Returns the values of a cursor.
///
/// # Errors
/// Fails if the text is no cursor of the query.
pub(super) fn page_start(schema: &Schema, query: &TableQuery, cursor: &str) -> Result<Vec<PageStart>, Failure> {
    read_cursor(schema, query, cursor).ok_or_else(|| {
        let message = format!(
            "this is no cursor of the query of `{}`: pass the text that came with the page before, as it was",
            schema.name
        );
        Failure::new(FailureKind::Argument, message)
    })
}

fn read_cursor(schema: &Schema, query: &TableQuery, cursor: &str) -> Option<Vec<PageStart>> {
    let whole = BASE64URL_NOPAD.decode(cursor.as_bytes()).ok()?;
    let (known, mut values) = whole.split_first_chunk::<8>()?;
    let order = whole_order(schema, query);
    if hash(schema, &order, values) != u64::from_be_bytes(*known) {
        return None;
    }
    let mut starts = Vec::with_capacity(order.len());
    for (column, descending) in order {
        let value = read_value(&schema.columns[column], &mut values)?;
        starts.push(PageStart { column, descending, value });
    }
    values.is_empty().then_some(starts)
}

/// Returns the hash of a cursor: of the table, of its order, and of the values.
fn hash(schema: &Schema, order: &[(usize, bool)], values: &[u8]) -> u64 {
    let mut text = schema.name.clone().into_bytes();
    for (column, descending) in order {
        let column = &schema.columns[*column];
        let direction = if *descending { "desc" } else { "asc" };
        text.extend_from_slice(format!("\0{}\0{}\0{direction}", column.name, column.kind).as_bytes());
    }
    text.push(0);
    text.extend_from_slice(values);
    stable_hash_of(&text)
}

/// Appends a value of a column: eight bytes, or the length and the bytes of a text.
fn write_value(column: &ColumnSchema, value: &Value, out: &mut Vec<u8>) {
    let mut sized = |bytes: &[u8]| {
        out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        out.extend_from_slice(bytes);
    };
    match value {
        Value::Text(text) => sized(text.as_str().as_bytes()),
        Value::Bytes(bytes) => sized(bytes),
        Value::Variant(tag, None) => {
            sized(column.variants.get(*tag as usize).map_or(&[][..], |variant| variant.as_bytes()));
        }
        Value::Bool(value) => out.extend_from_slice(&u64::from(*value).to_be_bytes()),
        Value::Int(number) | Value::Time(number) | Value::Duration(number) => {
            out.extend_from_slice(&number.to_be_bytes());
        }
        Value::Size(size) => out.extend_from_slice(&size.to_be_bytes()),
        Value::Float(number) => out.extend_from_slice(&number.to_bits().to_be_bytes()),
        _ => {}
    }
}

/// Takes a value of a column from the bytes; `None` if they have none.
fn read_value(column: &ColumnSchema, bytes: &mut &[u8]) -> Option<Value> {
    let (word, rest) = bytes.split_first_chunk::<8>()?;
    let number = u64::from_be_bytes(*word);
    *bytes = rest;
    let mut sized = || {
        let (held, rest) = bytes.split_at_checked(usize::try_from(number).ok()?)?;
        *bytes = rest;
        Some(held)
    };
    Some(match &*column.kind {
        "Text" => Value::text(std::str::from_utf8(sized()?).ok()?),
        "Bytes" => Value::bytes(sized()?.to_vec()),
        "Enum" => {
            let name = sized()?;
            let tag = column.variants.iter().position(|variant| variant.as_bytes() == name)?;
            Value::Variant(tag as u32, None)
        }
        "Bool" if number < 2 => Value::Bool(number == 1),
        "Int" => Value::Int(number.cast_signed()),
        "Time" => Value::Time(number.cast_signed()),
        "Duration" => Value::Duration(number.cast_signed()),
        "Size" => Value::Size(i64::try_from(number).ok()?.cast_unsigned()),
        // Not stored, so that no row has one: NaN, and a negative zero.
        "Float" => {
            Some(f64::from_bits(number)).filter(|number| !number.is_nan()).map(|number| Value::Float(number + 0.0))?
        }
        _ => return None,
    })
}
