//! Serves a folder, or measures all styles side by side.
//!
//! ```text
//! swerve <folder> [port] [sync|ahead|async]
//! swerve measure [clients] [requests of each]
//! ```
#![expect(clippy::print_stdout, reason = "what a command line says")]

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use swerve::measure::load;
use swerve::{Server, Settings, Style};

/// Sizes of the files that are measured, in bytes.
const SIZES: [usize; 4] = [1_000, 50_000, 500_000, 5_000_000];

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, default: usize| {
        arguments.get(place).and_then(|argument| argument.parse().ok()).unwrap_or(default)
    };
    match arguments.first().map(String::as_str) {
        Some("measure") => measure(number(1, 16), number(2, 200)),
        Some(folder) => serve(folder, number(1, 8080), style(arguments.get(2).map(String::as_str))),
        None => {
            println!("swerve <folder> [port] [sync|ahead|async]\nswerve measure [clients] [requests of each]");
            Ok(())
        }
    }
}

fn settings(root: &Path, port: u16, style: Style) -> Settings {
    Settings {
        root: root.to_owned(),
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        style,
        connections: 64,
        readers: 8,
        time_limit: Duration::from_secs(10),
    }
}

fn style(name: Option<&str>) -> Style {
    match name {
        Some("sync") => Style::Synchronous,
        Some("ahead") => Style::ReadAhead,
        _ => Style::Asynchronous,
    }
}

fn serve(folder: &str, port: usize, style: Style) -> io::Result<()> {
    let port = u16::try_from(port).map_err(io::Error::other)?;
    let server = Server::start(&settings(Path::new(folder), port, style))?;
    println!("http://{} ({style:?})", server.address());
    weir_events::never::<()>().sync();
    Ok(())
}

fn measure(clients: usize, requests: usize) -> io::Result<()> {
    let root: PathBuf = std::env::temp_dir().join(format!("swerve-{}", std::process::id()));
    std::fs::create_dir_all(&root)?;
    println!("{clients} clients, {requests} requests each, a connection per request and per 10 requests");
    println!("{:>9} {:>4}  {:>12} {:>10} {:>10}", "bytes", "per", "answers/s", "median", "99th");
    for size in SIZES {
        std::fs::write(root.join("file"), vec![b'x'; size])?;
        for per_connection in [1, 10] {
            for style in [Style::Synchronous, Style::ReadAhead, Style::Asynchronous] {
                let server = Server::start(&settings(&root, 0, style))?;
                let measured = load(server.address(), "/file", clients, requests, per_connection)?;
                println!(
                    "{size:>9} {per_connection:>4}  {:>12.0} {:>10.1?} {:>10.1?}  {style:?}",
                    measured.answers_per_second, measured.median, measured.slowest_hundredth
                );
                server.stop();
            }
        }
    }
    std::fs::remove_dir_all(&root)
}
