//! The attributes with which a Rust function becomes a function of the host.
//!
//! [`macro@function`] leaves the function as it is and writes a hidden sibling beside it, `__weir_function_NAME`, that
//! makes its `weir::Function`: the signature read off the Rust types, and an adaptor that follows the protocol of
//! `weir::Call`. [`macro@library`] calls the siblings. All that the expansions name is under `::weir`, and what is only
//! for them under `::weir::macros`.
//!
//! Architecture invariant: this crate knows no types of Weir. It writes down what rustc then checks by traits.

use proc_macro::TokenStream;

mod adaptor;
mod batched;
mod construct;
mod derive;
mod docs;
mod function;
mod host;
mod library;
mod marks;
mod parameter;
mod type_syntax;

/// Makes a function, or each function of an `impl` block, callable from Weir.
///
/// The signature says how: `&` reads and `&mut` changes, `self` is private state of the call site (made by `Default`, or
/// by `new = path`, or by the function of the block that `#[new]` stands before: what that one takes is a parameter of
/// the others, and calls give it as constants), `async` may wait, `Result` may fail. `#[default(85)]` before a parameter gives its default,
/// `#[environment]` before a `&T` fills it from what the embedder gave. Marks say what a signature cannot:
///
/// | mark | meaning |
/// |---|---|
/// | `pure` | same input, same output, no effect |
/// | `reads` | looks at the outside world and leaves it as it was |
/// | `fresh = "2m"` | what it read may be reused that long |
/// | `deferrable` | its effect may follow the response |
/// | `idempotent` | doing it twice is as doing it once |
/// | `blocking` | holds its thread |
/// | `name = "…"` | its name in Weir, where it is not that in Rust |
///
/// On an `impl` block the marks are of all its functions; `#[weir::function(…)]` on one of them adds its own.
#[proc_macro_attribute]
pub fn function(marks: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(marks.into(), item.into()).into()
}

/// Makes an `async fn` that answers a slice of questions callable from Weir, one question a call.
///
/// `#[weir::batched(at_most = 500)]` on `async fn posts(ids: &[PostId]) -> Vec<Result<Post, Failure>>` is
/// `posts(id) -> Result(Post, Failure)` in Weir, whose calls the compiler may gather. The answers are in the order of
/// the questions. The parameter has the slice's name without its last `s`, or that of `each = "…"`; the marks of
/// [`macro@function`] may follow.
#[proc_macro_attribute]
pub fn batched(marks: TokenStream, item: TokenStream) -> TokenStream {
    batched::expand(marks.into(), item.into()).into()
}

/// Makes a module of functions: `weir::library!(blog: to_jpeg, Deflate::compress);` writes `pub fn blog() ->
/// weir::Module`.
///
/// Doc comments before the name are the module's, and a visibility there is the function's. Functions are named by the
/// path where they are defined.
#[proc_macro]
pub fn library(input: TokenStream) -> TokenStream {
    library::expand(input.into()).into()
}

/// Carries a Rust type over to Weir.
///
/// A struct with named fields is a record and an enum is an enum. A tuple struct is what it holds: one field is
/// that field (`PostId(i64)` is an `Int`), several are a tuple. With `#[weir(opaque)]` only functions of the host look
/// into it, and its values are shared, for which it has to be `Clone`; with `#[weir(opaque, unique)]` they are moved.
/// `#[weir(name = "image.Ppm")]` gives the whole name in Weir, which is else the Rust name.
#[proc_macro_derive(Type, attributes(weir))]
pub fn derive_type(input: TokenStream) -> TokenStream {
    derive::expand(input.into()).into()
}
