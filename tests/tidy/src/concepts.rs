//! Concepts of the field, and the names under which a workspace has them: of files, of types, and in captions.

use crate::File;
use crate::source;

/// Concepts of the papers and of the field, each by its standard name; names behind a bar are synonyms.
pub const CONCEPTS: &[&str] = &[
    // Compiler.
    "exhaustiveness",
    "usefulness",
    "liveness",
    "join point",
    "a normal form",
    "topological order",
    "move checker",
    "lost update",
    "cascade suppression|cascading diagnostics",
    "incremental check|incremental checking",
    "symbol index",
    "call path|call site",
    "compile time constant",
    "lock order|lock ordering",
    "two phase locking",
    "readers writer lock|readers writers lock",
    "dialect recovery",
    // Scheduler and runtime.
    "biased lock",
    "admission limit|admission limiter",
    "back pressure",
    "caller runs",
    "ticket order|ticket gate",
    "work queue",
    "ready queue",
    "bounded queue|bounded fifo queue",
    "adaptive spin|adaptive spinning",
    "ewma",
    "object pool",
    "fusion",
    "throughput history",
    "trust and trend",
    "section mapping",
    "wake up batching|wake up batch",
    "parking",
    "frame reuse|frame pool|reuse of frames",
    "striped counter",
    "work stealing|execution mode",
    // Events and library.
    "negative acknowledgement",
    "commit",
    "rendezvous",
    "lfu cache",
    "file validator|cache validator",
    // Drawing.
    "layered layout|layered graph|topological layout",
    "edge crossing|crossing reduction|crossings",
];

/// Returns the concepts that no name in these files has.
///
/// # Errors
/// Fails if a file is not made of Rust tokens.
pub fn missing(concepts: &[&'static str], files: &[File]) -> Result<Vec<&'static str>, proc_macro2::LexError> {
    let mut names = Vec::new();
    for file in files {
        names.push(normal(file.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".rs")));
        names.push(normal(file.text.lines().next().unwrap_or_default()));
        names.extend(source::scan(&file.text)?.types.iter().map(|found| normal(&found.text)));
    }
    let found = |concept: &&str| {
        concept.split('|').any(|synonym| names.iter().any(|name| format!(" {name} ").contains(&format!(" {synonym}"))))
    };
    Ok(concepts.iter().copied().filter(|concept| !found(concept)).collect())
}

/// The words of a name in lower case, with a blank between each two.
fn normal(name: &str) -> String {
    let mut words = String::new();
    let mut before_lower = false;
    for letter in name.chars() {
        if letter.is_uppercase() && before_lower {
            words.push(' ');
        }
        before_lower = letter.is_lowercase();
        words.extend(if letter.is_alphanumeric() { letter } else { ' ' }.to_lowercase());
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_concept_is_found_in_a_file_name_a_type_name_or_a_caption() {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let files = [
            file("a/src/biased_lock.rs", "//! A caption."),
            file("a/src/b.rs", "//! Caller-runs: the producer executes the item.\nstruct TicketGate;"),
        ];
        let concepts = ["biased lock", "caller runs", "two phase locking", "ticket order|ticket gate", "icket"];
        assert_eq!(missing(&concepts, &files).expect("these are tokens"), ["two phase locking", "icket"]);
    }
}
