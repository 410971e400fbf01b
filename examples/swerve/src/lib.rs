//! Swerve: a small static web server in four modules, after the case study in §6 of *Composable Asynchronous Events*.
//!
//! The modules know each other only through channels and events:
//!
//! ```text
//!            connections                 requests
//! listener ──────────────▶ network ──────────────────▶ file processor
//!                          processor ◀──────────────── (n threads)
//!                          (n threads)   transfers        ▲
//!                                                         │ abort
//!            all of them ──▶ log                       timeouts
//! ```
//!
//! Everything exists in three versions, selected by [`Style`]:
//!
//! - the synchronous one is the original: each hand-over waits until the other side receives it, and the file processor
//!   runs in lock-step with the network;
//! - read-ahead adds buffers to it, and nothing else, to show what they gain;
//! - the asynchronous one makes the changes of §6 with asynchronous events: an arbitrated reader (`arbitrated_reader`),
//!   packets made in parallel (`packets`), and a log that rolls and ends the process (`log`).
//!
//! The differing lines are marked by `match style`, so that the gain can be measured in isolation.
//!
//! # Measurements
//!
//! On two cores (`bench-swerve` and `swerve measure`, other programs running beside them):
//!
//! | | lock-step | read-ahead | asynchronous events |
//! |---|---|---|---|
//! | 128 clients that read slowly, files of 1 MiB: files per second | 16 | 83 | 85 |
//! | 16 fast clients, files of 50 kB: answers per second | 8,795 | 11,347 | 6,842 |
//! | 16 fast clients, files of 5 MB: answers per second | 245 | 484 | 195 |
//! | a client that stops reading: bytes it still gets after its time is up, beyond the system's buffers | 0 | 1 MiB | 80 KiB |
//!
//! Read-ahead alone explains the gain in throughput: the reader no longer waits for the network. Asynchronous events add
//! what a buffer cannot give: a timeout overtakes the chunks that were read ahead, and no reader thread waits for a slow
//! client. They cost two actions for each chunk, which run on implicit threads; for fast clients on a loaded machine
//! that is more than lock-step costs. The paper's figures are for lightweight threads, where an action costs next to
//! nothing.

mod arbitrated_reader;
mod file_processor;
mod http;
mod listener;
mod log;
pub mod measure;
mod network_processor;
mod packets;
mod server;
mod timeouts;

pub use log::OpenLog;
pub use server::{Server, Settings, Style};
