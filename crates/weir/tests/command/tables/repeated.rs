//! Transactions that PostgreSQL refuses, because another program is in the way, or whose connection is lost before their commit: they
//! are executed again, and neither the program nor its clients see that.

use std::thread;

use test_support::postgres::PostgresServer;

use super::{post, text};
use crate::support::{Answer, ENGINES, Scratch, Served, say};

const PROGRAM: &str = r#"use http

record Account { owner: Text, balance: Int }
record Entry { id: Int, owner: Text, before: Int }

table accounts: Account key owner
table entries: Entry key id auto index owner

shared counted = 0

fn add(owner: Text, amount: Int) -> Result(Int) {
  let entry = atomic accounts, entries {
    let before = accounts[owner] else { fail("no account") }
    let entry = entries.insert(Entry { owner, before: before.balance })?
    accounts.upsert(Account { ..before, balance: before.balance + amount }) else as failure {
      fail("seen: {failure.kind()}")
    }
    entry
  }
  Ok(entry)
}

fn asked(owner: Text) -> Result(Int) {
  atomic accounts {
    accounts.exists(|account| account.balance < 0)
    accounts.upsert(Account { owner, balance: 0 })?
    fail("asked")
  }
}

fn first(owner: Text) -> Result(Text) {
  let _entry = atomic accounts, entries {
    accounts.upsert(Account { owner, balance: 0 }) else { "swallowed" }
    entries.insert(Entry { owner, before: 0 })?
  }
  Ok("added")
}

service bank on http(port: 8080) {
  put "/{owner}" (owner: Text) {
    accounts.upsert(Account { owner, balance: 0 })?
    http.text("opened")
  }
  post "/first/{owner}" (owner: Text) {
    let added = first(owner) else as failure { return http.status(409, "{failure.kind()}")? }
    http.text(added)
  }
  post "/asked/{owner}" (owner: Text) {
    let never = asked(owner) else as failure { return http.status(409, "{failure.kind()}: {failure}")? }
    http.text("{never}")
  }
  post "/awaited/{owner}" (owner: Text) {
    let _entry = add(owner, 1) else as failure { return http.status(409, "{failure}")? }
    http.text("added")
  }
  post "/limited/{owner}" (owner: Text) {
    let _entry = add(owner, 1) within 60s else as failure { return http.status(409, "{failure}")? }
    http.text("added")
  }
  post "/soon/{owner}" (owner: Text) {
    let _entry = add(owner, 1) within 300ms else as failure { return http.status(409, "{failure}")? }
    http.text("added")
  }
  post "/placed/{owner}" (owner: Text) {
    atomic accounts, entries {
      let before = accounts[owner] else { fail("no account") }
      entries.insert(Entry { owner, before: before.balance })?
      accounts.upsert(Account { ..before, balance: before.balance + 1 })?
    }
    http.text("added")
  }
  post "/counted/{owner}" (owner: Text) {
    atomic accounts, entries, counted {
      counted.add(1)
      let before = accounts[owner] else { fail("no account") }
      entries.insert(Entry { owner, before: before.balance })?
      accounts.upsert(Account { ..before, balance: before.balance + 1 })?
    }
    http.text("added")
  }
  get "/counted" { http.text("{counted}") }
  post "/returned/{owner}" (owner: Text) {
    atomic accounts, entries {
      let before = accounts[owner] else { fail("no account") }
      entries.insert(Entry { owner, before: before.balance })?
      accounts.upsert(Account { ..before, balance: before.balance + 1 })?
      return http.text("added")
    }
  }
  post "/updated/{owner}" (owner: Text) {
    accounts.update(owner, |a| {
      entries.insert(Entry { owner, before: a.balance })?
      Account { ..a, balance: a.balance + 1 }
    })?
    http.text("added")
  }
  post "/each/{owner}" (owner: Text) {
    for amount in [2, 3, 0 - 4] { add(owner, amount)? }
    http.text("added")
  }
}
"#;

