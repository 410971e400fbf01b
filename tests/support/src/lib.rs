//! Test support that several crates use: libraries, sources and programs for tests.

// The functions of `fixture` are written as a user writes theirs, against a crate named `weir`.
#[cfg(feature = "fixture")]
extern crate weir_host as weir;

#[cfg(feature = "fixture")]
pub mod fixture;
#[cfg(feature = "flows")]
pub mod flows;
#[cfg(feature = "generator")]
pub mod generator;
pub mod long_program;
pub mod random;
