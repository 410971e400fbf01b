//! Paths, queries and bodies of requests become inputs of flows, or responses that name what is wrong with them.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

mod serving;
mod support;

use ParameterFrom::{Body, Cookie, Path, Query};
use serving::{Service, parameter, route};
use support::Client;
use weir::{ParameterFrom, Type, Value};

#[test]
fn parts_of_the_path_and_the_query_become_inputs() {
    let mut scale = parameter("scale", Type::Int, Query);
    scale.default = Some(Value::Int(8));
    let service = Service::start(vec![
        route("GET", "/{name}", vec![parameter("name", Type::Text, Path), scale]),
        route("GET", "/a/{x}/{y}", vec![parameter("y", Type::Int, Path), parameter("x", Type::Bool, Path)]),
        route(
            "GET",
            "/all",
            vec![
                parameter("order", Type::named("Order"), Query),
                parameter("ratio", Type::Float, Query),
                parameter("maybe", Type::option(Type::Text), Query),
                parameter("many", Type::list(Type::Int), Query),
                parameter("size", Type::option(Type::Size), Query),
                parameter("wait", Type::option(Type::Duration), Query),
            ],
        ),
        route("GET", "/files/{rest..}", vec![parameter("rest", Type::Text, Path)]),
    ]);
    for (target, told) in [
        ("/hills", "200 hills|8"),
        ("/hills?scale=3", "200 hills|3"),
        ("/hills?other=1&scale=-3&", "200 hills|-3"),
        ("/a%20b%2Fc+d%e2%82%ac?scale=%33", "200 a b/c+d€|3"),
        ("/a/true/-7", "200 -7|true"),
        ("/all?order=Down&ratio=0.5", "200 #1|0.5|#0|[]|#0|#0"),
        ("/all?order=Up&ratio=1&maybe=a+b%26&many=1&many=2", "200 #0|1.0|#1(\"a b&\")|[1, 2]|#0|#0"),
        ("/all?order=Up&ratio=1&maybe=&size=64mb&wait=200ms", "200 #0|1.0|#1(\"\")|[]|#1(64mb)|#1(200ms)"),
        ("/hills?scale=", "200 hills|8"),
        ("/all?order=Up&ratio=1&maybe=&size=&wait=", "200 #0|1.0|#1(\"\")|[]|#0|#0"),
        ("/files/a/b%2e/c", "200 a/b./c"),
    ] {
        assert_eq!(service.told("GET", target, ""), told, "{target}");
    }
}

