//! HTTP: the server, and what programs see of requests and answers.

pub mod server;
