//! The guides are correct: every program in them is checked, and run if its block says so, and every command exists.
//!
//! Info strings of fenced blocks:
//!
//! | info string | the block |
//! |---|---|
//! | `weir` | is a formatted program without diagnostics |
//! | `weir fails E0301` | is a program with exactly this code (or these, separated by blanks) |
//! | `weir runs` | is as `weir`, and answers as the `text` block after it shows, under every engine |
//! | `weir prints` | is as `weir`, and prints the `text` block after it, under every engine |
//! | `weir tests` | is as `weir`, and its tests pass |
//! | `weir words` | is as `weir`, for a command with the module `words` of the guide to host functions |
//! | `toml plan` | is a plan for the program before it; `weir plan` prints the `text` block after it |
//! | `sh` | uses only existing commands and options of `weir` |

#[path = "../command/support.rs"]
#[allow(dead_code, reason = "the tests of the command use more of it")]
mod support;

mod commands;
mod explain;
mod functions;
mod grammar;
mod markdown;
mod program_lines;
mod programs;
mod requests;
mod scratch;
mod tables;
#[allow(unreachable_pub, reason = "the guide shows a crate of its own")]
mod words;
