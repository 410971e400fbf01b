//! The `weir` command with the standard library.

fn main() -> weir::Exit {
    weir::cli().run()
}
