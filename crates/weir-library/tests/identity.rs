//! Randomness, identifiers, encodings, digests and passwords.
#![allow(clippy::unwrap_used, reason = "a test fails where it is surprised")]
#![allow(clippy::print_stderr, reason = "a test says that it was skipped")]

use std::process::{Command, Stdio};

use weir::{FailureKind, HostType, Secret, Value};
use weir_library::crypto::{self, PasswordHashing};
use weir_library::encoding::{base64_functions as base64, hex_functions as hex};
use weir_library::random::{self, Randomness};
use weir_library::uuid::{self, LastUuid};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Runs `openssl` with this input; `None` if it is not installed.
fn openssl(arguments: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    use std::io::Write;
    let spawned = Command::new("openssl").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = spawned else {
        eprintln!("skipped: openssl is not installed");
        return None;
    };
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "openssl {arguments:?}");
    Some(output.stdout)
}

#[test]
fn digests_agree_with_openssl() {
    for length in [0, 1, 63, 64, 65, 1_000, 100_000] {
        let input = vec![b'x'; length];
        let named = [
            ("-sha256", crypto::sha256(&input)),
            ("-sha384", crypto::sha384(&input)),
            ("-sha512", crypto::sha512(&input)),
        ];
        for (name, digest) in named {
            let Some(expected) = openssl(&["dgst", name, "-binary"], &input) else { return };
            assert_eq!(digest, expected, "{name} of {length} bytes");
        }
        let key = Secret::new(b"Jefe".to_vec());
        let hmac = openssl(&["dgst", "-sha256", "-binary", "-mac", "HMAC", "-macopt", "key:Jefe"], &input).unwrap();
        assert_eq!(crypto::hmac_sha256(&input, &key), hmac);
    }
}