/// The ways of a transaction that are executed again, one of which changes a shared value, and those that are not: one in memory, and one
/// with an effect outside of a function.
const KINDS: &str = r#"use http, stdio

record Account { owner: Text, balance: Int }
record Seen { owner: Text, at: Int }

table accounts: Account key owner
table seen: Seen key owner soft(at_most: 100)
shared hits = 0

service bank on http(port: 8080) {
  post "/both/{owner}" (owner: Text) {
    atomic accounts, seen {
      accounts.upsert(Account { owner, balance: 1 })?
      seen.upsert(Seen { owner, at: 1 })?
    }
    http.text("done")
  }
  post "/value/{owner}" (owner: Text) {
    atomic accounts, hits {
      accounts.upsert(Account { owner, balance: 1 })?
      hits.add(1)
    }
    http.text("done")
  }
  post "/memory/{owner}" (owner: Text) {
    atomic seen { seen.upsert(Seen { owner, at: 1 })? }
    http.text("done")
  }
  post "/effect/{owner}" (owner: Text) {
    accounts.update(owner, |a| {
      stdio.print("changed")
      Account { ..a, balance: 1 }
    })?
    http.text("done")
  }
  post "/function/{owner}" (owner: Text) {
    accounts.update(owner, |a| Account { ..a, balance: a.balance + 1 })?
    http.text("done")
  }
}
"#;

/// A transaction that reads a row in each round, which it asks for beforehand.
const ROUNDS: &str = r#"use http, list

record Rate { id: Int, value: Int }

config bank_of: Text

table rates: Rate key id existing(database: bank_of)
table sums: Rate key id existing(database: bank_of, writable: true)

fn add() -> Result(Int) {
  let sum = atomic sums {
    let values = for id in list.numbers(0, 4)? {
      let rate = rates[id] else { fail("no rate") }
      sums.upsert(rate)?
      rate.value
    }
    values.sum()
  }
  Ok(sum)
}

service bank on http(port: 8080) {
  post "/" {
    let sum = add() else as failure { return http.status(409, "{failure.kind()}: {failure}")? }
    http.text("{sum}")
  }
}
"#;

const WAYS: [&str; 7] = ["awaited", "limited", "placed", "counted", "returned", "updated", "each"];

/// Processes of the server that wait for a row.
const WAITING: &str = "FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";

/// A server, and a schema of it.
#[derive(Clone, Copy)]
struct Bank<'s> {
    server: &'s PostgresServer,
    schema: &'s str,
}

