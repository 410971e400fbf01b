//! The `weir` command as a real process.

mod config;
mod decoding;
mod deep;
mod ends;
mod graph;
mod histories;
mod idle;
mod lsp;
mod memory;
mod messages;
mod modules;
mod overload;
mod programs;
mod references;
mod serve;
mod services;
mod slices;
mod streams;
mod support;
mod tables;
mod templates;
mod time;
mod tls;
mod top;
mod weir_modules;
mod weir_test;
