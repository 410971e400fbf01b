//! Scripts: executions of prepared statements as one message. The database answers it as a whole, which takes both sides less work
//! than an answer to each statement.
//!
//! A statement that is prepared in the protocol has no name in SQL. So a connection prepares the statements of scripts once more,
//! under names of its own.

use std::fmt::Write as _;
use std::future::poll_fn;
use std::pin::pin;

use futures_core::Stream;
use tokio_postgres::types::Type;
use tokio_postgres::{Error, SimpleQueryMessage};

use super::connection::PostgresConnection;

/// Executions of prepared statements, one after the other.
#[derive(Debug, Default)]
pub(super) struct Script {
    sql: String,
    statements: usize,
}

impl Script {
    /// Returns the number of statements.
    pub(super) fn len(&self) -> usize {
        self.statements
    }

    /// Appends the execution of a statement with parameters in the binary form of the protocol, `None` for `NULL`; `None` if one
    /// of them has no form as text here.
    pub(super) fn append<'p>(
        &mut self,
        name: &str,
        parameters: impl Iterator<Item = (Option<&'p [u8]>, &'p Type)>,
    ) -> Option<()> {
        self.append_execution(name, parameters, |sql, (value, ty)| match value {
            Some(value) => literal(sql, value, ty),
            None => {
                sql.push_str("NULL");
                Some(())
            }
        })
    }

    /// Appends the execution of a statement whose parameters are lists of such values.
    pub(super) fn append_lists<'p>(
        &mut self,
        name: &str,
        lists: impl Iterator<Item = impl Iterator<Item = (Option<&'p [u8]>, &'p Type)>>,
    ) -> Option<()> {
        let mut text = String::new();
        self.append_execution(name, lists, |sql, list| {
            text.clear();
            let mut separator = '{';
            for (value, ty) in list {
                text.push(separator);
                separator = ',';
                match value {
                    Some(value) => element(&mut text, value, ty)?,
                    None => text.push_str("NULL"),
                }
            }
            text.push('}');
            quote(sql, &text);
            Some(())
        })
    }

    fn append_execution<P>(
        &mut self,
        name: &str,
        parameters: impl Iterator<Item = P>,
        mut append: impl FnMut(&mut String, P) -> Option<()>,
    ) -> Option<()> {
        self.sql.push_str("EXECUTE ");
        self.sql.push_str(name);
        let mut separator = '(';
        for parameter in parameters {
            self.sql.push(separator);
            separator = ',';
            append(&mut self.sql, parameter)?;
        }
        self.sql.push_str(if separator == '(' { ";" } else { ");" });
        self.statements += 1;
        Some(())
    }

    /// Executes the statements. Fails with the number of the first that was refused; those behind it are not executed. The script is
    /// sent when this is first polled.
    pub(super) async fn execute(self, connection: &PostgresConnection) -> Result<(), (usize, Error)> {
        let answers = connection.messages(&self.sql).await.map_err(|error| (0, error))?;
        drop(self);
        let (mut answers, mut through) = (pin!(answers), 0);
        while let Some(answer) = poll_fn(|context| answers.as_mut().poll_next(context)).await {
            through += usize::from(matches!(
                answer.map_err(|error| (through, connection.forget_outdated(error)))?,
                SimpleQueryMessage::CommandComplete(_)
            ));
        }
        Ok(())
    }
}

/// Appends a literal without a type, which the type of the parameter gives its meaning. It does not depend on the settings of the
/// database.
fn literal(sql: &mut String, value: &[u8], ty: &Type) -> Option<()> {
    match *ty {
        Type::TEXT => quote(sql, str::from_utf8(value).ok()?),
        Type::BYTEA => {
            sql.push_str("E'\\\\x");
            hexadecimal(sql, value);
            sql.push('\'');
        }
        _ => {
            sql.push('\'');
            plain(sql, value, ty)?;
            sql.push('\'');
        }
    }
    Some(())
}

/// Appends an element of a list in the text form of the list.
fn element(list: &mut String, value: &[u8], ty: &Type) -> Option<()> {
    match *ty {
        Type::TEXT => {
            list.push('"');
            for character in str::from_utf8(value).ok()?.chars() {
                if matches!(character, '"' | '\\') {
                    list.push('\\');
                }
                list.push(character);
            }
            list.push('"');
        }
        Type::BYTEA => {
            list.push_str("\"\\\\x");
            hexadecimal(list, value);
            list.push('"');
        }
        _ => plain(list, value, ty)?,
    }
    Some(())
}

