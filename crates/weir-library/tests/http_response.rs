//! Responses as programs create them, and header injections that are refused.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use bytes::Bytes;
use weir_library::html::unescaped;
use weir_library::http::{
    Response, ResponseError, bad_request, html, not_found, ok, problem, redirect, status, text, with_header,
};

fn shown(response: &Response) -> String {
    let media_type = response.field("content-type").unwrap_or_default();
    format!("{} {media_type}: {}", response.code().as_u16(), String::from_utf8_lossy(response.body()))
}

#[test]
fn each_function_creates_its_response() {
    let shown = [
        ok(Bytes::from_static(b"b"), "image/jpeg"),
        ok(Bytes::from_static(b"b"), "application/x-own; v=1"),
        text("hö"),
        html(&unescaped("<p>".into()), 200).0.unwrap(),
        bad_request("scale must be 1 to 8"),
        not_found(),
        status(418, "short and stout").unwrap(),
    ]
    .map(|response| shown(&response));
    assert_eq!(
        shown,
        [
            "200 image/jpeg: b",
            "200 application/x-own; v=1: b",
            "200 text/plain; charset=utf-8: hö",
            "200 text/html; charset=utf-8: <p>",
            "400 text/plain; charset=utf-8: scale must be 1 to 8",
            "404 text/plain; charset=utf-8: Not Found",
            "418 text/plain; charset=utf-8: short and stout",
        ]
    );
}

#[test]
fn header_fields_are_added_and_replaced() {
    let response = with_header(text("a"), "X-One", "1").unwrap();
    let response = with_header(response, "x-one", "2").unwrap();
    let response = with_header(response, "Content-Type", "text/css").unwrap();
    assert_eq!((response.field("x-ONE"), response.field("content-type")), (Some("2"), Some("text/css")));
}

#[test]
fn nothing_can_be_injected_into_the_head() {
    for value in ["a\r\nX: y", "a\n", "a\rb", "\0", "a\x7f", "ä"] {
        assert_eq!(with_header(text(""), "X", value).unwrap_err(), ResponseError::FieldValue("X".into()), "{value:?}");
    }
    for name in ["", "a b", "a:b", "a\r\nb", "ä"] {
        assert_eq!(with_header(text(""), name, "v").unwrap_err(), ResponseError::FieldName(name.into()), "{name:?}");
    }
    for name in ["Content-Length", "transfer-encoding", "Connection", "Upgrade", "TE", "Trailer"] {
        assert_eq!(with_header(text(""), name, "1").unwrap_err(), ResponseError::FramingField(name.into()));
    }
    assert_eq!(ok(Bytes::new(), "text/x\r\nX: y").field("content-type"), Some("text/xX: y"));
    let location = |url, external| redirect(url, external).0.unwrap().field("location").unwrap().to_owned();
    assert_eq!(location("/a b\r\nX: ä\"", false), "/a%20b%0D%0AX:%20%C3%A4%22");
    assert_eq!(location("https://a.example/b?c=d%20e#f", true), "https://a.example/b?c=d%20e#f");
}

#[test]
fn a_redirect_stays_on_the_site_unless_told_otherwise() {
    for url in ["/", "/a?b=//c", "?page=2", "#top", "./a", "../a", "/\t/evil.example", "/a//b"] {
        assert!(redirect(url, false).0.is_ok(), "{url:?}");
    }
    for url in [
        "",
        "//evil.example",
        "/\\evil.example",
        "https://evil.example",
        "javascript:alert(1)",
        "\t//evil.example",
        " /a",
        "evil.example",
    ] {
        let refused = redirect(url, false).0.unwrap_err();
        assert!(refused.message.contains("`external: true`"), "{url:?}");
    }
}

#[test]
fn problems_have_their_form() {
    assert_eq!(
        shown(&problem(409, "taken").unwrap()),
        "409 application/problem+json: {\"title\":\"Conflict\",\"status\":409,\"detail\":\"taken\"}"
    );
    assert_eq!(
        shown(&problem(404, "").unwrap()),
        "404 application/problem+json: {\"title\":\"Not Found\",\"status\":404}"
    );
    for code in [i64::MIN, 200, 303, 399, 600] {
        assert_eq!(problem(code, "").unwrap_err(), ResponseError::NoProblem(code));
    }
}

#[test]
fn header_fields_and_statuses_are_limited() {
    assert_eq!(with_header(text(""), "X", &"x".repeat(17_000)).unwrap_err(), ResponseError::TooManyFields);
    for code in [i64::MIN, 0, 100, 101, 199, 600, 65_736] {
        assert_eq!(status(code, "").unwrap_err(), ResponseError::Status(code));
    }
}