#[test]
fn what_is_not_of_its_type_gets_a_400_that_names_it() {
    let service = Service::start(vec![
        route("GET", "/{number}", vec![parameter("number", Type::Int, Path), parameter("scale", Type::Int, Query)]),
        route("GET", "/text/{name}", vec![parameter("name", Type::Text, Path)]),
        route(
            "GET",
            "/all",
            vec![
                parameter("order", Type::option(Type::named("Order")), Query),
                parameter("yes", Type::option(Type::Bool), Query),
                parameter("ratio", Type::option(Type::Float), Query),
                parameter("many", Type::list(Type::Int), Query),
                parameter("size", Type::option(Type::Size), Query),
            ],
        ),
        route("GET", "/at/{time}", vec![parameter("time", Type::Time, Path)]),
    ]);
    for (target, told) in [
        (
            "/at/9999-12-31T23:59:59Z",
            "400 `time` in the path: expected a time between the years 1677 and 2262, found \"9999-12-31T23:59:59Z\"",
        ),
        (
            "/at/9999-12-32T23:59:59Z",
            "400 `time` in the path: expected a time such as `2026-11-22T20:15:00Z`, found \"9999-12-32T23:59:59Z\"",
        ),
        ("/1", "400 `scale` in the query: missing, expected a whole number"),
        ("/1?scale=big", "400 `scale` in the query: expected a whole number, found \"big\""),
        ("/1?scale=", "400 `scale` in the query: expected a whole number, found \"\""),
        ("/1?scale=1&scale=2", "400 `scale` in the query: given twice"),
        (
            "/1?scale=%zz",
            "400 `scale` in the query: expected two hexadecimal digits behind `%`, write `%25` for the character",
        ),
        ("/1?scale=%ff", "400 `scale` in the query: the percent-encoding is not that of UTF-8"),
        (
            "/x?scale=9223372036854775808",
            "400 `number` in the path: expected a whole number, found \"x\"\n\
             `scale` in the query: expected a whole number from -9223372036854775808 to 9223372036854775807, found \
             \"9223372036854775808\"",
        ),
        (
            "/text/%",
            "400 `name` in the path: expected two hexadecimal digits behind `%`, write `%25` for the character",
        ),
        ("/text/%c0%af", "400 `name` in the path: the percent-encoding is not that of UTF-8"),
        ("/all?order=Left", "400 `order` in the query: expected one of `Up`, `Down`, found \"Left\""),
        ("/all?yes=1", "400 `yes` in the query: expected `true` or `false`, found \"1\""),
        ("/all?ratio=inf", "400 `ratio` in the query: expected a number, found \"inf\""),
        ("/all?many=1&many=a", "400 `many` in the query: expected a whole number, found \"a\""),
        ("/all?size=64", "400 `size` in the query: expected a size such as `64mb`, found \"64\""),
        ("/all?size=99999999999tb", "400 `size` in the query: expected a size such as `64mb`, found \"99999999999tb\""),
    ] {
        assert_eq!(service.told("GET", target, ""), told, "{target}");
    }
    assert!(service.flows.begun.lock().unwrap().is_empty(), "no flow has begun");
}

/// A service with a route for each type of body.
fn bodies() -> Service {
    Service::start(vec![
        route("POST", "/post", vec![parameter("post", Type::named("Post"), Body)]),
        route("POST", "/text", vec![parameter("text", Type::Text, Body)]),
        route("POST", "/bytes", vec![parameter("bytes", Type::Bytes, Body)]),
        route("POST", "/maybe", vec![parameter("maybe", Type::option(Type::Int), Body)]),
        route(
            "POST",
            "/map",
            vec![parameter("map", Type::map(Type::Text, Type::tuple(vec![Type::Int, Type::Bool])), Body)],
        ),
    ])
}

