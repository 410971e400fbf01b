//! Functions on data: JSON, CSV rows, bytes, HTTP heads, lists and maps.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use indexmap::IndexMap;
use weir::{Bytes, Elements, Generic, Text, Value};
use weir_library::texts::Texts;
use weir_library::{bytes, csv, failure, http1, json, list, map, time};

#[test]
fn json_parts_are_accessed_without_copying() {
    let value =
        json::parse(r#"{"user": {"emails": ["a@b"], "age": 7, "rate": 1.5, "old": false, "none": null}}"#).unwrap();
    let found = |path: &str| json::find(&value, path).map(|value| json::write(&value));
    assert_eq!(found("user/emails/0").as_deref(), Some("\"a@b\""));
    assert_eq!(found("user/emails/1"), None);
    assert_eq!(found("user/emails/x"), None);
    assert_eq!(found("user/age/0"), None);
    let user = json::get(&value, "user").unwrap();
    assert_eq!(
        json::keys(&user).iter().map(Text::as_str).collect::<Vec<_>>(),
        ["emails", "age", "rate", "old", "none"]
    );
    let get = |key: &str| json::get(&user, key).unwrap();
    assert_eq!((json::int(&get("age")), json::float(&get("age")), json::int(&get("rate"))), (Some(7), Some(7.0), None));
    assert_eq!((json::bool(&get("old")), json::bool(&get("none"))), (Some(false), None));
    assert!(json::is_null(&get("none")) && !json::is_null(&get("old")));
    let emails = json::items(&get("emails"));
    assert_eq!(json::text(&emails[0]).as_deref(), Some("a@b"));
    assert_eq!(json::at(&get("emails"), 0), Some(emails[0].clone()));
    assert_eq!((json::at(&get("emails"), -1), json::items(&get("age")).len()), (None, 0));
}

#[test]
fn created_json_is_read_back() {
    let fields: IndexMap<Text, json::Json> = [
        ("text".into(), json::of_text("a \"b\" \n".into())),
        ("list".into(), json::list(vec![json::null(), json::of_bool(true), json::of_int(i64::MIN)]).unwrap()),
        ("float".into(), json::of_float(0.25).unwrap()),
    ]
    .into();
    let value = json::object(fields).unwrap();
    let written = json::write(&value);
    assert_eq!(written, r#"{"text":"a \"b\" \n","list":[null,true,-9223372036854775808],"float":0.25}"#);
    assert_eq!(json::parse(&written).unwrap(), value);
    assert!(json::of_float(f64::NAN).is_err() && json::of_float(f64::INFINITY).is_err());
}

#[test]
fn json_nesting_is_limited() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(json::parse(&nested(127)).is_ok());
    for depth in [128, 1_000_000] {
        assert!(json::parse(&nested(depth)).is_err());
    }
    let mut value = json::parse(&nested(126)).unwrap();
    value = json::list(vec![value]).unwrap();
    assert!(json::list(vec![value.clone()]).is_err());
    assert!(json::object([(Text::from("a"), value)].into()).is_err());
    for text in ["", "{", "[1,]", "{\"a\"}", "nul", "1 2", "\"\u{1}\"", "1e999"] {
        assert!(json::parse(text).is_err(), "{text}");
    }
}

#[test]
fn rows_round_trip() {
    let fields: Texts = ["plain", "a,b", "say \"x\"", "two\nlines", "", " "].into_iter().collect();
    let row = csv::row(&fields, ",").unwrap();
    assert_eq!(row, "plain,\"a,b\",\"say \"\"x\"\"\",\"two\nlines\",, ");
    let rows = csv::parse(&format!("1,2,3,4,5,6\n{row}\n"), ",").unwrap();
    assert!(rows[0].values().cloned().eq(fields.iter().map(Value::text)));
    assert_eq!(csv::row(&Texts::from_iter([""]), ",").unwrap(), "\"\"");
    assert_eq!(csv::row(&Texts::from_iter(["ends\n"]), ";").unwrap(), "\"ends\n\"");
    assert!(csv::parse("", ",").unwrap().is_empty());
    for unclosed in ["a\n\"1\n2\n", "a\n1\n\"", "\"a", "a,b\n1,\"2", "a\n\"x\"\"\n"] {
        let refused = csv::parse(unclosed, ",").map(|rows| rows.len()).unwrap_err();
        assert!(refused.message.contains("a quotation mark is not closed"), "{unclosed:?}: {refused}");
    }
    for closed in ["a\n\"1\n2\"", "a\n1\n\"\"", "a\nx\"\n", "a\n\"x\"\"\"", "a;b\n1;\"2;\"\r\n", "a\n\"x\"y\"\n"] {
        assert!(csv::parse(closed, if closed.contains(';') { ";" } else { "," }).is_ok(), "{closed:?}");
    }
    assert!(csv::parse("a\n1,2\n", ",").is_err() && csv::row(&fields, "\"").is_err());
}

#[test]
fn a_bad_row_is_named_by_its_own_lines() {
    let says =
        |text: &str, separator| csv::parse(text, separator).map(|rows| rows.len()).unwrap_err().message.to_string();
    let fewer = "1 field, but there are 2 columns";
    let more = "3 fields, but there are 2 columns; enclose a field that contains \",\" in quotation marks";
    let unclosed = "; a quotation mark in line 3 may be unclosed";
    for line_break in ["\n", "\r\n", "\r"] {
        for (text, says_this) in [
            ("a,b\n1,2\n\n\n5", format!("line 5: {fewer}")),
            ("\n\na,b\n\n1,2,3\n", format!("line 5: {more}")),
            ("a,b\n1,\"x\n\ny\"\n\n6\n7,8\n", format!("line 6: {fewer}")),
            ("a,b\n\n\"3\n4\"\n5,6\n", format!("lines 3 to 4: {fewer}{unclosed}")),
            ("a,b\n1,2\n\"3,4\n", format!("line 3: {fewer}{unclosed}")),
            ("a,b\n1\n\"3,4\n5\"", format!("line 2: {fewer}")),
            ("a,b\n1,\"2\n3", "line 2: a quotation mark is not closed".to_owned()),
            ("\n\"a,b\n1,2\n", "line 2: a quotation mark is not closed".to_owned()),
            ("\u{feff}\"a\n\",b\n3", format!("line 3: {fewer}")),
        ] {
            let text = text.replace('\n', line_break);
            assert_eq!(says(&text, ","), says_this, "{text:?}");
        }
    }
    let semicolons =
        "line 2: 3 fields, but there are 2 columns; enclose a field that contains \";\" in quotation marks";
    assert_eq!(says("a;b\n1;2;3\n", ";"), semicolons);
}

#[test]
fn bytes_are_sliced_and_joined() {
    let all = Bytes::from_static(b"hello world");
    assert_eq!((bytes::length(&all), bytes::is_empty(&all), bytes::is_empty(b"")), (11, false, true));
    let cut = |from, to| bytes::slice(all.clone(), from, to);
    assert_eq!((cut(0, 5), cut(6, 99), cut(-3, 1)), ("hello".into(), "world".into(), "h".into()));
    assert_eq!((cut(5, 2), cut(99, i64::MAX), cut(i64::MIN, -1)), (Bytes::new(), Bytes::new(), Bytes::new()));
    assert_eq!(bytes::join(&[cut(0, 5), cut(5, 11)]).unwrap(), all);
    let large = Bytes::from(vec![0; bytes::BYTES_MAX / 2 + 1]);
    assert!(bytes::join(&[large.clone(), large]).is_err());
    assert_eq!(bytes::to_text(&bytes::of_text("grün")).unwrap(), "grün");
    assert_eq!(bytes::to_text(b"ab\xff").unwrap_err().message.as_str(), "byte 2 is not UTF-8");
    assert_eq!((bytes::find(&all, b"wor"), bytes::find(&all, b"x")), (Some(6), None));
    assert!(bytes::starts_with(&all, b"hell") && bytes::ends_with(&all, b"world") && !bytes::ends_with(&all, b"hello"));
}

#[test]
fn bytes_hold_whole_numbers() {
    let written = |int, length| bytes::of_int(int, length).map(|bytes| bytes.to_vec()).ok();
    assert_eq!(written(258, 4), Some(vec![0, 0, 1, 2]));
    assert_eq!((written(255, 1), written(256, 1), written(-1, 8)), (Some(vec![255]), None, None));
    assert_eq!((written(0, 0), written(0, 9), written(i64::MAX, 8).map(|all| all[0])), (None, None, Some(127)));
    let read = |bytes: &[u8]| bytes::to_int(bytes).ok();
    assert_eq!((read(&[1, 2]), read(&[0; 20]), read(&[])), (Some(258), Some(0), None));
    assert_eq!((read(&i64::MAX.to_be_bytes()), read(&[128, 0, 0, 0, 0, 0, 0, 0])), (Some(i64::MAX), None));
    assert_eq!((read(&[1; 9]), read(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 7])), (None, Some(7)));
    let at = |position| bytes::at(b"a\xff", position);
    assert_eq!((at(0), at(1), at(2), at(-1)), (Some(97), Some(255), None, None));
}

