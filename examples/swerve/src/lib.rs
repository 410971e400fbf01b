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
//! Everything exists in two versions, selected by [`Style`]. The synchronous one uses only synchronous events, like the
//! original: each hand-over waits until the other side receives it, and the file processor runs in lock-step with the
//! network. The asynchronous one sends the same values over the same channels, and a sender waits only if it has to.
//! The differing lines are marked by `match style`; nothing else differs, so that the gain can be measured in
//! isolation.

mod file_processor;
mod http;
mod listener;
mod log;
pub mod measure;
mod network_processor;
mod server;
mod timeouts;

pub use server::{Server, Settings, Style};
