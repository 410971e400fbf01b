//! The closed list of things that can happen in a running program, and a recorder of them.