impl Bank<'_> {
    fn start(self, engine: &str) -> (Scratch, Served) {
        let (program, address) = (Scratch::new("bank.weir", PROGRAM.as_bytes()), self.server.schema(self.schema));
        let served = Served::start(program.path(), &["--tables", &address, "--engine", engine]);
        self.prepare(&served);
        (program, served)
    }

    /// Has the program prepare its statements.
    fn prepare(self, served: &Served) {
        assert_eq!(super::request(served, "PUT", "/ada").map(|answer| answer.status), Some(200));
        for way in WAYS {
            assert_eq!(status(post(served, &format!("/{way}/ada"))), (200, "added".to_owned()), "{way}");
        }
        self.sql("CREATE TABLE released (number int)");
    }

    /// Refuses a request twice, which then succeeds, and has taken effect once.
    fn succeeds_behind_refusals(self, served: &Served, way: &str) {
        let (balance, entries) = (self.balance(), self.entries());
        let counted = || text(&served.get("/counted")).trim().parse::<i64>().expect("a number");
        let counted_before = counted();
        let answer = self.refused(served, &format!("/{way}/ada"), 2, || ());
        assert_eq!(answer, (200, "added".to_owned()), "{way} in `{}`", self.schema);
        assert_eq!(counted(), counted_before + i64::from(way == "counted"), "{way} in `{}`", self.schema);
        let of_way = if way == "each" { 3 } else { 1 };
        assert_eq!((self.balance(), self.entries()), (balance + 201, entries + of_way), "{way} in `{}`", self.schema);
    }

    fn sql(self, sql: &str) -> String {
        self.server.execute(self.schema, sql).trim().to_owned()
    }

    /// Waits until so many other programs wait for a row, and the one of the request, or until this has ended.
    fn until_waiting(self, others: usize, has_ended: impl Fn() -> bool) {
        let own = "application_name <> 'psql'";
        let count = format!("SELECT count(*) FILTER (WHERE NOT {own}), count(*) FILTER (WHERE {own}) {WAITING}");
        while self.sql(&count) != format!("{others}|1") {
            if has_ended() {
                self.sql("INSERT INTO released SELECT generate_series(1, 10)");
                return;
            }
        }
    }

    /// Adds 100 to a balance as another program, which ends when it is released.
    fn hold(self, number: usize) {
        self.sql(&format!(
            "DO $$ BEGIN UPDATE accounts SET balance = balance + 100 WHERE owner = 'ada'; \
             WHILE NOT EXISTS (SELECT 1 FROM released WHERE number = {number}) LOOP PERFORM pg_sleep(0.005); END LOOP; \
             END $$"
        ));
    }

    fn release(self, number: usize) {
        self.sql(&format!("INSERT INTO released VALUES ({number})"));
    }

    /// Has so many programs change a row, one after the other, each while a request has read the row and is about to change it. Calls
    /// `meanwhile` while the first does. Returns what the request gets.
    fn refused(self, served: &Served, path: &str, times: usize, meanwhile: impl FnOnce()) -> (u16, String) {
        self.sql("TRUNCATE released");
        let held_by = "SELECT count(*) FROM pg_locks WHERE granted AND relation = 'accounts'::regclass AND \
                       mode = 'RowExclusiveLock'";
        thread::scope(|scope| {
            let mut holding = vec![scope.spawn(move || self.hold(1))];
            while self.sql(held_by) != "1" {}
            let asked = scope.spawn(|| status(post(served, path)));
            let until = |others: usize| self.until_waiting(others, || asked.is_finished());
            until(0);
            meanwhile();
            until(0);
            for number in 1..=times {
                if number < times {
                    let next = number + 1;
                    holding.push(scope.spawn(move || self.hold(next)));
                    until(1);
                }
                self.release(number);
                if number < times {
                    // The next one holds the row, and the next attempt waits for that.
                    until(0);
                }
            }
            holding.into_iter().for_each(|held| held.join().expect("it is released"));
            asked.join().expect("the client ends")
        })
    }

    /// Has the trigger function `refuse` refuse so many attempts.
    fn refuse(self, times: i64) {
        self.sql(&format!(
            "CREATE SEQUENCE IF NOT EXISTS attempts;
             CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
               IF nextval('attempts') <= {times} THEN RAISE EXCEPTION 'refused' USING ERRCODE = '40001'; END IF;
               RETURN new;
             END $$;
             ALTER SEQUENCE attempts RESTART"
        ));
    }

    fn balance(self) -> i64 {
        self.sql("SELECT balance FROM accounts WHERE owner = 'ada'").parse().expect("a number")
    }

    fn entries(self) -> i64 {
        self.sql("SELECT count(*) FROM entries").parse().expect("a number")
    }
}

fn status(answer: Option<Answer>) -> (u16, String) {
    let answer = answer.expect("the program answers");
    (answer.status, text(&answer).trim().to_owned())
}

#[test]
fn a_transaction_that_is_refused_is_executed_again_under_each_engine() {
    let Some(server) = PostgresServer::start() else { return };
    for engine in ENGINES {
        let bank = Bank { server: &server, schema: &format!("refused_{}", engine.replace('-', "_")) };
        let (_program, served) = bank.start(engine);
        WAYS.iter().for_each(|way| bank.succeeds_behind_refusals(&served, way));
        assert_eq!(served.stop().0, Some(0));
    }
}

