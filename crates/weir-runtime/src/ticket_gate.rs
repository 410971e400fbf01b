//! The turns of flows at calls with private state, with their model.

pub(crate) use gate::TicketGate;

mod gate;
#[cfg(test)]
mod model;
mod sync;

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    fn is_turn_of(gate: &TicketGate, sequence: u64) -> bool {
        gate.poll(sequence, &mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn flows_come_in_their_order_and_those_that_passed_are_not_waited_for() {
        let gate = TicketGate::default();
        assert!(is_turn_of(&gate, 0) && !is_turn_of(&gate, 1));
        gate.pass(2);
        gate.pass(1);
        assert!(!is_turn_of(&gate, 3));
        gate.pass(0);
        gate.pass(0);
        assert!(is_turn_of(&gate, 3) && !is_turn_of(&gate, 4));
    }
}
