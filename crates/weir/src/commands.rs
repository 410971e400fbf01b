//! The commands beside `run`, one file each, and their command line.

pub(crate) mod arguments;
mod check;
mod doc;
mod explain;
mod fix;
mod fmt;
mod graph;
mod lsp;
mod new;
mod plan;
mod tables;
mod test;
mod top;
mod watch;

pub(crate) use check::check;
pub(crate) use doc::doc;
pub(crate) use explain::explain;
pub(crate) use fix::fix;
pub(crate) use fmt::fmt;
pub(crate) use graph::graph;
pub(crate) use lsp::lsp;
pub(crate) use new::new;
pub(crate) use plan::plan;
pub(crate) use tables::tables;
pub(crate) use test::test;
pub(crate) use top::top;
pub(crate) use watch::watch;
