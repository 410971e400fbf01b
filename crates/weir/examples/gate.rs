//! A `weir` command with a function of its own, which holds a flow until another request releases it.

use std::io::{self, Read};
use std::net::TcpStream;

/// Connects to `port` on this machine, and returns when the other side closes the connection.
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
