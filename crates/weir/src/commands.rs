//! The commands, one file each.

mod check;
mod explain;
mod fmt;
mod graph;
mod new;
mod run;
mod watch;

pub(crate) use check::check;
pub(crate) use explain::explain;
pub(crate) use fmt::fmt;
pub(crate) use graph::graph;
pub(crate) use new::new;
pub(crate) use run::run;
pub(crate) use watch::watch;
