//! The guides are true: every program in them is checked, and run where it says so, and every command exists.
//!
//! The checks that the info string of a fenced block requests:
//!
//! | info string | the block |
//! |---|---|
//! | `weir` | is a program of which the compiler says nothing, in the one style |
//! | `weir fails E0301` | is a program of which the compiler says exactly this code (or these, separated by blanks) |
//! | `weir runs` | is as `weir`, and does what the `text` block behind it says, under every engine |
//! | `weir prints` | is as `weir`, and prints what the `text` block behind it has, under every engine |
//! | `weir tests` | is as `weir`, and its tests pass |
//! | `weir words` | is as `weir`, for a command with the module `words` of the guide to functions of the host |
//! | `toml plan` | is a plan for the program before it, of which `weir plan` says what the `text` block behind it says |
//! | `sh` | names only commands and options of `weir` that exist |

#[path = "../command/support.rs"]
#[allow(dead_code, reason = "the tests of the command use more of it")]
mod support;

mod commands;
mod grammar;
mod markdown;
mod programs;
mod requests;
mod scratch;
mod tables;
#[allow(unreachable_pub, reason = "the guide shows a crate of its own")]
mod words;
