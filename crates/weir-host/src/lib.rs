//! The contract between Weir and functions written in Rust: types, values, signatures, calls and sources.
//!
//! A *host function* is a plain Rust function with the attribute `#[weir::function]`. Its [`Signature`] contains all
//! that the compiler needs; its [`FunctionCode`] is what an engine runs. A *shared value* is one Rust value for all flows; a
//! function that takes it by `&` is a reader, one that takes it by `&mut` a writer. A [`Source`] begins flows.
//!
//! ```
//! # extern crate weir_host as weir;
//! use weir::{Bytes, Failure};
//!
//! /// A picture that only functions of the host look into.
//! #[derive(Clone, weir::Type)]
//! #[weir(opaque, name = "image.Ppm")]
//! pub struct Ppm(Bytes);
//!
//! /// Compresses an image to JPEG.
//! #[weir::function(pure)]
//! pub fn to_jpeg(image: &Ppm, #[default(85)] quality: u8) -> Result<Bytes, Failure> {
//!     # let _ = quality;
//!     Ok(image.0.clone())
//! }
//!
//! weir::library! {
//!     /// Pictures.
//!     image: to_jpeg
//! }
//!
//! # fn main() {
//! let signature = &image().functions["to_jpeg"].signature;
//! assert_eq!(signature.path(), "image.to_jpeg");
//! assert_eq!(signature.call_type().to_string(), "Result(Bytes, Failure)");
//! # }
//! ```
//!
//! Architecture invariant: this crate knows neither programs nor schedulers. Everything else may know it.

// The derived code of `Secret` names this crate as a user would.
extern crate self as weir;

mod batch;
mod call;
mod convert;
mod earlier_reads;
mod event_thread;
mod failure;
mod issued_ids;
mod library;
mod listen_address;
mod location;
mod outcome;
mod passing;
mod reachable_hosts;
mod resource;
mod secret;
mod seen_commits;
mod signature;
mod source;
mod source_text;
mod text;
mod trace_context;
mod typed;
mod types;
mod value;

pub mod memory;

/// Support code for the expansions of the attributes; not for use by hand.
pub mod macros;

pub use batch::{Batch, BatchAnswers, BatchCode, PendingBatch};
pub use bytes::Bytes;
pub use call::{
    Argument, AwaitedCall, BlockingCode, BlockingJob, Call, CallRest, Closing, DetachedCall, DurableCommits,
    Environment, FunctionCode, ImmediateCode, Pending, PlacedCalls, Settled, Settling, Starting, StepEnd, StepEnds,
    UnitBudget, WaitingCode, WordCode,
};
pub use convert::{Borrowable, BorrowedArgument, BorrowedArgumentMut, Generic, HostType, Size};
pub use earlier_reads::EarlierReads;
pub use event_thread::{assert_may_block, begin_event_thread, may_block};
pub use failure::{Failure, FailureKind, PropagationSite};
pub use issued_ids::IssuedIds;
pub use library::{Function, Library, LibraryError, Module};
pub use listen_address::{ListenAddress, ListenProtocol};
pub use location::Location;
pub use macros::FunctionOptions;
pub use outcome::Outcome;
pub use passing::Passing;
pub use reachable_hosts::{ReachableHosts, ends_in_number};
pub use resource::{Mode, ReadGuard, Reading, Resource, Shared, WriteGuard, Writing};
pub use secret::Secret;
pub use seen_commits::{EnteredCommits, SeenCommits};
pub use signature::{Effects, Parameter, Signature, StateOf, World};
pub use source::{
    Begun, Flows, LocalFuture, Loops, Opened, ParameterFrom, Progress, Route, RouteParameter, Source, SourceProblem,
    SourceSignature, Stop,
};
pub use source_text::source_text;
pub use text::Text;
pub use trace_context::{EnteredTrace, FlowTrace, TraceContext};
pub use typed::{NamedArguments, TypeArgument, TypeOf, Typed};
pub use types::{Field, Type, TypeDefinition, TypeShape, Variant};
pub use value::{Element, Elements, Entries, HostValue, Unique, Value, Values, Walk};
pub use weir_macros::{FunctionOptions, Type, batched, function, library};
