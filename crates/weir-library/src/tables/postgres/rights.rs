//! The rights that the user of a program lacks, and the statements that give them.

use super::address::PostgresAddress;
use crate::tables::sql::quoted;

/// The words by which PostgreSQL says in English that a right is missing.
const DENIED: &str = "permission denied for ";
/// The kinds of what has the rights of a table.
const TABLES: [&str; 5] = ["table", "view", "materialized view", "foreign table", "relation"];

/// Returns the statement that gives the right which is missing, according to a message of the database.
pub(super) fn missing(address: &PostgresAddress, message: &str) -> String {
    let user = quoted(address.config.get_user().unwrap_or("…"));
    let named = |words: &str| {
        let name = message.split_once(words)?.1.trim();
        Some(quoted(name.trim_matches('"')))
    };
    let own = address.schema();
    if let Some(kind) = TABLES.iter().find(|kind| message.contains(&format!("{DENIED}{kind} "))) {
        let table = named(&format!("{DENIED}{kind} ")).unwrap_or_default();
        return match own {
            Some(schema) => on_all_tables(schema, &user),
            None => {
                format!("GRANT SELECT ON {table} TO {user}`, and `INSERT, UPDATE, DELETE` if the program writes it")
            }
        };
    }
    if let Some(schema) = named(&format!("{DENIED}schema ")) {
        // A schema that the search path names and that the user may not use is left out.
        let right = if own.is_some_and(|own| quoted(own) == schema) { "CREATE" } else { "USAGE" };
        return format!("GRANT {right} ON SCHEMA {schema} TO {user}`");
    }
    if let Some(database) = named(&format!("{DENIED}database ")) {
        return format!("GRANT CONNECT ON DATABASE {database} TO {user}`");
    }
    if let Some(table) = named("must be owner of table ") {
        return format!(
            "ALTER TABLE {table} OWNER TO {user}`, because only the owner of a table changes it, or start once as its owner"
        );
    }
    let schema = own.map_or_else(|| "…".to_owned(), quoted);
    format!(
        "GRANT USAGE ON SCHEMA {schema} TO {user}; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {user}`; a start \
         that changes tables owns them, and needs `CREATE` on the schema"
    )
}

/// Returns the statement that gives the rights on the tables of a schema.
pub(super) fn on_all_tables(schema: &str, user: &str) -> String {
    format!("GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {} TO {user}`", quoted(schema))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statement_gives_the_right_that_is_missing() {
        let address = PostgresAddress::parse("postgres://ada@db/shop", None).unwrap();
        let missing = |message: &str| missing(&address, message);
        assert_eq!(
            missing("permission denied for view seen"),
            "GRANT SELECT ON \"seen\" TO \"ada\"`, and `INSERT, UPDATE, DELETE` if the program writes it"
        );
        assert_eq!(missing("permission denied for schema s"), "GRANT USAGE ON SCHEMA \"s\" TO \"ada\"`");
        address.found_schema("s");
        assert_eq!(missing("permission denied for schema s"), "GRANT CREATE ON SCHEMA \"s\" TO \"ada\"`");
        assert_eq!(
            missing("permission denied for table cs"),
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA \"s\" TO \"ada\"`"
        );
        let connect = "GRANT CONNECT ON DATABASE \"shop\" TO \"ada\"`";
        assert_eq!(missing("permission denied for database \"shop\""), connect);
        assert!(missing("must be owner of table cs").starts_with("ALTER TABLE \"cs\" OWNER TO \"ada\"`"));
        assert!(
            missing("keine Berechtigung für Tabelle cs")
                .starts_with("GRANT USAGE ON SCHEMA \"s\" TO \"ada\"; GRANT SELECT")
        );
    }
}
