//! Relocation: gives the operations of a flow other places in the text, so that a flow can be kept when its text has moved.

use weir_host::Value;

use super::{Atom, Block, Call, Op, Origin};
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
            if let Op::Call(call) = &mut binding.op {
                relocate_failure_site(call, place);
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

/// The beginning of the names of functions whose last argument is the place of their failure, if it is known.
const PLACED: &str = "tables.place_";

/// Relocates the place of the failure of a placed change: the sites of the backtrace, and where the failure leaves the flow.
fn relocate_failure_site(call: &mut Call, place: &mut impl FnMut(Origin) -> Origin) {
    if !call.function.starts_with(PLACED) {
        return;
    }
    let Some(Atom::Value(Value::Variant(Value::SOME, Some(payload)))) = call.arguments.last() else { return };
    let [Value::Record(parts)] = &payload[..] else { return };
    let [Value::List(sites), Value::Int(position)] = &parts[..] else { return };
    let sites = sites.iter().map(|site| relocated_site(&site, place)).collect();
    let site = Value::Record([Value::List(sites), Value::Int(relocated_position(*position, place))].into());
    call.arguments.pop();
    call.arguments.push(Atom::Value(Value::some(site)));
}

fn relocated_position(position: i64, place: &mut impl FnMut(Origin) -> Origin) -> i64 {
    let start = u32::try_from(position).unwrap_or_default();
    place(Origin { start, end: start, inlined_call: None }).start.into()
}

/// Returns a site of a backtrace at its new position.
fn relocated_site(site: &Value, place: &mut impl FnMut(Origin) -> Origin) -> Value {
    match site {
        Value::Record(parts) => match &parts[..] {
            [failed, function, Value::Int(position)] => {
                let now = Value::Int(relocated_position(*position, place));
                Value::Record([failed.clone(), function.clone(), now].into_iter().collect())
            }
            _ => site.clone(),
        },
        _ => site.clone(),
    }
}
