//! The standard functions: http, files, image, text.
//!
//! Each module is plain Rust that stands on a well-kept crate and can be used without Weir; the attribute above a
//! function is all that makes it a function of the language.

pub mod files;
pub mod http;
pub mod image;
pub mod text;
