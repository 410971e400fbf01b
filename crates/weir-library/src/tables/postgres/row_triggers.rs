//! Triggers, rules and policies that somebody has added to the tables of the program. By them the database may keep a row as it was that a
//! statement writes, or store another one.
//!
//! The program looks for them when it opens a table, and when its connection that writes is made anew. A table that has some is written
//! like one of another program: no answer is known before the database has given it, and an update reads the row back as it is stored.
//!
//! A trigger that runs after a write has no say in its row, and none in a generated column: the program cannot write one that it declares.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// The tables of the schema whose rows the database may keep or change, and whether a rule of them is a reason. The bits of a trigger
/// say that it runs for each row (1), before the row is written (2).
pub(super) const TABLES_WITH_TRIGGERS: &str = "SELECT relname, has_rules FROM (
    SELECT c.oid, c.relname, c.relrowsecurity, EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = c.oid AND r.ev_enabled <> 'D') AS has_rules
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema()) tables
    WHERE has_rules OR relrowsecurity AND row_security_active(tables.oid) OR EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = tables.oid \
    AND NOT t.tgisinternal AND t.tgenabled <> 'D' AND t.tgtype & 3 = 3)";

/// Asks if a table of the schema has a trigger of any kind, a foreign key that deletes or changes other rows, or a rule that rewrites
/// what a statement writes: then a commit may write rows of which its statements say nothing.
pub(super) const HAS_TRIGGERS: &str = "SELECT EXISTS (SELECT FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND t.tgenabled <> 'D'
    AND (NOT t.tgisinternal OR EXISTS (SELECT FROM pg_constraint f WHERE f.oid = t.tgconstraint AND f.contype = 'f'
    AND (f.confdeltype IN ('c', 'n', 'd') OR f.confupdtype IN ('c', 'n', 'd')))))
    OR EXISTS (SELECT FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = current_schema() AND r.ev_type <> '1' AND r.ev_enabled <> 'D')";

/// The effect of triggers, rules and policies on the rows that are written to a table.
#[derive(Debug, Default)]
pub(super) struct RowTriggers {
    /// True if the database may keep rows, or store others.
    interfere: AtomicBool,
    /// True if the table has rules. PostgreSQL refuses a statement with `RETURNING` that they rewrite.
    has_rules: AtomicBool,
}

impl RowTriggers {
    /// Returns whether the database may keep rows that are written, or store others.
    pub(super) fn may_interfere(&self) -> bool {
        self.interfere.load(Ordering::Relaxed)
    }

    /// Returns whether a statement has to return the rows as they are stored.
    pub(super) fn are_read_back(&self) -> bool {
        self.may_interfere() && !self.has_rules.load(Ordering::Relaxed)
    }

    /// Notes that the database has kept a row.
    pub(super) fn have_kept_row(&self) {
        self.interfere.store(true, Ordering::Relaxed);
    }
}

/// The triggers of the tables of a schema, by their names.
#[derive(Default)]
pub(super) struct TriggersOfTables(Mutex<BTreeMap<String, Arc<RowTriggers>>>);

impl TriggersOfTables {
    /// Returns those of a table.
    pub(super) fn of(&self, table: &str) -> Arc<RowTriggers> {
        Arc::clone(self.0.lock().entry(table.to_owned()).or_default())
    }

    /// Notes those that the database has: the answer to [`TABLES_WITH_TRIGGERS`].
    pub(super) fn note(&self, found: &[Vec<Option<String>>]) {
        let mut tables = self.0.lock();
        for row in found {
            let Some(Some(table)) = row.first() else { continue };
            let has_rules = row.get(1).is_some_and(|has| has.as_deref() == Some("t"));
            let triggers = tables.entry(table.clone()).or_default();
            triggers.has_rules.store(has_rules, Ordering::Relaxed);
        }
        let is_found = |name: &String| found.iter().any(|row| row.first().is_some_and(|of| of.as_ref() == Some(name)));
        tables.iter().for_each(|(name, triggers)| triggers.interfere.store(is_found(name), Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use test_support::postgres::PostgresServer;

    use super::{HAS_TRIGGERS, TABLES_WITH_TRIGGERS};

    #[test]
    fn a_foreign_key_counts_as_a_trigger_only_if_it_changes_rows() {
        let Some(server) = PostgresServer::shared() else { return };
        server.schema("changing_keys");
        server.execute(
            "changing_keys",
            "CREATE TABLE users (id bigint PRIMARY KEY); CREATE TABLE posts (id bigint PRIMARY KEY, author bigint)",
        );
        let has_triggers = || server.execute("changing_keys", HAS_TRIGGERS).trim().to_owned();
        let key = |action: &str| {
            let key = format!("ALTER TABLE posts ADD CONSTRAINT author FOREIGN KEY (author) REFERENCES users {action}");
            server.execute("changing_keys", &key);
            let found = has_triggers();
            server.execute("changing_keys", "ALTER TABLE posts DROP CONSTRAINT author");
            found
        };
        assert_eq!([key(""), key("ON DELETE RESTRICT ON UPDATE NO ACTION"), has_triggers()], ["f", "f", "f"]);
        assert_eq!([key("ON DELETE CASCADE"), key("ON DELETE SET NULL"), key("ON UPDATE CASCADE")], ["t", "t", "t"]);
    }

    #[test]
    fn triggers_before_a_row_and_rules_and_policies_of_the_user_may_interfere_and_others_may_not() {
        let Some(server) = PostgresServer::shared() else { return };
        server.schema("with_triggers");
        for table in ["plain", "before", "behind", "disabled", "ruled", "secured", "referenced", "statements"] {
            server.execute("with_triggers", &format!("CREATE TABLE {table} (id bigint PRIMARY KEY)"));
        }
        server.execute(
            "with_triggers",
            "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
             CREATE TRIGGER t BEFORE UPDATE ON before FOR EACH ROW EXECUTE FUNCTION f();
             CREATE TRIGGER t AFTER UPDATE ON behind FOR EACH ROW EXECUTE FUNCTION f();
             CREATE TRIGGER t BEFORE UPDATE ON statements FOR EACH STATEMENT EXECUTE FUNCTION f();
             CREATE TRIGGER t BEFORE UPDATE ON disabled FOR EACH ROW EXECUTE FUNCTION f();
             ALTER TABLE disabled DISABLE TRIGGER t;
             CREATE RULE r AS ON UPDATE TO ruled WHERE new.id = 2 DO INSTEAD NOTHING;
             ALTER TABLE plain ADD FOREIGN KEY (id) REFERENCES referenced (id) ON DELETE CASCADE;
             ALTER TABLE secured ENABLE ROW LEVEL SECURITY; CREATE ROLE guest; GRANT USAGE ON SCHEMA with_triggers TO guest",
        );
        let found = |role: &str| {
            let found = server.execute("with_triggers", &format!("{role}; {TABLES_WITH_TRIGGERS} ORDER BY relname"));
            found.lines().filter(|line| line.contains('|')).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(found("SET ROLE weir"), "before|f ruled|t");
        assert_eq!(found("SET ROLE guest"), "before|f ruled|t secured|f");
    }
}
