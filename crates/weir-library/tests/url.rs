//! URLs: parts, references, percent-encodings, and texts that are refused.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]

use weir_library::url::{decode, join, parse};

#[test]
fn a_url_has_parts() {
    let url = parse("HTTPS://ada@A.example:8443/x/../b%20c?q=1&r#top").unwrap();
    assert_eq!((url.scheme.as_str(), url.user.as_str(), url.host.as_deref()), ("https", "ada", Some("a.example")));
    assert_eq!((url.port, url.path.as_str()), (Some(8443), "/b%20c"));
    assert_eq!((url.query.as_deref(), url.fragment.as_deref()), (Some("q=1&r"), Some("top")));
    let mail = parse("mailto:ada@example.org").unwrap();
    assert_eq!((mail.host, mail.path.as_str(), mail.query), (None, "ada@example.org", None));
    assert_eq!(parse("https://a.example:443").unwrap().port, None);
}

#[test]
fn what_is_not_a_url_is_refused() {
    for text in ["", "/a", "a.example", "https://", "https://a.example:99999", "https://[::1"] {
        let refused = parse(text).unwrap_err();
        assert!(refused.to_string().contains("is not a URL"), "{text}: {refused}");
    }
}

#[test]
fn a_reference_leads_to_a_url() {
    let on = |reference: &str| join("https://a.example/b/c/e?q#f", reference).unwrap();
    assert_eq!(on("../d"), "https://a.example/b/d");
    assert_eq!(on("/d?x=1"), "https://a.example/d?x=1");
    assert_eq!(on("//b.example"), "https://b.example/");
    assert!(join("/a", "b").is_err() && join("mailto:ada@example.org", "b").is_err());
}

#[test]
fn percent_encodings_are_decoded() {
    assert_eq!(decode("a%20b+c%C3%BC%2f").unwrap(), "a b+c\u{fc}/");
    assert_eq!(decode("100%").unwrap(), "100%");
    assert!(decode("%ff").is_err());
}
