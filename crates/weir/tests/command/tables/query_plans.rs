//! `weir tables` shows the statements of a program with the plans of the database.

use crate::support::{Scratch, Served, TableStore, say};

const MAIL: &str = r#"use http

record User { name: Text, mood: Option(Text) }
record Message { id: Int, from: Text, to: Text, size: Int, read: Bool }

table users: User key name
table messages: Message key id auto index (to, read)
table seen: User key name soft(ttl: 5m)

service mail on http(port: 8080) {
  get "/{me}" (me: Text, after: Int = 0) {
    let page = for m in messages if m.to == me && m.id > after order by m.size desc limit 50 { (m.from, users[m.from]) }
    http.json((page, unread(me), (for m in messages if m.from == me { m.size }).sum(), seen[me]))
  }
  get "/{me}/unread" (me: Text) { http.json(unread(me)) }
  get "/{me}/unread/again" (me: Text) { http.json(messages.count(|m| m.to == me && !m.read)) }
  get "/calm" { http.json(users.count(|user| user.mood == None)) }
  delete "/{me}" (me: Text) {
    seen.delete(me)?
    users.delete(me)?
    http.json(messages.delete_all(|m| m.to == me)?)
  }
}

fn unread(me: Text) -> Int { messages.count(|m| m.to == me && !m.read) }
"#;

#[test]
fn every_statement_is_shown_with_its_places_and_its_plan() {
    let program = Scratch::new("mail.weir", MAIL.as_bytes());
    for store in TableStore::each("query-plans") {
        let tables = || {
            let said = say(&[&["tables", program.path()], &store.with(&[])[..]].concat());
            assert_eq!(said.code, 0, "{}", said.messages);
            said.output
        };
        let before = tables();
        let served = Served::start(program.path(), &store.with(&[]));
        assert_eq!(served.get("/calm").status, 200);
        // The program runs meanwhile.
        let after = tables();
        served.stop();
        let is_sqlite = !store.is_shared();
        assert_eq!(before.contains("SEARCH"), is_sqlite, "{before}");
        for shown in [&before, &after] {
            let count = format!("at {0}:16:51, {0}:25:30\n    SELECT count(*) FROM \"messages\" WHERE", program.path());
            assert!(shown.contains(&count), "{shown}");
            assert!(!shown.contains("\"seen\""), "soft tables have no statements in SQL: {shown}");
        }
        let plans: &[&str] = if is_sqlite {
            &[
                "SEARCH users USING PRIMARY KEY (name=?)",
                "SEARCH messages USING INDEX weir index messages (to, read) (to=?)\n      USE TEMP B-TREE FOR ORDER BY",
                "SEARCH messages USING COVERING INDEX weir index messages (to, read) (to=? AND read=?)",
                "    SELECT coalesce(sum(\"size\" >> 32), 0), coalesce(sum(\"size\" & 4294967295), 0) FROM \"messages\" \
                 WHERE \"from\" = ?1\n      SCAN messages",
                "DELETE FROM \"messages\" WHERE \"to\" = ?1\n      SEARCH messages",
            ]
        } else {
            &[
                "Index Scan using users_pkey on users",
                "Sort Key: size DESC, id\n",
                "Bitmap Index Scan on \"weir index messages (to, read)\"",
                "Seq Scan on messages\n              Filter: (\"from\" = $1)",
                "    DELETE FROM \"messages\" WHERE \"to\" = $1\n      Delete on messages",
            ]
        };
        for plan in plans {
            assert!(after.contains(plan), "{plan} is not in {after}");
            assert!(before.contains(plan) || !is_sqlite, "{plan} is not in {before}");
        }
    }
}
