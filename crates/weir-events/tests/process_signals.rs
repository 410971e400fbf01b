//! Signals of the process as events, with the feature `signals`.
#![cfg(all(unix, not(loom)))]
#![allow(clippy::unwrap_used, reason = "a test may fail anywhere")]

mod common;

use common::TOO_LONG;
use std::process::Command;
use tokio::signal::unix::SignalKind;
use weir_events::*;

fn send_to_this_process(signal: &str) {
    let sent = Command::new("kill").args([signal, &std::process::id().to_string()]).status().unwrap();
    assert!(sent.success());
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

#[test]
fn a_signal_that_arrives_is_one_event() {
    let runtime = runtime();
    let arrives = runtime.block_on(async { ProcessSignal::new(SignalKind::user_defined1()).unwrap() });
    assert_eq!(arrives.arrived().poll(), None);
    send_to_this_process("-USR1");
    let is_first = choose([arrives.arrived().wrap(|()| true), never()]);
    assert_eq!(is_first.sync_timeout(TOO_LONG), Some(true), "a thread waits");
    assert_eq!(arrives.arrived().poll(), None);
    send_to_this_process("-USR1");
    runtime.block_on(arrives.arrived().synchronise());
}

#[test]
fn a_lost_choice_leaves_the_arrival() {
    let runtime = runtime();
    let arrives = runtime.block_on(async { ProcessSignal::new(SignalKind::user_defined2()).unwrap() });
    assert_eq!(choose_biased([always(1), arrives.arrived().wrap(|()| 2)]).sync(), 1);
    send_to_this_process("-USR2");
    common::until(|| arrives.has_arrived());
    assert_eq!(choose_biased([always(1), arrives.arrived().wrap(|()| 2)]).sync(), 1);
    assert_eq!(arrives.arrived().poll(), Some(()));
}

#[test]
fn a_signal_that_cannot_be_received_is_an_error() {
    let runtime = runtime();
    assert!(runtime.block_on(async { ProcessSignal::new(SignalKind::from_raw(9)) }).is_err());
}
