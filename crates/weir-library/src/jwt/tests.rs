//! Tokens that Python's `cryptography` signed, and the example of RFC 7515.

use weir::Secret;

use super::*;

const PEMS: [(&str, &str, &str); 3] = [
    ("RS256", include_str!("tests/RS256.pem"), include_str!("tests/RS256.token")),
    ("ES256", include_str!("tests/ES256.pem"), include_str!("tests/ES256.token")),
    ("EdDSA", include_str!("tests/EdDSA.pem"), include_str!("tests/EdDSA.token")),
];
const KEY_SET: &str = include_str!("tests/keys.json");
const EXPECTED: ExpectedClaims<'_> = ExpectedClaims {
    issuer: "https://login.example",
    audience: "shop",
    leeway: Duration::ZERO,
    now: Duration::from_secs(1_800_000_000),
};

fn key(algorithm: &str, pem: &str) -> Keys {
    let key = match algorithm {
        "RS256" => rs256(pem),
        "ES256" => es256(pem),
        _ => ed25519(pem),
    };
    key.unwrap()
}

/// Returns the reason why the token is refused.
fn refusal(token: &str, keys: &Keys, expected: &ExpectedClaims<'_>) -> String {
    verify_at(token.trim(), keys, expected).unwrap_err().message.to_string()
}

/// Signs with HS256 whatever header and claims are given.
fn signed(header: &str, claims: &str) -> String {
    let signed = format!("{}.{}", BASE64URL_NOPAD.encode(header.as_bytes()), BASE64URL_NOPAD.encode(claims.as_bytes()));
    let tag = ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &[7; 32]), signed.as_bytes());
    format!("{signed}.{}", BASE64URL_NOPAD.encode(tag.as_ref()))
}

fn shared_key() -> Keys {
    hs256(&Secret::new(vec![7; 32])).unwrap()
}

#[test]
fn tokens_of_another_implementation_are_verified() {
    let set = jwks(KEY_SET).unwrap();
    for (algorithm, pem, token) in PEMS {
        for keys in [key(algorithm, pem), set.clone()] {
            let claims = verify_at(token.trim(), &keys, &EXPECTED).unwrap();
            assert_eq!(crate::json::write(&crate::json::get(&claims, "sub").unwrap()), "\"ada\"", "{algorithm}");
        }
    }
}

#[test]
fn the_example_of_the_rfc_is_verified() {
    let key = "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow";
    let token = "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.\
                 eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.\
                 dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
    let keys = hs256(&Secret::new(BASE64URL_NOPAD.decode(key.as_bytes()).unwrap())).unwrap();
    let at = |seconds| ExpectedClaims {
        issuer: "joe",
        audience: "",
        leeway: Duration::ZERO,
        now: Duration::from_secs(seconds),
    };
    assert!(verify_at(token, &keys, &at(1_300_819_379)).is_ok());
    assert_eq!(refusal(token, &keys, &at(1_300_819_380)), "the token has expired");
    let leeway = ExpectedClaims { leeway: Duration::from_secs(60), ..at(1_300_819_439) };
    assert!(verify_at(token, &keys, &leeway).is_ok());
}

#[test]
fn a_changed_token_is_refused() {
    for (algorithm, pem, token) in PEMS {
        let (keys, token) = (key(algorithm, pem), token.trim());
        for at in 0..token.len() {
            let mut changed = token.as_bytes().to_vec();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(verify_at(&changed, &keys, &EXPECTED).is_err(), "{algorithm}: byte {at}");
        }
        for length in 0..token.len() {
            assert!(verify_at(&token[..length], &keys, &EXPECTED).is_err(), "{algorithm}: {length} bytes");
        }
        assert!(verify_at(&format!("{token}.{token}"), &keys, &EXPECTED).is_err());
    }
}

