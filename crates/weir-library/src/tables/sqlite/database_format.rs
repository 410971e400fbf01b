//! The marks of a database of Weir in SQLite, by which programs know it from that of another program or of another version.

use rusqlite::Connection;

use super::database_error::refused;

/// Marks the database of a Weir program: `Weir` in ASCII.
pub(super) const APPLICATION_ID: i32 = 0x5765_6972;
/// The version of the layout of the database.
pub(super) const LAYOUT: i32 = 2;

/// Fails if the database is that of another program or of another version.
pub(in crate::tables) fn is_ours(connection: &Connection) -> rusqlite::Result<()> {
    let pragma = |name: &str| connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i32>(0));
    let (application, layout) = (pragma("application_id")?, pragma("user_version")?);
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 {
        return Ok(());
    }
    if application != APPLICATION_ID {
        return Err(refused("it is the database of another program; `--data DIR` chooses a folder"));
    }
    has_ordered_texts(connection)?;
    if layout < LAYOUT {
        return Err(refused(
            "a development version of Weir has written it, before tables were released; move it away, and copy its rows \
             with `sqlite3`",
        ));
    }
    if layout > LAYOUT {
        return Err(refused("a newer version of Weir has written it; use that version, or a newer one"));
    }
    Ok(())
}

/// Fails if the database has the encoding UTF-16: SQLite compares the bytes of texts, which then have another order than in programs.
pub(super) fn has_ordered_texts(connection: &Connection) -> rusqlite::Result<()> {
    let encoding: String = connection.query_row("PRAGMA encoding", [], |row| row.get(0))?;
    match &*encoding {
        "UTF-8" => Ok(()),
        other => Err(refused(&format!(
            "it has the encoding {other}, in which texts have another order than in programs; copy it to one in UTF-8, such as by \
             `sqlite3 old.db .dump | sed '/^PRAGMA encoding/d' | sqlite3 new.db`"
        ))),
    }
}
