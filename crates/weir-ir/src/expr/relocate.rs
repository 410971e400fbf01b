//! Relocation: gives the operations of a flow other places in the text, so that a flow can be kept when its text has moved.

use weir_host::Value;

use super::{Atom, Block, Op, Origin};
use crate::prim::Prim;

impl Block {
    /// Replaces the origin of every operation of the block and of all blocks within. A position in the backtrace of a failure is
    /// replaced like the start of an origin outside of inlined calls.
    pub fn relocate(&mut self, place: &mut impl FnMut(Origin) -> Origin) {
        for binding in &mut self.lets {
            binding.origin = place(binding.origin);
            if let Op::Prim(Prim::Propagate, operands) = &mut binding.op
                && let [_, Atom::Value(Value::List(sites))] = &mut operands[..]
            {
                *sites = sites.iter().map(|site| relocated_site(&site, place)).collect();
            }
            if let Op::Fold { exit, .. } = &mut binding.op
                && let Some(position) = exit.position_mut()
            {
                *position = place(*position);
            }
            binding.op.blocks_mut().for_each(|inner| inner.relocate(place));
        }
    }
}

/// Returns a site of a backtrace at its new position.
fn relocated_site(site: &Value, place: &mut impl FnMut(Origin) -> Origin) -> Value {
    match site {
        Value::Record(parts) => match &parts[..] {
            [failed, function, Value::Int(position)] => {
                let start = u32::try_from(*position).unwrap_or_default();
                let now = place(Origin { start, end: start, inlined_call: None });
                Value::Record([failed.clone(), function.clone(), Value::Int(now.start.into())].into_iter().collect())
            }
            _ => site.clone(),
        },
        _ => site.clone(),
    }
}
