//! Files below one directory, and no way out of it.
//!
//! Everything goes through a [`Root`], which the embedder opens; a program names files relative to it. Nothing in a
//! path is decoded: `%2e%2e` is a name like any other.

mod open;
mod root;

pub use root::{FileError, Root};
