//! Library of something outside of the programs, which they hold by a constraint: a number with its history, like a log.

use crate::probe::Probe;

weir::library! {
    /// The vault.
    pub(crate) vault: deposit, slow_deposit, balance, slow_balance
}

#[weir::function]
fn deposit(flow: i64, token: i64, by: i64, #[environment] probe: &Probe) -> i64 {
    let before = probe.note_vault(flow, token, true);
    probe.set_vault(changed(before, by))
}

#[weir::function]
async fn slow_deposit(flow: i64, token: i64, by: i64, #[environment] probe: &Probe) -> i64 {
    let before = probe.note_vault(flow, token, true);
    probe.pause().await;
    probe.set_vault(changed(before, by))
}

#[weir::function(reads)]
fn balance(flow: i64, token: i64, #[environment] probe: &Probe) -> i64 {
    probe.note_vault(flow, token, false)
}

#[weir::function(reads)]
async fn slow_balance(flow: i64, token: i64, #[environment] probe: &Probe) -> i64 {
    let saw = probe.note_vault(flow, token, false);
    probe.pause().await;
    saw
}

fn changed(before: i64, by: i64) -> i64 {
    before.wrapping_mul(3).wrapping_add(by) % 1_000_003
}
