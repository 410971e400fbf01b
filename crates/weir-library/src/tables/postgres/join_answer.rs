//! The statement by which a program joins those of a schema, and its answer (`durability`).

use super::commit_marks::{CommitsAtJoin, row_of};
use super::commit_numbers::CommitNumber;
use super::connection::PostgresConnection;
use super::writes_since_crash;

/// Takes the lock of programs that have joined: from now on, others wait for the disk. The rows of joins long ago are deleted, and those in
/// which programs count commits that have joined then: one that still runs does not learn by them what a lost connection has done.
/// The rows of joins have their numbers in their names, by which no number is given again if somebody has set the numbers back.
const JOIN: &str = "SELECT pg_advisory_lock_shared((1466263922::bigint << 32) | '\"weir_database\"'::regclass::oid::bigint); \
    BEGIN; LOCK TABLE \"weir_database\" IN EXCLUSIVE MODE; \
    INSERT INTO \"weir_numbers\" VALUES ('', 0) ON CONFLICT DO NOTHING; \
    UPDATE \"weir_numbers\" SET \"last\" = (joins.last << 40) | (\"weir_numbers\".\"last\" & 1099511627775) \
    FROM (SELECT max(substring(\"table\" FROM '^ join ([0-9]{1,7})$')::bigint) AS last FROM \"weir_numbers\" WHERE \"table\" LIKE ' join %') \
    AS joins WHERE \"table\" = '' AND (\"weir_numbers\".\"last\" >> 40) < joins.last; \
    SELECT \"last\", (SELECT \"last\" FROM \"weir_numbers\" WHERE \"table\" = 'JOINED'), \
    (SELECT \"last\" FROM \"weir_numbers\" WHERE \"table\" = 'MARKED'), \
    (SELECT string_agg(\"last\"::text, ' ') FROM \"weir_numbers\" WHERE \"table\" LIKE ' join %'), xmin FROM \"weir_numbers\" WHERE \"table\" = ''; \
    UPDATE \"weir_numbers\" SET \"last\" = (((\"last\" >> 40) + 1) << 40) | (\"last\" & 1099511627775) WHERE \"table\" = ''; \
    DELETE FROM \"weir_numbers\" WHERE \"table\" LIKE ' joined %'; \
    INSERT INTO \"weir_numbers\" SELECT 'JOINED', \"last\" >> 40 FROM \"weir_numbers\" WHERE \"table\" = ''; \
    INSERT INTO \"weir_numbers\" SELECT 'MARKED', (\"last\" >> 40) << 40 FROM \"weir_numbers\" WHERE \"table\" = '' ON CONFLICT DO NOTHING; \
    INSERT INTO \"weir_numbers\" SELECT ' join ' || (\"last\" >> 40), \"last\" FROM \"weir_numbers\" WHERE \"table\" = ''; \
    DELETE FROM \"weir_numbers\" WHERE (\"table\" LIKE ' commits %' OR \"table\" LIKE ' join %') \
    AND (\"last\" >> 40) < (SELECT (\"last\" >> 40) - 1024 FROM \"weir_numbers\" WHERE \"table\" = ''); \
    COMMIT";

/// The state of the database when a program joins.
pub(super) struct JoinAnswer {
    pub(super) commits: CommitsAtJoin,
    /// The last commits that programs have found when they joined.
    pub(super) joins: Vec<CommitNumber>,
    /// The transaction of the last commit or join.
    pub(super) counted: String,
    /// The timeline of the server, if it tells it.
    pub(super) timeline: Option<String>,
}

impl JoinAnswer {
    /// Joins.
    pub(super) async fn of(connection: &PostgresConnection, program: u64) -> Result<JoinAnswer, tokio_postgres::Error> {
        let timeline = writes_since_crash::timeline(connection).await?;
        let join = JOIN.replace("JOINED", &format!(" joined {program:016x}")).replace("MARKED", &row_of(program));
        let rows = connection.texts(&join).await?;
        let text = |column: usize| rows.last().and_then(|row| row.get(column)?.as_deref()).unwrap_or_default();
        let number = |column: usize| text(column).parse().ok();
        let last = CommitNumber(number(0).unwrap_or(0));
        Ok(JoinAnswer {
            commits: CommitsAtJoin { last, own_join: number(1), marked: number(2).map(CommitNumber) },
            joins: text(3).split(' ').filter_map(|join| join.parse().ok()).map(CommitNumber).collect(),
            counted: text(4).to_owned(),
            timeline,
        })
    }
}
