//! The laws of the house that lints cannot say, as tests.
