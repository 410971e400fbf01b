//! The commands, one file each.

mod check;
mod explain;
mod fmt;
mod graph;
mod run;

pub(crate) use check::check;
pub(crate) use explain::explain;
pub(crate) use fmt::fmt;
pub(crate) use graph::graph;
pub(crate) use run::run;
