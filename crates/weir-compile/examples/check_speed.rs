//! How long checking takes: programs of 1,000 and 10,000 lines are made and compiled, and the best and median of several
//! rounds printed, with the parts of it. Run it with `cargo run --release -p weir-compile --example check_speed`.
#![allow(clippy::print_stdout, reason = "an example says what it measured")]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use weir_host::Library;
use weir_syntax::{SourceFile, SourceId};

/// How often each program is compiled.
const ROUNDS: usize = 15;

/// A program of about so many lines: records, enums, and `fn`s that call those before them.
fn program(lines: usize) -> String {
    let mut text = String::new();
    let mut written = 0;
    let mut part = 0;
    while written < lines {
        let callee = if part % 8 == 0 { "n + 1".to_owned() } else { format!("score{}(n)", part - 1) };
        let whole = format!(
            "/// A post of the kind {part}.\n\
             record Post{part} {{ id: Int, title: Text, tags: List(Text) }}\n\n\
             enum State{part} {{ Draft, Live(since: Int, views: Int), Gone(Text) }}\n\n\
             fn show{part}(post: Post{part}, state: State{part}) -> Text {{\n\
             \x20 let tags = for tag in post.tags {{ \"<{{tag}}>\" }}\n\
             \x20 match state {{\n\
             \x20   Draft => \"draft of {{post.title}}\"\n\
             \x20   Live(views: v, since: s) if v > 100 && s < 10 => \"{{post.title}}: {{v * 2}}\"\n\
             \x20   Live(..=0, _) => \"{{post.title}} {{tags}}\"\n\
             \x20   Live(s, _) => \"{{s + post.id}}\"\n\
             \x20   Gone(why) => why\n\
             \x20 }}\n\
             }}\n\n\
             fn score{part}(n: Int) -> Int {{\n\
             \x20 if n < 0 {{ return 0 }}\n\
             \x20 let half = n / 2\n\
             \x20 let rest = if half > 10 {{ half - 10 }} else {{ {callee} }}\n\
             \x20 rest * 3 - 1\n\
             }}\n\n"
        );
        written += whole.lines().count();
        _ = write!(text, "{whole}");
        part += 1;
    }
    text
}

fn measured(rounds: usize, mut work: impl FnMut()) -> (Duration, Duration) {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let begin = Instant::now();
            work();
            begin.elapsed()
        })
        .collect();
    times.sort();
    (times[0], times[times.len() / 2])
}

/// How long the check takes after an edit of one line in the middle, at best: with what is known from the check before, and
/// without taking the state before apart, which a language server does when it has answered.
fn edited(text: &str, library: &Library) -> Duration {
    let mut memo = weir_compile::Memo::default();
    let (mut times, mut before) = (Vec::new(), None);
    let middle = text.len() / 2 + text[text.len() / 2..].find("half - 10").expect("each part has one");
    for round in 0..ROUNDS {
        let changed = format!("{}half - 1{round}{}", &text[..middle], &text[middle + "half - 10".len()..]);
        let file = SourceFile::new("made.weir", changed);
        let begin = Instant::now();
        let checked = weir_compile::check_again(SourceId(0), &file, library, &mut memo);
        times.push(begin.elapsed());
        drop(before.replace(checked));
    }
    times.into_iter().skip(1).min().unwrap_or_default()
}

fn main() {
    let library = Library::default();
    for lines in [1_000, 10_000] {
        let text = program(lines);
        let file = SourceFile::new("made.weir", text.as_str());
        let said = weir_compile::compile(SourceId(0), &file, &library).diagnostics;
        assert!(said.is_empty(), "the made program is right: {said:?}");
        let (parse, _) = measured(ROUNDS, || _ = weir_syntax::parse(SourceId(0), &text));
        let (best, median) = measured(ROUNDS, || _ = weir_compile::check(SourceId(0), &file, &library));
        let edit = edited(&text, &library);
        println!(
            "{} lines: parse {parse:?}, check best {best:?}, median {median:?}, after an edit {edit:?}",
            text.lines().count()
        );
    }
}
