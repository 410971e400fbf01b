//! The `weir` command with the functions of a blog linked in.
//!
//!     cargo run -p blog -- run examples/blog/main.weir
//!     curl http://127.0.0.1:8080/

mod functions;
mod store;

fn main() -> weir::Exit {
    weir::cli().with(functions::blog).environment(store::Store::with_some_posts()).run()
}
