//! Regions: nodes that neither wait nor meet a turn nor take a lock, as register bytecode.
//!
//! A *region* is a maximal set of neighbouring nodes of a body that run as one piece: nothing outside can come between
//! them. Its code knows the types of ports, so that numbers are machine words instead of tagged values; a switch is a
//! jump; and a `for`, `fold` or `loop` whose body qualifies is a loop of the code, without a frame for its rounds.
//!
//! `prepare/regions` finds the regions of a body and compiles them. This module has
//!
//! * the instructions (`instruction`), the tables that they refer to (`code`, `changes`), and the shapes of words (`shapes`);
//! * the parts of a region that may run on several threads (`parts`), the states of a `fold` whose rounds may
//!   (`reductions`), and the accesses of instructions to its state, from
//!   which the parts are found (`accesses`);
//! * the verifier (`verify`): it checks that code is sound before it ever runs. Debug builds verify every region;
//! * the interpreter (`interpret`, `outside`, `elements`, `entries`, `rounds`): it runs the code over words and slots. It stops at the end, at an end of the
//!   flow, or at a safe point when the slice is over. The number of the instruction is then all that is needed to go on.
//!
//! The step form of every node stays: flows whose nodes are recorded run it, and so do frames that stop inside of a
//! region because a plan has cut the body there.

mod accesses;
mod calls;
mod changes;
mod code;
mod elements;
mod entries;
mod instruction;
mod interpret;
mod listing;
mod outcome;
mod outside;
mod parts;
mod place;
mod reduced_maps;
mod reductions;
mod rounds;
mod shapes;
mod splits;
mod stop;
mod verify;

pub(crate) use accesses::{StateAccess, StateLocation};
pub(crate) use changes::{EntryChange, EntryUpdate, PushedCall, PushedWord, RoundEffect, RoundsAtOnce, StoredWord};
pub(crate) use code::{
    CallEffects, ElementReplacement, ElementWords, FieldOperand, LookUp, LookUpOutput, LoopOutcome, LoopRow,
    RecordTransfer, Region, RegionOperand, SPLITS_MAX, ScalarPrim, SlotCall, SplitLoop, Tables, ValueArm, ValueSwitch,
    WordCall,
};
pub(crate) use instruction::{FrameSlot, Instruction, Register, RegisterAccess, TableIndex, Target};
pub(crate) use interpret::{LARGE_WINDOW, Machine};
pub(crate) use parts::{
    ComputationOrder, PARTS_MAX, PartCost, PartObstacle, RegionPart, RegionPiece, RoundCost, SlowLoops,
};
pub(crate) use place::CodePlace;
pub(crate) use reduced_maps::{MapReduction, ReducedMap};
pub(crate) use reductions::{
    FoldObstacle, PartialStates, ReducedState, ReductionKind, Reductions, kind as reduction_kind,
};
pub(crate) use shapes::{Scalar, WordShape, WordTypes, word_of};
pub(crate) use stop::{LongCall, RegionBorders, RegionStop};