#[test]
fn bodies_become_values_of_their_types() {
    let service = bodies();
    for (target, body, told) in [
        ("/post", r#"{"shape":"Dot","title":"a","tags":[],"more":1}"#, r#"200 ("a", [], #0, #0)"#),
        (
            "/post",
            r#"{"title":"ä","tags":["x","y"],"stars":3,"shape":{"Circle":2}}"#,
            r#"200 ("ä", ["x", "y"], #1(3), #1(2.0))"#,
        ),
        (
            "/post",
            r#"{"title":"","tags":[],"stars":null,"shape":{"Box":{"height":1,"width":2}}}"#,
            r#"200 ("", [], #0, #2(2, 1))"#,
        ),
        ("/post", r#"{"title":"","tags":[],"shape":{"Pair":[1,2]}}"#, r#"200 ("", [], #0, #3(1, 2))"#),
        ("/text", "as it is", "200 as it is"),
        ("/bytes", "four", "200 bytes(4)"),
        ("/maybe", "", "200 #0"),
        ("/maybe", "5", "200 #1(5)"),
        ("/map", r#"{"a":[1,true]}"#, r#"200 ["a": (1, true)]"#),
    ] {
        assert_eq!(service.told("POST", target, body), told, "{body}");
    }
}

#[test]
fn two_cookies_of_one_name_are_refused() {
    let service = Service::start(vec![route("GET", "/", vec![parameter("id", Type::option(Type::Text), Cookie)])]);
    let told = |cookies: &str| {
        let mut client = Client::connect(service.address);
        client.send(&format!("GET / HTTP/1.1\r\nHost: a\r\n{cookies}\r\n"));
        let answer = client.answer();
        format!("{} {}", answer.status, String::from_utf8(answer.body).unwrap())
    };
    assert_eq!(told("Cookie: __Host-id=a; id=b\r\n"), "200 #1(\"a\")");
    assert_eq!(told("Cookie: __Host-id=a; __Host-id=a\r\n"), "200 #1(\"a\")");
    let twice = "400 the cookie `__Host-id`: given twice";
    assert_eq!(told("Cookie: __Host-id=a; __Host-id=b\r\n"), twice);
    assert_eq!(told("Cookie: __Host-id=a\r\nCookie: __Host-id=b\r\n"), twice);
}

#[test]
fn json_bodies_say_that_they_are_json() {
    let service = bodies();
    let told = |target: &str, media_type: &str| {
        let mut client = Client::connect(service.address);
        client.send(&format!("POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n{media_type}\r\n5"));
        client.answer().status
    };
    for json in ["application/json", "Application/JSON; charset=utf-8", "application/merge-patch+json"] {
        assert_eq!(told("/maybe", &format!("Content-Type: {json}\r\n")), 200, "{json}");
    }
    for other in ["text/plain", "application/x-www-form-urlencoded", "text/plain; application/json", "json"] {
        assert_eq!(told("/maybe", &format!("Content-Type: {other}\r\n")), 415, "{other}");
        assert_eq!(told("/text", &format!("Content-Type: {other}\r\n")), 200, "{other}");
    }
    assert_eq!((told("/maybe", ""), told("/text", ""), told("/bytes", "")), (415, 200, 200));
}

#[test]
fn bodies_that_do_not_fit_are_refused_with_the_place() {
    let service = bodies();
    for (target, body, told) in [
        ("/post", "", "400 body: not JSON: expected a value, found the end at line 1 column 0"),
        ("/post", "{]", "400 body: not JSON: expected a key in double quotation marks at line 1 column 2"),
        ("/post", "[]", "400 body: expected an object, found a list of 0"),
        ("/post", r#"{"tags":[]}"#, "400 body.title: missing, expected a text"),
        ("/post", r#"{"title":1}"#, "400 body.title: expected a text, found `1`"),
        ("/post", r#"{"title":"","tags":["a",null]}"#, "400 body.tags[1]: expected a text, found `null`"),
        ("/post", r#"{"title":"","tags":[],"stars":1.5}"#, "400 body.stars: expected a whole number, found `1.5`"),
        (
            "/post",
            r#"{"title":"","tags":[],"shape":"Line"}"#,
            "400 body.shape: expected one of `Dot`, `Circle`, `Box`, `Pair`, found \"Line\"",
        ),
        (
            "/post",
            r#"{"title":"","tags":[],"shape":{"Circle":"x"}}"#,
            "400 body.shape.Circle: expected a number, found \"x\"",
        ),
        (
            "/post",
            r#"{"title":"","tags":[],"shape":{"Box":{"width":1}}}"#,
            "400 body.shape.Box.height: missing, expected a whole number",
        ),
        ("/post", r#"{"title":"","tags":[],"shape":"Circle"}"#, "400 body.shape.Circle: expected a payload"),
        ("/map", r#"{"a":[1]}"#, "400 body.a: expected a list of 2, found a list of 1"),
    ] {
        assert_eq!(service.told("POST", target, body), told, "{body}");
    }
}

#[test]
fn bodies_that_are_too_deep_too_large_or_no_text_are_refused() {
    let service = bodies();
    let deep = "[".repeat(100_000);
    assert!(service.told("POST", "/post", &deep).starts_with("400 body: JSON nests more than 127 deep"));
    let mut client = Client::connect(service.address);
    client.send_all_it_takes(b"POST /text HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n\xff\xfe");
    assert_eq!(client.answer().status, 400);
    let large = "x".repeat(2 * 1024 * 1024 + 1);
    assert_eq!(service.told("POST", "/text", &large), "413 Payload Too Large");
}
