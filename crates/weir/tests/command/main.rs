//! The `weir` command as a real process.

mod messages;
mod picture;
mod serve;
mod streams;
mod support;
