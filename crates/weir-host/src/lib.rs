//! The contract between Weir and functions written in Rust: types, values, signatures, sources.
