//! Bodies of a `map` that wait for nothing but one gathered call: their iterations share a frame (`frame/gathered.rs`).

use super::order::StepOrder;
use super::slots::SlotLayout;
use crate::step::{Action, GatheredCall, PreparedStep};

/// Returns the gathered call of a body, if nothing else in the body waits, and if its iterations need no order but the one in
/// which the calls are placed.
pub(super) fn gathered_call(steps: &[PreparedStep], order: &StepOrder, layout: &SlotLayout) -> Option<GatheredCall> {
    let is_gathered = |step: &PreparedStep| match step.action.form() {
        Action::Call(call) => call.gatherer.is_some() && call.locks.is_empty() && call.ticket_gate.is_none(),
        _ => false,
    };
    let at = steps.iter().position(is_gathered)?;
    let others_are_plain = steps.iter().enumerate().all(|(index, step)| index == at || is_plain(step.action.form()));
    let is_in_order = |index: usize| match index == at {
        true => order.awaits_orders[index] & !order.placed_orders[index] == 0,
        false => order.awaits_orders[index] == 0,
    };
    let shares = others_are_plain && (0..steps.len()).all(is_in_order);
    shares.then(|| GatheredCall { step: at as u32, live: layout.live_across(at) })
}

/// Returns true if an action waits for nothing, but for a call that takes long.
fn is_plain(action: &Action) -> bool {
    match action {
        Action::Nothing | Action::Prim(_) | Action::Simple(_) | Action::Select { .. } => true,
        Action::Switch(_) | Action::Condition(_) => true,
        Action::Never | Action::Return(_) | Action::Fail(_) => true,
        Action::Call(call) => {
            matches!(call.code, weir_host::FunctionCode::Immediate(_))
                && call.section.is_none()
                && call.locks.is_empty()
                && call.ticket_gate.is_none()
        }
        Action::Repeat(repeat) => !repeat.body.waits,
        Action::Timed(_) | Action::Acquire(_) | Action::Release(_) | Action::Region(_) | Action::Cut(_) => false,
    }
}
