//! Runs a Weir program with the standard library: `weir run` without the other commands, for machines that only serve.

fn main() -> weir::Exit {
    weir::cli().run_server()
}
