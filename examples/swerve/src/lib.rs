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
//! Everything is there twice, in a [`Style`]: with synchronous events only, as the original was engineered, where each
//! hand-over waits until the other side takes it and the file processor moves in lock-step with the network; and with
//! asynchronous ones, where the same values travel over the same channels and nobody waits who need not. Which line
//! differs is marked by a `match style`, and nothing else differs: so the gain can be measured apart.

mod file_processor;
mod http;
mod listener;
mod log;
pub mod measure;
mod network_processor;
mod server;
mod timeouts;

pub use server::{Server, Settings, Style};
