//! The `weir` command with the board of the game of tag linked in.
//!
//!     cargo run -p tag -- run examples/tag/main.weir
//!     printf join | nc -u 127.0.0.1 9000

mod board;

fn main() -> weir::Exit {
    weir::cli().with(board::tag).run()
}
