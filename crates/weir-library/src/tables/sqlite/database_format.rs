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

/// Fails if SQLite orders the texts of the database otherwise than programs do, with advice: it compares their bytes, and those of UTF-16
/// have another order.
pub(in crate::tables) fn has_utf8(connection: &Connection, advice: &str) -> rusqlite::Result<()> {
    let encoding: String = connection.query_row("PRAGMA encoding", [], |row| row.get(0))?;
    match &*encoding {
        "UTF-8" => Ok(()),
        _ => Err(refused(&format!(
            "its encoding is {encoding}, in which SQLite orders texts otherwise than programs do; {advice}"
        ))),
    }
}

/// The advice for the database of a program that somebody has made in another encoding.
pub(in crate::tables) const CONVERT_OWN: &str = "remove it if it has no rows, or choose a folder with `--data DIR`, and copy its rows \
                                                 with `sqlite3`";
/// The advice for a database of other programs in another encoding.
pub(in crate::tables) const CONVERT_EXISTING: &str =
    "make a copy in UTF-8, such as by `sqlite3 OLD .dump | sqlite3 NEW`, and name that one";