#[test]
fn the_token_does_not_choose_the_algorithm() {
    let claims = r#"{"exp": 2000000000}"#;
    let none = "no key has the algorithm and the name of the token's";
    for algorithm in ["none", "None", "", "HS384", "RS256", "ES256"] {
        assert_eq!(refusal(&signed(&format!(r#"{{"alg":"{algorithm}"}}"#), claims), &shared_key(), &EXPECTED), none);
    }
    let unsigned = signed(r#"{"alg":"none"}"#, claims);
    let unsigned = &unsigned[..=unsigned.rfind('.').unwrap()];
    // The classic confusion: the public key of RS256 as the secret of HS256.
    for (algorithm, pem, _) in PEMS {
        let message = signed(r#"{"alg":"HS256"}"#, claims);
        let message = &message[..message.rfind('.').unwrap()];
        let tag = ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, pem.as_bytes()), message.as_bytes());
        let confused = format!("{message}.{}", BASE64URL_NOPAD.encode(tag.as_ref()));
        assert_eq!(refusal(&confused, &key(algorithm, pem), &EXPECTED), none);
        assert_eq!(refusal(&confused, &jwks(KEY_SET).unwrap(), &EXPECTED), none);
        assert_eq!(refusal(unsigned, &key(algorithm, pem), &EXPECTED), none);
    }
}

#[test]
fn headers_that_are_ambiguous_or_demand_extensions_are_refused() {
    let claims = r#"{"exp": 2000000000}"#;
    let twice = refusal(&signed(r#"{"alg":"HS256","alg":"HS256"}"#, claims), &shared_key(), &EXPECTED);
    assert!(twice.contains("duplicate field `alg`"), "{twice}");
    let critical = signed(r#"{"alg":"HS256","crit":["b64"],"b64":false}"#, claims);
    assert!(refusal(&critical, &shared_key(), &EXPECTED).contains("`crit`"));
    let expiries = signed(r#"{"alg":"HS256"}"#, r#"{"exp":1,"exp":2000000000}"#);
    assert!(refusal(&expiries, &shared_key(), &EXPECTED).contains("duplicate field `exp`"));
}

#[test]
fn claims_are_checked() {
    let refused = |claims: &str, audience: &str| {
        let expected = ExpectedClaims { audience, ..EXPECTED };
        refusal(&signed(r#"{"alg":"HS256"}"#, claims), &shared_key(), &expected)
    };
    let with = |more: &str| format!(r#"{{"exp":2000000000,"iss":"https://login.example"{more}}}"#);
    assert_eq!(refused("{}", ""), "the token does not expire: it has no `exp`");
    assert_eq!(refused(r#"{"exp": 1800000000}"#, ""), "the token has expired");
    assert_eq!(refused(r#"{"exp": 1e308, "nbf": 1800000001}"#, ""), "the token is not valid yet");
    assert_eq!(refused(r#"{"exp": 2000000000}"#, ""), "the token has another issuer");
    assert_eq!(refused(&with(""), "shop"), "the token has no audience");
    assert_eq!(refused(&with(r#","aud":"bank""#), "shop"), "the token has another audience");
    assert_eq!(refused(&with(r#","aud":["bank"]"#), "shop"), "the token has another audience");
    assert!(refused(&with(r#","aud":"shop""#), "").contains("say which one"));
    assert!(refused(r#"{"exp": "never"}"#, "").contains("its claims are wrong"));
    let valid = signed(r#"{"alg":"HS256"}"#, &with(r#","aud":"shop""#));
    assert!(verify_at(&valid, &shared_key(), &EXPECTED).is_ok());
}

#[test]
fn keys_of_another_kind_or_too_short_are_refused() {
    assert!(hs256(&Secret::new(vec![7; 31])).is_err());
    for (algorithm, pem, _) in PEMS {
        assert_eq!(rs256(pem).is_ok(), algorithm == "RS256");
        assert_eq!(es256(pem).is_ok(), algorithm == "ES256");
        assert_eq!(ed25519(pem).is_ok(), algorithm == "EdDSA");
        for length in 0..pem.trim_end().len() {
            assert!(rs256(&pem[..length]).is_err() && es256(&pem[..length]).is_err());
        }
    }
    for set in ["", "{}", r#"{"keys":[]}"#, r#"{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}"#] {
        assert!(jwks(set).is_err(), "{set}");
    }
    let short = r#"{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"}]}"#;
    assert!(jwks(short).is_err());
    assert!(format!("{:?}", shared_key()).contains("HS256 key None"));
}

#[test]
fn a_long_token_is_refused_before_it_is_parsed() {
    let long = "a".repeat(TOKEN_BYTES_MAX + 1);
    assert_eq!(verify_at(&long, &shared_key(), &EXPECTED).unwrap_err().kind, FailureKind::Limit);
}
