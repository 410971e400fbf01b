//! Law of platforms: the runtime and the scheduler read clocks, thread identities and random numbers in one file only.

use tidy::{files, root};

/// Crates whose executions a test must be able to script.
const CRATES: [&str; 2] = ["weir-runtime", "weir-scheduler"];
/// The file of a crate that has its platform trait.
const PLATFORM: &str = "/src/platform.rs";
/// Sources of time, identity and randomness.
const FORBIDDEN: &[&str] = &[
    "Instant::now",
    "SystemTime::now",
    ".elapsed()",
    "ThreadId",
    "thread::current().id()",
    "RandomState",
    "rand::",
    "fastrand",
    "getrandom",
];

#[test]
fn time_identity_and_randomness_come_from_the_platform() {
    for name in CRATES {
        let sources = files(&root().join("crates").join(name).join("src"), ".rs");
        assert!(sources.iter().any(|file| file.path.ends_with(PLATFORM)), "{name} has no platform");
        for file in sources.iter().filter(|file| !file.path.ends_with(PLATFORM)) {
            let code = file.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            for (at, line) in code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
                let found = FORBIDDEN.iter().find(|forbidden| names(line, forbidden));
                assert_eq!(found, None, "{}:{}: ask the platform", file.path, at + 1);
            }
        }
    }
}

/// Returns true if the line has this text, and not as the end of a longer word.
fn names(line: &str, text: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(text).any(|(at, _)| !text.starts_with(is_word) || !line[..at].ends_with(is_word))
}
