//! Values of columns in PostgreSQL, in the binary form of the protocol.

use std::error::Error;

use bytes::BytesMut;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use weir::Value;

use crate::tables::escaped_text::{escaped, unescaped};
use crate::tables::schema::ColumnSchema;
use crate::tables::sql_value::{Bound, ParameterPlace, SqlValue, value_of};

type Encoded = Result<IsNull, Box<dyn Error + Sync + Send>>;

impl ToSql for Bound<'_> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Encoded {
        match self.stored() {
            SqlValue::Null => Ok(IsNull::Yes),
            SqlValue::Bool(value) => value.to_sql_checked(ty, out),
            SqlValue::Integer(value) => value.to_sql_checked(ty, out),
            SqlValue::Real(value) => value.to_sql_checked(ty, out),
            SqlValue::Text(text) if self.column.existing => match (self.place, text.split_once('\0')) {
                (ParameterPlace::Equal, Some(_)) => Ok(IsNull::Yes),
                (ParameterPlace::Limit, Some((before, _))) => before.to_sql_checked(ty, out),
                _ => text.to_sql_checked(ty, out),
            },
            SqlValue::Text(text) => escaped(text).to_sql_checked(ty, out),
            SqlValue::Bytes(bytes) => bytes.to_sql_checked(ty, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Returns the value of a column; `None` if another program has stored something else there.
pub(super) fn column_value(row: &Row, at: usize, column: &ColumnSchema) -> Option<Value> {
    let stored = match *row.columns().get(at)?.type_() {
        Type::TEXT => return text_value(row.try_get(at).ok()?, column),
        Type::INT8 => row.try_get::<_, Option<i64>>(at).ok()?.map(SqlValue::Integer),
        Type::BOOL => row.try_get::<_, Option<bool>>(at).ok()?.map(SqlValue::Bool),
        Type::INT2 => row.try_get::<_, Option<i16>>(at).ok()?.map(|value| SqlValue::Integer(value.into())),
        Type::INT4 => row.try_get::<_, Option<i32>>(at).ok()?.map(|value| SqlValue::Integer(value.into())),
        Type::FLOAT4 => row.try_get::<_, Option<f32>>(at).ok()?.map(|value| SqlValue::Real(value.into())),
        Type::FLOAT8 => row.try_get::<_, Option<f64>>(at).ok()?.map(SqlValue::Real),
        Type::BYTEA => row.try_get::<_, Option<&[u8]>>(at).ok()?.map(SqlValue::Bytes),
        // Other types are read as texts, if they can be.
        _ => return text_value(row.try_get(at).ok()?, column),
    };
    value_of(stored.unwrap_or(SqlValue::Null), column)
}

fn text_value(stored: Option<&str>, column: &ColumnSchema) -> Option<Value> {
    let Some(stored) = stored else { return value_of(SqlValue::Null, column) };
    let stored = if column.existing { stored.into() } else { unescaped(stored)? };
    value_of(SqlValue::Text(&stored), column)
}

/// Presence of a value of any type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Presence {
    Present,
    Absent,
}

impl<'r> FromSql<'r> for Presence {
    fn from_sql(_: &Type, _: &'r [u8]) -> Result<Presence, Box<dyn Error + Sync + Send>> {
        Ok(Presence::Present)
    }

    fn from_sql_null(_: &Type) -> Result<Presence, Box<dyn Error + Sync + Send>> {
        Ok(Presence::Absent)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A value of a column that the program does not declare: it is written again as it was read.
#[derive(Debug)]
pub(super) struct KeptValue(Option<Vec<u8>>);

impl<'r> FromSql<'r> for KeptValue {
    fn from_sql(_: &Type, raw: &'r [u8]) -> Result<KeptValue, Box<dyn Error + Sync + Send>> {
        Ok(KeptValue(Some(raw.to_vec())))
    }

    fn from_sql_null(_: &Type) -> Result<KeptValue, Box<dyn Error + Sync + Send>> {
        Ok(KeptValue(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl ToSql for KeptValue {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Encoded {
        let Some(bytes) = &self.0 else { return Ok(IsNull::Yes) };
        out.extend_from_slice(bytes);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