#[test]
fn a_transaction_of_an_existing_database_that_is_refused_is_executed_again() {
    let Some(server) = PostgresServer::start() else { return };
    let bank = Bank { server: &server, schema: "existing" };
    let of_others = "existing(database: bank_of, writable: true)";
    let text = PROGRAM
        .replace(
            "table accounts: Account key owner",
            &format!("config bank_of: Text\n\ntable accounts: Account key owner {of_others}"),
        )
        .replace("key id auto index owner", &format!("key id auto index owner {of_others}"));
    let program = Scratch::new("bank.weir", text.as_bytes());
    let option = format!("bank_of={}", server.schema("existing"));
    bank.sql("CREATE TABLE accounts (owner text COLLATE \"C\" PRIMARY KEY, balance bigint NOT NULL)");
    bank.sql(
        "CREATE TABLE entries (id bigserial PRIMARY KEY, owner text COLLATE \"C\" NOT NULL, before bigint NOT NULL)",
    );
    bank.sql("CREATE INDEX ON entries (owner)");
    let folder = Scratch::folder("repeated-existing");
    let served = Served::start(program.path(), &["--data", folder.path(), "--set", &option]);
    bank.prepare(&served);
    WAYS.iter().for_each(|way| bank.succeeds_behind_refusals(&served, way));
    assert_eq!(served.stop().0, Some(0));
}

#[test]
fn a_transaction_is_executed_again_when_its_connection_is_lost_before_the_commit_is_executed() {
    let Some(server) = PostgresServer::start() else { return };
    for engine in ENGINES {
        let bank = Bank { server: &server, schema: &format!("lost_{}", engine.replace('-', "_")) };
        let (_program, served) = bank.start(engine);
        for way in WAYS {
            let (balance, entries) = (bank.balance(), bank.entries());
            let lose = || {
                bank.sql(&format!("SELECT pg_terminate_backend(pid, 60000) {WAITING} AND application_name = 'weir'"));
            };
            let answer = bank.refused(&served, &format!("/{way}/ada"), 1, lose);
            assert_eq!(answer, (200, "added".to_owned()), "{way} under `{engine}`");
            let of_way = if way == "each" { 3 } else { 1 };
            assert_eq!((bank.balance(), bank.entries()), (balance + 101, entries + of_way), "{way} under `{engine}`");
        }
        assert_eq!(served.stop().0, Some(0));
    }
}

/// The answers behind that of a read that is refused say only that the transaction has failed.
#[test]
fn a_transaction_whose_read_is_refused_before_its_flow_comes_to_it_is_executed_again() {
    let Some(server) = PostgresServer::start() else { return };
    let bank = Bank { server: &server, schema: "rounds" };
    let program = Scratch::new("rounds.weir", ROUNDS.as_bytes());
    let option = format!("bank_of={}", server.schema("rounds"));
    bank.sql("CREATE SEQUENCE reads");
    bank.sql(
        "CREATE FUNCTION value(times int) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
           IF nextval('reads') <= times THEN RAISE EXCEPTION 'refused' USING ERRCODE = '40001'; END IF;
           RETURN 5;
         END $$",
    );
    let refuse = |times: u32| {
        let rates = format!("SELECT id, value({times}) AS value FROM generate_series(0::bigint, 3) AS id");
        bank.sql(&format!("CREATE OR REPLACE VIEW rates AS {rates}; ALTER SEQUENCE reads RESTART"));
    };
    refuse(0);
    bank.sql("CREATE TABLE sums (id bigint PRIMARY KEY, value bigint NOT NULL)");
    let folder = Scratch::folder("repeated-rounds");
    let served = Served::start(program.path(), &["--data", folder.path(), "--set", &option]);
    for times in [0, 1, 2, 6] {
        refuse(times);
        assert_eq!(status(post(&served, "/")), (200, "20".to_owned()), "{times} are refused");
    }
    refuse(100);
    let (code, said) = status(post(&served, "/"));
    assert_eq!(code, 409);
    assert!(said.starts_with("conflict: "), "{said}");
    assert_eq!(served.stop().0, Some(0));
}