#[test]
fn sha1_is_that_of_the_standard() {
    let digest = weir_library::crypto::sha1(b"abc");
    assert_eq!((&digest[..4], digest.len()), (&[0xa9, 0x99, 0x3e, 0x36][..], 20));
}

#[test]
fn a_request_head_is_parsed() {
    let head = b"GET /a%20b/c.html?x=1&y HTTP/1.1\r\nHost: me\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 12\r\n\r\n";
    let request = http1::parse(head).unwrap();
    assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "a b/c.html"));
    assert_eq!((request.query.as_deref(), request.keep_alive, request.length), (Some("x=1&y"), true, 12));
    assert_eq!(http1::header(&request, "X-a").as_deref(), Some("1, 2"));
    assert_eq!(http1::header(&request, "none"), None);
    let kept = |head: &str| http1::parse(format!("{head}\r\n\r\n").as_bytes()).unwrap().keep_alive;
    assert!(!kept("GET / HTTP/1.0") && kept("GET / HTTP/1.0\r\nConnection: Keep-Alive"));
    assert!(!kept("GET / HTTP/1.1\r\nConnection: x, Close") && kept("GET / HTTP/1.1\r\nConnection: closed"));
}

#[test]
fn a_malformed_head_is_refused() {
    let says = |head: &str| http1::parse(head.as_bytes()).err().map(|failure| failure.message.to_string());
    let get = |fields: &str| says(&format!("GET / HTTP/1.1\r\n{fields}\r\n\r\n"));
    assert_eq!(says("GET / HTTP/1.1\r\nA: b\r\n").as_deref(), Some("the head is incomplete"));
    assert_eq!(says("hello\r\n\r\n").as_deref(), Some("not a request: invalid token"));
    assert_eq!(get("Transfer-Encoding: chunked").as_deref(), Some("chunked bodies are not supported"));
    for length in ["-1", "+1", "x", "", "1, 1", "99999999999999999999"] {
        assert_eq!(
            get(&format!("Content-Length: {length}")).as_deref(),
            Some("the length of the body is not a number")
        );
    }
    let bare = "not a request: a line ends without a carriage return";
    assert_eq!(says("GET / HTTP/1.1\nHost: a\r\n\r\n").as_deref(), Some(bare));
    assert_eq!(says("GET / HTTP/1.1\r\nHost: a\r\n\n").as_deref(), Some(bare));
    assert_eq!(get("Host: a\r\nHOST: a").as_deref(), Some("not a request: it names two hosts"));
    assert_eq!(get(&"A: b\r\n".repeat(70)).as_deref(), Some("the head has more than 64 fields"));
    assert_eq!(says("GET /%ff HTTP/1.1\r\n\r\n").as_deref(), Some("the path is not UTF-8"));
}

