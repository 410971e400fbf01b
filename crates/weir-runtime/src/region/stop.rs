//! Stops of a region, and the continuation after an instruction.

use weir_host::{Failure, Value};

use super::instruction::Target;

/// The reason why a region stops.
#[derive(Debug)]
pub(crate) enum RegionStop {
    /// All its nodes have run.
    Done,
    /// The slice is over; it goes on at this instruction.
    Yields(usize),
    /// An instruction ends the flow, with an answer or a failure.
    Ends(usize, Result<Value, Box<Failure>>),
}

/// The continuation after an instruction that is not in the interpreter's loop.
pub(crate) enum After {
    Next,
    Jump(Target),
    Stop(RegionStop),
}