/// A deferred trigger refuses the commits themselves.
#[test]
fn a_transaction_whose_commit_is_refused_is_executed_again() {
    let Some(server) = PostgresServer::start() else { return };
    let bank = Bank { server: &server, schema: "commits" };
    let (_program, served) = bank.start("event");
    bank.refuse(0);
    bank.sql(
        "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON entries DEFERRABLE INITIALLY DEFERRED FOR EACH ROW \
         EXECUTE FUNCTION refuse()",
    );
    for way in WAYS {
        let (balance, entries) = (bank.balance(), bank.entries());
        bank.refuse(2);
        assert_eq!(status(post(&served, &format!("/{way}/ada"))), (200, "added".to_owned()), "{way}");
        let of_way = if way == "each" { 3 } else { 1 };
        assert_eq!((bank.balance(), bank.entries()), (balance + 1, entries + of_way), "{way}");
        assert_eq!(bank.sql("SELECT last_value FROM attempts"), (2 + of_way).to_string(), "{way}");
    }
    assert_eq!(served.stop().0, Some(0));
}

/// A trigger refuses as many attempts as it is told, as if other programs had written the row.
#[test]
fn a_transaction_that_is_refused_eight_times_fails_as_one_of_the_program() {
    let Some(server) = PostgresServer::start() else { return };
    let bank = Bank { server: &server, schema: "eight" };
    let (_program, served) = bank.start("event");
    bank.refuse(7);
    bank.sql("CREATE TRIGGER refuse BEFORE INSERT ON accounts FOR EACH ROW EXECUTE FUNCTION refuse()");
    let (balance, entries) = (bank.balance(), bank.entries());
    assert_eq!(status(post(&served, "/awaited/ada")), (200, "added".to_owned()));
    assert_eq!((bank.balance(), bank.entries()), (balance + 1, entries + 1));
    bank.refuse(8);
    assert_eq!(status(post(&served, "/awaited/ada")), (409, "seen: conflict".to_owned()));
    assert_eq!((bank.balance(), bank.entries()), (balance + 1, entries + 1));
    assert_eq!(bank.sql("SELECT last_value FROM attempts"), "8");
    // The first statement of the last attempt begins it, and is tried eight times more.
    bank.refuse(100);
    assert_eq!(status(post(&served, "/first/ada")), (409, "conflict".to_owned()));
    assert_eq!((bank.balance(), bank.entries()), (balance + 1, entries + 1));
    assert_eq!(bank.sql("SELECT last_value FROM attempts"), "16");
    // One that can only fail does so as it would have without the refusal.
    bank.refuse(1);
    assert_eq!(status(post(&served, "/asked/ada")), (409, "program: asked".to_owned()));
    assert_eq!((bank.balance(), bank.entries()), (balance + 1, entries + 1));
    served.stop();
}

#[test]
fn a_time_limit_ends_the_attempts_of_a_transaction() {
    let Some(server) = PostgresServer::start() else { return };
    for engine in ENGINES {
        let bank = Bank { server: &server, schema: &format!("late_{}", engine.replace('-', "_")) };
        let (_program, served) = bank.start(engine);
        let (balance, entries) = (bank.balance(), bank.entries());
        let answer = bank.refused(&served, "/soon/ada", 1, || _ = bank.sql("SELECT pg_sleep(0.4)"));
        assert_eq!(answer, (409, "the time is up".to_owned()), "under `{engine}`");
        assert_eq!((bank.balance(), bank.entries()), (balance + 100, entries), "under `{engine}`");
        served.stop();
    }
}

#[test]
fn a_transaction_can_be_executed_again_if_all_that_it_changes_is_taken_back_with_it() {
    let program = Scratch::new("kinds.weir", KINDS.as_bytes());
    let shown = say(&["graph", program.path(), "--ir", "expr", "--after", "lock-order"]).output;
    let mut repeated = Vec::new();
    for flow in shown.split("flow \"post /").skip(1).filter(|flow| flow.contains("transaction as")) {
        repeated.extend(flow.split('/').next());
    }
    assert_eq!(repeated, ["both", "value", "function"], "{shown}");
}