#[test]
fn a_response_head_is_composed() {
    let head = http1::head(200, 5, true, "text/plain").unwrap();
    assert_eq!(
        head,
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\n"
    );
    assert!(http1::head(404, 0, false, "a").unwrap().starts_with(b"HTTP/1.1 404 Not Found\r\n"));
    for (status, length, kind) in [(99, 0, "a"), (1000, 0, "a"), (200, -1, "a"), (200, 0, "a\r\nSet-Cookie: b")] {
        assert!(http1::head(status, length, true, kind).is_err(), "{status} {length} {kind}");
    }
}

fn list_of(numbers: &[i64]) -> Elements {
    numbers.to_vec().into()
}

fn ints(numbers: &[i64]) -> Vec<Value> {
    numbers.iter().copied().map(Value::Int).collect()
}

#[test]
fn a_list_with_another_element_is_changed_in_place_if_nothing_else_uses_it() {
    let list = list_of(&[1, 2, 3]);
    let place = |list: &Elements| list.as_ints().unwrap().as_ptr();
    let before = place(&list);
    let alone = list::with(list, 1, Value::Int(9)).0.unwrap();
    assert_eq!((alone.to_vec(), place(&alone)), (ints(&[1, 9, 3]), before));
    let copied = list::with(alone.clone(), 2, Value::Int(7)).0.unwrap();
    assert_eq!((alone.to_vec(), copied.to_vec()), (ints(&[1, 9, 3]), ints(&[1, 9, 7])));
    for position in [-1, 3, i64::MAX] {
        let failure = list::with(alone.clone(), position, Value::Unit).0.unwrap_err();
        assert_eq!(failure.message.as_str(), format!("index {position} of a list of 3"));
    }
}