/// Appends a text as a literal.
fn quote(sql: &mut String, text: &str) {
    sql.push_str("E'");
    for character in text.chars() {
        // Doubled, because the database may be set to refuse a quote behind a backslash.
        if matches!(character, '\'' | '\\') {
            sql.push(character);
        }
        sql.push(character);
    }
    sql.push('\'');
}

/// Appends the text form of a value that has no character with a meaning of its own.
fn plain(text: &mut String, value: &[u8], ty: &Type) -> Option<()> {
    match *ty {
        Type::INT8 => _ = write!(text, "{}", i64::from_be_bytes(value.try_into().ok()?)),
        Type::BOOL => text.push_str(if value == [0] { "f" } else { "t" }),
        Type::FLOAT8 => {
            let number = f64::from_be_bytes(value.try_into().ok()?);
            match number.is_finite() {
                true => _ = write!(text, "{number:e}"),
                false if number.is_nan() => text.push_str("NaN"),
                false => text.push_str(if number > 0.0 { "Infinity" } else { "-Infinity" }),
            }
        }
        _ => return None,
    }
    Some(())
}

fn hexadecimal(text: &mut String, bytes: &[u8]) {
    bytes.iter().for_each(|byte| _ = write!(text, "{byte:02x}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(value: Option<&[u8]>, ty: Type) -> Option<String> {
        let mut script = Script::default();
        script.append("s", std::iter::once((value, &ty)))?;
        assert_eq!(script.len(), 1);
        Some(script.sql)
    }

    #[test]
    fn values_are_literals_that_no_text_can_leave() {
        let text = |value: &str| script(Some(value.as_bytes()), Type::TEXT).unwrap();
        assert_eq!(text(r"it's \'); DROP TABLE users; --"), r"EXECUTE s(E'it''s \\''); DROP TABLE users; --');");
        assert_eq!(script(Some(&i64::MIN.to_be_bytes()), Type::INT8).unwrap(), "EXECUTE s('-9223372036854775808');");
        let float = |value: f64| script(Some(&value.to_be_bytes()), Type::FLOAT8).unwrap();
        assert_eq!(float(-1e300), "EXECUTE s('-1e300');");
        assert_eq!(float(f64::NEG_INFINITY), "EXECUTE s('-Infinity');");
        assert_eq!(float(f64::NAN), "EXECUTE s('NaN');");
        assert_eq!(script(Some(&[0, 255]), Type::BYTEA).unwrap(), r"EXECUTE s(E'\\x00ff');");
        assert_eq!(script(Some(&[1]), Type::BOOL).unwrap(), "EXECUTE s('t');");
        assert_eq!(script(None, Type::TEXT).unwrap(), "EXECUTE s(NULL);");
        assert_eq!(script(Some(&[1, 2]), Type::INT2), None);
    }

    #[test]
    fn lists_of_values_are_literals_that_no_text_can_leave() {
        let list = |values: &[Option<&[u8]>], ty: Type| {
            let mut script = Script::default();
            let values = values.iter().map(|value| (*value, &ty));
            script.append_lists("s", std::iter::once(values))?;
            Some(script.sql)
        };
        let texts = [Some(&b"a, \"b\""[..]), None, Some(br"it's \'}"), Some(b"")];
        assert_eq!(list(&texts, Type::TEXT).unwrap(), r#"EXECUTE s(E'{"a, \\"b\\"",NULL,"it''s \\\\''}",""}');"#);
        let numbers = [Some(&i64::MIN.to_be_bytes()[..]), None];
        assert_eq!(list(&numbers, Type::INT8).unwrap(), "EXECUTE s(E'{-9223372036854775808,NULL}');");
        assert_eq!(list(&[Some(&[0, 255])], Type::BYTEA).unwrap(), r#"EXECUTE s(E'{"\\\\x00ff"}');"#);
        let floats = [Some(&1e300_f64.to_be_bytes()[..]), Some(&f64::NAN.to_be_bytes()[..])];
        assert_eq!(list(&floats, Type::FLOAT8).unwrap(), "EXECUTE s(E'{1e300,NaN}');");
        assert_eq!(list(&[Some(&[1]), Some(&[0])], Type::BOOL).unwrap(), "EXECUTE s(E'{t,f}');");
        assert_eq!(list(&[Some(&[1, 2])], Type::INT2), None);
    }
}
