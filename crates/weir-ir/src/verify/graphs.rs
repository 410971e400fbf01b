//! TEMP
use super::Report;
use super::types::Types;
use crate::graph::Graph;
use crate::program::Variable;
use weir_host::{Library, Type};
pub(super) fn flow(_t: &Types<'_>, _l: &Library, _p: &[Variable], _b: &Graph, _r: Option<&Type>, _rep: &mut Report) {}
