//! Stops of a region, and the continuation after an instruction.

use std::sync::Arc;

use weir_host::{DetachedCall, Failure, ImmediateCode, Value};

use super::instruction::Target;

/// The reason why a region stops.
pub(crate) enum RegionStop {
    /// All its nodes have run.
    Done,
    /// The slice is over; it goes on at this instruction.
    Yields(usize),
    /// The call of this instruction takes too long for the thread, and has not begun.
    Calls(usize, LongCall),
    /// It has come to this loop, whose rounds may be slow, at this instruction.
    LoopBegins(usize, usize),
    /// The last round of this loop has run, whose rounds run on several threads.
    LoopEnds(usize),
    /// It has come to this part, which another thread runs.
    PartBegins(usize),
    /// This part has run.
    PartEnds,
    /// An instruction ends the flow, with an answer or a failure.
    Ends(usize, Result<Value, Box<Failure>>),
}

/// The borders of loops and parts at which a region stops, because another thread runs what lies behind or before them. Each
/// field is a set of bits.
#[derive(Clone, Copy, Default)]
pub(crate) struct RegionBorders {
    /// The loops whose beginning it is, because their rounds may be slow.
    pub loop_beginnings: u64,
    /// The loops whose end it is.
    pub loop_ends: u64,
    /// The parts whose beginning it is.
    pub part_beginnings: u64,
    /// The parts whose end it is.
    pub part_ends: u64,
}

/// A call that takes too long for the thread that came to it: it runs on a thread that may block.
pub(crate) struct LongCall {
    pub call: DetachedCall,
    pub code: Arc<ImmediateCode>,
    pub path: Arc<str>,
}

/// The continuation after an instruction that is not in the interpreter's loop.
pub(crate) enum After {
    Next,
    Jump(Target),
    Stop(RegionStop),
}
