//! The standard functions: http, files, image, text, time, stream.
//!
//! Each module is plain Rust that stands on a well-kept crate and can be used without Weir; the attribute above a
//! function is all that makes it a function of the language. [`library`] is all of them.
//!
//! `files` works below a [`files::Root`] that the embedder puts into the library's environment.

mod feed;
pub mod files;
pub mod http;
pub mod image;
pub mod stream;
pub mod text;
pub mod time;

/// The standard modules. The environment is empty: a program that uses `files` needs a [`files::Root`] in it.
#[must_use]
pub fn library() -> weir::Library {
    let mut library = weir::Library::default();
    for module in [http::http(), files::files(), image::image(), text::text(), time::time(), stream::stream()] {
        library.add(module).expect("the standard modules have different names");
    }
    library
}
