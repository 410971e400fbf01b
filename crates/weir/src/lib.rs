//! The weir command, and the face that authors of host functions build on.
