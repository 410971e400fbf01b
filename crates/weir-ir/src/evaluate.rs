//! The reference evaluator.
