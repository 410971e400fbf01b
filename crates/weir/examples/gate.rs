//! A `weir` command with a function of its own: it holds a flow until somebody lets it through.

use std::io::{self, Read};
use std::net::TcpStream;

/// Connects to `port` of this machine, and goes on when the other side closes the connection.
#[weir::function(blocking)]
pub fn pass(port: u16) -> Result<String, io::Error> {
    let mut said = String::new();
    TcpStream::connect(("127.0.0.1", port))?.read_to_string(&mut said)?;
    Ok(said)
}

weir::library!(
    /// Gates that hold flows.
    pub gate: pass
);

fn main() -> weir::Exit {
    weir::cli().with(gate).run()
}
