//! Bodies of a `map` that wait for nothing but one gathered call, or several: their iterations share a frame (`frame/gathered.rs`,
//! `frame/iteration_group.rs`).

use weir_host::Argument;

use super::order::StepOrder;
use super::slots::SlotLayout;
use crate::step::{Action, CallStep, GatheredCall, NONE, Out, PreparedStep};

/// The slot of the element of an iteration.
const ELEMENT: u32 = 0;

/// Returns the gathered call of a body, if nothing else in the body waits, and if its iterations need no order but the one in
/// which the calls are placed.
pub(super) fn gathered_call(
    steps: &[PreparedStep],
    result: Option<Argument>,
    order: &StepOrder,
    layout: &SlotLayout,
) -> Option<GatheredCall> {
    let at = steps.iter().position(is_gathered)?;
    let others_are_plain = steps.iter().enumerate().all(|(index, step)| index == at || is_plain(step.action.form()));
    let is_in_order = |index: usize| match index == at {
        true => order.awaits_orders[index] & !order.placed_orders[index] == 0,
        false => order.awaits_orders[index] == 0,
    };
    let shares = others_are_plain && (0..steps.len()).all(is_in_order);
    let Action::Call(call) = steps[at].action.form() else { return None };
    let live = layout.live_across(at);
    let keeps_others = live.iter().any(|slot| *slot != ELEMENT);
    shares.then(|| GatheredCall {
        step: at as u32,
        live,
        takes_element: at == 0 && !keeps_others && takes_element(call),
        yields_answer: yields_answer(call, &steps[at + 1..], result),
    })
}

/// Returns true if the steps of a body wait for gathered calls alone, and its iterations need no order.
pub(super) fn groups_iterations(steps: &[PreparedStep], order: &StepOrder) -> bool {
    let is_plain_or_gathered = |step: &PreparedStep| is_gathered(step) || is_plain(step.action.form());
    order.order_lengths.is_empty() && steps.iter().any(is_gathered) && steps.iter().all(is_plain_or_gathered)
}

/// Returns true for a call that is gathered, and needs nothing but its arguments.
fn is_gathered(step: &PreparedStep) -> bool {
    match step.action.form() {
        Action::Call(call) => call.is_gathered() && call.locks.is_empty() && call.ticket_gate.is_none(),
        _ => false,
    }
}

/// Returns true if the element is the argument of a first step that is gathered, and no other argument differs between
/// iterations or is moved.
fn takes_element(call: &CallStep) -> bool {
    let gathered = call.gatherer.as_ref().map_or(0, |gatherer| gatherer.gathered());
    call.arguments.iter().enumerate().all(|(index, argument)| match argument {
        Argument::Slot { index: ELEMENT, .. } => index == gathered,
        Argument::Slot { last: false, .. } | Argument::Constant(_) => index != gathered,
        Argument::Shared(_) => call.borrows(),
        Argument::Slot { last: true, .. } => false,
    })
}

/// Returns true if the value of a call is the result of its body, and if no step behind it runs then: only those of the arm that
/// it takes if it fails.
fn yields_answer(call: &CallStep, behind: &[PreparedStep], result: Option<Argument>) -> bool {
    if call.kept_failure.is_some() {
        return false;
    }
    let (mut answer, decides) = match call.out {
        Out::Value(slot) => (slot, None),
        Out::OfResult { switch, ok: (arm, slot), .. } => (slot, Some((switch, arm))),
        Out::Result(_) | Out::OfOption { .. } => return false,
    };
    for step in behind {
        let in_other_arm = decides.is_some_and(|(switch, arm)| step.switch == switch && step.arm != arm);
        match step.action.form() {
            _ if in_other_arm => {}
            Action::Nothing => {}
            Action::Select { switch, inputs, out } => {
                let Some((_, arm)) = decides.filter(|(decided, _)| decided == switch) else { return false };
                match inputs.get(arm as usize) {
                    Some(Some(Argument::Slot { index, last: true })) if *index == answer => answer = *out,
                    _ => return false,
                }
            }
            _ => return false,
        }
    }
    answer != NONE && matches!(result, Some(Argument::Slot { index, last: true }) if index == answer)
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
        Action::Timed(_) | Action::Acquire(_) | Action::Release { .. } | Action::Region(_) | Action::Cut(_) => false,
    }
}
