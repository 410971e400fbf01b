//! Attributes that turn Rust functions and types into functions and types of Weir.
//!
//! [`macro@function`] leaves the function unchanged and generates a hidden sibling, `__weir_function_NAME`, that
//! creates its `weir::Function`: the signature derived from the Rust types, and an adaptor that follows the protocol of
//! `weir::Call`. [`macro@library`] calls the siblings. All names in the expansions are below `::weir`; those that only
//! expansions use are below `::weir::macros`.
//!
//! Architecture invariant: this crate knows no types of Weir. It generates code that rustc checks through traits.

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
mod options;
mod parameter;
mod type_syntax;
mod words;

/// Makes a function, or each function of an `impl` block, callable from Weir.
///
/// The signature determines the interface: `&` reads and `&mut` changes an argument, `self` is private state of the
/// call site, `async` may wait, `Result` may fail. The state is created by `Default`, by `new = path`, or by the
/// function of the block with the attribute `#[new]`, whose parameters are added to the other functions and passed as
/// constants. `#[default(85)]` before a parameter sets its default; `#[environment]` before a `&T` takes it from the
/// values that the embedder provides; `#[options]` before the last parameter, a struct with [`macro@FunctionOptions`], makes
/// each of its fields a parameter. Marks express what a signature cannot:
///
/// | mark | meaning |
/// |---|---|
/// | `pure` | same input, same output, no effect |
/// | `reads` | observes the outside world without changing it |
/// | `fresh = "2m"` | the result may be reused for this time |
/// | `deferrable` | the effect may follow the response |
/// | `idempotent` | executing twice has the same effect as once |
/// | `commutes` | calls leave an argument that they change the same in whichever order they are executed |
/// | `barrier` | a call is ordered with all calls of its flow that are not pure, as that of `time.sleep` is |
/// | `blocking` | blocks its thread |
/// | `awaits_peer` | waits for the peer of a connection, which takes any time it likes, or for others whose work it shares |
/// | `internal` | only the compiler and the library call it; documentation and completion do not show it |
/// | `name = "…"` | name in Weir, if it differs from the name in Rust |
///
/// Marks on an `impl` block apply to all its functions; `#[weir::function(…)]` on one of them adds marks to it.
#[proc_macro_attribute]
pub fn function(marks: TokenStream, item: TokenStream) -> TokenStream {
    function::expand(marks.into(), item.into()).into()
}

/// Makes an `async fn` that answers a slice of arguments callable from Weir, with one argument for each call.
///
/// `#[weir::batched(at_most = 500)]` on `async fn posts(ids: &[PostId]) -> Vec<Result<Post, Failure>>` defines
/// `posts(id) -> Result(Post, Failure)` in Weir, whose calls the compiler may gather. The answers must be in the order
/// of the arguments. The parameter is named like the slice without its final `s`, or by `each = "…"`; the marks of
/// [`macro@function`] may follow.
#[proc_macro_attribute]
pub fn batched(marks: TokenStream, item: TokenStream) -> TokenStream {
    batched::expand(marks.into(), item.into()).into()
}

/// Defines a module of functions: `weir::library!(blog: to_jpeg, Deflate::compress);` generates `pub fn blog() ->
/// weir::Module`.
///
/// Doc comments before the name document the module, and a visibility there is that of the generated function.
/// Functions are named by the path at which they are defined.
#[proc_macro]
pub fn library(input: TokenStream) -> TokenStream {
    library::expand(input.into()).into()
}

/// Makes a Rust type usable in Weir.
///
/// A struct with named fields becomes a record, an enum an enum. A tuple struct becomes its contents: a single field
/// becomes that field (`PostId(i64)` is an `Int`), several become a tuple. With `#[weir(opaque)]`, only host functions
/// look into the type, and its values are shared, which requires `Clone`; with `#[weir(opaque, unique)]` they are
/// moved, and `handle = function` names the function that returns the handle of one (`weir::Value::handle`),
/// `snapshots = function` the one that returns the number of the store of whose snapshots its reads see one (`weir::Value::snapshots`).
/// `#[weir(name = "image.Ppm")]` sets the qualified name in Weir, which otherwise is the Rust name.
#[proc_macro_derive(Type, attributes(weir))]
pub fn derive_type(input: TokenStream) -> TokenStream {
    derive::expand(input.into()).into()
}

/// Makes the fields of a struct parameters that several host functions share: `#[options] options: CallOptions`.
///
/// `#[default(85)]` before a field sets its default, as before a parameter.
#[proc_macro_derive(FunctionOptions, attributes(default))]
pub fn derive_options(input: TokenStream) -> TokenStream {
    options::expand(input.into()).into()
}