#[test]
fn the_vectors_of_the_standards_are_computed() {
    // FIPS 180-4 for "abc", RFC 4231 test case 2.
    assert_eq!(
        hex::encode(&crypto::sha256(b"abc")),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    let key = Secret::new(b"Jefe".to_vec());
    let message = b"what do ya want for nothing?";
    assert_eq!(
        hex::encode(&crypto::hmac_sha256(message, &key)),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    );
    assert!(hex::encode(&crypto::hmac_sha512(message, &key)).starts_with("164b7a7bfcf819e2e395fbe73b56e0a3"));
    assert!(crypto::equal(b"abc", b"abc") && !crypto::equal(b"abc", b"abd") && !crypto::equal(b"abc", b"ab"));
}

#[test]
fn a_password_matches_its_hash_only() {
    let hashing = PasswordHashing::default();
    let hash = block_on(crypto::hash_password(&hashing, "correct horse")).unwrap();
    assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
    let other = block_on(crypto::hash_password(&hashing, "correct horse")).unwrap();
    assert_ne!(hash, other, "each hash has a salt of its own");
    let matches = |password: &str, hash: Option<&str>| {
        block_on(crypto::password_matches(&hashing, password, hash.map(weir::Text::from)))
    };
    assert_eq!(matches("correct horse", Some(&hash)), Ok(true));
    assert_eq!(matches("battery staple", Some(&hash)), Ok(false));
    assert_eq!(matches("", Some(&hash)), Ok(false));
    assert_eq!(matches("correct horse", None), Ok(false));
    // Computed by Argon2 of OpenSSL, through cryptography for Python, with the salt `0123456789abcdef`.
    let foreign = "$argon2id$v=19$m=1024,t=2,p=1$MDEyMzQ1Njc4OWFiY2RlZg$tCGweEmNNiMdfjqoFl9ZKRl/bO0NJTtJMmax1Il43Gc";
    assert_eq!(matches("correct horse", Some(foreign)), Ok(true));
}

#[test]
fn hashes_that_would_take_all_memory_or_time_are_refused() {
    let hashing = PasswordHashing::default();
    let matches = |hash: &str| block_on(crypto::password_matches(&hashing, "x", Some(hash.into())));
    for parameters in ["m=4194304,t=1,p=1", "m=1024,t=4000000,p=1", "m=1024,t=1,p=64"] {
        let hash = format!("$argon2id$v=19${parameters}$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZg");
        assert_eq!(matches(&hash).unwrap_err().kind, FailureKind::Limit, "{parameters}");
    }
    for text in [
        "",
        "x",
        "$2b$12$abc",
        "$argon2id$v=19$m=1024,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg",
        "$argon2d$v=19$m=1024,t=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$MDEyMzQ1Njc4OWFiY2RlZg",
    ] {
        assert_eq!(matches(text).unwrap_err().kind, FailureKind::Argument, "{text}");
    }
    let long = "x".repeat(1025);
    assert_eq!(block_on(crypto::hash_password(&hashing, &long)).unwrap_err().kind, FailureKind::Limit);
    assert_eq!(block_on(crypto::password_matches(&hashing, &long, None)), Ok(false));
}

#[test]
fn encodings_are_strict_in_both_directions() {
    let bytes: Vec<u8> = (0..=255).collect();
    assert_eq!(base64::decode(&base64::encode(&bytes)).unwrap(), bytes);
    assert_eq!(base64::decode_url(&base64::encode_url(&bytes)).unwrap(), bytes);
    assert_eq!(hex::decode(&hex::encode(&bytes).to_uppercase()).unwrap(), bytes);
    assert_eq!((base64::encode(b"\xfb\xff"), base64::encode_url(b"\xfb\xff")), ("+/8=".into(), "-_8".into()));
    let said = |result: Result<weir::Bytes, weir::Failure>| result.unwrap_err().message.to_string();
    assert_eq!(said(base64::decode("YQ")), "not base64: its length is wrong");
    assert_eq!(said(base64::decode("YR==")), "not base64: unused bits at position 1 are not zero");
    assert_eq!(said(base64::decode("Y*==")), "not base64: the character at position 1 is not part of it");
    assert_eq!(said(base64::decode_url("YQ==")), "not base64: the character at position 2 is not part of it");
    assert_eq!(said(hex::decode("abc")), "not hexadecimal: its length is wrong");
    assert_eq!(said(hex::decode("zz")), "not hexadecimal: the character at position 0 is not part of it");
}

#[test]
fn random_values_are_within_their_bounds() {
    let randomness = Randomness::default();
    assert_eq!(random::int(&randomness, 5, 6).0, Ok(5));
    for (from, to) in [(5, 5), (6, 5), (i64::MAX, i64::MIN)] {
        assert_eq!(random::int(&randomness, from, to).0.unwrap_err().kind, FailureKind::Argument);
    }
    for _ in 0..1_000 {
        assert!((0.0..1.0).contains(&random::float(&randomness).0.unwrap()));
        assert!(random::int(&randomness, i64::MIN, i64::MAX).0.unwrap() < i64::MAX);
    }
    assert_eq!(random::bytes(&randomness, 33).0.unwrap().len(), 33);
    for count in [-1, 1024 * 1024 + 1] {
        assert_eq!(random::bytes(&randomness, count).0.unwrap_err().kind, FailureKind::Limit);
        assert_eq!(crypto::random_bytes(count).0.unwrap_err().kind, FailureKind::Limit);
    }
    assert_eq!(random::pick(&randomness, &[]).0.unwrap(), None);
    assert_eq!(random::pick(&randomness, &[Value::Int(3)]).0.unwrap(), Some(Value::Int(3)));
}

#[test]
fn the_same_seed_gives_the_same_choices() {
    let numbers: Vec<Value> = (0..20).map(Value::Int).collect();
    let drawn = |seed| {
        let randomness = Randomness::seeded(seed);
        let mut shuffled = random::shuffle(&randomness, numbers.clone()).0.unwrap();
        let made = (shuffled.clone(), uuid::v4(&randomness).0.unwrap(), random::bytes(&randomness, 7).0.unwrap());
        shuffled.sort();
        assert_eq!(shuffled, numbers, "a shuffle neither loses nor repeats an element");
        made
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}

#[test]
fn identifiers_differ_and_have_their_form() {
    let (randomness, last) = (Randomness::default(), LastUuid::default());
    let made: Vec<String> = (0..1_000).map(|_| uuid::v7(&randomness, &last).0.unwrap()).collect();
    assert!(made.is_sorted_by(|a, b| a < b));
    let random = uuid::v4(&randomness).0.unwrap();
    assert_eq!((&random[14..15], random.len()), ("4", 36));
    assert_eq!(uuid::parse(&format!("{{{}}}", random.to_uppercase())).unwrap(), random);
    assert!(uuid::parse("00000000-0000").unwrap_err().message.starts_with("not a UUID"));
    let tokens: std::collections::BTreeSet<String> = (0..1_000).map(|_| crypto::token(16).0.unwrap()).collect();
    assert!(tokens.len() == 1_000 && tokens.iter().all(|token| token.len() == 32));
    for bytes in [0, 15, 1025] {
        assert_eq!(crypto::token(bytes).0.unwrap_err().kind, FailureKind::Argument);
    }
}

#[test]
fn a_secret_is_not_shown() {
    let secret = crypto::secret(b"hunter2").unwrap();
    assert_eq!(format!("{secret:?}"), "Secret");
    assert_eq!(secret.into_value().unwrap().to_string(), "<crypto.Secret>");
    assert!(crypto::secret(b"").is_err());
}

#[test]
fn a_signed_text_is_of_one_text_and_one_key() {
    let (key, other) = (Secret::new(b"a key".to_vec()), Secret::new(b"other".to_vec()));
    for text in ["", "ada", "é.\0;", "a.b"] {
        let signed = crypto::sign_text(text, &key);
        assert!(
            signed.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')),
            "{signed}"
        );
        assert_eq!(crypto::signed_text(&signed, &key).as_deref(), Some(text));
        assert_eq!(crypto::signed_text(&signed, &other), None);
        for at in 0..signed.len() {
            let mut changed = signed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(crypto::signed_text(&String::from_utf8(changed).unwrap(), &key), None, "{signed} at {at}");
        }
    }
    for text in ["", ".", "YQ", "YQ.", ".YQ", "YQ.YQ.YQ"] {
        assert_eq!(crypto::signed_text(text, &key), None, "{text}");
    }
}