#[test]
fn lists_are_sliced_sorted_and_joined() {
    let values = ints(&[3, 1, 3, 2]);
    let (all, none) = (list_of(&[3, 1, 3, 2]), Elements::default());
    assert_eq!((list::first(&all), list::last(&all)), (Some(Value::Int(3)), Some(Value::Int(2))));
    assert_eq!((list::first(&none), list::last(&none)), (None, None));
    assert_eq!((list::contains(&all, &Value::Int(1)), list::contains(&all, &Value::Int(9))), (true, false));
    assert_eq!((list::position(&all, &Value::Int(3)), list::position(&all, &Value::Int(9))), (Some(0), None));
    for (count, taken) in [(-1, 0), (0, 0), (2, 2), (4, 4), (i64::MAX, 4)] {
        assert_eq!(list::concat(vec![list::take(all.clone(), count), list::skip(all.clone(), count)]).unwrap(), all);
        assert_eq!(list::take(all.clone(), count).len(), taken);
    }
    assert_eq!(list::reverse(all.clone()), list_of(&[2, 3, 1, 3]));
    assert_eq!(list::sort(all), list_of(&[1, 2, 3, 3]));
    assert_eq!(list::unique(values.clone()), ints(&[3, 1, 2]));
    assert_eq!(list::concat(vec![list_of(&[1]), none, list_of(&[2, 3])]).unwrap(), list_of(&[1, 2, 3]));
    assert_eq!(list::numbers(-1, 2).unwrap(), [-1, 0, 1]);
    assert!(list::numbers(5, i64::MIN).unwrap().is_empty() && list::numbers(i64::MIN, i64::MAX).is_err());
    assert_eq!(list::numbered(ints(&[7])), [(0, Value::Int(7))]);
    assert_eq!(list::zip(values, vec![Generic(Value::Unit)]), [(Value::Int(3), Generic(Value::Unit))]);
}

#[test]
fn lists_have_min_max_sum_and_present_values() {
    let (all, none) = (list_of(&[3, -1, 2]), Elements::default());
    assert_eq!((list::min(&all), list::max(&all)), (Some(Value::Int(-1)), Some(Value::Int(3))));
    assert_eq!((list::min(&none), list::max(&none)), (None, None));
    let sum = |numbers: &[i64]| list::sum(numbers).0.map_err(|failure| failure.message.to_string());
    assert_eq!((sum(&[]), sum(&[3, -1, 2])), (Ok(0), Ok(4)));
    assert_eq!(sum(&[i64::MAX, 1, -1]), Ok(i64::MAX));
    assert_eq!(sum(&[i64::MAX, 1]), Err("the sum does not fit into an `Int`".to_owned()));
    assert_eq!(list::present(vec![None, Some(Value::Int(1)), None, Some(Value::Int(2))]), ints(&[1, 2]));
}

#[test]
fn a_time_is_a_number_of_seconds() {
    for seconds in [0, 1, -1, 1_800_000_000, -9_223_372_036, 9_223_372_036] {
        assert_eq!(time::unix(time::from_unix(seconds).unwrap()), seconds);
    }
    let half_before = std::time::UNIX_EPOCH - std::time::Duration::from_millis(500);
    assert_eq!(time::unix(half_before), -1);
    for seconds in [i64::MAX, i64::MIN, 9_223_372_037] {
        assert!(time::from_unix(seconds).is_err(), "{seconds}");
    }
}

#[test]
fn maps_keep_the_order_of_their_entries() {
    let entry = |key, value| (Generic(Value::Int(key)), Generic(Value::Int(value)));
    let all = map::of(vec![entry(2, 20), entry(1, 10), entry(2, 21)]);
    assert_eq!(map::entries(all.clone()), [entry(2, 21), entry(1, 10)]);
    assert_eq!(map::keys(&all), [entry(2, 0).0, entry(1, 0).0]);
    assert_eq!(map::values(all.clone()), [entry(0, 21).1, entry(0, 10).1]);
    assert!(map::contains(&all, &entry(1, 0).0) && !map::contains(&all, &entry(3, 0).0));
    let (key, value) = entry(3, 30);
    assert_eq!(map::entries(map::with(all.clone(), key, value)), [entry(2, 21), entry(1, 10), entry(3, 30)]);
    assert_eq!(map::entries(map::without(all.clone(), &entry(2, 0).0)), [entry(1, 10)]);
    assert_eq!(map::entries(map::sort(all.clone())), [entry(1, 10), entry(2, 21)]);
    let other = map::of(vec![entry(4, 40), entry(2, 22)]);
    assert_eq!(map::entries(map::merged(all, other)), [entry(2, 22), entry(1, 10), entry(4, 40)]);
}

#[test]
fn failures_are_created_and_inspected() {
    let made = failure::of("too bad".into());
    assert_eq!((failure::message(made.clone()).as_str(), failure::kind(made).as_str()), ("too bad", "program"));
}
