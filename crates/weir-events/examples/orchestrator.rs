//! The orchestrator of the paper's §3 and §4.1: three modules, one of which weaves the others' events without knowing
//! what is inside.
//!
//! The processor handles requests asynchronously: it sends its answer and goes on, and what it has to do when the
//! answer was taken is a post-consumption action inside its event. With synchronous events alone (§3) the orchestrator
//! can only wrap what happens when the processor has *started*; its "request end" comes too early. With asynchronous
//! ones (§4.1) it extends the post-consumption action of an event that it cannot look into.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::{Arc, Mutex};
use weir_events::{AsyncEvent, Channel, Event, a_guard, a_send, choose, guard};

/// The events of a run, in order.
type Log = Arc<Mutex<Vec<String>>>;

fn note(log: &Log, what: &str) {
    log.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(what.to_owned());
}

/// The processor module: answers on `answers`; its own post-consumption action is nobody else's business.
fn processor(answers: &Channel<&'static str>, log: &Log) -> AsyncEvent<(), ()> {
    let (created, consumed) = (log.clone(), log.clone());
    a_send(answers, "answer")
        .s_wrap(move |()| note(&created, "g: processor goes on"))
        .a_wrap(move |_| note(&consumed, "f: answer was taken"))
}

/// The connection manager module: a synchronous protocol, it only listens.
fn manager(connections: &Channel<&'static str>) -> Event<()> {
    connections.recv().wrap(drop)
}

/// The orchestrator of §4.1: chooses fairly between an asynchronous and a synchronous protocol and adds to both.
fn orchestrator(processor: &AsyncEvent<(), ()>, manager: &Event<()>, log: &Log) -> Event<()> {
    let (processor, manager, request, connection) = (processor.clone(), manager.clone(), log.clone(), log.clone());
    let requests = a_guard(move || {
        note(&request, "request start");
        let request = request.clone();
        processor.a_wrap(move |()| note(&request, "request end"))
    });
    let connections = guard(move || {
        note(&connection, "connection start");
        let connection = connection.clone();
        manager.wrap(move |()| note(&connection, "connection end"))
    });
    choose([requests.a_trans(), connections])
}

/// The orchestrator of §3: the best that synchronous combinators can do with the same processor.
fn synchronous_orchestrator(processor: &AsyncEvent<(), ()>, log: &Log) -> Event<()> {
    let (processor, log) = (processor.clone(), log.clone());
    guard(move || {
        note(&log, "request start");
        let log = log.clone();
        let start = processor.clone();
        weir_events::always(()).wrap(move |()| start.a_sync()).wrap(move |()| note(&log, "request end"))
    })
}

/// One request, answered when a client comes; returns what happened.
fn one_request(is_asynchronous: bool) -> Vec<String> {
    let (answers, connections, log) = (Channel::rendezvous(), Channel::rendezvous(), Log::default());
    let processor = processor(&answers, &log);
    let work = match is_asynchronous {
        true => orchestrator(&processor, &manager(&connections), &log),
        false => synchronous_orchestrator(&processor, &log),
    };
    let serving = std::thread::spawn(move || work.sync());
    let ended = |log: &Log, what: &str| log.lock().is_ok_and(|log| log.iter().any(|line| line.starts_with(what)));
    // The synchronous one waits for nobody: its request ends although no client has come.
    while answers.is_empty() || !is_asynchronous && !ended(&log, "request end") {
        std::thread::yield_now();
    }
    note(&log, "client comes");
    let _ = answers.blocking_recv();
    let _ = serving.join();
    while !ended(&log, "f:") || !ended(&log, "request end") {
        std::thread::yield_now();
    }
    log.lock().map(|log| log.clone()).unwrap_or_default()
}

fn main() {
    println!("synchronous combinators (§3): {:#?}", one_request(false));
    println!("asynchronous combinators (§4.1): {:#?}", one_request(true));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(lines: &[String], what: &str) -> usize {
        lines.iter().position(|line| line.starts_with(what)).unwrap()
    }

    #[test]
    fn with_synchronous_combinators_the_request_ends_before_the_answer_is_taken() {
        let lines = one_request(false);
        assert!(position(&lines, "request end") < position(&lines, "client comes"));
        assert!(position(&lines, "client comes") < position(&lines, "f:"));
    }

    #[test]
    fn with_asynchronous_combinators_the_request_ends_after_the_answer_was_taken() {
        let lines = one_request(true);
        assert_eq!(position(&lines, "request start"), 0);
        assert!(position(&lines, "client comes") < position(&lines, "f:"));
        assert!(position(&lines, "f:") < position(&lines, "request end"));
        assert!(!lines.iter().any(|line| line == "connection end"));
    }

    #[test]
    fn the_other_branch_leaves_the_processor_alone() {
        let (answers, connections, log) = (Channel::rendezvous(), Channel::rendezvous(), Log::default());
        let work = orchestrator(&processor(&answers, &log), &manager(&connections), &log);
        _ = connections.post("client");
        work.sync();
        let lines = log.lock().unwrap().clone();
        assert_eq!(lines, ["request start", "connection start", "connection end"]);
        assert!(answers.is_empty());
    }
}
