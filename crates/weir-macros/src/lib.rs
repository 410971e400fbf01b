//! The attributes with which a Rust function becomes a function of the host.
