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
//! The package's `README.md` compares their speed.

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
